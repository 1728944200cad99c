"""The same model in PyTorch and TensorFlow, the same pushes and pulls in
ps-lite, and the same all-reduce in Gloo, in the same run (--peers).

The first time they are taken from PyPI: each framework into a Python of its
own, ps-lite to be built; Gloo is Debian's. Python 3 standard library only.
"""

import os
import sys

from . import processes
from .figures import Figure, Measurement, at_least, count

FOLDER = os.path.join(processes.ROOT, "tests/benchmark/peers")
BUILD_PS_LITE = os.path.join(FOLDER, "build_ps_lite.sh")
BUILD_GLOO = os.path.join(FOLDER, "build_gloo_ring.sh")
# PyTorch brings some gigabytes.
INSTALL_S = 1800
TORCH_LAYOUTS = ("contiguous", "channels_last")
# Of our own process with so many threads over theirs.
OVER_TORCH = {1: at_least(1.25, stretch=1.4)}
OVER_TENSORFLOW = {1: at_least(1.12, stretch=1.25),
                   2: at_least(1.08, stretch=1.2)}
# Of 1 ps + 2 workers over theirs.
OVER_TENSORFLOW_PS = 2.2


class Peer:
    """Runs the programs of one peer."""

    def __init__(self, part, name, python, program=None):
        self.part = part
        self.name = name
        self.python = python
        # Of ps-lite: what was built.
        self.program = program

    def measure(self, what, program, *arguments):
        command = [self.python, os.path.join(FOLDER, program),
                   *map(str, arguments)]
        return Measurement(
            self.part, "%s, %s" % (self.name, what), command,
            lambda: processes.last_json_line(processes.run(command), command))


def torch(part):
    """None, and a line about it, if it cannot be had."""
    return in_own_python(part, "PyTorch", "torch_requirements.txt")


def tensorflow(part):
    """The same."""
    return in_own_python(part, "TensorFlow", "tensorflow_requirements.txt")


def in_own_python(part, name, requirements):
    try:
        return Peer(part, name, processes.python_with(
            os.path.join(FOLDER, requirements), INSTALL_S))
    except processes.Failure as failure:
        say("%s; %s is left out" % (failure, name))
        return None


def ps_lite(part):
    """The same; the fork that PyPI has, BytePS's."""
    # Of the two forks that the target speaks of.
    return that_is_built(part, "ps-lite (BytePS's fork, the slower one)",
                         BUILD_PS_LITE)


def gloo(part):
    """The same."""
    return that_is_built(part, "Gloo's ring", BUILD_GLOO)


def that_is_built(part, name, script):
    try:
        # Its last line.
        program = processes.run([script]).split()[-1]
    except processes.Failure as failure:
        say("%s; %s is left out" % (failure, name))
        return None
    return Peer(part, name, sys.executable, program)


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


def torch_figures(peer, standalone, clusters, workers, steps):
    """`standalone`: our measurements by threads; `clusters`: those of
    `workers`."""
    for threads, own in standalone.items():
        found = [peer.measure(
            "%s, %s" % (count("thread", threads), layout),
            "torch_single.py", threads, steps, layout)
            for layout in TORCH_LAYOUTS]
        yield from map(speed, found)
        yield speed_over("standalone over PyTorch's best, %s" %
                         count("thread", threads), own, found,
                         OVER_TORCH.get(threads))
    found = [peer.measure(
        "DDP of %s, %s" % (count("worker", workers), layout),
        "torch_ddp.py", workers, steps, layout) for layout in TORCH_LAYOUTS]
    yield from map(speed, found)
    for own in clusters:
        yield speed_over("%s over PyTorch's best DDP" % own.name, own, found)


def tensorflow_figures(peer, standalone, clusters, workers, steps):
    """The same."""
    for threads, own in standalone.items():
        theirs = peer.measure(count("thread", threads),
                              "tensorflow_single.py", threads, steps)
        yield speed(theirs)
        yield speed_over("standalone over TensorFlow, %s" %
                         count("thread", threads), own, [theirs],
                         OVER_TENSORFLOW.get(threads))
    shape = "1 ps + %s" % count("worker", workers)
    theirs = peer.measure(shape, "tensorflow_ps.py", workers, steps)
    yield speed(theirs)
    for own in clusters:
        yield speed_over("%s over TensorFlow's" % own.name, own, [theirs],
                         at_least(OVER_TENSORFLOW_PS))
