#!/usr/bin/env python3
"""Starts ps and worker tasks on this machine and looks after them.

Called by train_local.sh. Python 3 standard library only.

Every task runs in its own session, so that a terminal's Ctrl-C reaches the
launcher alone, which then asks the workers to end. The kernel kills a task
whose launcher is gone (PR_SET_PDEATHSIG), so that even kill -9 of the
launcher leaves nothing behind.
"""

from base import quiet_interrupt  # pylint: disable=unused-import

import datetime
import json
import os
import random
import socket
import sys
import time

from base import local_cores, local_gpus, stop_signals
from base.launcher_flags import parse_arguments
from base.local_tasks import Printer, Task
from base.supervisor import Supervisor

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
    threads = options.compute_threads or local_cores.threads(
        options.ps + options.workers + options.evaluator)
    keys = [] if options.certs_dir is None else [
        "--certs_dir=" + os.path.abspath(options.certs_dir)]
    for i in range(options.ps):
        yield "ps", i, [
            os.path.join(options.bin_dir, "ps_server", "ps_server"),
            "--cluster=" + cluster_file, "--task_index=%d" % i, *keys], ""
    worker = [
        os.path.join(options.bin_dir, "worker", "worker"),
        "--cluster=" + cluster_file, *keys]
    training = [
        "--training=" + options.training, "--train_dir=" + train_dir,
        "--compute_threads=%d" % threads] + overrides(options) + (
            options.worker_flag)
    of_workers = [] if options.link is None else ["--link=" + options.link]
    if options.num_devices > 1:
        of_workers.append("--devices=%d" % options.num_devices)
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
        # Numbers have no accuracy, and what is no number is null.
        names = [half + figure for half in ("test_", "validation_")
                 for figure in ("accuracy", "loss")]
        name = next((name for name in names
                     if result.get(name) is not None), None)
        printer.say("%s after %s global steps in %.1f s" % (
            "%s %.4f" % (name.replace("_", " "), result[name]) if name
            else "no finite figure" if any(name in result for name in names)
            else "not evaluated (no test half)", result["global_step"], result["wall_s"]))
        if result.get("coverage"):
            printer.say(result["coverage"])
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
    stop_signals.watch(stop_signals.end, stop_signals.NOTICES)
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
    started = time.time()
    return Supervisor(printer, options.restart).look_after(
        (Task(job, number, index, command, gpu)
         for number, (job, index, command, gpu) in enumerate(commands(
             options, cluster_file, train_dir,
             local_gpus.visible(options.gpus)))),
        lambda: report_success(printer, train_dir, started))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
