"""Steps/s of small models at small and large batches in one process of one
thread, beside PyTorch's in its better memory layout (--peers).

Python 3 standard library only.
"""

import os

from . import peers, processes, training
from .figures import Measurement, at_least
from .peers import speed, speed_over

PART = "models"
ZOO = os.path.join(processes.ROOT, "worker/model/zoo")
# 3x3 convolutions, those with a stride of 2, no convolutions, 5x5 ones.
MODELS = {
    "conv3x3": os.path.join(peers.FOLDER, "conv3x3.textproto"),
    "stride2": os.path.join(peers.FOLDER, "stride2.textproto"),
    "mlp": os.path.join(ZOO, "mlp.textproto"),
    "mnist_cnn": os.path.join(ZOO, "mnist_cnn.textproto"),
}
# By rows of a batch: as many times the steps of a run.
STEPS_FACTORS = {1: 10, 16: 3, 128: 1}
# Of our own process over theirs, at every batch.
OVER_TORCH = at_least(1.0)


def standalone(options, model, batch, steps):
    command = [
        os.path.join(options.bin_dir, "worker/worker"), "--standalone",
        "--training=" + MODELS[model], "--compute_threads=1",
        "--set=input.batch_size=%d" % batch, "--set=stop.epochs=0",
        "--set=stop.steps=%d" % steps, "--set=checkpoint.every_seconds=0",
        # The evaluation at the end is no part of the figure.
        "--set=input.type=synthetic", "--set=input.synthetic_test_examples=500"]
    return Measurement(
        PART, "%s, batch %d" % (model, batch), command + ["--train_dir=DIR"],
        lambda: training.run_copies(command, copies=1))


def figures(options):
    peer = peers.torch(PART) if options.peers else None
    for model in MODELS:
        for batch, factor in STEPS_FACTORS.items():
            steps = options.steps * factor
            own = standalone(options, model, batch, steps)
            yield speed(own)
            if peer is None:
                continue
            found = [peer.measure(
                "%s, batch %d, %s" % (model, batch, layout), "torch_small.py",
                model, batch, 1, steps, layout)
                for layout in peers.TORCH_LAYOUTS]
            yield from map(speed, found)
            yield speed_over("%s over PyTorch's best" % own.name, own, found,
                             OVER_TORCH)
