"""Programs that are measured, and what they print."""

import json
import os
import shlex
import sys

from base import python_environment
from base.failure import Failure
from base.launcher_flags import ROOT
from base.programs import Programs

LAUNCHER = os.path.join(ROOT, "scripts/launcher.py")
# No run takes longer; one that does has hung.
LIMIT_S = 900


def start(programs, command):
    """Raises Failure."""
    try:
        return programs.start(command)
    except OSError as error:
        raise Failure("cannot start '%s': %s" % (
            command[0], error.strerror)) from None


def finish(programs, program):
    """Waits for its end; returns what it printed. Raises Failure."""
    if programs.wait(program, LIMIT_S) and program.exit_code == 0:
        return program.text()
    sys.stderr.write(program.text())
    raise Failure("%s: %s" % (
        "not done after %d s" % LIMIT_S if program.exit_code is None
        else "exit code %d" % program.exit_code, " ".join(program.command)))


def check_program(path):
    """Raises Failure if it is not there."""
    if not os.access(path, os.X_OK):
        raise Failure("no program at '%s'; leave out --no_build" % path)


def shown(command):
    """As one types it in the project's folder."""
    words = ["python3" if word == sys.executable else word for word in command]
    return shlex.join(words).replace(ROOT + os.sep, "")


def run(command):
    with Programs() as programs:
        return finish(programs, start(programs, command))


def last_json_line(text, command):
    try:
        return json.loads(text.splitlines()[-1])
    except (IndexError, ValueError):
        raise Failure("no line of JSON at the end of: %s" %
                      " ".join(command)) from None


def python_with(requirements, limit_s=None):
    """A Python that has these packages of PyPI; to get them may take so long.
    Raises Failure."""
    try:
        return python_environment.interpreter(
            requirements, limit_s or python_environment.INSTALL_S)
    except python_environment.EnvironmentFailure as failure:
        raise Failure(str(failure)) from None
