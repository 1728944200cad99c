"""The programs that trainings are made with."""

import os
import subprocess

from benchmark import processes

from .failure import Failure

TARGETS = ("//worker", "//worker/ctl:musterctl")


def prepare(options):
    """Installs and builds them, without --no_build. Raises Failure, and
    processes.Failure."""
    if not options.no_build:
        for command in (
                [os.path.join(processes.ROOT, "scripts/install_deps.sh")],
                ["bazel", "build", *TARGETS]):
            if subprocess.run(command, cwd=processes.ROOT, check=False,
                              stdin=subprocess.DEVNULL).returncode != 0:
                raise Failure("%s failed; --no_build uses what is there" %
                              " ".join(command), exit_code=1)
    for program in ("worker/worker", "worker/ctl/musterctl"):
        processes.check_program(os.path.join(options.bin_dir, program))
