"""Steps/s of the MNIST CNN and of ResNet-20 (batch 128), in one process and in
clusters; of the MLP beside a busy core.

Python 3 standard library only.
"""

import json
import os
import sys
import tempfile

from base.programs import Programs

from . import peers, processes
from .figures import Measurement, at_least, count
from .peers import speed, speed_over

PART = "training"
# The cores of the target: one for each worker, none for the ps.
WORKERS = 2
# (ps tasks, workers)
SHAPES = ((1, 1), (1, WORKERS), (2, WORKERS))
# Links between processes, each with the target for 1 ps + 2 workers over 2
# processes without one.
LINK_TARGETS = {"shared_memory": at_least(0.95),
                "grpc": at_least(0.85, stretch=0.95)}
# Of two threads over one while another process keeps a core busy. The MLP's
# steps are short, and its threads meet often in them.
BESIDE_BUSY_TARGET = at_least(0.9)
ZOO = os.path.join(processes.ROOT, "worker/model/zoo")
MLP_STEPS = 10
# A step of resnet20 takes as long as several of the MNIST CNN's.
RESNET_STEPS_DIVISOR = 5
BUSY = [sys.executable, "-c", "while True: pass"]


def read_result(train_dir):
    with open(os.path.join(train_dir, "result.json"), encoding="utf-8") as file:
        result = json.load(file)
    # Each worker's own rate, from its first to its last step.
    return sum(one["steps_per_s"] or 0.0 for one in result["workers"])


class Training:
    """The runs, each once."""

    def __init__(self, options):
        self.options = options
        self.standalone = {threads: self._alone(
            "standalone, " + count("thread", threads), threads)
            for threads in (1, 2)}
        self.beside_busy = {threads: self._alone(
            "MLP beside a busy core, " + count("thread", threads), threads,
            model="mlp", steps=MLP_STEPS * options.steps, beside=[BUSY])
            for threads in (1, 2)}
        # It reads, crops and flips its examples; PyTorch's reads none. The
        # evaluation at the end is no part of the figure.
        self.resnet20 = self._alone(
            "resnet20, standalone, 1 thread", 1, "resnet20",
            max(options.steps // RESNET_STEPS_DIVISOR, 4),
            "--set=input.type=synthetic",
            "--set=input.synthetic_test_examples=500")
        self.independent = self._alone(
            "%d standalone at the same time" % WORKERS, 1, copies=WORKERS)
        # By link, ps tasks and workers.
        self.clusters = {
            (link, *shape): self._cluster(link, *shape)
            for link in LINK_TARGETS for shape in SHAPES}

    def _alone(self, name, threads, model="mnist_cnn", steps=None, *flags,
               **running):
        command = [
            os.path.join(self.options.bin_dir, "worker/worker"), "--standalone",
            "--training=%s.textproto" % os.path.join(ZOO, model),
            "--set=stop.steps=%d" % (steps or self.options.steps),
            "--set=stop.epochs=0", "--compute_threads=%d" % threads, *flags]
        return Measurement(PART, name, command + ["--train_dir=DIR"],
                           lambda: run_copies(command, **running))

    def _cluster(self, link, ps, workers):
        command = [sys.executable, processes.LAUNCHER, "--no_build",
                   "--bin_dir=" + self.options.bin_dir, "--link=" + link,
                   "--ps=%d" % ps, "--workers=%d" % workers,
                   "--compute_threads=1",
                   "--steps=%d" % (self.options.steps * workers)]
        return Measurement(
            PART, "%d ps + %s, %s" % (ps, count("worker", workers), link),
            command + ["--train_dir=DIR"], lambda: run_copies(command))


def run_copies(command, copies=1, beside=()):
    """Runs it in so many processes at once; their steps/s together. `beside`:
    commands that run meanwhile, and do not end by themselves."""
    with tempfile.TemporaryDirectory() as folder:
        train_dirs = [os.path.join(folder, str(i)) for i in range(copies)]
        # At its end the others of one that failed are killed, and what ran
        # beside.
        with Programs() as programs:
            for other in beside:
                processes.start(programs, other)
            running = [processes.start(
                programs, command + ["--train_dir=" + train_dir])
                for train_dir in train_dirs]
            for program in running:
                processes.finish(programs, program)
        return {"steps_per_s": sum(map(read_result, train_dirs))}


def figures(training):
    alone = "independent processes"
    yield speed(training.standalone[1], ("scaling", alone, 1))
    yield speed(training.standalone[2])
    one, two = (training.beside_busy[threads] for threads in (1, 2))
    yield speed_over("%s over 1" % two.name, two, [one], BESIDE_BUSY_TARGET)
    yield speed(training.resnet20)
    yield speed(training.independent, ("scaling", alone, WORKERS))
    for (link, ps, workers), one in training.clusters.items():
        yield speed(one, ("scaling", "%d ps, %s" % (ps, link), workers))
    for link, target in LINK_TARGETS.items():
        one = training.clusters[link, 1, WORKERS]
        yield speed_over("%s over %s" % (one.name, training.independent.name),
                         one, [training.independent], target)
    if training.options.peers:
        yield from peer_figures(training)


def peer_figures(training):
    steps = training.options.steps
    torch, tensorflow = peers.torch(PART), peers.tensorflow(PART)
    if torch is not None:
        yield from peers.torch_figures(torch, training.standalone[1], "1 thread",
                                       steps, "mnist_cnn")
        yield from peers.torch_figures(
            torch, training.resnet20, "resnet20, 1 thread",
            max(steps // RESNET_STEPS_DIVISOR, 4), "resnet20")
    if tensorflow is not None:
        yield from peers.tensorflow_figures(
            tensorflow, training.standalone,
            [training.clusters[link, 1, WORKERS] for link in LINK_TARGETS],
            WORKERS, steps)
