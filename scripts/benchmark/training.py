"""Steps/s of the MNIST CNN and of ResNet-20 (batch 128), in one process, in
clusters and in each replication mode; of the MLP beside a busy core; and how
soon a cluster takes steps.

Python 3 standard library only.
"""

import json
import os
import sys
import tempfile
import time

from base.programs import Programs

from . import peers, processes
from .figures import Figure, Measurement, at_least, at_most, count
from .peers import speed, speed_over

# The cores of the target: one for each worker, none for the ps.
WORKERS = 2
# (ps tasks, workers)
SHAPES = ((1, 1), (1, WORKERS), (2, WORKERS))
# Links between processes, each with the target for 1 ps + 2 workers over 2
# processes without one.
LINK_TARGETS = {"shared_memory": at_least(0.95), "tcp": at_least(0.84)}
# Of two threads over one while another process keeps a core busy. The MLP's
# steps are short, and its threads meet often in them.
BESIDE_BUSY_TARGET = at_least(0.9)
ZOO = os.path.join(processes.ROOT, "worker/model/zoo")
MLP_STEPS = 10
# A step of resnet20 takes as long as several of the MNIST CNN's.
RESNET_STEPS_DIVISOR = 5
STEP_LINE = r"^\[worker \d+\] .* step=\d"
# For such a line.
PATIENCE_S = 120
# Modes of two workers: the launcher's flags, what is wanted of their speed over
# that of two processes that know nothing of each other, and whether all workers
# together make one global step.
SYNC = ["--set=replication.sync.replicas_to_aggregate=%d" % WORKERS]
MODES = {
    "async, shared memory": (["--ps=1"], 0.97, False),
    "async, TCP": (["--ps=1", "--link=tcp"], 0.84, False),
    "bounded staleness 3, shared memory": (
        ["--ps=1", "--set=replication.bounded_staleness.bound=3"], 0.95, False),
    "sync, TCP": (["--ps=1", "--link=tcp", *SYNC], 0.8, True),
    "sync, shared memory, 1 ps": (["--ps=1", *SYNC], 0.92, True),
    "sync, shared memory, 2 ps": (["--ps=2", *SYNC], 0.92, True),
    "all-reduce, shared memory": (["--ps=0"], 0.92, True)}
# The evaluation at the end is no part of a figure.
SYNTHETIC = ["--set=input.type=synthetic", "--set=stop.epochs=0",
             "--set=input.synthetic_test_examples=500"]
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
        # It reads, crops and flips its examples; PyTorch's reads none.
        self.resnet20 = self._alone(
            "resnet20, standalone, 1 thread", 1, "resnet20",
            max(options.steps // RESNET_STEPS_DIVISOR, 4), *SYNTHETIC)
        self.independent = self._alone(
            "%d standalone at the same time" % WORKERS, 1, copies=WORKERS)
        self.synthetic = self._alone(
            "%d standalone at the same time, synthetic" % WORKERS, 1,
            "mnist_cnn", None, *SYNTHETIC, copies=WORKERS)
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
        return measured(name, command, **running)

    def _cluster(self, link, ps, workers):
        command = launched(self.options, workers, "--link=" + link,
                           "--ps=%d" % ps, "--steps=%d" % (
                               self.options.steps * workers))
        return measured("%d ps + %s, %s" % (
            ps, count("worker", workers), link), command)


def launched(options, workers, *flags):
    return [sys.executable, processes.LAUNCHER, "--no_build",
            "--bin_dir=" + options.bin_dir, "--workers=%d" % workers,
            "--compute_threads=1", *flags]


def measured(name, command, **running):
    return Measurement(name, command + ["--train_dir=DIR"],
                       lambda: run_copies(command, **running))


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


def over_free(name, own, free, target):
    """Over the mean of processes that know nothing of each other, before it and
    after it."""
    after = Measurement(free.name, free.command, free.run)
    return Figure(name, "x", [free, own, after], lambda before_, own_, after_:
                  2 * own_["steps_per_s"] / (before_["steps_per_s"] +
                                             after_["steps_per_s"]), target)


def figures(options):
    """The part "training"."""
    training = Training(options)
    alone = "independent processes"
    yield speed(training.standalone[1], (alone, 1))
    yield speed(training.standalone[2])
    one, two = (training.beside_busy[threads] for threads in (1, 2))
    yield speed_over("%s over 1" % two.name, two, [one], BESIDE_BUSY_TARGET)
    yield speed(training.resnet20)
    yield speed(training.independent, (alone, WORKERS))
    for (link, ps, workers), one in training.clusters.items():
        yield speed(one, ("%d ps, %s" % (ps, link), workers))
    for link, target in LINK_TARGETS.items():
        one = training.clusters[link, 1, WORKERS]
        yield over_free("%s over %s" % (one.name, training.independent.name),
                        one, training.independent, target)
    if options.peers:
        yield from peer_figures(training)


def peer_figures(training):
    steps = training.options.steps
    torch, tensorflow = peers.torch(), peers.tensorflow()
    if torch is not None:
        yield from peers.torch_figures(torch, training.standalone[1],
                                       "1 thread", steps, "mnist_cnn")
        yield from peers.torch_figures(
            torch, training.resnet20, "resnet20, 1 thread",
            max(steps // RESNET_STEPS_DIVISOR, 4), "resnet20")
    if tensorflow is not None:
        yield from peers.tensorflow_figures(
            tensorflow, training.standalone,
            {link: training.clusters[link, 1, WORKERS]
             for link in LINK_TARGETS}, WORKERS, steps)


def modes(options):
    """The part "modes"."""
    alone = Training(options).synthetic
    for mode, (flags, limit, is_one_step) in MODES.items():
        own = measured("mnist_cnn, " + mode, launched(
            options, WORKERS, "--link=shared_memory", *flags, *SYNTHETIC,
            "--steps=%d" % (options.steps * (1 if is_one_step else WORKERS))))
        yield over_free("%s over 2 processes" % own.name, own, alone,
                        at_least(limit))


def start(options):
    """The part "start"."""
    command = launched(options, 2, "--ps=1", "--progress_every=0")
    one = Measurement(
        "launch of 1 ps + 2 workers to the first applied step",
        command + ["--train_dir=DIR"], lambda: first_step(command))
    yield Figure(one.name, "s", [one], lambda numbers: numbers["seconds"],
                 at_most(1.0))


def first_step(command):
    with tempfile.TemporaryDirectory() as train_dir, Programs() as programs:
        started = time.monotonic()
        cluster = processes.start(programs,
                                  command + ["--train_dir=" + train_dir])
        line = programs.await_line(cluster, STEP_LINE, PATIENCE_S)
        seconds = time.monotonic() - started
        programs.end(cluster)
        if line is None:
            raise processes.Failure("%s: no line '%s'; its last lines:\n%s" % (
                " ".join(command), STEP_LINE, "\n".join(cluster.tail)))
        return {"seconds": seconds}
