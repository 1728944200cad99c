"""CPU time of a ps task in a training of the MNIST CNN with one worker.

Its start and its end are part of it. Python 3 standard library only.
"""

import resource
import socket
import tempfile

from . import processes
from .figures import Figure, Measurement, at_most

# Of the compute's, with what the ps does for one worker.
TARGET = 0.04


def own_address():
    """A free loopback port: below Linux's range for outgoing connections no
    other process is likely to take it meanwhile."""
    for port in range(20000, 32000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return "127.0.0.1:%d" % port
    raise processes.Failure("no free port from 20000 to 32000")


def children_s():
    """CPU seconds of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def train(ps_command, worker_command):
    """Runs both to their ends; the ps' CPU seconds."""
    address = own_address()
    worker_address = "127.0.0.1:%d" % (int(address.rsplit(":", 1)[1]) + 1)
    cluster = ["--ps_hosts=" + address, "--worker_hosts=" + worker_address]
    running = []
    with tempfile.TemporaryDirectory() as train_dir:
        try:
            for command in (ps_command + cluster,
                            worker_command + cluster +
                            ["--train_dir=" + train_dir]):
                running.append(processes.Process(command))
            ps, worker = running
            worker.finish()
            before = children_s()
            ps.finish()
            return children_s() - before
        finally:
            for process in running:
                process.stop()


def measurement(training, part, name, link, flags):
    ps = [training.ps_server, "--job_name=ps", "--task_index=0"]
    worker = [training.worker, "--job_name=worker", "--task_index=0",
              "--link=" + link, "--training=" + processes.MODEL,
              "--set=stop.steps=%d" % training.options.steps,
              "--set=stop.epochs=0", "--compute_threads=1", *flags]
    steps = training.options.steps
    return Measurement(part, "CPU of the ps in a training, " + name,
                       ps + ["&"] + worker,
                       lambda: {"cpu_s": train(ps, worker) / steps})


def figure(training, part, name, link, flags=(), has_target=True):
    # One thread computes, so that its seconds are CPU seconds.
    return Figure(
        "CPU of the ps over the compute's, in a training, " + name, "x",
        [measurement(training, part, name, link, flags),
         training.standalone[1]],
        lambda ps, alone: ps["cpu_s"] * alone["steps_per_s"],
        at_most(TARGET) if has_target else None)
