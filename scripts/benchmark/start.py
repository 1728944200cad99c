"""How soon a cluster takes steps: after its launch, and after a ps died.

Python 3 standard library only.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from . import processes
from .figures import Figure, Measurement, at_most

PART = "start"
STEP_LINE = r"^\[worker \d+\] .* step=\d"
LISTENING_LINE = r"^\[ps 0\] .* listening on "
# Of a cluster: for a line, and to drain.
PATIENCE_S = 120
# Ended by our SIGTERM.
TERMINATED = 128 + signal.SIGTERM


class Cluster:
    """A launcher and the lines of its tasks as they come. Drained at the end
    of the `with`."""

    def __init__(self, command):
        self.command = command
        self.started = time.monotonic()
        self._tail = []
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        # The kernel ends the tasks of a launcher that is killed.
        self._watchdog = threading.Timer(PATIENCE_S, self._process.kill)
        self._watchdog.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._tail += self._process.stdout.read().decode(
            "utf-8", "replace").splitlines()
        code = self._process.wait()
        self._process.stdout.close()
        self._watchdog.cancel()
        if code not in (0, TERMINATED) and sys.exc_info()[0] is None:
            self._fail("exit code %d" % code)

    def await_line(self, pattern):
        """Returns when the next such line came, in monotonic seconds."""
        for line in self._process.stdout:
            self._tail.append(line.decode("utf-8", "replace").rstrip())
            if re.search(pattern, self._tail[-1]):
                return time.monotonic()
        return self._fail("it ended, or %d s passed, before a line '%s'" % (
            PATIENCE_S, pattern))

    def kill_ps(self):
        """SIGKILL to the one ps; returns when."""
        children = "/proc/%d/task/%d/children" % (
            self._process.pid, self._process.pid)
        with open(children, encoding="ascii") as file:
            pids = [int(pid) for pid in file.read().split()]
        for pid in pids:
            with open("/proc/%d/cmdline" % pid, "rb") as file:
                if b"ps_server" not in os.path.basename(
                        file.read().split(b"\0")[0]):
                    continue
            killed = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            return killed
        return self._fail("it has no ps_server")

    def _fail(self, what):
        raise processes.Failure("%s: %s; its last lines:\n%s" % (
            " ".join(self.command), what, "\n".join(self._tail[-10:])))


def launch(command):
    with tempfile.TemporaryDirectory() as train_dir:
        with Cluster(command + ["--train_dir=" + train_dir]) as cluster:
            return {"seconds": cluster.await_line(STEP_LINE) - cluster.started}


def reconnect(command):
    with tempfile.TemporaryDirectory() as train_dir:
        with Cluster(command + ["--train_dir=" + train_dir]) as cluster:
            cluster.await_line(STEP_LINE)
            killed = cluster.kill_ps()
            # No step is taken between the kill and the restart.
            listening = cluster.await_line(LISTENING_LINE)
            stepped = cluster.await_line(STEP_LINE)
            return {"seconds": stepped - killed,
                    "reconnect_s": stepped - listening}


def figures(options):
    def one(name, run, workers, *flags):
        command = [
            sys.executable, processes.LAUNCHER, "--no_build",
            "--bin_dir=" + options.bin_dir, "--ps=1",
            "--workers=%d" % workers, "--compute_threads=1",
            "--progress_every=0", *flags]
        return Measurement(PART, name, command + ["--train_dir=DIR"],
                           lambda: run(command))

    def row(name, measurement, key="seconds", target=None):
        return Figure(name, "s", [measurement],
                      lambda numbers: numbers[key], target)
    launched = one("launch of 1 ps + 2 workers to the first applied step",
                   launch, 2)
    yield row(launched.name, launched, target=at_most(1.0))
    restarted = one("kill of a ps to the next step, 1 ps + 1 worker",
                    reconnect, 1, "--restart=1")
    yield row(restarted.name, restarted)
    yield row("reconnect: a new ps listens to the next step, 1 ps + 1 worker",
              restarted, "reconnect_s")
