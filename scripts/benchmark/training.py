"""Steps/s of the MNIST CNN (batch 128), in one process and in clusters.

Python 3 standard library only (peers need PyTorch).
"""

import json
import os
import sys
import tempfile

from . import processes
from .figures import Figure, Measurement, at_least, at_most

PART = "training"
# The cores of the target: one for each worker, none for the ps.
WORKERS = 2
# Links between processes, each with the target for 1 ps + 2 workers over 2
# processes without one.
LINK_TARGETS = {"grpc": 0.85}
PEER_LAYOUTS = ("contiguous", "channels_last")


def read_result(train_dir):
    with open(os.path.join(train_dir, "result.json"), encoding="utf-8") as file:
        result = json.load(file)
    # Each worker's own rate, from its first to its last step.
    return sum(one["steps_per_s"] for one in result["workers"])


class Training:
    """The runs, each once."""

    def __init__(self, options):
        self.options = options
        self.worker = os.path.join(options.bin_dir, "worker/worker")
        steps = options.steps
        self.standalone = {
            threads: self._make(
                "standalone, %s" % count("thread", threads),
                self._standalone_command("--compute_threads=%d" % threads))
            for threads in (1, 2)}
        self.towers = self._make(
            "standalone, 2 towers", self._standalone_command(
                "--num_devices=2", "--compute_threads=2"))
        self.independent = self._make(
            "%d standalone at the same time" % WORKERS,
            self._standalone_command("--compute_threads=1"), copies=WORKERS)
        self.clusters = {
            (ps, workers): self._make(
                "%d ps + %s, grpc" % (ps, count("worker", workers)),
                [sys.executable, processes.LAUNCHER, "--no_build",
                 "--bin_dir=" + options.bin_dir, "--ps=%d" % ps,
                 "--workers=%d" % workers, "--compute_threads=1",
                 "--steps=%d" % (steps * workers)])
            for ps, workers in ((1, 1), (1, WORKERS), (2, WORKERS))}
        self.peers = {
            (threads, layout): self._peer(threads, layout)
            for threads in (1, 2) for layout in PEER_LAYOUTS}

    def _standalone_command(self, *flags):
        return [self.worker, "--standalone", "--training=" + processes.MODEL,
                "--set=stop.steps=%d" % self.options.steps,
                "--set=stop.epochs=0", *flags]

    def _make(self, name, command, copies=1):
        return Measurement(PART, name, command + ["--train_dir=DIR"],
                           lambda: run_copies(command, copies))

    def _peer(self, threads, layout):
        command = [sys.executable,
                   os.path.join(processes.ROOT, "scripts/peer_torch.py"),
                   str(threads), str(self.options.steps), layout]
        return Measurement(
            PART, "PyTorch, %s, %s" % (count("thread", threads), layout),
            command, lambda: processes.last_json_line(
                processes.run(command), command))


def count(what, number):
    return "%d %s%s" % (number, what, "" if number == 1 else "s")


def run_copies(command, copies):
    """Runs it in so many processes at once; their steps/s together."""
    with tempfile.TemporaryDirectory() as folder:
        train_dirs = [os.path.join(folder, str(i)) for i in range(copies)]
        running = []
        try:
            for train_dir in train_dirs:
                running.append(processes.Process(
                    command + ["--train_dir=" + train_dir]))
            for process in running:
                process.finish()
        finally:
            # The others of one that failed.
            for process in running:
                process.stop()
        return {"steps_per_s": sum(map(read_result, train_dirs))}


def has_torch():
    try:
        import torch  # pylint: disable=unused-import,import-outside-toplevel
    except ImportError:
        print("bench.sh: this python3 cannot import torch; no peers",
              file=sys.stderr)
        return False
    return True


def speed(measurement, point=None):
    return Figure(measurement.name, "steps/s", [measurement],
                  lambda numbers: numbers["steps_per_s"], point=point)


def speed_over(name, fast, references, target=None):
    return Figure(name, "x", [fast, *references], lambda fast_, *others: (
        fast_["steps_per_s"] / max(one["steps_per_s"] for one in others)),
        target)


def figures(training, plane):
    """`plane`: for what a step costs beside its compute."""
    alone = "independent processes"
    yield speed(training.standalone[1], ("scaling", alone, 1))
    yield speed(training.standalone[2])
    yield speed(training.towers)
    yield speed(training.independent, ("scaling", alone, WORKERS))
    for (ps, workers), one in training.clusters.items():
        yield speed(one, ("scaling", "%d ps, grpc" % ps, workers))
    for (ps, workers), one in training.clusters.items():
        if workers != WORKERS:
            continue
        yield speed_over("%s over %s" % (one.name, training.independent.name),
                         one, [training.independent],
                         at_least(LINK_TARGETS["grpc"]) if ps == 1 else None)
    # One thread computes, so that its seconds are CPU seconds.
    for link in LINK_TARGETS:
        yield Figure(
            "CPU of ps and %s over the compute's" % link, "x",
            [plane.push_pull(link, "", "adam"), training.standalone[1]],
            lambda step, alone: step["cpu_s"] * alone["steps_per_s"],
            at_most(0.04))
    if not training.options.peers or not has_torch():
        return
    for one in training.peers.values():
        yield speed(one)
    for threads, own in training.standalone.items():
        yield speed_over(
            "standalone over PyTorch's best, %s" % count("thread", threads),
            own, [training.peers[threads, layout]
                    for layout in PEER_LAYOUTS],
            at_least(1.25) if threads == 1 else None)
