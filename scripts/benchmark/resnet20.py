"""Steps/s of the zoo's ResNet-20 (batch 128, one process), with --peers beside
eager PyTorch's in its better memory layout.

Python 3 standard library only.
"""

import os

from . import peers, processes, training
from .figures import Measurement, at_least, count
from .peers import speed, speed_over

PART = "resnet20"
MODEL = os.path.join(processes.ROOT, "worker/model/zoo/resnet20.textproto")
# A step takes as long as several of the MNIST CNN's.
STEPS_DIVISOR = 5
# Of our own process over theirs.
OVER_TORCH = at_least(0.9, stretch=1.0)


def standalone(options, threads, steps):
    """It reads, crops and flips its examples; theirs reads none."""
    command = [
        os.path.join(options.bin_dir, "worker/worker"), "--standalone",
        "--training=" + MODEL, "--compute_threads=%d" % threads,
        "--set=stop.steps=%d" % steps,
        # The evaluation at the end is no part of the figure.
        "--set=input.type=synthetic", "--set=input.synthetic_test_examples=500"]
    return Measurement(
        PART, "resnet20, standalone, %s" % count("thread", threads),
        command + ["--train_dir=DIR"],
        lambda: training.run_copies(command, copies=1))


def figures(options):
    steps = max(options.steps // STEPS_DIVISOR, 4)
    peer = peers.torch(PART) if options.peers else None
    for threads in (1, 2):
        own = standalone(options, threads, steps)
        yield speed(own)
        if peer is None:
            continue
        found = [peer.measure(
            "resnet20, %s, %s" % (count("thread", threads), layout),
            "torch_single.py", threads, steps, layout, "resnet20")
            for layout in peers.TORCH_LAYOUTS]
        yield from map(speed, found)
        yield speed_over("%s over PyTorch's best" % own.name, own, found,
                         OVER_TORCH)
