"""A program of the user's own in the place of the worker: -- python train.py.

Its environment says what flags say to the worker; muster.init of the Python
package reads it. README.md has the table.
"""

import os
import signal

from base import local_cores, stop_signals
from base.failure import Failure
from base.local_tasks import Task

# What the environment may say.
NAMES = ("MUSTER_CLUSTER", "MUSTER_JOB_NAME", "MUSTER_TASK_INDEX",
         "MUSTER_CERTS_DIR", "MUSTER_ALLOW_INSECURE_NETWORK")


def is_program(words):
    """Whether they are a command line, not flags of the worker."""
    return bool(words) and not words[0].startswith("-")


def refuse_mixed(parser, before, rest):
    """Ends with 2 where a program and flags of the worker come together.
    `before`: unknown words before the --; `rest`: what stands after it."""
    if is_program(rest):
        found = " ".join(before)
    else:
        found = next(_strays(before + rest), "")
    if found:
        parser.error(
            "'%s': a program stands in the place of the worker and of its "
            "flags (--training, --set, --devices, ...), alone behind a --, as "
            "%s ... -- python train.py" % (found, parser.prog))


def check_ps(words, ps):
    """Raises Failure for a program without ps tasks."""
    if is_program(words) and not ps:
        raise Failure("--ps=0: wanted ps tasks for `%s`, as --ps=1: a program "
                      "in the place of the worker holds no parameters of "
                      "others" % words[0])


def _strays(flags):
    """The words that are neither flags nor may be the value of one."""
    for previous, word in zip(["", *flags], flags):
        if word == "--" or not word.startswith("-") and (
                "=" in previous or not previous.startswith("-")):
            yield word


def environment(told, workers):
    """That of the program. `told`: flags, as the worker would have them;
    `workers`: those of the job on this machine."""
    of_program = {name: value for name, value in os.environ.items()
                  if name not in NAMES + ("TF_CONFIG",)}
    # So that its lines come when they are printed, as a worker's.
    of_program.setdefault("PYTHONUNBUFFERED", "1")
    of_program.update(MUSTER_JOB_NAME="worker", OMP_NUM_THREADS=str(
        local_cores.threads(workers)))
    for flag in told:
        name, _, value = flag.lstrip("-").partition("=")
        of_program["MUSTER_" + name.upper()] = value or "1"
    return of_program


class ProgramTask(Task):
    """Asks the program alone to end, by the one signal for which each program
    has a meaning: its children (a loader's, say) would be ended by it. They are
    killed when it has ended."""

    def send(self, signum):
        if signum == signal.SIGKILL:
            super().send(signum)
        elif self.exit_code is None:
            os.kill(self.process.pid, signal.SIGTERM)

    def reap(self):
        # The leader, dead and not reaped, still keeps the group's number.
        os.killpg(self.process.pid, signal.SIGKILL)
        super().reap()


def ignore_notices():
    """Runs in a new program before exec, where a batch system signals all
    processes: what `muster task` tells it as SIGTERM would kill it."""
    for signum in stop_signals.NOTICES:
        signal.signal(signum, signal.SIG_IGN)
