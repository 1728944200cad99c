"""The same model in PyTorch and TensorFlow, in the same run (--peers).

PyTorch is what this python3 imports (Debian: python3-torch); TensorFlow is
taken from PyPI, into a Python of its own. Python 3 standard library only.
"""

import os
import sys

from . import processes
from .figures import Figure, Measurement, at_least

FOLDER = os.path.join(processes.ROOT, "tests/benchmark/peers")
REQUIREMENTS = os.path.join(FOLDER, "requirements.txt")
TORCH_LAYOUTS = ("contiguous", "channels_last")
# Of our own process with so many threads over theirs.
OVER_TORCH = {1: 1.25}
OVER_TENSORFLOW = {1: 1.12, 2: 1.08}
# Of 1 ps + 2 workers over theirs.
OVER_TENSORFLOW_PS = 2.2


class Peer:
    """Runs the programs of one peer."""

    def __init__(self, part, name, python):
        self.part = part
        self.name = name
        self.python = python

    def measure(self, what, program, *arguments):
        command = [self.python, os.path.join(FOLDER, program),
                   *map(str, arguments)]
        return Measurement(
            self.part, "%s, %s" % (self.name, what), command,
            lambda: processes.last_json_line(processes.run(command), command))


def torch(part):
    """None, and a line about it, if it is not there."""
    try:
        import torch as _  # pylint: disable=import-outside-toplevel
    except ImportError:
        say("this python3 cannot import torch (Debian: python3-torch); it is "
            "left out")
        return None
    return Peer(part, "PyTorch", sys.executable)


def tensorflow(part):
    """The same; the first time it wants the network."""
    try:
        python = processes.python_with(REQUIREMENTS)
    except processes.Failure as failure:
        say("%s; TensorFlow is left out" % failure)
        return None
    return Peer(part, "TensorFlow", python)


def say(line):
    print("bench.sh: " + line, file=sys.stderr)


def speed(measurement, point=None):
    return Figure(measurement.name, "steps/s", [measurement],
                  lambda numbers: numbers["steps_per_s"], point=point)


def speed_over(name, fast, references, target=None):
    """Over the fastest of the references."""
    return Figure(name, "x", [fast, *references], lambda fast_, *others: (
        fast_["steps_per_s"] / max(one["steps_per_s"] for one in others)),
        target)


def count(what, number):
    return "%d %s%s" % (number, what, "" if number == 1 else "s")


def torch_figures(peer, standalone, steps):
    """`standalone`: our measurements by threads."""
    for threads, own in standalone.items():
        found = [peer.measure(
            "%s, %s" % (count("thread", threads), layout),
            "torch_single.py", threads, steps, layout)
            for layout in TORCH_LAYOUTS]
        yield from map(speed, found)
        yield speed_over("standalone over PyTorch's best, %s" %
                         count("thread", threads), own, found,
                         target(OVER_TORCH, threads))


def tensorflow_figures(peer, standalone, clusters, workers, steps):
    """`clusters`: our measurements of 1 ps + `workers` by link."""
    for threads, own in standalone.items():
        theirs = peer.measure(count("thread", threads),
                              "tensorflow_single.py", threads, steps)
        yield speed(theirs)
        yield speed_over("standalone over TensorFlow, %s" %
                         count("thread", threads), own, [theirs],
                         target(OVER_TENSORFLOW, threads))
    shape = "1 ps + %s" % count("worker", workers)
    theirs = peer.measure(shape, "tensorflow_ps.py", workers, steps)
    yield speed(theirs)
    for link, own in clusters.items():
        yield speed_over("%s, %s over TensorFlow's" % (shape, link), own,
                         [theirs], at_least(OVER_TENSORFLOW_PS))


def target(limits, threads):
    return at_least(limits[threads]) if threads in limits else None
