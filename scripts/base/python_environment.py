#!/usr/bin/env python3
"""A Python with the packages of requirements.txt, in a virtual environment.

    python = python_environment.interpreter()
    subprocess.run([python, "read_tensorboard.py", logdir])

  python3 scripts/base/python_environment.py [REQUIREMENTS...]

makes it ahead of the tests and prints where it is; other files of requirements
have other environments. Each is kept in the user's cache folder
($XDG_CACHE_HOME, else ~/.cache, muster/), one for each text of such a file, so
that only the first run asks PyPI. Python 3 standard library only; Debian's
python3-venv makes the environment.
"""

import fcntl
import hashlib
import os
import pwd
import shutil
import subprocess
import sys

# Those of most tests.
REQUIREMENTS = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__)))), "tests/integration/requirements.txt")
# A minute on a slow line; a PyPI that does not answer must not hang a test.
INSTALL_S = 240
CONNECT_S = 20


class EnvironmentFailure(Exception):
    """There is no such Python; the text says why and what to do."""


def _home():
    # Bazel gives its tests no HOME.
    return pwd.getpwuid(os.getuid()).pw_dir


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(_home(), ".cache")
    return os.path.join(base, "muster")


def _run(command, what, limit_s):
    environment = dict(os.environ, HOME=_home())
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env=environment, timeout=limit_s,
            check=False)
    except subprocess.TimeoutExpired:
        raise EnvironmentFailure("%s took more than %d s" %
                                 (what, limit_s)) from None
    if done.returncode != 0:
        output = done.stdout.decode("utf-8", "replace").strip()
        raise EnvironmentFailure("%s failed:\n%s" % (what, output[-2000:]))


def _names(requirements):
    with open(requirements, encoding="utf-8") as file:
        return [line.split("=")[0].strip() for line in file
                if line.strip() and not line.startswith("#")]


def _make(folder, requirements, limit_s):
    _run([sys.executable, "-m", "venv", folder],
         "making a virtual environment (Debian: apt install python3-venv)",
         limit_s)
    _run([os.path.join(folder, "bin", "python3"), "-m", "pip", "install",
          "--quiet", "--no-input", "--disable-pip-version-check",
          "--retries", "1", "--timeout", str(CONNECT_S),
          "--requirement", requirements],
         "installing %s from PyPI, which needs the network once," %
         requirements, limit_s)


def interpreter(requirements=REQUIREMENTS, limit_s=INSTALL_S):
    """The path of a Python that has the packages; to get them may take so
    long. Raises EnvironmentFailure."""
    with open(requirements, "rb") as file:
        key = hashlib.sha256(file.read() + sys.version.encode()).hexdigest()
    folder = os.path.join(cache_folder(), "python-" + key[:16])
    complete = os.path.join(folder, "complete")
    os.makedirs(cache_folder(), exist_ok=True)
    # Two tests may want it at once. The lock is gone with its holder.
    with open(folder + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(complete):
            shutil.rmtree(folder, ignore_errors=True)
            print("installing from PyPI, the first time only and for up to "
                  "%d s: %s (%s)" % (limit_s, ", ".join(_names(requirements)),
                                     requirements), file=sys.stderr, flush=True)
            _make(folder, requirements, limit_s)
            with open(complete, "w", encoding="utf-8"):
                pass
    return os.path.join(folder, "bin", "python3")


if __name__ == "__main__":
    try:
        for path in sys.argv[1:] or [REQUIREMENTS]:
            print(interpreter(path))
    except EnvironmentFailure as failure:
        sys.exit("python_environment.py: %s" % failure)
