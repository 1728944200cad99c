"""The bare all-reduce between two processes, beside Gloo's ring (--peers).

Ours is a training without compute to speak of: two equal layers, of which each
worker's process holds one, and one row a step. So it has the update, too.
Python 3 standard library only.
"""

import json
import math
import os
import sys
import tempfile

from . import peers, processes
from .figures import Figure, Measurement

PART = "training"
PROCESSES = 2
SIZES_MB = (1, 13, 100)
# Of one training; bytes of the model times updates.
WORK_BYTES = 8 << 30
MOST_STEPS = 2000
SECONDS = 2.0

TRAINING = """
model {
  name: "two_halves"
  input_shape: [%(width)d]
  layer { name: "first" type: "dense" attr { name: "units" i: %(width)d } }
  layer { name: "second" type: "dense" attr { name: "units" i: %(width)d } }
  layer { name: "loss" type: "softmax_cross_entropy" }
}
input {
  type: "synthetic" batch_size: 1 synthetic_examples: 64
  synthetic_test_examples: 1 synthetic_classes: 2
}
placement { strategy: "greedy" }
optimizer { name: "sgd" attr { name: "learning_rate" f: 1e-6 } }
summary { every_steps: 0 }
stop { steps: 1 }
"""


def width(size_mb):
    """Of the layers of a model of so many MB."""
    return int(math.sqrt(size_mb * 1e6 / (PROCESSES * 4)))


def command(options, link, size_mb):
    steps = min(MOST_STEPS, int(WORK_BYTES / (size_mb * 1e6)))
    return [sys.executable, processes.LAUNCHER, "--no_build",
            "--bin_dir=" + options.bin_dir, "--link=" + link, "--ps=0",
            "--workers=%d" % PROCESSES, "--compute_threads=1",
            "--steps=%d" % (max(20, steps // 20) if options.quick else steps),
            "--training=DIR/training.textproto", "--train_dir=DIR/run"]


def run(command_, size_mb):
    """Bytes of the model over the time of a step."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "training.textproto")
        with open(path, "w", encoding="utf-8") as file:
            file.write(TRAINING % {"width": width(size_mb)})
        processes.run([word.replace("DIR/", folder + "/")
                       for word in command_])
        with open(os.path.join(folder, "run/result.json"),
                  encoding="utf-8") as file:
            result = json.load(file)
    rates = [worker["steps_per_s"] for worker in result["workers"]]
    return {"bytes_per_s": result["model_bytes"] * sum(rates) / len(rates)}


def ours(options, link, size_mb):
    command_ = command(options, link, size_mb)
    return Measurement(PART, "all-reduce of %d MB, %s" % (size_mb, link),
                       command_, lambda: run(command_, size_mb))


def rate(one):
    return Figure(one.name, "GB/s", [one],
                  lambda numbers: numbers["bytes_per_s"] / 1e9)


def figures(options):
    peer = peers.gloo(PART)
    for size_mb in SIZES_MB:
        mine = [ours(options, link, size_mb)
                for link in ("shared_memory", "grpc")]
        yield from map(rate, mine)
        if peer is None:
            continue
        theirs = peer.measure(
            "%d MB, %d processes" % (size_mb, PROCESSES),
            "gloo_ring.py", peer.program, PROCESSES, int(size_mb * 1e6),
            options.burst_s * 4 if options.quick else SECONDS)
        yield rate(theirs)
        for one in mine:
            yield Figure("%s over %s" % (one.name, peer.name), "x",
                         [one, theirs], lambda own, other: (
                             own["bytes_per_s"] / other["bytes_per_s"]))
