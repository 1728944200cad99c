"""The verb `sweep`: starts trials, watches them, says what came of them.

One thread and one `select` loop over the workers' output, their exits and our
signals, as launcher.py. The kernel kills the workers of a driver that is gone.
"""

import os
import selectors
import shlex
import signal
import time

from local_tasks import Task

from . import pruner
from .definition import training_copy, training_flags
from .failure import Failure, nearest
from .table import best
from .trial import ERROR, Trial, read_evaluation

# A worker that was asked to end has a checkpoint to write.
DRAIN_S = 120.0


def say(text):
    print("[sweep] " + text, flush=True)


class Driver:
    """`trials`: those that are there already."""

    def __init__(self, options, sampler, shares, trials):
        self.options = options
        self.sampler = sampler
        self.trials = trials
        self.free = list(shares)
        self.parallel = len(shares)
        # Task: (Trial, Share, log, when it was started).
        self.running = {}
        # Trials that we have asked to end, and the state they then get.
        self.asked = {}
        self.failure = None
        self.interrupted = None
        # When those that still run are killed.
        self.deadline = None
        self.seconds = []
        self.selector = selectors.DefaultSelector()

    def run(self):
        """Returns the signal that ended it, or None. Raises Failure."""
        self.watch_signals()
        for trial in self.trials:
            self.check_metric(trial.figures)
        try:
            self.start_trials()
            while self.running:
                ended = self.count_ended()
                self.wait()
                self.start_trials()
                if self.count_ended() > ended:
                    self.say_progress()
        finally:
            for task in self.running:
                task.send(signal.SIGKILL)
                task.reap()
        if self.failure is not None:
            raise self.failure
        return self.interrupted

    def watch_signals(self):
        pipe = os.pipe()
        for end in pipe:
            os.set_blocking(end, False)
        signal.set_wakeup_fd(pipe[1])
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, lambda *_: None)
        self.selector.register(pipe[0], selectors.EVENT_READ,
                               (self.on_signals, pipe[0]))

    def wait(self):
        patience = (None if self.deadline is None
                    else max(0.0, self.deadline - time.monotonic()))
        events = self.selector.select(patience)
        for key, _ in events:
            react, what = key.data
            react(what)
        if self.deadline is not None and time.monotonic() >= self.deadline:
            self.stop(signal.SIGKILL)

    def start_trials(self):
        while self.free and self.failure is None and self.interrupted is None:
            trial = self.next_trial()
            if trial is None:
                return
            self.start(trial, self.free.pop(0))

    def next_trial(self):
        """One that has not come to its end, else a new one; None: no more."""
        busy = [trial for trial, *_ in self.running.values()]
        for trial in self.trials:
            if not trial.ended and trial not in busy:
                return trial
        there = {trial.number for trial in self.trials}
        for number in range(self.count()):
            if number not in there:
                return self.new_trial(number)
        return None

    def count(self):
        return min(self.options.trials, self.sampler.size)

    def new_trial(self, number):
        trial = Trial(self.options.sweep_dir, number, self.options.metric)
        try:
            trial.parameters = self.sampler.suggest(number, self.trials)
        except Failure as failure:
            self.end_with(failure)
            return None
        self.trials.append(trial)
        self.trials.sort(key=lambda one: one.number)
        return trial

    def start(self, trial, share):
        trial.state = "RUNNING"
        trial.device = share.name
        trial.command = [
            os.path.join(self.options.bin_dir, "worker/worker"), "--standalone",
            *self.flags_of(trial), *share.flags,
            "--train_dir=" + trial.train_dir]
        trial.save()
        log = open(os.path.join(trial.folder, "worker.log"), "a",
                   encoding="utf-8")
        log.write("$ %s\n" % shlex.join(trial.command))
        task = Task("trial", trial.number, trial.number, trial.command,
                    share.gpu)
        self.running[task] = (trial, share, log, time.monotonic())
        self.selector.register(task.process.stdout, selectors.EVENT_READ,
                               (self.on_output, task))

    def flags_of(self, trial):
        return training_flags(training_copy(self.options.sweep_dir),
                              self.options, trial.parameters)

    def on_output(self, task):
        lines = task.read_lines()
        if lines is None:
            self.on_exit(task)
            return
        trial, _, log, _ = self.running[task]
        for line in lines:
            log.write(line + "\n")
            evaluation = read_evaluation(line)
            if evaluation is not None:
                self.on_evaluation(task, trial, *evaluation)
        log.flush()

    def on_evaluation(self, task, trial, step, figures):
        trial.add_evaluation(step, figures)
        trial.save()
        if self.options.metric.startswith("test_"):
            self.check_metric(figures)
        sign = -1 if self.options.maximize else 1
        if task not in self.asked and pruner.is_hopeless(
                self.options.pruner, trial, self.trials, sign):
            self.asked[task] = "PRUNED"
            task.send(signal.SIGTERM)

    def check_metric(self, figures):
        """Ends the sweep if a trial's figures, where it has any, lack the
        metric."""
        if figures and self.options.metric not in figures:
            self.end_with(Failure(
                "--metric: a trial has no '%s'%s; start again with another "
                "--metric, nothing is lost" % (
                    self.options.metric,
                    nearest(self.options.metric, sorted(figures)))))

    def end_with(self, failure):
        self.failure = self.failure or failure
        self.stop(signal.SIGTERM)

    def on_exit(self, task):
        """A worker has closed its output: it has no more to do but to end."""
        self.selector.unregister(task.process.stdout)
        task.process.stdout.close()
        os.close(task.pidfd)
        task.reap()
        trial, share, log, started = self.running.pop(task)
        log.close()
        self.free.insert(0, share)
        trial.seconds += time.monotonic() - started
        self.judge(task, trial)
        trial.save()
        if trial.ended:
            self.seconds.append(trial.seconds)
            self.say_ended(trial)

    def judge(self, task, trial):
        """The state of a trial whose worker has ended."""
        trial.error = ""
        if task.exit_code == 0:
            trial.error = trial.read_result()
            self.check_metric(trial.figures)
            trial.state = "FAILED" if trial.error else "DONE"
        elif task in self.asked:
            trial.state = self.asked[task]
        else:
            trial.state = "FAILED"
            trial.error = "exit code %d: %s" % (
                task.exit_code, last_error(task.tail))

    def say_ended(self, trial):
        metric = self.options.metric
        if (self.options.pruner != "none" and trial.state == "DONE" and
                len(trial.evaluations()) < 2):
            say("--pruner=%s had nothing to look at before the end of trial "
                "%d; wanted --set=evaluation.every_steps=N" % (
                    self.options.pruner, trial.number))
        what = trial.error if trial.state == "FAILED" else "%s=%s" % (
            metric, "%.6g" % trial.value() if trial.value() is not None
            else "none")
        say("trial %d %s in %.0f s: %s: %s" % (
            trial.number, trial.state, trial.seconds, trial.described(), what))

    def count_ended(self):
        return sum(one.ended for one in self.trials)

    def say_progress(self):
        found = best(self.trials, self.options.maximize)
        say("%d of %d ended, %d running, %s, about %s left" % (
            self.count_ended(), self.count(), len(self.running),
            "no best yet" if found is None else "best %s=%.6g (trial %d)" % (
                self.options.metric, found.value(), found.number),
            self.time_left()))

    def time_left(self):
        mean = sum(self.seconds) / len(self.seconds)
        left = round(max(0, self.count() - self.count_ended()) * mean /
                     self.parallel)
        return "%dm%02ds" % divmod(left, 60) if left >= 60 else "%ds" % left

    def on_signals(self, pipe):
        for signum in os.read(pipe, 64):
            if self.interrupted is not None:
                say("second signal: killing the trials")
                self.stop(signal.SIGKILL)
                continue
            self.interrupted = signum
            say("%s: %d trials save and end; the same command goes on with "
                "them; once more to kill" % (signal.Signals(signum).name,
                                             len(self.running)))
            self.stop(signal.SIGTERM)

    def stop(self, signum):
        for task in self.running:
            self.asked.setdefault(task, "INTERRUPTED")
            task.send(signum)
        self.deadline = time.monotonic() + DRAIN_S


def last_error(lines):
    """The last one that a worker has logged as an error, else the last one."""
    errors = [found.group(1) for found in map(ERROR.match, lines) if found]
    return (errors or list(lines) or ["it has printed nothing"])[-1]
