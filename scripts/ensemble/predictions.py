"""The .npy files of `worker predict`, their mean, and its figures."""

import array
import ast
import math
import operator

from base.failure import Failure
from trainings.record import write_whole

from . import metrics

MAGIC = b"\x93NUMPY\x01\x00"
# NumPy's type: array's, of the same width.
TYPES = {"<f4": "f", "<i8": "q"}
# Smaller probabilities are 0 in float32.
LEAST_PROBABILITY = 2.0 ** -149


class Rows:
    """`values` of all rows, one after the other, `columns` a row."""

    def __init__(self, values, columns):
        self.values = values
        self.columns = columns

    def __len__(self):
        return len(self.values) // self.columns

    def __getitem__(self, row):
        return self.values[row * self.columns:(row + 1) * self.columns]


def read(path):
    """The Rows of a file. Raises Failure if it is no file of `predict`."""
    with open(path, "rb") as file:
        start = file.read(10)
        header = file.read(int.from_bytes(start[8:10], "little"))
        try:
            fields = ast.literal_eval(header.decode("latin-1"))
            kind, shape = TYPES[fields["descr"]], fields["shape"]
        except (SyntaxError, ValueError, KeyError, TypeError):
            kind = None
        if start[:8] != MAGIC or kind is None or fields["fortran_order"]:
            raise Failure("%s: wanted a .npy file of `worker predict`" % path)
        values = array.array(kind)
        values.frombytes(file.read())
    columns = shape[1] if len(shape) == 2 else 1
    if len(values) != shape[0] * columns:
        raise Failure("%s: wanted %d values, found %d" % (
            path, shape[0] * columns, len(values)))
    return Rows(values, columns)


def write(path, rows):
    """Replaces the file as a whole; it is float32 [rows, columns]."""
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (
        len(rows), rows.columns)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    write_whole(path, MAGIC + len(header).to_bytes(2, "little") +
                header.encode() + array.array("f", rows.values).tobytes())


def mean(paths):
    """The Rows of the files' mean, in float64, in the files' order. A row that
    is NaN in one file is NaN."""
    total = None
    for path in paths:
        rows = read(path)
        if rows.values.typecode != "f":
            raise Failure("%s has classes, which have no mean: predict with "
                          "--values=probabilities" % path)
        if total is None:
            total = Rows(array.array("d", rows.values), rows.columns)
            continue
        if (len(rows), rows.columns) != (len(total), total.columns):
            raise Failure("%s has %d rows of %d outputs, %s has %d of %d: a "
                          "mean wants the same of all" % (
                              path, len(rows), rows.columns, paths[0],
                              len(total), total.columns))
        total.values = array.array(
            "d", map(operator.add, total.values, rows.values))
    count = len(paths)
    total.values = array.array("d", (x / count for x in total.values))
    return total


def figures(rows, labels, are_probabilities, names=()):
    """{name: number}, as `worker evaluate` names them, of the rows that have a
    label and are not NaN; `test_non_finite_rows` counts the NaN ones, which are
    never right, and leave no loss (None). `names`: those of the members, by
    which metrics.py makes more."""
    if labels.values.typecode == "q":
        kind, score = "classes", _of_class
    elif are_probabilities:
        kind, score = "probabilities", _of_probabilities
    else:
        kind, score = "numbers", _of_numbers
    known = [i for i in range(len(rows)) if not _is_bad(labels[i])]
    good = [i for i in known if not _is_bad(rows[i])]
    sums = {}
    for i in good:
        for name, value in score(rows[i], labels[i]).items():
            sums[name] = sums.get(name, 0.0) + value
    whole = len(good) == len(known)
    found = {}
    for name, value in sums.items():
        if name == "test_accuracy":
            found[name] = value / len(known)
        else:
            found[name] = value / len(known) if whole else None
    if "test_root_mean_squared_error" in found and whole:
        found["test_root_mean_squared_error"] **= 0.5
    pairs = [(None if _is_bad(rows[i]) else rows[i], labels[i]) for i in known]
    found.update(metrics.find(names, pairs, kind))
    if "test_log_loss" in names:
        found["test_log_loss"] = found.get("test_loss")
    if not whole:
        found["test_non_finite_rows"] = len(known) - len(good)
    found["test_examples"] = len(known)
    return found


def _is_bad(values):
    return any(x != x for x in values) or (
        values.typecode == "q" and values[0] < 0)


def _of_class(row, label):
    return {"test_accuracy": row.index(max(row)) == label[0],
            "test_loss": -math.log(max(row[label[0]], LEAST_PROBABILITY))}


def _of_probabilities(row, target):
    loss = -sum(t * math.log(max(p, LEAST_PROBABILITY)) +
                (1 - t) * math.log(max(1 - p, LEAST_PROBABILITY))
                for p, t in zip(row, target))
    return {"test_accuracy": all((p > 0.5) == (t > 0.5)
                                 for p, t in zip(row, target)),
            "test_loss": loss / len(row)}


def _of_numbers(row, target):
    errors = [x - t for x, t in zip(row, target)]
    return {
        "test_mean_absolute_error": sum(map(abs, errors)) / len(row),
        "test_root_mean_squared_error": sum(x * x for x in errors) / len(row)}
