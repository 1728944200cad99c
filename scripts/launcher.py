#!/usr/bin/env python3
"""Starts ps and worker tasks on this machine and looks after them.

Called by train_local.sh. Python 3 standard library only.

Every task runs in its own session, so that a terminal's Ctrl-C reaches the
launcher alone, which then asks the workers to end. The kernel kills a task
whose launcher is gone (PR_SET_PDEATHSIG), so that even kill -9 of the
launcher leaves nothing behind.
"""

import datetime
import json
import os
import random
import selectors
import signal
import socket
import sys
import time

import local_gpus
from launcher_flags import parse_arguments
from local_tasks import Printer, Task

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
# Below Linux's range for outgoing connections (32768 and up), so that none of
# them takes a port between our choice and the task's start.
PORTS = range(20000, 32000)


def free_ports(count):
    """Returns `count` loopback ports on which nobody listens."""
    ports = []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise OSError("no free ports from %d to %d" % (PORTS[0], PORTS[-1]))


def write_cluster_file(train_dir, options):
    numbers = {"worker": options.workers}
    if options.ps:
        numbers["ps"] = options.ps
    if options.evaluator:
        numbers["evaluator"] = 1
    ports = iter(free_ports(sum(numbers.values())))
    cluster = {job: ["127.0.0.1:%d" % next(ports) for _ in range(number)]
               for job, number in numbers.items()}
    path = os.path.join(train_dir, "cluster.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"cluster": cluster}, file, indent=2)
        file.write("\n")
    return path


def overrides(options):
    """The --set flags of the workers."""
    fields = [] if options.ps else ["replication=all_reduce"]
    if options.steps is not None:
        fields += ["stop.steps=%d" % options.steps, "stop.epochs=0"]
    if options.epochs is not None:
        fields += ["stop.epochs=%r" % options.epochs, "stop.steps=0"]
    if options.seed is not None:
        fields.append("seed=%d" % options.seed)
    return ["--set=" + field for field in fields + options.set]


def commands(options, cluster_file, train_dir, gpus):
    """Yields (job, index, command line, GPU) of every task. GPU is its
    CUDA_VISIBLE_DEVICES; a ps has none."""
    cores = len(os.sched_getaffinity(0))
    threads = options.compute_threads or max(
        1, cores // (options.ps + options.workers + options.evaluator))
    for i in range(options.ps):
        yield "ps", i, [
            os.path.join(options.bin_dir, "ps_server", "ps_server"),
            "--cluster=" + cluster_file, "--task_index=%d" % i], ""
    worker = [
        os.path.join(options.bin_dir, "worker", "worker"),
        "--cluster=" + cluster_file]
    training = [
        "--training=" + options.training, "--train_dir=" + train_dir,
        "--compute_threads=%d" % threads] + overrides(options) + (
            options.worker_flag)
    of_workers = [] if options.link is None else ["--link=" + options.link]
    if options.num_devices > 1:
        of_workers.append("--num_devices=%d" % options.num_devices)
    if options.progress_every is not None:
        of_workers.append("--progress_every=%r" % options.progress_every)
    if options.profile_steps is not None:
        of_workers.append("--profile_steps=%d" % options.profile_steps)
    for i in range(options.workers):
        yield "worker", i, (worker + ["--task_index=%d" % i] + training +
                            of_workers), gpu_of(i, gpus)
    if options.evaluator:
        # Beside the workers, as one more of them.
        yield "evaluator", 0, (
            worker + ["--job_name=evaluator"] + training), gpu_of(
                options.workers, gpus)


def gpu_of(index, gpus):
    return gpus[index % len(gpus)] if gpus else ""


class Launcher:
    """One run: waits for output, exits, signals and deadlines in one loop."""

    def __init__(self, printer, max_restarts=0):
        self.printer = printer
        self.max_restarts = max_restarts
        self.tasks = []
        self.selector = selectors.DefaultSelector()
        self.root_cause = None
        # The signal that asked us to end.
        self.interrupted = None
        # When the tasks that still run get `escalation`'s next signal.
        self.deadline = None
        self.escalation = []
        self.signal_pipe = os.pipe()

    def start(self, commands_):
        for read_or_write in self.signal_pipe:
            os.set_blocking(read_or_write, False)
        signal.set_wakeup_fd(self.signal_pipe[1])
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, lambda *_: None)
        self.selector.register(self.signal_pipe[0], selectors.EVENT_READ,
                               ("signal", None))
        for number, (job, index, command, gpu) in enumerate(commands_):
            task = Task(job, number, index, command, gpu)
            self.tasks.append(task)
            self.watch(task)

    def watch(self, task):
        self.selector.register(task.process.stdout, selectors.EVENT_READ,
                               ("output", task))
        self.selector.register(task.pidfd, selectors.EVENT_READ,
                               ("exit", task))

    def run(self):
        """Returns when every task has ended."""
        while self.running() or self.waiting():
            self.restart_due()
            ended = []
            for key, _ in self.selector.select(self.patience()):
                kind, task = key.data
                if kind == "signal":
                    self.on_signals()
                elif kind == "output":
                    self.on_output(task)
                else:
                    self.on_exit(task)
                    ended.append(task)
            self.judge([task for task in ended if not self.try_again(task)])
            if self.deadline is not None and time.monotonic() >= self.deadline:
                self.escalate()
        for task in self.tasks:
            self.drain(task)

    def patience(self):
        """Seconds until something is due, or None."""
        times = [task.restart_at for task in self.waiting()]
        if self.deadline is not None:
            times.append(self.deadline)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def waiting(self):
        return [task for task in self.tasks if task.restart_at is not None]

    def running(self, job=None):
        return [task for task in self.tasks
                if task.exit_code is None and job in (None, task.job)]

    def on_output(self, task):
        lines = task.read_lines()
        if lines is None:
            self.selector.unregister(task.process.stdout)
            return
        for line in lines:
            self.printer.line(task.name, task.number, line)

    def drain(self, task):
        """Prints what a dead task left in its pipe."""
        try:
            while (lines := task.read_lines()) is not None:
                for line in lines:
                    self.printer.line(task.name, task.number, line)
        except BlockingIOError:
            pass

    def on_exit(self, task):
        self.selector.unregister(task.pidfd)
        os.close(task.pidfd)
        task.reap()

    def try_again(self, task):
        """Whether a task that has ended is started again, after a pause."""
        if (task.exit_code < FIRST_RETRYABLE or self.is_ending() or
                task.restarts >= self.max_restarts):
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
            self.drain(old)
            if old.process.stdout in self.selector.get_map():
                self.selector.unregister(old.process.stdout)
            old.process.stdout.close()
            task = Task(old.job, old.number, old.index, old.command, old.gpu)
            task.restarts = old.restarts + 1
            self.tasks[number] = task
            self.watch(task)

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

    def is_dispensable(self, task):
        """Says so of an evaluator, without which the training goes on."""
        if task.job == "evaluator" and not self.is_ending():
            self.printer.say("[%s] ended with exit code %d%s; the training "
                             "goes on" % (task.name, task.exit_code,
                                          describe(task.exit_code)))
        return task.job == "evaluator"

    def expect_the_end(self):
        """The job is done: who still runs ends by himself, and soon."""
        self.escalation = [signal.SIGTERM, signal.SIGKILL]
        self.deadline = time.monotonic() + (
            DRAIN_S if self.running("evaluator") else PS_END_S)

    def on_signals(self):
        signums = os.read(self.signal_pipe[0], 64)
        for signum in signums:
            if signum not in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                continue
            if self.interrupted is not None:
                self.printer.say("second signal: killing every task")
                self.stop(signal.SIGKILL, KILL_S, self.tasks)
                continue
            self.interrupted = signum
            self.printer.say(
                "%s: the workers finish their step and the chief saves; "
                "once more to kill" % signal.Signals(signum).name)
            # A worker has no use for a hang-up of our terminal.
            self.stop(signal.SIGTERM if signum == signal.SIGHUP else signum,
                      DRAIN_S, self.running("worker"))

    def stop(self, signum, patience, tasks):
        self.cancel_restarts()
        for task in tasks:
            task.send(signum)
        self.escalation = [signal.SIGTERM, signal.SIGKILL]
        if signum == signal.SIGTERM and tasks is self.tasks:
            self.escalation = [signal.SIGKILL]
        self.deadline = time.monotonic() + patience

    def escalate(self):
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
        self.deadline = time.monotonic() + KILL_S

    def kill_all(self):
        for task in self.running():
            task.send(signal.SIGKILL)
            task.reap()

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


def newest_checkpoint(train_dir):
    found = sorted(name for name in os.listdir(train_dir)
                   if name.startswith("ckpt-") and "." not in name)
    return os.path.join(train_dir, found[-1]) if found else None


def report_success(printer, train_dir, started):
    path = os.path.join(train_dir, "result.json")
    # An older one is of an earlier run that this one resumed.
    if os.path.exists(path) and os.path.getmtime(path) >= started:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        printer.say("test accuracy %.4f after %s global steps in %.1f s" % (
            result["test_accuracy"], result["global_step"],
            result["wall_s"]))
        printer.say("result      %s" % path)
    checkpoint = newest_checkpoint(train_dir)
    if checkpoint is not None:
        printer.say("checkpoint  %s" % checkpoint)
    summaries = os.path.join(train_dir, "summaries")
    if os.path.isdir(summaries):
        printer.say("TensorBoard %s" % summaries)


def missing_binary(options):
    for name in ("ps_server/ps_server", "worker/worker"):
        path = os.path.join(options.bin_dir, name)
        if not os.access(path, os.X_OK):
            return path
    return None


def main(argv):
    options = parse_arguments(argv)
    printer = Printer()
    binary = missing_binary(options)
    if binary is not None:
        printer.say("no binary at '%s'; run bazel build //ps_server //worker"
                    % binary)
        return 2
    train_dir = options.train_dir or datetime.datetime.now().strftime(
        "run_%Y%m%d_%H%M%S")
    try:
        os.makedirs(train_dir, exist_ok=True)
        cluster_file = write_cluster_file(train_dir, options)
    except OSError as error:
        printer.say("cannot prepare --train_dir '%s': %s" % (train_dir, error))
        return 2
    launcher = Launcher(printer, options.restart)
    started = time.time()
    try:
        launcher.start(commands(options, cluster_file, train_dir,
                                local_gpus.visible(options.gpus)))
        launcher.run()
        if launcher.root_cause is not None:
            launcher.report_failure()
        else:
            report_success(printer, train_dir, started)
        return launcher.exit_code()
    except BrokenPipeError:
        # Whoever read our output is gone, as after `| head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    finally:
        launcher.kill_all()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
