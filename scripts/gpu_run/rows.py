"""The rows of results.json. Part of run_all.py."""

import contextlib
import json
import os
import shlex
import sys
import time

from base.programs import Interrupted, Programs

ROOT = os.path.dirname(os.path.abspath(__file__))
# What is not worth beginning; what is kept for a program's end.
LEAST_S, END_S = 2.0, 10.0
# Of what a failed program printed; the log has all.
LAST_LINES = 15
# Of a row while its program runs: what is left when this one is killed.
UNDER_WAY = "under way when this was written"


class Skipped(Exception):
    """There is nothing to be had, and that is no failure."""


class Failed(Exception):
    """There is no value; the text is all that there is to say."""


class Rows:
    """The file is whole after every change, and has all that was found."""

    def __init__(self, path, limit_s):
        """Raises OSError if there can be no file at `path`."""
        self.path = path
        self.programs = Programs()
        self.found = {"end": "under way"}
        self.rows = []
        self._started = time.monotonic()
        self._limit_s = limit_s
        # What was printed for the row that is being made.
        self._text = ""
        self._log = os.path.splitext(path)[0] + ".log"
        with open(self._log, "wb"):
            self.write()

    def left_s(self):
        return self._limit_s - END_S - (time.monotonic() - self._started)

    def add(self, name, unit, how, make, skip=None, needs_s=LEAST_S):
        """A row, with the value or the fields that make() returns; `how` is its
        command. `skip`: why it is not made. Raises Interrupted."""
        row = {"name": name, "unit": unit, "command": how}
        self.rows.append(row)
        if skip is None and self.left_s() < needs_s:
            skip = "no time left of %g s: it needs %g s, and %d are left" % (
                self._limit_s, needs_s, max(0, self.left_s()))
        if skip is None:
            self._make(row, make)
        else:
            row["skipped"] = skip
        show("%-58s %s" % (name, next(
            "%s: %s" % (key, row[key]) for key in ("failed", "skipped", "value")
            if key in row)))
        self.write()

    def measure(self, name, unit, command, limit_s, read, environment=None,
                **more):
        """A row of a program: `read` makes its value or fields of what it
        printed."""
        self.add(name, unit, shown(command), lambda: read(self.run(
            command, limit_s, environment)), **more)

    def run(self, command, limit_s, environment=None):
        """What it printed. Raises Skipped, Failed, OSError, Interrupted."""
        left_s = self.left_s()
        program = self.programs.start(command, environment, ROOT)
        try:
            is_done = self.programs.wait(program, min(limit_s, left_s))
            self.programs.end(program)
        finally:
            self._text += program.text()
        if not is_done and left_s < limit_s:
            raise Skipped("cut off by the time limit of %g s, after %.0f s" % (
                self._limit_s, left_s))
        if not is_done or program.exit_code != 0:
            raise Failed("exit code %d" % program.exit_code if is_done else
                         "not done after %.0f s" % limit_s)
        return program.text()

    def write(self):
        """Where the disk is full, say, the next write may succeed."""
        with contextlib.suppress(*([OSError] if self.rows else [])):
            with open(self.path + ".new", "w", encoding="utf-8") as file:
                json.dump(dict(self.found, rows=self.rows), file, indent=1)
            os.replace(self.path + ".new", self.path)

    def _make(self, row, make):
        row["failed"] = UNDER_WAY
        self.write()
        started = time.monotonic()
        try:
            fields = make()
            row.update(fields if isinstance(fields, dict) else
                       {"value": fields})
            del row["failed"]
        except Skipped as why:
            row["skipped"] = str(why)
            del row["failed"]
        except Interrupted as stop:
            row["failed"] = "ended, as %s came" % stop
            raise
        except Exception as error:  # pylint: disable=broad-except
            # Anything may have been printed; the other rows are made.
            row["failed"] = str(error) if isinstance(error, Failed) else (
                "no result: %s: %s" % (type(error).__name__, error))
        finally:
            row["seconds"] = round(time.monotonic() - started, 2)
            if "failed" in row:
                row["output"] = self._text.splitlines()[-LAST_LINES:]
            with contextlib.suppress(OSError), open(
                    self._log, "a", encoding="utf-8") as file:
                file.write("=== %s\n$ %s\n%s" % (
                    row["name"], row["command"], self._text))
            self._text = ""


def shown(command):
    words = ["python3" if word == sys.executable else word for word in command]
    return shlex.join(words).replace(ROOT + os.sep, "")


def show(text):
    """Nobody may be listening any more, or in another alphabet."""
    with contextlib.suppress(OSError, ValueError):
        print(text, flush=True)
