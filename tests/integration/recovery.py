"""What the recovery tests share: a small job, its tasks and what it left.

    class KillTest(recovery.TestCase):
        def test_worker(self):
            job = self.start_job(ps=2, workers=3)
            job.wait_until_all_train()
            seconds = job.kill_and_restart(job.workers[1])

Every random choice comes from one seed, which is printed; MUSTER_SEED=N
repeats a run's choices (not its timing). MUSTER_SOAK=1 asks for full counts
(scripts/test.sh --soak).
"""

import json
import os
import random
import re
import shutil
import signal
import statistics
import struct
import sys
import time

from tests.integration import harness

SOAK = harness.SOAK
# Kills of each role: (CI, soak).
KILLS = {"worker": (3, 20), "chief": (3, 10), "ps": (3, 10),
         "each, over TCP": (1, 10)}
# Seconds from the kill until training goes on (issue 4).
LIMITS = {"worker": 5.0, "chief": 10.0, "ps": 15.0}
# Global steps between two checkpoints.
INTERVAL = 400
ENDLESS = 100000000

# One dense layer, so that a run of seconds has thousands of steps: its weights
# are on one ps task, its bias on another. Plain SGD.
TRAINING = harness.softmax_regression(
    ENDLESS, test_examples=2000,
    more="checkpoint { every_steps: %d keep: 100000 }" % INTERVAL)


def kills(role):
    return KILLS[role][1 if SOAK else 0]


def limit(role):
    return LIMITS[role]


def field(name, text):
    """A number of a text proto; zeros are left out of the text."""
    match = re.search(r"(?m)^ *%s: (\d+)" % name, text)
    return int(match[1]) if match else 0


class Checkpoint:
    """A checkpoint folder, read with nothing but the standard library."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "manifest.textproto"),
                  encoding="utf-8") as file:
            self.manifest = file.read()
        self.global_step = field("global_step", self.manifest)
        # By task index.
        self.worker_steps = {
            field("index", text): field("steps", text)
            for text in re.findall(r"(?ms)^workers \{(.*?)^\}", self.manifest)}

    def tensors(self, name):
        """{name: bytes} of one of its safetensors files; checks its length."""
        with open(os.path.join(self.folder, name), "rb") as file:
            data = file.read()
        (header_bytes,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + header_bytes])
        header.pop("__metadata__", None)
        payload = data[8 + header_bytes:]
        end = max(entry["data_offsets"][1] for entry in header.values())
        assert end == len(payload), "%s is cut" % name
        return {tensor: payload[slice(*entry["data_offsets"])]
                for tensor, entry in header.items()}

    def updates(self):
        """{parameter: [count of applied updates, block by block]}."""
        counts = {}
        for name, data in self.tensors("slots.safetensors").items():
            parameter, _, slot = name.rpartition("/")
            if slot == "t":
                counts[parameter] = list(
                    struct.unpack("<%dq" % (len(data) // 8), data))
        return counts


class Job:
    """The tasks of one cluster and their train_dir."""

    def __init__(self, test, ps, workers, flags, ps_flags, name="train",
                 training=None):
        """`training`: a file's path; by default one of TRAINING."""
        self._test = test
        self.cluster = test.write_cluster(ps=ps, workers=workers,
                                          name=name + ".json")
        self.train_dir = test.path(name)
        self.flags = [
            "--training=" + (training or test.write("training.textproto",
                                                    TRAINING)),
            "--train_dir=" + self.train_dir, "--compute_threads=1",
            "--progress_every=0.05", *flags]
        self._ps_flags = ps_flags
        self.ps = [None] * ps
        self.workers = [None] * workers

    def address(self, job, index):
        with open(self.cluster, encoding="utf-8") as file:
            return json.load(file)["cluster"][job][index]

    def write_cluster(self, **tasks):
        """Replaces the cluster file, for tasks that start from now on."""
        with open(self.cluster, "w", encoding="utf-8") as file:
            json.dump({"cluster": tasks}, file)

    def start_ps(self, index):
        self.ps[index] = self._test.start_ps(self.cluster, index,
                                             *self._ps_flags)
        return self.ps[index]

    def start_worker(self, index, *flags):
        self.workers[index] = self._test.start_worker(
            self.cluster, index, *self.flags, *flags)
        return self.workers[index]

    def start(self, chief_last=False):
        """With `chief_last` every worker is there before the first step: one
        that comes later begins at the others' clock, not at 0."""
        for index in range(len(self.ps)):
            self.start_ps(index)
        for index in range(1 if chief_last else 0, len(self.workers)):
            self.start_worker(index)
        if chief_last:
            for worker in self.workers[1:]:
                worker.wait_for("waiting for /job:worker/task:0 to initialize")
            self.start_worker(0)
        return self

    def tasks(self):
        return self.ps + self.workers

    def training_again(self, since, deadline_s=harness.DEADLINE_S):
        """Waits until every worker has taken a step after `since` (monotonic).

        Returns when the last of them did.
        """
        return max(worker.wait_for_line_after(r" step=\d", since, deadline_s)
                   for worker in self.workers)

    def all_train(self):
        self.training_again(time.monotonic())

    def step(self):
        """The newest global step that a worker has printed."""
        return max(int((re.findall(r" step=(\d+)", worker.output) or [0])[-1])
                   for worker in self.workers)

    def checkpoints(self):
        """Whole checkpoints, oldest first."""
        return [os.path.join(self.train_dir, name)
                for name in sorted(os.listdir(self.train_dir))
                if name.startswith("ckpt-")]

    def newest(self):
        return Checkpoint(self.checkpoints()[-1])

    def drain(self):
        """Stops the job by SIGTERM to the chief; returns the last checkpoint.

        Every other task ends with 0.
        """
        chief = self.workers[0]
        chief.send(signal.SIGTERM)
        test = self._test
        test.assertEqual(chief.wait(), 128 + signal.SIGTERM, chief.output)
        for task in self.workers[1:] + self.ps:
            test.assertEqual(task.wait(), 0, task.output)
        return self.newest()


