"""Where the programs lie: in a package (bin/), or in a build (bazel-bin/)."""

import os
import subprocess

from .failure import Failure
from .launcher_flags import ROOT

PROGRAM = os.path.join(ROOT, "scripts", "muster")
VERSION_S = 30
# In a build; in a package all are in one folder.
BUILT = {"ps_server": "ps_server/ps_server", "worker": "worker/worker",
         "musterctl": "worker/ctl/musterctl"}


def binary(name, bin_dir=None):
    """The path of ps_server, worker or musterctl. Raises Failure."""
    folders = [bin_dir] if bin_dir else [
        os.path.join(ROOT, "bin"), os.path.join(ROOT, "bazel-bin")]
    candidates = [os.path.join(folder, place) for folder in folders
                  for place in (name, BUILT[name])]
    for path in candidates:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise Failure("no program at '%s'; unpack the package there, or run bazel "
                  "build //%s:%s" % ("', '".join(candidates),
                                     os.path.dirname(BUILT[name]), name))


def version(path):
    """The first line of --version. Raises Failure."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, check=False,
                              timeout=VERSION_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure("%s --version: %s" % (path, error)) from None
    if done.returncode != 0:
        raise Failure("%s --version: exit code %d: %s" % (
            path, done.returncode, (done.stderr or done.stdout).strip()))
    return done.stdout.partition("\n")[0]
