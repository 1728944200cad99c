"""Batches/s of two workers of one thread in each replication mode, over those of
two processes that know nothing of each other, each pair next to each other.

Python 3 standard library only.
"""

import os
import sys

from . import processes, training
from .figures import Measurement, at_least
from .peers import speed, speed_over

PART = "modes"
WORKERS = 2
# 3x3 convolutions instead of 5x5.
SECOND_MODEL = os.path.join(processes.ROOT,
                            "worker/model/zoo/resnet20.textproto")
# Of its steps, which take as long as several of the MNIST CNN's.
SECOND_DIVISOR = 5


class Mode:
    """A row: the launcher's flags, and whether all workers together make one
    global step."""

    def __init__(self, name, flags, target, ps=1, link="shared_memory",
                 together=False):
        self.name = name
        self.flags = list(flags) + ["--link=" + link, "--ps=%d" % ps]
        self.target = at_least(target) if target else None
        self.together = together


# The evaluation at the end is no part of a figure.
SYNTHETIC = ["--set=input.type=synthetic", "--set=stop.epochs=0",
             "--set=input.synthetic_test_examples=500"]
SYNC = ["--set=replication.sync.replicas_to_aggregate=%d" % WORKERS]
BOUNDED = ["--set=replication.bounded_staleness.bound=3"]
MODES = (
    Mode("async, shared memory", [], 0.97),
    Mode("async, gRPC", [], 0.88, link="grpc"),
    Mode("bounded staleness 3, shared memory", BOUNDED, 0.95),
    Mode("sync, shared memory, 1 ps", SYNC, 0.92, together=True),
    Mode("sync, shared memory, 2 ps", SYNC, 0.92, ps=2, together=True),
    Mode("all-reduce, shared memory", [], 0.92, ps=0, together=True),
    Mode("sync, gRPC, 1 ps", SYNC, None, link="grpc", together=True),
)


def independent(options, model, steps):
    command = [os.path.join(options.bin_dir, "worker/worker"), "--standalone",
               "--training=" + model, "--compute_threads=1",
               "--set=stop.steps=%d" % steps, *SYNTHETIC]
    return measure("2 processes", command, WORKERS)


def measure(name, command, copies=1):
    return Measurement(PART, name, command + ["--train_dir=DIR"],
                       lambda: training.run_copies(command, copies))


def cluster(options, mode, model, steps):
    global_steps = steps if mode.together else steps * WORKERS
    return measure(mode.name, [
        sys.executable, processes.LAUNCHER, "--no_build",
        "--bin_dir=" + options.bin_dir, "--workers=%d" % WORKERS,
        "--compute_threads=1", "--training=" + model,
        "--steps=%d" % global_steps, *mode.flags, *SYNTHETIC])


def figures(options):
    for model, divisor in ((processes.MODEL, 1),
                           (SECOND_MODEL, SECOND_DIVISOR)):
        steps = max(options.steps // divisor, 4)
        net = os.path.splitext(os.path.basename(model))[0]
        for mode in MODES:
            alone = independent(options, model, steps)
            own = cluster(options, mode, model, steps)
            for one in (alone, own):
                one.name = "%s, %s" % (net, one.name)
            alone.name += " (beside %s)" % mode.name
            yield speed(alone)
            yield speed(own)
            yield speed_over("%s over 2 processes" % own.name, own, [alone],
                             mode.target if model == processes.MODEL else None)
