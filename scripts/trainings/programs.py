"""The programs that trainings are made with."""

import os
import subprocess

from base import places
from base.failure import Failure
from base.launcher_flags import IS_PACKAGE, ROOT

TARGETS = ("//worker", "//worker/ctl:musterctl")


def prepare(options):
    """Installs and builds them, without --no_build. Raises Failure."""
    if not options.no_build and not IS_PACKAGE:
        for command in (
                [os.path.join(ROOT, "scripts/install_deps.sh")],
                ["bazel", "build", *TARGETS]):
            if subprocess.run(command, cwd=ROOT, check=False,
                              stdin=subprocess.DEVNULL).returncode != 0:
                raise Failure("%s failed; --no_build uses what is there" %
                              " ".join(command), exit_code=1)
    for name in ("worker", "musterctl"):
        places.binary(name, options.bin_dir)
