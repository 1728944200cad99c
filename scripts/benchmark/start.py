"""How soon a cluster takes steps after its launch.

Python 3 standard library only.
"""

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

    def _fail(self, what):
        raise processes.Failure("%s: %s; its last lines:\n%s" % (
            " ".join(self.command), what, "\n".join(self._tail[-10:])))


def launch(command):
    with tempfile.TemporaryDirectory() as train_dir:
        with Cluster(command + ["--train_dir=" + train_dir]) as cluster:
            return {"seconds": cluster.await_line(STEP_LINE) - cluster.started}


def figures(options):
    command = [
        sys.executable, processes.LAUNCHER, "--no_build",
        "--bin_dir=" + options.bin_dir, "--ps=1", "--workers=2",
        "--compute_threads=1", "--progress_every=0"]
    one = Measurement(
        PART, "launch of 1 ps + 2 workers to the first applied step",
        command + ["--train_dir=DIR"], lambda: launch(command))
    yield Figure(one.name, "s", [one], lambda numbers: numbers["seconds"],
                 at_most(1.0))
