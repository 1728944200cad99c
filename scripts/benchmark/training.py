"""Steps/s of the MNIST CNN (batch 128), in one process and in clusters; of the
MLP beside a busy core.

Python 3 standard library only.
"""

import json
import os
import sys
import tempfile

from . import all_reduce, peers, processes, ps_cpu
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
# The link that a worker takes by itself on one machine, and the same with
# parameters that are read where the ps keeps them.
SAME_HOST_LINK = "shared_memory"
IN_PLACE = SAME_HOST_LINK + ", in place"
# Of two threads over one while another process keeps a core busy. The MLP's
# steps are short, and its threads meet often in them.
BESIDE_BUSY_TARGET = at_least(0.9)
MLP = os.path.join(processes.ROOT, "worker/model/zoo/mlp.textproto")
MLP_STEPS = 10
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
        self.worker = os.path.join(options.bin_dir, "worker/worker")
        self.ps_server = os.path.join(options.bin_dir, "ps_server/ps_server")
        self.standalone = {
            threads: self._make(
                "standalone, %s" % count("thread", threads),
                self._standalone_command("--compute_threads=%d" % threads))
            for threads in (1, 2)}
        self.beside_busy = {
            threads: self._make(
                "MLP beside a busy core, %s" % count("thread", threads),
                self._standalone_command(
                    "--compute_threads=%d" % threads, model=MLP,
                    steps=MLP_STEPS * self.options.steps),
                beside=[BUSY])
            for threads in (1, 2)}
        self.towers = self._make(
            "standalone, 2 towers", self._standalone_command(
                "--num_devices=2", "--compute_threads=2"))
        self.independent = self._make(
            "%d standalone at the same time" % WORKERS,
            self._standalone_command("--compute_threads=1"), copies=WORKERS)
        # By link, ps tasks and workers.
        self.clusters = {
            (link, *shape): self._cluster(link, *shape)
            for link in LINK_TARGETS for shape in SHAPES}
        # By link: no ps, each worker holds a half.
        self.all_reduce = {
            link: self._make("all-reduce of %s, %s" % (
                count("worker", WORKERS), link),
                self._cluster_command(link, 0, WORKERS))
            for link in LINK_TARGETS}
        self.in_place = self._make(
            "1 ps + %s, %s" % (count("worker", WORKERS), IN_PLACE),
            self._cluster_command(SAME_HOST_LINK, 1, WORKERS) +
            ["--set=replication.async.pull=IN_PLACE"])

    def _standalone_command(self, *flags, model=processes.MODEL, steps=None):
        return [self.worker, "--standalone", "--training=" + model,
                "--set=stop.steps=%d" % (steps or self.options.steps),
                "--set=stop.epochs=0", *flags]

    def _make(self, name, command, copies=1, beside=()):
        return Measurement(PART, name, command + ["--train_dir=DIR"],
                           lambda: run_copies(command, copies, beside))

    def _cluster(self, link, ps, workers):
        return self._make(
            "%d ps + %s, %s" % (ps, count("worker", workers), link),
            self._cluster_command(link, ps, workers))

    def _cluster_command(self, link, ps, workers):
        # A step of all-reduce is one of each worker.
        updates = workers if ps else 1
        return [sys.executable, processes.LAUNCHER, "--no_build",
                "--bin_dir=" + self.options.bin_dir, "--link=" + link,
                "--ps=%d" % ps, "--workers=%d" % workers,
                "--compute_threads=1",
                "--steps=%d" % (self.options.steps * updates)]


def run_copies(command, copies, beside=()):
    """Runs it in so many processes at once; their steps/s together. `beside`:
    commands that run meanwhile, and do not end by themselves."""
    with tempfile.TemporaryDirectory() as folder:
        train_dirs = [os.path.join(folder, str(i)) for i in range(copies)]
        running, others = [], []
        try:
            for other in beside:
                others.append(processes.Process(other))
            for train_dir in train_dirs:
                running.append(processes.Process(
                    command + ["--train_dir=" + train_dir]))
            for process in running:
                process.finish()
        finally:
            # The others of one that failed, and what ran beside.
            for process in running + others:
                process.stop()
        return {"steps_per_s": sum(map(read_result, train_dirs))}


def figures(training):
    alone = "independent processes"
    yield speed(training.standalone[1], ("scaling", alone, 1))
    yield speed(training.standalone[2])
    one, two = (training.beside_busy[threads] for threads in (1, 2))
    yield speed(one)
    yield speed(two)
    yield speed_over("%s over 1" % two.name, two, [one], BESIDE_BUSY_TARGET)
    yield speed(training.towers)
    yield speed(training.independent, ("scaling", alone, WORKERS))
    for (link, ps, workers), one in training.clusters.items():
        yield speed(one, ("scaling", "%d ps, %s" % (ps, link), workers))
    yield speed(training.in_place)
    yield from map(speed, training.all_reduce.values())
    for (link, ps, workers), one in training.clusters.items():
        if workers == WORKERS:
            yield over_independent(training, one,
                                   LINK_TARGETS[link] if ps == 1 else None)
    yield over_independent(training, training.in_place)
    for one in training.all_reduce.values():
        yield over_independent(training, one)
    for link in LINK_TARGETS:
        yield ps_cpu.figure(training, PART, link, link,
                            has_target=link == SAME_HOST_LINK)
    yield ps_cpu.figure(training, PART, IN_PLACE, SAME_HOST_LINK,
                        ["--set=replication.async.pull=IN_PLACE"])
    if training.options.peers:
        yield from peer_figures(training)


def over_independent(training, cluster, target=None):
    return speed_over(
        "%s over %s" % (cluster.name, training.independent.name), cluster,
        [training.independent], target)


def peer_figures(training):
    steps = training.options.steps
    clusters = [training.clusters[link, 1, WORKERS] for link in LINK_TARGETS]
    clusters.append(training.in_place)
    without_ps = list(training.all_reduce.values())
    for peer, figures_of, theirs in (
            (peers.torch(PART), peers.torch_figures, clusters + without_ps),
            (peers.tensorflow(PART), peers.tensorflow_figures, clusters)):
        if peer is not None:
            yield from figures_of(peer, training.standalone, theirs,
                                  WORKERS, steps)
    yield from all_reduce.figures(training.options)
