"""Programs that run to their ends, or to limits of time, and what they printed.

    with Programs() as programs:
        program = programs.start(["worker", "--version"])
        if programs.wait(program, limit_s=30):
            print(program.exit_code, program.text())
"""

import collections
import os
import re
import signal

from .local_tasks import Process
from .task_loop import TaskLoop

# After SIGTERM, for a launcher to end its tasks; after SIGKILL: who is inside a
# call of a driver (state D) does not die.
GRACE_S = 5.0
KILL_S = 5.0
# Of an output, of its beginning and of its end.
KEPT_LINES = 3000


class Interrupted(BaseException):
    """A signal that ends this program came while it waited. No Exception: who
    goes on after a part that failed does not go on after this."""

    def __init__(self, signum):
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


class Program(Process):
    """What it leaves running in its session is killed at its end."""

    def __init__(self, command, environment=None, folder=None):
        super().__init__(command, environment, folder)
        self._head = []
        self._end = collections.deque(maxlen=KEPT_LINES)
        self._lines = 0

    def add_line(self, line):
        self._lines += 1
        (self._head if self._lines <= KEPT_LINES else self._end).append(line)

    def text(self):
        left_out = self._lines - len(self._head) - len(self._end)
        middle = (["[... %d lines are left out ...]" % left_out]
                  if left_out else [])
        return "".join(line + "\n"
                       for line in (*self._head, *middle, *self._end))

    def reap(self):
        # The leader, dead and not reaped, still keeps the group's number.
        os.killpg(self.process.pid, signal.SIGKILL)
        super().reap()


class Programs(TaskLoop):
    """Several at once. What still runs when its block ends is killed."""

    def __init__(self):
        super().__init__()
        self._running = []
        # What wait() waits for: (program, pattern), and the line.
        self._awaited = None
        self._found = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self._running:
            program.kill()
        self.selector.close()

    def start(self, command, environment=None, folder=None):
        """Raises OSError or SubprocessError."""
        program = Program(command, environment, folder)
        program.watch(self)
        self._running.append(program)
        return program

    def wait(self, program, limit_s):
        """Whether it has ended in time. Raises Interrupted."""
        self._wait(limit_s, lambda: program.exit_code is not None)
        return program.exit_code is not None

    def await_line(self, program, pattern, limit_s):
        """The next line in which `pattern` is found; None: the program ended,
        or the time, before it came. Raises Interrupted."""
        self._awaited, self._found = (program, pattern), None
        self._wait(limit_s, lambda: self._found is not None or
                   program.exit_code is not None)
        self._awaited = None
        return self._found

    def end(self, program):
        """Asks it to end, then kills it. Returns whether it has ended."""
        for signum, patience_s in ((signal.SIGTERM, GRACE_S),
                                   (signal.SIGKILL, KILL_S)):
            if program.exit_code is None:
                program.send(signum)
                self.wait(program, patience_s)
        if program.exit_code is None:
            # Nobody waits for it any more.
            self._running.remove(program)
        return program.exit_code is not None

    def take_line(self, task, line):
        task.add_line(line)
        if self._awaited and self._found is None:
            program, pattern = self._awaited
            if task is program and re.search(pattern, line):
                self._found = line

    def on_first_signal(self, signum):
        raise Interrupted(signum)

    def on_deadline(self):
        self.deadline = None

    def _wait(self, limit_s, is_over):
        self.deadline = self.clock.now() + limit_s
        while not is_over() and self.deadline is not None:
            for ended in self.round():
                self._running.remove(ended)
            self.look_at_deadline()
        self.deadline = None
