"""Runs a program to its end and reads what it printed."""

import json
import os
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
LAUNCHER = os.path.join(ROOT, "scripts/launcher.py")
MODEL = os.path.join(ROOT, "worker/model/zoo/mnist_cnn.textproto")
# No run takes longer; one that does has hung.
LIMIT_S = 900


class Failure(Exception):
    """A program failed; the text says which and how."""


class Process:
    """A program that runs; what it prints goes to a file of its own, because
    a pipe that nobody reads yet would stop it."""

    def __init__(self, command):
        self.command = command
        self._output = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=self._output,
                stderr=subprocess.STDOUT)
        except OSError as error:
            self._output.close()
            raise Failure("cannot start '%s': %s" % (
                command[0], error.strerror)) from None

    def finish(self):
        """Waits for its end; returns what it printed."""
        with self._output:
            try:
                code = self._process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                code = None
                self._process.kill()
                self._process.wait()
            self._output.seek(0)
            text = self._output.read().decode("utf-8", "replace")
        if code == 0:
            return text
        sys.stderr.write(text)
        raise Failure("%s: %s" % (
            "not done after %d s" % LIMIT_S if code is None
            else "exit code %d" % code, " ".join(self.command)))

    def stop(self):
        """Kills it if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._output.close()


def check_program(path):
    """Raises Failure if it is not there."""
    if not os.access(path, os.X_OK):
        raise Failure("no program at '%s'; leave out --no_build" % path)


def shown(command):
    """As one types it in the project's folder."""
    words = ["python3" if word == sys.executable else word for word in command]
    return shlex.join(words).replace(ROOT + os.sep, "")


def run(command):
    return Process(command).finish()


def last_json_line(text, command):
    try:
        return json.loads(text.splitlines()[-1])
    except (IndexError, ValueError):
        raise Failure("no line of JSON at the end of: %s" %
                      " ".join(command)) from None


def python_with(requirements, limit_s=None):
    """A Python that has these packages of PyPI; to get them may take so long.
    Raises Failure."""
    # pylint: disable=import-outside-toplevel
    from base import python_environment
    try:
        return python_environment.interpreter(
            requirements, limit_s or python_environment.INSTALL_S)
    except python_environment.EnvironmentFailure as failure:
        raise Failure(str(failure)) from None