class TestCase(harness.TestCase):

    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("MUSTER_SEED") or
                        random.SystemRandom().randrange(1 << 31))
        self.random = random.Random(self.seed)
        self.say("seed: %s MUSTER_SEED=%d" % (self.id(), self.seed))

    def say(self, text):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def start_job(self, ps=2, workers=3, flags=(), ps_flags=()):
        job = Job(self, ps, workers, flags, ps_flags).start()
        job.all_train()
        return job

    def pause(self, low=0.05, high=0.6):
        """Lets the job run for a random time: what is killed is random."""
        time.sleep(self.random.uniform(low, high))

    def report(self, role, seconds):
        """Prints the recovery times; a soak holds them against the limit."""
        self.say("recovery: role=%s kills=%d median=%.2f max=%.2f limit=%.0f" %
                 (role, len(seconds), statistics.median(seconds),
                  max(seconds), limit(role)))
        self.expect_within(role + " recovers", max(seconds), limit(role))

    def check_sums(self, job, checkpoint, extra=0):
        """Acknowledged <= applied <= acknowledged + extra, block by block.

        `extra` is the number of workers that were killed: each may have had
        one step that was applied and not yet counted.
        """
        counted = checkpoint.global_step
        self.assertEqual(sum(checkpoint.worker_steps.values()), counted)
        updates = checkpoint.updates()
        self.assertEqual(set(updates), {"logits/weights", "logits/bias"})
        for parameter, counts in updates.items():
            for count in counts:
                self.assertGreaterEqual(count, counted, parameter)
                self.assertLessEqual(count, counted + extra, parameter)

    def accuracy(self, job):
        """On the test set, of the newest checkpoint in a copy of train_dir."""
        copy = self.path("evaluated")
        shutil.copytree(job.train_dir, copy)
        code, output = self.run_to_end("evaluation", [
            harness.worker(), "--standalone", "--train_dir=" + copy,
            "--training=" + self.path("training.textproto"),
            "--compute_threads=1",
            "--set=stop.steps=%d" % job.newest().global_step])
        self.assertEqual(code, 0, output)
        return self.result(copy)["test_accuracy"]
