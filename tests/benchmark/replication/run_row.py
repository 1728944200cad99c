"""One run of one row of the study, as processes of this machine.

Python 3 standard library only.
"""

import datetime
import json
import os
import re
import resource
import signal
import subprocess
import tempfile
import threading
import time

from tests.benchmark.replication import read_log
from tests.integration import harness

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
# No run takes longer; one that does has hung.
LIMIT_S = 900.0
# For a task that has failed; the others then end, too.
MAX_WAIT = "--max_wait=60s"
# After the last worker has ended.
PS_END_S = 30.0
# A straggler is stopped and goes on, in turn.
STANDS_S = 0.2
GOES_S = 0.2
# What the build is made of.
SOURCES = ("WORKSPACE", ".bazelrc", "common", "proto", "ps_server",
           "third_party", "worker")


class RunFailure(Exception):
    """A run that did not end well; the text has its last lines."""


def commit():
    """The commit of the sources, with "-changed" if they are not it."""
    def git(*arguments):
        return subprocess.run(
            ["git", "-C", ROOT, *arguments], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
            text=True).stdout.strip()
    try:
        changed = git("status", "--porcelain", "--", *SOURCES)
        return git("rev-parse", "HEAD") + ("-changed" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _machine_busy_s():
    """CPU seconds of all processes since boot, and of other machines on
    ours."""
    with open("/proc/stat", encoding="utf-8") as file:
        user, nice, system, _, _, irq, soft_irq, steal = map(
            int, file.readline().split()[1:9])
    ticks = user + nice + system + irq + soft_irq + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def _own_busy_s():
    """CPU seconds of this process and of those that it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(
        resource.getrusage,
        (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


class ForeignLoad:
    """Cores that others used between its making and read()."""

    def __init__(self):
        self._busy_s = _machine_busy_s() - _own_busy_s()
        self._start = time.monotonic()

    def read(self):
        busy_s = _machine_busy_s() - _own_busy_s() - self._busy_s
        return max(0.0, busy_s / (time.monotonic() - self._start))


class Straggler:
    """Stops a process for STANDS_S after each GOES_S, until it is left."""

    def __init__(self, process):
        self._process = process
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._left.set()
        self._thread.join()

    def _run(self):
        while self._process.running() and not self._left.wait(GOES_S):
            self._process.send(signal.SIGSTOP)
            self._left.wait(STANDS_S)
            self._process.send(signal.SIGCONT)


class Run:
    """The processes of one row. `settings` has its seed."""

    def __init__(self, row, settings, options):
        self._row = row
        self._options = options
        self._cores = len(os.sched_getaffinity(0))
        self._settings = settings
        self._tasks = []

    def train(self):
        """Returns what results.jsonl keeps of the run. Raises RunFailure."""
        with tempfile.TemporaryDirectory() as folder:
            load = ForeignLoad()
            try:
                start_s, chief = self._start(folder)
                self._wait(chief)
            except AssertionError as error:
                raise RunFailure("%s\n%s" % (error, self._tails())) from error
            finally:
                for task in self._tasks:
                    task.kill()
            try:
                with open(os.path.join(folder, "train", "result.json"),
                          encoding="utf-8") as file:
                    result = json.load(file)
                log = read_log.ChiefLog(chief.output, start_s)
            except (OSError, ValueError, read_log.NoSteps) as error:
                raise RunFailure("no result: %s\n%s" % (
                    error, self._tails())) from error
            return self._describe(result, log, load.read())

    def _tails(self):
        return "\n".join("  [%s] %s" % (task.name, line)
                         for task in self._tasks
                         for line in task.output.splitlines()[-5:])

    def _command(self, folder):
        return [
            os.path.join(self._options.bin_dir, "worker", "worker"),
            MAX_WAIT, "--training=" + self._options.training,
            "--train_dir=" + os.path.join(folder, "train"),
            "--compute_threads=%d" % self._row.threads(self._cores),
            "--num_devices=%d" % self._row.towers,
            *["--set=" + setting for setting in self._settings]]

    def _process(self, name, command):
        self._tasks.append(harness.Process(name, command))
        return self._tasks[-1]

    def _start(self, folder):
        """(time of the chief's start, chief)."""
        command = self._command(folder)
        every_step = "--progress_every=0"
        if self._row.workers == 0:
            start_s = time.time()
            return start_s, self._process(
                "worker", [*command, "--standalone", every_step])
        cluster = os.path.join(folder, "cluster.json")
        self._write_cluster(cluster)
        for index in range(self._row.ps):
            self._process("ps %d" % index, [
                os.path.join(self._options.bin_dir, "ps_server", "ps_server"),
                MAX_WAIT, "--cluster=" + cluster, "--task_index=%d" % index])
        # The chief last: the others are there when it begins.
        for index in range(1, self._row.workers):
            self._process("worker %d" % index, [
                *command, "--cluster=" + cluster, "--task_index=%d" % index])
        for task in self._tasks:
            task.wait_for(r" cluster: ")
        start_s = time.time()
        return start_s, self._process("worker 0", [
            *command, "--cluster=" + cluster, "--task_index=0", every_step])

    def _write_cluster(self, path):
        count = self._row.ps
        ports = harness.free_ports(count + self._row.workers)
        addresses = ["127.0.0.1:%d" % port for port in ports]
        jobs = {"worker": addresses[count:]}
        if count:
            jobs["ps"] = addresses[:count]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"cluster": jobs}, file)

    def _wait(self, chief):
        if self._row.straggler:
            # From its first step on.
            chief.wait_for(read_log.STEP)
            with Straggler(self._tasks[-2]):
                self._check(chief, LIMIT_S)
        else:
            self._check(chief, LIMIT_S)
        for task in self._tasks:
            self._check(task, PS_END_S)

    def _check(self, task, deadline_s):
        code = task.wait(deadline_s)
        if code != 0:
            raise AssertionError("%s ended with exit code %d" % (
                task.name, code))

    def _describe(self, result, log, foreign_cores):
        row = self._row
        pushes = sum(worker["steps"] for worker in result["workers"])
        stale = sum(worker["steps"] * (worker["mean_staleness"] or 0.0)
                    for worker in result["workers"])
        shards = [int(found) for task in self._tasks for found in re.findall(
            r" ready: tensors=\d+ bytes=(\d+)", task.output)]
        account = re.search(r"staleness_max=(\d+)", self._tasks[0].output)
        return {
            "threads": row.threads(self._cores), "cores": self._cores,
            "workers": row.workers, "towers": row.towers,
            "accuracy": result["test_accuracy"],
            "test_loss": result["test_loss"],
            "examples": result["examples"], "steps": result["global_step"],
            "wall_s": result["wall_s"],
            "steps_per_s": round(log.steps_per_s(), 4),
            "examples_per_s": round(
                log.steps_per_s() * row.rows_per_step(), 2),
            "evaluation_s": round(log.evaluation_s, 3),
            "staleness_mean": round(stale / max(1, pushes), 4),
            "staleness_max": int(account[1]) if account else 0,
            "dropped_steps": result["dropped_steps"],
            "fullest_shard_bytes": max(shards, default=0),
            "loss_curve": log.loss_curve(row.rows_per_step()),
            "test_curve": log.test_curve(row.rows_per_step()),
            "foreign_cores": round(foreign_cores, 3),
            "commit": commit(),
            "muster_version": result["muster_version"],
            "date": datetime.date.today().isoformat()}
