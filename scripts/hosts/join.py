"""The verb `join`: more workers for a training whose workers come and go."""

import argparse
import json

from base import cluster_file
from base.failure import Failure
from base.launcher_flags import local_path, positive

from . import preflight, program, run


def parse(argv):
    parser = argparse.ArgumentParser(
        prog="muster join", allow_abbrev=False,
        usage="muster join --cluster=FILE -H HOST:WORKERS,... [FLAG...] "
        "[-- WORKER FLAG...]\n"
        "       muster join --cluster=FILE -H HOST:WORKERS,... [FLAG...] "
        "[-- python train.py [ARGUMENT...]]",
        description="Starts more workers for a running training, of `muster "
        "run --min_workers=M --cluster=FILE`: with its training and flags, or "
        "its program, and the flags after the --. Ctrl-C drains them: each finishes its step and "
        "gives its other rows back; the training goes on. The same package "
        "lies on each host, in the same place.",
        epilog="Exit codes: 0 when the training is done; that of the first "
        "worker that failed, when all have; else those of `muster run`.")
    parser.add_argument("--cluster", type=local_path, required=True,
                        metavar="FILE", help="what `muster run` has written, "
                        "or the cluster file of a training that takes any "
                        "worker; then --training and --set stand after the --")
    parser.add_argument("--first_index", type=positive, metavar="N",
                        help="with --certs: the workers are N, N+1, ..., and "
                        "have those keys (without keys ps task 0 numbers "
                        "them)")
    run.add_host_flags(parser)
    options = run.parse_with(parser, argv)
    # As run's, without ps tasks.
    options.ps, options.port_base, options.min_workers = 0, None, None
    return options


def check(options):
    if not program.is_program(options.worker_flags):
        run.check_flags(options.worker_flags)
    if bool(options.certs) != bool(options.first_index):
        raise Failure("--certs and --first_index belong together: keys are of "
                      "a number")


def read(path):
    """(the cluster file's text for the workers, addresses of the ps tasks,
    flags, files)."""
    tasks = cluster_file.read(path)
    ps = [list(address) for task, address in sorted(tasks.items())
          if task.job == "ps"]
    if not ps or any(task.job == "worker" for task in tasks):
        raise Failure("--cluster=%s: wanted ps tasks, and \"worker\": \"any\": "
                      "a cluster that lists its workers takes no other" % path)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    known = json.loads(text) if text.lstrip().startswith("{") else {}
    ran = known.get("run", {})
    return text, ps, ran.get("worker_flags", []), dict(ran.get("files", {}))


def plans(rows, options, flags):
    """[(channel, its message `start`)]."""
    common = run.common_flags(options)
    planned = []
    for row in rows:
        for nth in range(row.channel.host.workers):
            index = (options.first_index or 1) + len(planned)
            planned.append((row.channel, {
                "number": len(planned), "job": "worker", "index": index,
                "nth": nth, "workers": row.channel.host.workers,
                "bin_dir": options.bin_dir, **run.arguments(
                    "worker", common + ["--task_index=" + (
                        str(index) if options.certs else cluster_file.ANY)],
                    flags)}))
    return planned


def train(options, channels, printer):
    text, ps, flags, files = read(options.cluster)
    own, own_files = run.take_training(options.worker_flags)
    flags = own if program.is_program(own) else flags + own
    files = {**files, **own_files, "cluster.json": text}
    flight = preflight.Preflight(channels)
    flight.look(options, {one: 0 for one in channels}, flags)
    flight.reach([], ps)
    flight.print_table(printer)
    if flight.exit_code() != 0:
        printer.say("nothing was started")
        return flight.exit_code()
    # One of them is enough.
    return run.supervise(options, channels, printer, flight, (
        plans(flight.rows, options, flags), files, 1))


def main(argv):
    """Returns the exit code."""
    return run.launch("muster join", parse(argv), check, train)
