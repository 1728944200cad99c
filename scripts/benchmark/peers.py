"""The same models in PyTorch and TensorFlow, the same pushes and pulls in
ps-lite, and the same all-reduce in Gloo, in the same run (--peers).

The first time they are taken from PyPI: each framework into a Python of its
own, ps-lite to be built; Gloo is Debian's. Python 3 standard library only.
"""

import os
import sys

from . import processes
from .figures import Figure, at_least, count, of_program

FOLDER = os.path.join(processes.ROOT, "tests/benchmark/peers")
BUILD_PS_LITE = os.path.join(FOLDER, "build_ps_lite.sh")
BUILD_GLOO_RING = os.path.join(FOLDER, "build_gloo_ring.sh")
# PyTorch brings some gigabytes.
INSTALL_S = 1800
TORCH_LAYOUTS = ("contiguous", "channels_last")
# Of our own process with one thread over theirs, by model; the same, by
# threads; of 1 ps + 2 workers over theirs, by link.
OVER_TORCH = {"mnist_cnn": at_least(1.25), "resnet20": at_least(0.9)}
OVER_TENSORFLOW = {1: at_least(1.12), 2: at_least(1.08)}
OVER_TENSORFLOW_PS = {"shared_memory": at_least(2.2), "tcp": at_least(1.9)}


class Peer:
    """Runs the programs of one peer; `program`: what was built of it."""

    def __init__(self, name, python, program=None):
        self.name = name
        self.python = python
        self.program = program

    def measure(self, what, program, *arguments):
        return of_program("%s, %s" % (self.name, what), [
            self.python, os.path.join(FOLDER, program), *map(str, arguments)])


def torch():
    """None, and a line about it, if it cannot be had."""
    return _had("PyTorch", lambda: (_python("torch_requirements.txt"), None))


def tensorflow():
    """The same."""
    return _had("TensorFlow", lambda: (_python("tensorflow_requirements.txt"),
                                       None))


def ps_lite():
    """The same; the fork that PyPI has, BytePS's, of the two forks."""
    return _had("ps-lite (BytePS's fork, the slower one)",
                lambda: (sys.executable, _built(BUILD_PS_LITE)))


def gloo():
    """The same."""
    return _had("Gloo's ring", lambda: (None, _built(BUILD_GLOO_RING)))


def _built(script):
    # Its last line is the program.
    return processes.run([script]).split()[-1]


def _python(requirements):
    return processes.python_with(os.path.join(FOLDER, requirements), INSTALL_S)


def _had(name, get):
    try:
        return Peer(name, *get())
    except processes.Failure as failure:
        print("bench.sh: %s; %s is left out" % (failure, name), file=sys.stderr)
        return None


def speed(measurement, point=None):
    return Figure(measurement.name, "steps/s", [measurement],
                  lambda numbers: numbers["steps_per_s"], point=point)


def speed_over(name, fast, references, target=None):
    """Over the fastest of the references."""
    return Figure(name, "x", [fast, *references], lambda fast_, *others: (
        fast_["steps_per_s"] / max(one["steps_per_s"] for one in others)),
        target)


def torch_figures(peer, own, what, steps, model):
    """`own`: our measurement of one thread that does the same."""
    found = [peer.measure("%s, %s" % (what, layout), "torch_single.py", 1,
                          steps, layout, model) for layout in TORCH_LAYOUTS]
    yield from map(speed, found)
    name = "standalone" if model == "mnist_cnn" else "resnet20"
    yield speed_over("%s over PyTorch's best, 1 thread" % name, own, found,
                     OVER_TORCH[model])


def tensorflow_figures(peer, standalone, clusters, workers, steps):
    """`standalone`: our measurements by threads; `clusters`: those of
    `workers`, by link."""
    for threads, own in standalone.items():
        theirs = peer.measure(count("thread", threads),
                              "tensorflow_single.py", threads, steps)
        yield speed(theirs)
        yield speed_over("standalone over TensorFlow, %s" %
                         count("thread", threads), own, [theirs],
                         OVER_TENSORFLOW[threads])
    theirs = peer.measure("1 ps + %s" % count("worker", workers),
                          "tensorflow_ps.py", workers, steps)
    yield speed(theirs)
    for link, own in clusters.items():
        yield speed_over("%s over TensorFlow's" % own.name, own, [theirs],
                         OVER_TENSORFLOW_PS[link])
