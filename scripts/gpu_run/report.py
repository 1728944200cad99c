"""The files that a run leaves: results.json and, beside it, results.log.

Part of run_all.py. Python 3 standard library only.
"""

import contextlib
import json
import os
import sys
import tempfile

# Of the whole log: more than this might not come back from the machine.
LOG_BYTES = 8 << 20


class Report:
    """A JSON that is whole at any moment, and a log of what was printed."""

    def __init__(self, path):
        """Raises OSError if there can be no file at `path`."""
        self.path = path
        self.log_path = os.path.splitext(path)[0] + ".log"
        self.is_written = True
        self._log_bytes_left = LOG_BYTES
        self._replace({})
        with open(self.log_path, "wb"):
            pass

    def write(self, content):
        """Replaces the JSON. A full disk, say, is told once; the next write
        may succeed."""
        try:
            self._replace(content)
            self.is_written = True
        except OSError as error:
            if self.is_written:
                say("cannot write '%s': %s; free some space" % (
                    self.path, error.strerror))
            self.is_written = False

    def _replace(self, content):
        # Made before a file is: nothing of it can fail half-way then.
        text = json.dumps(content, indent=1, default=str) + "\n"
        temporary = "%s.%d.tmp" % (self.path, os.getpid())
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, self.path)
        except OSError:
            with contextlib.suppress(OSError):
                os.remove(temporary)
            raise

    def log(self, title, text):
        """Appends `text` as far as there is room. What cannot be written is
        lost: the row has its last lines."""
        entry = ("=== %s\n%s\n" % (title, text.rstrip("\n"))).encode(
            "utf-8", "replace")
        if len(entry) > self._log_bytes_left:
            entry = ("=== %s\n[left out: the log has its %d bytes]\n" % (
                title, LOG_BYTES)).encode("utf-8", "replace")
        if len(entry) > self._log_bytes_left:
            return
        with contextlib.suppress(OSError), open(self.log_path, "ab") as file:
            file.write(entry)
            self._log_bytes_left -= len(entry)


def open_report(path):
    """At `path` or, where nothing can be written there, in TMPDIR. Raises
    OSError, with both reasons."""
    try:
        return Report(path)
    except OSError as error:
        why = "cannot write '%s': %s" % (path, error.strerror)
    try:
        other = os.path.join(tempfile.gettempdir(), os.path.basename(path))
        report = Report(other)
    except OSError as error:
        raise OSError("%s, nor in TMPDIR: %s; give --out a file in a folder "
                      "that can be written to" % (why, error)) from error
    say("%s; writing '%s'" % (why, other))
    return report


def say(text):
    """One line to stderr."""
    show("run_all: " + text, sys.stderr)


def show(text, file=None):
    """Prints. Nobody may be listening any more, or in an alphabet that lacks
    some of it, which ends nothing."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=file, flush=True)
