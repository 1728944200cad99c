#!/usr/bin/env python3
"""The figures of this machine, as a table and as bench.json.

Called by bench.sh. Every round measures everything once, so that a slow minute
of the machine does not fall on one figure alone, and each side of a ratio is of
the same round. What is measured is in benchmark/, one module a part. Python 3
standard library only (--peers makes a Python with each framework and builds
ps-lite, --pictures makes a Python with matplotlib).
"""

from base import quiet_interrupt  # pylint: disable=unused-import

import argparse
import json
import os
import sys

from base.launcher_flags import local_path, positive
from benchmark import (data_plane, figures, lines, members, processes,
                       python_workers, quiet, report, rows, scrapes,
                       training)

PARTS = {"data_plane": data_plane.figures, "lines": lines.figures,
         "optimizer": data_plane.rules, "training": training.figures,
         "modes": training.modes, "start": training.start,
         "members": members.figures, "rows": rows.figures,
         "http": scrapes.figures,
         "python": python_workers.figures}
# It wants PyTorch of PyPI.
OF_PEERS = ("python",)
PICTURES = os.path.join(processes.ROOT, "scripts/benchmark/pictures.py")
REQUIREMENTS = os.path.join(processes.ROOT,
                            "scripts/benchmark/requirements.txt")
# 3,276,800 float32: the parameters of mnist_cnn.
MODEL_BYTES = 13107200


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="bench.sh", allow_abbrev=False,
        description="Measures the figures that guard a promise: of the data "
        "plane, also over slow and bad lines, of the update rules, of training "
        "the MNIST CNN (batch 128) in one process and in clusters, of each "
        "replication mode, how soon a cluster takes steps, what workers that "
        "come and go cost, of rows of tables, of being looked at by HTTP, and of training a small CNN by "
        "Python workers beside PyTorch's own ways; prints a table with targets. A burst of "
        "measurement waits for a quiet machine; one that others disturb is "
        "repeated.")
    parser.add_argument("--quick", action="store_true",
                        help="one round of short bursts, fewer figures: does "
                        "it work?")
    parser.add_argument("--only", choices=PARTS, action="append",
                        help="this part; may be repeated (default: all, but "
                        "python with --peers alone, as it wants PyTorch)")
    parser.add_argument("--rounds", type=positive, metavar="N",
                        help="measurements of each figure (default 5; quick 1)")
    parser.add_argument("--steps", type=positive, metavar="S",
                        help="steps of a training run, for each worker "
                        "(default 150; quick 20)")
    parser.add_argument("--bytes", type=model_bytes, default=MODEL_BYTES,
                        metavar="B", help="of the data plane's model "
                        "(default 13107200, mnist_cnn's)")
    parser.add_argument("--patience", type=float, metavar="S",
                        help="seconds to wait for a quiet machine, in all; "
                        "then what is measured is marked noisy (default 900; "
                        "quick 30)")
    parser.add_argument("--out", type=local_path,
                        default="bench.json", metavar="FILE",
                        help="where the figures go (default bench.json)")
    parser.add_argument("--pictures", type=local_path, metavar="DIR",
                        help="draw steps/s by workers there; the first time "
                        "matplotlib is taken from PyPI, into the user's cache "
                        "folder")
    parser.add_argument("--table", type=local_path, metavar="FILE",
                        help="write the figures that have targets into the "
                        "marked section of this Markdown file")
    parser.add_argument("--ratios", type=local_path, metavar="FILE",
                        help="the same of the few ratios that tell most")
    parser.add_argument("--peers", action="store_true",
                        help="also the same models in PyTorch and TensorFlow "
                        "and the same pushes and pulls in ps-lite; the first "
                        "time they are taken from PyPI into the user's cache "
                        "folder")
    parser.add_argument("--against", type=program, metavar="FILE",
                        help="also the data plane's TCP over the gRPC of this "
                        "data_plane, another build's")
    parser.add_argument("--before", type=local_path, metavar="DIR",
                        help="also the ps_server and worker there, another "
                        "build's, beside which the part members is set")
    parser.add_argument("--no_build", action="store_true",
                        help="use the binaries as they are")
    parser.add_argument("--bin_dir", type=local_path, metavar="DIR",
                        default=os.path.join(processes.ROOT, "bazel-bin"),
                        help="where they are (default bazel-bin)")
    # For bench.sh, which builds only for a command line without a mistake.
    parser.add_argument("--check_flags", action="store_true",
                        help=argparse.SUPPRESS)
    return with_defaults(parser.parse_args(argv))


def with_defaults(options):
    def default(name, usual, quick_one):
        if getattr(options, name) is None:
            setattr(options, name, quick_one if options.quick else usual)
    default("rounds", 5, 1)
    default("steps", 150, 20)
    default("patience", 900.0, 30.0)
    options.burst_s = 0.05 if options.quick else 0.5
    options.only = options.only or [
        part for part in PARTS if options.peers or part not in OF_PEERS]
    options.bin_dir = os.path.abspath(options.bin_dir)
    options.before = options.before and os.path.abspath(options.before)
    return options


def program(text):
    if not os.access(text, os.X_OK):
        raise argparse.ArgumentTypeError("no program at '%s'" % text)
    return os.path.abspath(text)


def model_bytes(text):
    value = int(text)
    if value < 4 or value % 4 != 0:
        raise argparse.ArgumentTypeError("wanted a multiple of 4")
    return value


def chosen_figures(options):
    """Fails now, not after a wait, if a program is not there."""
    found = [figure for part in options.only for figure in PARTS[part](options)]
    for figure in found:
        for one in figure.measurements:
            processes.check_program(one.command[0])
    return found


def python_with_matplotlib():
    """Made before anything is measured: the first time it wants the network."""
    try:
        return processes.python_with(REQUIREMENTS)
    except processes.Failure as failure:
        raise processes.Failure("no pictures: %s" % failure) from None


def say(line):
    print(line, file=sys.stderr, flush=True)


def main(argv):
    options = parse_arguments(argv)
    if options.check_flags:
        return 0
    try:
        drawer = options.pictures and python_with_matplotlib()
        for page in filter(None, (options.table, options.ratios)):
            report.check(page)
        measured = figures.measure(chosen_figures(options), options.rounds,
                                   quiet.Gate(options.patience), say)
        report.print_table(measured)
        document = report.document(options, measured)
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2)
        if drawer:
            processes.run([drawer, PICTURES, options.out, options.pictures])
        for page, is_short in ((options.table, False), (options.ratios, True)):
            if page:
                report.write(document, page, options.pictures, is_short)
    except (processes.Failure, report.PageFailure, OSError) as failure:
        say("bench.sh: %s" % failure)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
