"""How soon a cluster takes steps after its launch.

Python 3 standard library only.
"""

import sys
import tempfile
import time

from base.programs import Programs

from . import processes
from .figures import Figure, Measurement, at_most

PART = "start"
STEP_LINE = r"^\[worker \d+\] .* step=\d"
# For a line, and to drain.
PATIENCE_S = 120


def launch(command):
    with tempfile.TemporaryDirectory() as train_dir, Programs() as programs:
        started = time.monotonic()
        cluster = processes.start(programs,
                                  command + ["--train_dir=" + train_dir])
        line = programs.await_line(cluster, STEP_LINE, PATIENCE_S)
        seconds = time.monotonic() - started
        programs.end(cluster)
        if line is None:
            raise processes.Failure(
                "%s: it ended, or %d s passed, before a line '%s'; its last "
                "lines:\n%s" % (" ".join(command), PATIENCE_S, STEP_LINE,
                                "\n".join(cluster.tail)))
        return {"seconds": seconds}


def figures(options):
    command = [
        sys.executable, processes.LAUNCHER, "--no_build",
        "--bin_dir=" + options.bin_dir, "--ps=1", "--workers=2",
        "--compute_threads=1", "--progress_every=0"]
    one = Measurement(
        PART, "launch of 1 ps + 2 workers to the first applied step",
        command + ["--train_dir=DIR"], lambda: launch(command))
    yield Figure(one.name, "s", [one], lambda numbers: numbers["seconds"],
                 at_most(1.0))
