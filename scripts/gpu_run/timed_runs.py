"""Runs programs with time limits, and keeps a row of each.

Part of run_all.py. Python 3 standard library only.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.abspath(__file__))
# What is not worth beginning.
LEAST_S = 2.0
# After SIGTERM, for a launcher to end its tasks.
GRACE_S = 5.0
# Of what a failed program printed.
LAST_LINES = 15


def programs():
    """The folder of worker/worker and the others: as they are where the
    machine's own glibc is new enough, else with the one of the bundle."""
    worker = os.path.join(ROOT, "worker/worker")
    runs = subprocess.run([worker, "--version"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False)
    return ROOT if runs.returncode == 0 else os.path.join(ROOT, "with_glibc")


class Skipped(Exception):
    """A program ended well without having done its work; the text says why."""


def tests_passed(text):
    """How many of a GoogleTest program that has exited with 0."""
    passed = re.search(r"\[  PASSED  \] (\d+) test", text)
    if passed is None:
        raise ValueError("no count of tests that passed")
    skipped = re.search(r"\[  SKIPPED \] (\d+) test", text)
    # What wants no card passes without one.
    if skipped is not None and int(skipped.group(1)) >= int(passed.group(1)):
        raise Skipped("the tests found no card that they can use")
    return int(passed.group(1))


class Runs:
    """What was run so far, and how much time is left."""

    def __init__(self, limit_s):
        self.rows = []
        self._started = time.monotonic()
        self._limit_s = limit_s

    def elapsed_s(self):
        return time.monotonic() - self._started

    def count(self, key):
        return sum(key in row for row in self.rows)

    def measure(self, name, unit, command, limit_s, read, skip=None,
                environment=None):
        """Runs it in ROOT, where tests find their files. `read` makes the value
        of what was printed; it may raise ValueError or Skipped. Not run if
        `skip` says why. Returns the row.
        """
        row = {"name": name, "unit": unit, "command": self._shown(command)}
        self.rows.append(row)
        left_s = self._limit_s - self.elapsed_s() - GRACE_S
        if skip is None and left_s < LEAST_S:
            skip = "no time left of %g s" % self._limit_s
        if skip is not None:
            row["skipped"] = skip
        else:
            self._run(row, command, min(limit_s, left_s), read, environment)
        self._say(row)
        return row

    def derive(self, name, unit, value, how):
        """A row of what was seen beside other rows: `value` makes it, or raises
        ValueError with why there is none; `how` stands for its command."""
        row = {"name": name, "unit": unit, "command": how}
        self.rows.append(row)
        try:
            row["value"] = value()
        except ValueError as why:
            row["skipped"] = str(why)
        self._say(row)

    def _say(self, row):
        says = ("skipped: " + row["skipped"] if "skipped" in row else
                "FAILED: " + row["failed"] if "failed" in row else
                "%s %s" % (row["value"], row["unit"]))
        print("%6.1f s  %-58s %s" % (self.elapsed_s(), row["name"], says),
              flush=True)

    def _run(self, row, command, limit_s, read, environment):
        started = time.monotonic()
        code, text = self._output_of(command, limit_s, environment)
        row["seconds"] = round(time.monotonic() - started, 2)
        if code is None:
            row["failed"] = "not done after %.0f s" % limit_s
        elif code != 0:
            row["failed"] = "exit code %d" % code
        else:
            try:
                row["value"] = read(text)
            except Skipped as why:
                row["skipped"] = str(why)
            except (ValueError, KeyError, OSError) as error:
                row["failed"] = "no result: %s" % error
        if "failed" in row:
            row["output"] = text.splitlines()[-LAST_LINES:]
            sys.stderr.write("\n".join(row["output"]) + "\n")

    def _output_of(self, command, limit_s, environment):
        """Returns (exit code, None after the limit; what it printed)."""
        with tempfile.TemporaryFile() as output:
            with subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output,
                    stderr=subprocess.STDOUT, start_new_session=True,
                    env=environment, cwd=ROOT) as process:
                code = self._wait(process, limit_s)
            output.seek(0)
            return code, output.read().decode("utf-8", "replace")

    @staticmethod
    def _wait(process, limit_s):
        for signum, patience_s in ((signal.SIGTERM, limit_s),
                                   (signal.SIGKILL, GRACE_S)):
            try:
                code = process.wait(patience_s)
                return code if signum == signal.SIGTERM else None
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signum)
        process.wait()
        return None

    @staticmethod
    def _shown(command):
        words = ["python3" if word == sys.executable else word
                 for word in command]
        return shlex.join(words).replace(ROOT + os.sep, "")
