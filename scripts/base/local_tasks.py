"""The processes of a run on this machine, and how their lines are printed.

Part of launcher.py, and of the agents of `muster run`. Python 3 standard library only.
"""

import collections
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time

COLOURS = (36, 33, 35, 32, 34, 31)
PR_SET_PDEATHSIG = 1


class Printer:
    """Whole lines to stdout, each with its task's name before it."""

    def __init__(self, program="train_local"):
        self.program = program
        self.colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def line(self, name, number, text):
        prefix = "[%s]" % name
        if self.colour:
            prefix = "\x1b[%dm%s\x1b[0m" % (
                COLOURS[number % len(COLOURS)], prefix)
        sys.stdout.write("%s %s\n" % (prefix, text))
        sys.stdout.flush()

    def say(self, text):
        sys.stdout.write("[%s] %s\n" % (self.program, text))
        sys.stdout.flush()


class AwakeClock:
    """The seconds in which this process was awake. When it is frozen (SIGSTOP,
    docker pause, a machine that sleeps), those whom it waits for often are,
    too: that time is not taken from them. Wants to be asked every BEAT_S while
    it is waited for."""

    BEAT_S = 5.0

    def __init__(self, monotonic=time.monotonic):
        self._monotonic = monotonic
        self._at = monotonic()
        self._now = 0.0

    def now(self):
        at = self._monotonic()
        self._now += min(at - self._at, 2 * self.BEAT_S)
        self._at = at
        return self._now

    def until(self, deadline):
        """The seconds to wait before `now` is asked again."""
        return min(deadline - self.now(), self.BEAT_S)


def die_with_parent(parent):
    """Runs in a new task before exec."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


class Process:
    """A program in a session of its own, and what it prints, as a TaskLoop
    wants it. It dies with this program."""

    def __init__(self, command, environment=None, folder=None):
        """Raises OSError or SubprocessError."""
        self.command = command
        self.tail = collections.deque(maxlen=5)
        self.partial = b""
        parent = os.getpid()
        environment = dict(os.environ if environment is None else environment)
        # Which cluster it is in says the command.
        environment.pop("TF_CONFIG", None)
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, env=environment,
            cwd=folder, preexec_fn=lambda: die_with_parent(parent))
        os.set_blocking(self.process.stdout.fileno(), False)
        self.pidfd = os.pidfd_open(self.process.pid)
        # As a shell gives it: 128 + n for signal n. None while it runs.
        self.exit_code = None

    def read_lines(self):
        """Returns the new whole lines, or None at the end of the output.

        Raises BlockingIOError if there is nothing to read.
        """
        chunk = os.read(self.process.stdout.fileno(), 65536)
        lines = (self.partial + chunk).split(b"\n")
        self.partial = lines.pop()
        if not chunk and self.partial:
            lines, self.partial = [self.partial], b""
        elif not chunk:
            return None
        decoded = [line.decode("utf-8", "replace") for line in lines]
        self.tail.extend(decoded)
        return decoded

    def rest(self):
        """The lines that are still in the pipe of one that has ended."""
        try:
            while (lines := self.read_lines()) is not None:
                yield from lines
        except BlockingIOError:
            pass

    def reap(self):
        code = self.process.wait()
        self.exit_code = code if code >= 0 else 128 - code

    def send(self, signum):
        if self.exit_code is None:
            os.killpg(self.process.pid, signum)

    def kill(self):
        self.send(signal.SIGKILL)
        self.reap()

    def watch(self, loop):
        loop.selector.register(self.process.stdout, selectors.EVENT_READ,
                               (loop.on_output, self))
        loop.selector.register(self.pidfd, selectors.EVENT_READ,
                               (loop.on_exit, self))

    def unwatch(self, loop):
        if self.process.stdout in loop.selector.get_map():
            loop.selector.unregister(self.process.stdout)
        self.process.stdout.close()


class Task(Process):
    """A task of a run, as a Supervisor wants it."""

    def __init__(self, job, number, index, command, gpu, environment=None):
        """`gpu`: its CUDA_VISIBLE_DEVICES; `environment`: the rest of it, if
        not this program's."""
        super().__init__(command, dict(environment or os.environ,
                                       CUDA_VISIBLE_DEVICES=gpu))
        self.job = job
        self.number = number
        self.index = index
        self.gpu = gpu
        self.name = "%s %d" % (job, index)
        # How often this task was started before.
        self.restarts = 0
        # When it is to be started again; None: never, or it runs.
        self.restart_at = None

    def startable(self):
        """Whether it can be started again."""
        return True

    def again(self):
        """The same task, started once more."""
        return Task(self.job, self.number, self.index, self.command, self.gpu)
