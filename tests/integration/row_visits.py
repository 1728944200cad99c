"""How often each row was trained on, read from the weights of a model.

A row is its number, which input.map makes one-hot. Two dense layers of one unit
read it, so that each of two ps tasks has the visits of every row, and SGD draws
their sum from 0 to 1, so slowly that each visit of row i adds as much to
weight i: 2 * LEARNING_RATE / (rows of the update). In async an update is a
step of one worker, in sync the mean of a round.
"""

import collections
import itertools
import math
import os
import struct

from tests.integration import safetensors_file

LEARNING_RATE = 1e-6
LAYERS = ("left", "right")
# More visits of one row are told from no other mistake.
MOST_VISITS = 12
# Of the smallest step between two sums of visits; float32 and the way to 1
# already gone take far less.
TOLERANCE = 0.1

TRAINING = """
model {
  name: "row_visits" input_shape: [%(rows)d]
  block { name: "counter" layer {
    name: "dense" type: "dense"
    attr { name: "units" i: 1 } attr { name: "use_bias" b: false }
    attr { name: "initializer" s: "zeros" }
  } }
  layer { name: "left" type: "counter" input: "input" }
  layer { name: "right" type: "counter" input: "input" }
  layer { name: "sum" type: "add" input: "left" input: "right" }
  layer { name: "loss" type: "mean_squared_error" }
}
input {
  type: "csv" dir: "%(folder)s" batch_size: %(batch_size)d shape: [1]
  map { type: "one_hot" attr { name: "classes" i: %(rows)d } }
}
optimizer { name: "sgd" attr { name: "learning_rate" f: %(rate)g } }
stop { epochs: %(epochs)d }
checkpoint { every_steps: 300 }
seed: 7
"""


def training(folder, rows, batch_size, epochs):
    """Writes the rows into `folder`; the text of a training file."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "train.csv"), "w", encoding="utf-8") as file:
        file.write("row,label\n")
        file.writelines("%d,1\n" % row for row in range(rows))
    return TRAINING % {"folder": folder, "rows": rows, "epochs": epochs,
                       "batch_size": batch_size, "rate": LEARNING_RATE}


def weights(checkpoint):
    """{layer: its weights} of a checkpoint's folder."""
    tensors = safetensors_file.read(
        os.path.join(checkpoint, "parameters.safetensors"))
    return {layer: struct.unpack("<%df" % (len(data) // 4), data)
            for layer in LAYERS
            for _, _, data in [tensors[layer + "/dense/weights"]]}


class Visits:
    """The visits of every row.

    Where updates have several sizes a weight may stand for several counts (an
    update of 1 row adds what two of 2 do); none is held against the row then.
    """

    def __init__(self, layer_weights, update_rows):
        """`update_rows`: the sizes that an update can have."""
        # A visit adds a whole number of such parts.
        parts = math.lcm(*update_rows)
        counts = collections.defaultdict(set)
        for count in range(MOST_VISITS + 1):
            for visits in itertools.combinations_with_replacement(update_rows,
                                                                  count):
                counts[sum(parts // rows for rows in visits)].add(count)
        self._counts = []
        for row, weight in enumerate(layer_weights):
            added = weight * parts / (2 * LEARNING_RATE)
            if (abs(added - round(added)) > TOLERANCE or
                    round(added) not in counts):
                raise AssertionError(
                    "row %d: no 0 to %d visits in updates of %s rows make its "
                    "weight %g" % (row, MOST_VISITS, update_rows, weight))
            self._counts.append(counts[round(added)])

    def missing(self, times):
        """Visits that rows lack to `times` each, all together."""
        return sum(max(0, times - max(counts)) for counts in self._counts)

    def most_missing(self, times):
        """The same if each weight stands for the fewest visits that it can."""
        return sum(max(0, times - min(counts)) for counts in self._counts)

    def surplus(self, times):
        """Visits beyond `times` a row, all together."""
        return sum(max(0, min(counts) - times) for counts in self._counts)

    def __str__(self):
        histogram = collections.Counter(
            "/".join(map(str, sorted(counts))) for counts in self._counts)
        return ", ".join("%d rows %s times" % (rows, count)
                         for count, rows in sorted(histogram.items()))
