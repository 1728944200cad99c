"""Trains several models on shares of this machine, and watches them. The kernel
kills the workers of a driver that is gone.
"""

import os
import re
import shlex
import signal
import time

from base import places, stop_signals
from base.local_tasks import Task
from base.supervisor import FIRST_RETRYABLE
from base.task_loop import TaskLoop

# A worker that was asked to end has a checkpoint to write.
DRAIN_S = 120.0
ERROR = re.compile(r"^\S+ \S+ [EC] /job:worker/task:0 (.*)")


class Driver(TaskLoop):
    """A subclass says what is trained. `records`: those that are there.
    `cluster`: where each has a namespace (cluster.py); None: they are alone."""

    # Before each line.
    VERB = ""

    def __init__(self, bin_dir, shares, records, cluster=None):
        super().__init__()
        self.bin_dir = bin_dir
        self.cluster = cluster
        self.records = records
        self.free = list(shares)
        self.parallel = len(shares)
        # Task: (Record, Share, log, when it was started).
        self.running = {}
        # Trainings that we have asked to end, and the state they then get.
        self.asked = {}
        self.failure = None
        self.seconds = []

    # ---- What a subclass gives

    def count(self):
        """How many there are to be."""
        raise NotImplementedError

    def new_record(self, number):
        """A Record, not in `records` yet; None: no more, see end_with."""
        raise NotImplementedError

    def flags_of(self, record):
        """Of its worker, but for where it computes and saves."""
        raise NotImplementedError

    def on_line(self, task, record, line):
        """A worker has printed it."""

    def on_figures(self, record):
        """`record` has those of its end."""

    def say_ended(self, record):
        raise NotImplementedError

    def say_progress(self):
        raise NotImplementedError

    # ----

    def say(self, text):
        say(self.VERB, text)

    def run(self):
        """Returns the signal that ended it, or None. Raises Failure."""
        before = self.take_signals()
        for record in self.records:
            # A full disk, peers that were lost, a signal; mistakes stay.
            if (record.state == "FAILED" and
                    record.exit_code >= FIRST_RETRYABLE):
                record.state = "INTERRUPTED"
            self.free_namespace(record)
        try:
            self.start_records()
            while self.running:
                ended = self.count_ended()
                for task in self.round():
                    self.on_end(task)
                self.look_at_deadline()
                self.start_records()
                if self.count_ended() > ended:
                    self.say_progress()
        finally:
            for task in self.running:
                task.kill()
            self.give_signals_back(before)
        if self.failure is not None:
            raise self.failure
        return self.interrupted

    def start_records(self):
        while self.free and self.failure is None and self.interrupted is None:
            record = self.next_record()
            if record is None:
                return
            self.start(record, self.free.pop(0))

    def next_record(self):
        """One that has not come to its end, else a new one; None: no more."""
        busy = [record for record, *_ in self.running.values()]
        for record in self.records:
            if not record.ended and record not in busy:
                return record
        there = {record.number for record in self.records}
        for number in range(self.count()):
            if number not in there:
                return self.add_record(number)
        return None

    def add_record(self, number):
        record = self.new_record(number)
        if record is not None:
            self.records.append(record)
            self.records.sort(key=lambda one: one.number)
        return record

    def start(self, record, share):
        record.state = "RUNNING"
        # Of an earlier try.
        record.error = ""
        record.figures = {}
        record.device = share.name
        where = ["--standalone"]
        if self.cluster is not None:
            record.namespace = self.cluster.namespace(record)
            where = self.cluster.flags(record)
        record.command = [
            places.binary("worker", self.bin_dir), *where,
            *self.flags_of(record), *share.flags,
            "--train_dir=" + record.train_dir]
        record.save()
        log = open(os.path.join(record.folder, "worker.log"), "a",
                   encoding="utf-8")
        log.write("$ %s\n" % shlex.join(record.command))
        task = Task(record.KIND, record.number, record.number, record.command,
                    share.gpu)
        self.running[task] = (record, share, log, time.monotonic())
        task.watch(self)

    def take_line(self, task, line):
        record, _, log, _ = self.running[task]
        log.write(line + "\n")
        log.flush()
        self.on_line(task, record, line)

    def end_with(self, failure):
        self.failure = self.failure or failure
        self.stop(stop_signals.ask())

    def on_end(self, task):
        record, share, log, started = self.running.pop(task)
        log.close()
        self.free.insert(0, share)
        record.seconds += time.monotonic() - started
        self.judge(task, record)
        record.save()
        if record.ended:
            self.seconds.append(record.seconds)
            self.say_ended(record)
            self.free_namespace(record)

    def free_namespace(self, record):
        """One that has ended; one of a driver that was killed before, too."""
        if (self.cluster is None or self.cluster.keeps or not record.ended or
                not record.namespace):
            return
        error = self.cluster.drop(record)
        if error:
            self.say("namespace '%s' is left on the ps tasks: %s" % (
                record.namespace, error))
            return
        record.namespace = ""
        record.save()

    def judge(self, task, record):
        """The state of a training whose worker has ended."""
        record.error = ""
        record.exit_code = task.exit_code
        if task.exit_code == 0:
            record.error = record.read_result()
            self.on_figures(record)
            record.state = "FAILED" if record.error else "DONE"
        elif task in self.asked:
            record.state = self.asked[task]
        else:
            record.state = "FAILED"
            record.error = "exit code %d: %s%s" % (
                task.exit_code, last_error(task.tail),
                "; the same command tries it again"
                if task.exit_code >= FIRST_RETRYABLE else "")

    def count_ended(self):
        return sum(one.ended for one in self.records)

    def time_left(self):
        mean = sum(self.seconds) / len(self.seconds)
        left = round(max(0, self.count() - self.count_ended()) * mean /
                     self.parallel)
        return "%dm%02ds" % divmod(left, 60) if left >= 60 else "%ds" % left

    def kind(self):
        return next((one.KIND for one in self.records), "training")

    def on_second_signal(self):
        self.say("second signal: killing the %ss" % self.kind())
        self.stop(signal.SIGKILL)

    def on_first_signal(self, signum):
        self.say("%s: %d %ss save and end; the same command goes on with them"
                 "%s" % (signal.Signals(signum).name, len(self.running),
                         self.kind(), "; once more to kill"
                         if signum == self.interrupted else ""))
        self.stop(stop_signals.ask())

    def on_deadline(self):
        self.stop(signal.SIGKILL)

    def stop(self, signum):
        for task in self.running:
            self.asked.setdefault(task, "INTERRUPTED")
            task.send(signum)
        self.deadline = self.clock.now() + DRAIN_S


def say(verb, text):
    print("[%s] %s" % (verb, text), flush=True)


def last_error(lines):
    """The last one that a worker has logged as an error, else the last one."""
    errors = [found.group(1) for found in map(ERROR.match, lines) if found]
    return (errors or list(lines) or ["it has printed nothing"])[-1]
