"""The one loop that watches processes: their output, their ends, signals to
this program, and a deadline, in one thread and one `select`.

Who looks after tasks derives TaskLoop and says what these mean:
base/supervisor.py (a run), trainings/driver.py (many trainings),
hosts/agent.py (a host's tasks), base/programs.py (programs one by one).
"""

import os
import selectors
import signal

from . import stop_signals
from .local_tasks import AwakeClock


class TaskLoop:
    """Waits for local_tasks.Process and what has the same methods.

    What the selector finds ready is told to its `react(what)`, which returns
    the tasks that have ended, or None.
    """

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.clock = AwakeClock()
        self.rule = stop_signals.Rule()
        # SIGINT or SIGTERM, once we were asked to end.
        self.interrupted = None
        # When on_deadline() is due, by `clock`; it moves the deadline.
        self.deadline = None

    # ---- What a subclass gives

    def take_line(self, task, line):
        """A task has printed it."""

    def on_first_signal(self, signum):
        """Somebody wants an end."""

    def on_second_signal(self):
        """Somebody wants it now."""

    def on_deadline(self):
        """`deadline` has passed."""

    def patience(self):
        """Seconds until something is due, or None."""
        return (None if self.deadline is None
                else max(0.0, self.clock.until(self.deadline)))

    # ----

    def take_signals(self):
        """From now on signals to end are told to the loop. Returns the handlers
        that there were, for give_signals_back()."""
        pipe = os.pipe()
        for end in pipe:
            os.set_blocking(end, False)
        signal.set_wakeup_fd(pipe[1])
        self.selector.register(pipe[0], selectors.EVENT_READ,
                               (self._on_signals, pipe[0]))
        return stop_signals.watch(lambda *_: None)

    @staticmethod
    def give_signals_back(handlers):
        signal.set_wakeup_fd(-1)
        for signum, handler in handlers.items():
            signal.signal(signum, handler)

    def round(self):
        """Waits for what comes next. Returns the tasks that have ended."""
        ended = []
        for key, _ in self.selector.select(self.patience()):
            react, what = key.data
            ended += react(what) or []
        return ended

    def look_at_deadline(self):
        if self.deadline is not None and self.clock.now() >= self.deadline:
            self.on_deadline()

    def on_output(self, task):
        if task.process.stdout.closed:
            return  # Its end was seen in the same round.
        lines = task.read_lines()
        if lines is None:
            self.selector.unregister(task.process.stdout)
            return
        for line in lines:
            self.take_line(task, line)

    def on_exit(self, task):
        self.selector.unregister(task.pidfd)
        os.close(task.pidfd)
        task.reap()
        for line in task.rest():
            self.take_line(task, line)
        task.unwatch(self)
        return [task]

    def _on_signals(self, pipe):
        for signum in os.read(pipe, 64):
            answer = self.rule.on_signal(signum)
            if answer == self.rule.KILL:
                self.on_second_signal()
            elif answer == self.rule.STOP:
                self.interrupted = stop_signals.meaning(signum)
                self.on_first_signal(signum)
