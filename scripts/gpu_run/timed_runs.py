"""Runs programs with time limits, and keeps a row of each.

Part of run_all.py. Python 3 standard library only.
"""

import contextlib
import json
import math
import os
import re
import shlex
import subprocess
import sys
import time
import typing

import processes
from report import show

ROOT = os.path.dirname(os.path.abspath(__file__))
# What is not worth beginning.
LEAST_S = 2.0
# Of what a failed program printed, and how much of each.
LAST_LINES = 15
LINE_CHARACTERS = 500
# Lines that belong to a row also when all went well.
NOTED = re.compile(r"cannot be captured|not possible|parameters stay on|"
                   r"\bwarning\b|\berrors?\b", re.IGNORECASE)
# GoogleTest's own, with names of tests.
OF_GOOGLE_TEST = re.compile(r"\[[ =-]")
MAX_NOTES = 20
# Of a row while its program runs: what is left when this one is killed.
UNDER_WAY = "under way when this was written"


class Skipped(Exception):
    """A program ended well without having done its work; the text says why."""


class Part(typing.NamedTuple):
    """A program to be run in ROOT, where tests find their files, and what is
    made of it."""
    name: str
    unit: str
    command: list
    limit_s: float
    # Of what it printed: the row's value, or fields of the row with `value`.
    # Raises Skipped; what else it raises is a failure.
    read: typing.Callable
    # Not begun if less is left.
    needs_s: float = LEAST_S
    # Why it is not run.
    skip: typing.Optional[str] = None
    environment: typing.Optional[dict] = None
    # Of what it printed: why a bad end is no failure, or None.
    excuse: typing.Callable = lambda text: None


def last_object(text):
    """The last line that begins with {, as JSON. Raises ValueError."""
    for line in reversed(text.splitlines()):
        if line.lstrip().startswith("{"):
            return json.loads(line)
    raise ValueError("it printed no line with a JSON object")


def notes_of(text):
    """The first lines that tell of something unusual; of those that differ in
    numbers alone, such as the time, one."""
    found = {}
    for line in text.splitlines():
        line = line.strip()
        if NOTED.search(line) and not OF_GOOGLE_TEST.match(line):
            found.setdefault(re.sub(r"\d+", "0", line),
                             line[:LINE_CHARACTERS])
    return list(found.values())[:MAX_NOTES]


def fields_of(made):
    """Of a row, of what was made of an output. Raises ValueError."""
    fields = made if isinstance(made, dict) else {"value": made}
    value = fields["value"]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("its value is %s" % value)
    return fields


class Runs:
    """What was run so far, and how much time is left."""

    def __init__(self, limit_s, changed=lambda: None,
                 log=lambda title, text: None):
        """`changed` is called after every change of a row, `log` with what each
        program printed."""
        self.rows = []
        self._started = time.monotonic()
        self._limit_s = limit_s
        self._changed = changed
        self._log = log

    def elapsed_s(self):
        return time.monotonic() - self._started

    def count(self, key):
        return sum(key in row for row in self.rows)

    def value(self, name):
        """Of the row; None if it has none."""
        return next((row.get("value") for row in self.rows
                     if row["name"] == name), None)

    def measure(self, part):
        """Runs it. Returns the row. Raises Interrupted, with the row done."""
        row = self._add(part.name, part.unit, self._shown(part.command))
        left_s = self._limit_s - self.elapsed_s() - processes.GRACE_S
        try:
            if part.skip is not None:
                row["skipped"] = part.skip
            elif left_s < part.needs_s:
                row["skipped"] = (
                    "no time left of %g s: it needs %g s, and %d are left" % (
                        self._limit_s, part.needs_s, max(0, left_s)))
            else:
                self._run(row, part, left_s)
        finally:
            self._done(row)
        return row

    def derive(self, name, unit, value, how):
        """A row of what was seen beside other rows: `value` makes it, or fields
        of it, or raises ValueError with why there is none; `how` stands for its
        command."""
        row = self._add(name, unit, how)
        try:
            row.update(fields_of(value()))
        except ValueError as why:
            row["skipped"] = str(why)
        except Exception as error:  # pylint: disable=broad-except
            # Whatever it is, the rows to come do not depend on it.
            row["failed"] = "no result: %s" % described(error)
        self._done(row)

    @contextlib.contextmanager
    def guarded(self, what):
        """An exception in its block is a row that failed, and no more."""
        try:
            yield
        except Exception as error:  # pylint: disable=broad-except
            row = self._add(what, "", "")
            row["failed"] = described(error)
            self._done(row)

    def _add(self, name, unit, command):
        self.rows.append({"name": name, "unit": unit, "command": command})
        return self.rows[-1]

    def _done(self, row):
        says = ("skipped: " + row["skipped"] if "skipped" in row else
                "FAILED: " + row["failed"] if "failed" in row else
                "%s %s" % (row["value"], row["unit"]))
        show("%6.1f s  %-58s %s" % (self.elapsed_s(), row["name"], says))
        self._changed()

    def _run(self, row, part, left_s):
        row["failed"] = UNDER_WAY
        self._changed()
        started = time.monotonic()
        text = ""
        try:
            outcome = processes.run(part.command, min(part.limit_s, left_s),
                                    part.environment, ROOT)
            text = outcome.text
            del row["failed"]
            row.update(self._made_of(part, outcome, left_s))
        except (OSError, subprocess.SubprocessError) as error:
            row["failed"] = "cannot be started: %s" % error
        except processes.Interrupted as stop:
            text = stop.output
            row["failed"] = "ended, as %s came" % stop
            raise
        finally:
            row["seconds"] = round(time.monotonic() - started, 2)
            self._keep(row, text)

    def _made_of(self, part, outcome, left_s):
        """The fields that an outcome gives to the row."""
        if outcome.unkillable:
            return {"failed": "unkillable: it, or what it has started, still "
                    "runs %g s after SIGKILL" % processes.KILL_S}
        if outcome.timed_out and left_s < part.limit_s:
            return {"skipped": "cut off by the time limit of %g s, after %.0f "
                    "s" % (self._limit_s, left_s)}
        if outcome.timed_out:
            return {"failed": "not done after %.0f s" % part.limit_s}
        try:
            excuse = part.excuse(outcome.text)
            if excuse is not None:
                return {"skipped": excuse}
            if outcome.code != 0:
                return {"failed": processes.ending(outcome.code)}
            return fields_of(part.read(outcome.text))
        except Skipped as why:
            return {"skipped": str(why)}
        except Exception as error:  # pylint: disable=broad-except
            # Anything may have been printed; the other parts go on.
            return {"failed": "no result: %s" % described(error)}

    def _keep(self, row, text):
        """What was printed: all in the log, what matters in the row."""
        self._log("%s\n$ %s" % (row["name"], row["command"]), text)
        notes = notes_of(text)
        if notes:
            row["notes"] = row.get("notes", []) + notes
        if "failed" in row:
            row["output"] = [line[:LINE_CHARACTERS]
                             for line in text.splitlines()[-LAST_LINES:]]
            if row["output"]:
                show("\n".join(row["output"]), sys.stderr)

    @staticmethod
    def _shown(command):
        words = ["python3" if word == sys.executable else word
                 for word in command]
        return " ".join(map(shlex.quote, words)).replace(ROOT + os.sep, "")


def described(error):
    """An exception in one line."""
    return ": ".join(filter(None, [type(error).__name__, str(error)]))
