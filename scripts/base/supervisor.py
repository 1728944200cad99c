"""Looks after the tasks of a run: what the end of one means for the others.

Part of launcher.py and of the verb `run`. Python 3 standard library only.
"""

import os
import signal
import sys
import time

from . import stop_signals
from .task_loop import TaskLoop

# After the last worker a ps has 5 s to end by itself.
PS_END_S = 10.0
# A worker that was asked to end may have a checkpoint to write and a test set
# to evaluate.
DRAIN_S = 120.0
# After SIGTERM, before SIGKILL.
KILL_S = 10.0
# The exit code of a task that lost its peers: never the root cause if another
# task failed too.
PEERS_LOST = 138
# A task that ended with a smaller code has said why it cannot work; trying again
# would not help (Kubernetes' rule for training jobs). Signals count as 128 + n.
FIRST_RETRYABLE = 128
# Before the first restart of a task; doubled for each further one.
RESTART_PAUSE_S = 0.2
LONGEST_RESTART_PAUSE_S = 5.0


class Supervisor(TaskLoop):
    """One run. A task is a local_tasks.Task, or has the same methods and
    fields."""

    def __init__(self, printer, max_restarts=0, min_workers=None):
        """With `min_workers` the others go on without a worker, but not
        without the chief, while so many are left."""
        super().__init__()
        self.printer = printer
        self.max_restarts = max_restarts
        self.min_workers = min_workers
        self.tasks = []
        self.root_cause = None
        # At the deadline the tasks that still run get the next of these.
        self.escalation = []
        # Called at least so often, if not None: (seconds, function).
        self.pulse = None
        self.next_pulse = 0.0

    def look_after(self, tasks, report_success):
        """Starts the tasks, sees them to their end, tells how it went; returns
        the exit code. Nothing is left running, whatever happens."""
        try:
            self.start(tasks)
            self.run()
            if self.root_cause is not None:
                self.report_failure()
            else:
                report_success()
            return self.exit_code()
        except BrokenPipeError:
            # Whoever read our output is gone, as after `| head`.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 128 + signal.SIGPIPE
        finally:
            self.kill_all()

    def start(self, tasks):
        """`tasks` starts each as it is asked for the next."""
        self.take_signals()
        for task in tasks:
            self.tasks.append(task)
            task.watch(self)

    def run(self):
        """Returns when every task has ended."""
        while self.running() or self.waiting():
            self.restart_due()
            ended = self.round()
            self.beat()
            self.judge([task for task in ended if not self.try_again(task)])
            self.look_at_deadline()

    def beat(self):
        now = time.monotonic()
        if self.pulse is not None and now >= self.next_pulse:
            self.next_pulse = now + self.pulse[0]
            self.pulse[1]()

    def patience(self):
        times = [task.restart_at for task in self.waiting()]
        if self.pulse is not None:
            times.append(self.next_pulse)
        left = [at - time.monotonic() for at in times]
        if self.deadline is not None:
            left.append(self.clock.until(self.deadline))
        return max(0.0, min(left)) if left else None

    def waiting(self):
        return [task for task in self.tasks if task.restart_at is not None]

    def running(self, job=None):
        return [task for task in self.tasks
                if task.exit_code is None and job in (None, task.job)]

    def take_line(self, task, line):
        self.printer.line(task.name, task.number, line)

    def try_again(self, task):
        """Whether a task that has ended is started again, after a pause."""
        if (task.exit_code < FIRST_RETRYABLE or self.is_ending() or
                task.restarts >= self.max_restarts or not task.startable()):
            return False
        pause = min(RESTART_PAUSE_S * 2 ** task.restarts,
                    LONGEST_RESTART_PAUSE_S)
        task.restart_at = time.monotonic() + pause
        self.printer.say("[%s] ended with exit code %d%s; restart %d of %d in "
                         "%.1f s" % (task.name, task.exit_code,
                                     describe(task.exit_code),
                                     task.restarts + 1, self.max_restarts,
                                     pause))
        return True

    def is_ending(self):
        return (self.root_cause is not None or self.interrupted is not None or
                self.job_is_done() or self.all_succeeded("worker"))

    def job_is_done(self):
        """Who holds parameters ends well only then: ps tasks, or without them
        each worker."""
        if any(task.job == "ps" for task in self.tasks):
            return self.all_succeeded("ps")
        return any(task.exit_code == 0 for task in self.tasks
                   if task.job == "worker")

    def all_succeeded(self, job):
        return all(task.exit_code == 0 for task in self.tasks
                   if task.job == job)

    def restart_due(self):
        now = time.monotonic()
        for number, old in enumerate(self.tasks):
            if old.restart_at is None or old.restart_at > now:
                continue
            task = old.again()
            task.restarts = old.restarts + 1
            self.tasks[number] = task
            task.watch(self)

    def cancel_restarts(self):
        for task in self.waiting():
            task.restart_at = None

    def judge(self, ended):
        """Decides what the end of these tasks means for the others."""
        failed = [task for task in ended
                  if task.exit_code != 0 and not self.is_dispensable(task)]
        if self.max_restarts and self.job_is_done():
            # Whoever comes back now finds no ps, and nothing to do.
            self.cancel_restarts()
            failed = [task for task in failed if task.restarts == 0]
            if ended and self.running() and self.deadline is None:
                self.expect_the_end()
        if failed and self.root_cause is None and self.interrupted is None:
            failed.sort(key=lambda task: task.exit_code == PEERS_LOST)
            self.root_cause = failed[0]
            self.stop(signal.SIGTERM, KILL_S, self.tasks)
        elif (ended and self.root_cause is None and
              not self.running("worker") and not self.waiting()):
            if self.running():
                self.expect_the_end()

    def workers_left(self):
        """Those that have not failed."""
        return sum(task.exit_code in (None, 0) or task.restart_at is not None
                   for task in self.tasks if task.job == "worker")

    def is_dispensable(self, task):
        """Says so of an evaluator, and of a worker while enough are left:
        without them the training goes on."""
        if (task.job == "worker" and task.index and self.min_workers and
                self.workers_left() >= self.min_workers):
            if not self.is_ending():
                self.printer.say("[%s] ended with exit code %d%s; the training "
                                 "goes on, workers of this launcher: %d" % (
                                     task.name, task.exit_code,
                                     describe(task.exit_code),
                                     self.workers_left()))
            return True
        if task.job == "evaluator" and not self.is_ending():
            self.printer.say("[%s] ended with exit code %d%s; the training "
                             "goes on" % (task.name, task.exit_code,
                                          describe(task.exit_code)))
        return task.job == "evaluator"

    def expect_the_end(self):
        """The job is done: who still runs ends by himself, and soon."""
        self.escalation = [signal.SIGTERM, signal.SIGKILL]
        self.deadline = self.clock.now() + (
            DRAIN_S if self.running("evaluator") else PS_END_S)

    def on_second_signal(self):
        self.printer.say("second signal: killing every task")
        self.stop(signal.SIGKILL, KILL_S, self.tasks)

    def on_first_signal(self, signum):
        self.printer.say(
            "%s: the workers finish their step and the chief saves%s" %
            (signal.Signals(signum).name, "; once more to kill"
             if signum == self.interrupted else ""))
        self.stop(signum if signum == signal.SIGINT else stop_signals.ask(),
                  DRAIN_S, self.running("worker"))

    def stop(self, signum, patience, tasks):
        self.cancel_restarts()
        for task in tasks:
            task.send(signum)
        self.escalation = [signal.SIGTERM, signal.SIGKILL]
        if signum == signal.SIGTERM and tasks is self.tasks:
            self.escalation = [signal.SIGKILL]
        self.deadline = self.clock.now() + patience

    def on_deadline(self):
        signum = self.escalation.pop(0) if self.escalation else signal.SIGKILL
        for task in self.running():
            self.printer.say("[%s] has not ended; sending %s" % (
                task.name, signal.Signals(signum).name))
            forgiven = (
                self.interrupted is not None or task.job == "evaluator" or
                task.restarts > 0 and self.job_is_done())
            if self.root_cause is None and not forgiven:
                self.root_cause = task
            task.send(signum)
        self.deadline = self.clock.now() + KILL_S

    def kill_all(self):
        for task in self.running():
            task.kill()

    def exit_code(self):
        if self.root_cause is not None:
            return self.root_cause.exit_code or 1
        if self.interrupted is not None:
            return 128 + self.interrupted
        return 0

    def report_failure(self):
        task = self.root_cause
        self.printer.say("[%s] failed first, with exit code %s%s" % (
            task.name, task.exit_code, describe(task.exit_code)))
        for line in task.tail:
            self.printer.say("  its last lines: %s" % line)


def describe(code):
    meanings = {2: "bad flag, file or configuration", 3: "unusable checkpoint",
                4: "refused by the security rules",
                PEERS_LOST: "peers lost, or disk full"}
    if code in meanings:
        return " (%s)" % meanings[code]
    try:
        return " (%s)" % signal.Signals(code - 128).name
    except ValueError:
        return ""
