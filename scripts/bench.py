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
import os
import sys

from benchmark import (data_plane, figures, input_pipeline, large, links,
                       models, modes, pipeline, processes, quiet, report,
                       resnet20, saves, start, targets_table, timeline,
                       training)
from base.launcher_flags import local_path

PARTS = (data_plane.PART, data_plane.GRID_PART, data_plane.OPTIMIZER_PART,
         data_plane.SIZE_PART, large.PART, training.PART, modes.PART,
         resnet20.PART, start.PART)
# Only where it is named.
ON_DEMAND = (links.PART, models.PART, pipeline.PART)
PICTURES = os.path.join(processes.ROOT, "scripts/benchmark/pictures.py")
REQUIREMENTS = os.path.join(processes.ROOT,
                            "scripts/benchmark/requirements.txt")
# 3,276,800 float32: the parameters of mnist_cnn.
MODEL_BYTES = 13107200


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="bench.sh", allow_abbrev=False,
        description="Measures the data plane, the update rules, training of "
        "the MNIST CNN (batch 128) in one process and in clusters, of "
        "ResNet-20, of both in each replication mode, and how soon a cluster "
        "takes steps; prints a table with targets. A burst of measurement "
        "waits for a quiet machine; one that others disturb is repeated.")
    parser.add_argument("--quick", action="store_true",
                        help="one round of short bursts, fewer figures: does "
                        "it work?")
    parser.add_argument("--only", choices=PARTS + ON_DEMAND,
                        action="append", help="this part; may be repeated "
                        "(default: all but %s)" % ", ".join(ON_DEMAND))
    parser.add_argument("--rounds", type=positive, metavar="N",
                        help="measurements of each figure (default 3; quick 1)")
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
                        help="draw scaling, message size and a step's "
                        "timeline there; the first time matplotlib is taken "
                        "from PyPI, into the user's cache folder")
    parser.add_argument("--table", type=local_path, metavar="FILE",
                        help="write the figures that have targets, and those "
                        "of large models and of slow links, into the marked "
                        "section of this Markdown file")
    parser.add_argument("--ratios", type=local_path, metavar="FILE",
                        help="the same of the few ratios that tell most, with "
                        "one picture")
    parser.add_argument("--saves", action="store_true",
                        help="instead: the time of a step while a checkpoint "
                        "is written and while none is, in the same run")
    parser.add_argument("--input", action="store_true",
                        help="instead: steps/s over input threads, apply "
                        "threads and towers, and how many JPEGs a core "
                        "decodes, beside torch's DataLoader if that can be had")
    parser.add_argument("--peers", action="store_true",
                        help="also the same model in PyTorch and TensorFlow, "
                        "the same pushes and pulls in ps-lite and the same "
                        "all-reduce in Gloo; the first time they are taken "
                        "from PyPI into the user's cache folder, Gloo from "
                        "Debian")
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
    default("rounds", 3, 1)
    default("steps", 150, 20)
    default("patience", 900.0, 30.0)
    options.burst_s = 0.05 if options.quick else 0.5
    options.only = options.only or PARTS
    options.bin_dir = os.path.abspath(options.bin_dir)
    return options


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("wanted a positive number")
    return value


def model_bytes(text):
    value = int(text)
    # An element for each of the small tensors.
    least = 4 * data_plane.SMALL_TENSORS
    if value < least or value % 4 != 0:
        raise argparse.ArgumentTypeError(
            "wanted a multiple of 4 of at least %d" % least)
    return value


def all_figures(options):
    plane = data_plane.DataPlane(options)
    found = data_plane.figures(plane, options.only)
    if large.PART in options.only:
        found += large.figures(options, plane)
    found += training.figures(training.Training(options))
    if models.PART in options.only:
        found += models.figures(options)
    if modes.PART in options.only:
        found += modes.figures(options)
    if links.PART in options.only:
        found += links.figures(options)
    if pipeline.PART in options.only:
        found += pipeline.figures(options)
    if resnet20.PART in options.only:
        found += resnet20.figures(options)
    found += start.figures(options)
    return figures.chosen(found, options.only)


def check_programs(chosen):
    """Fails now, not after a wait, if a program is not there."""
    for one in figures.needed(chosen):
        processes.check_program(one.command[0])


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
        if options.saves:
            report.write_json(options.out, saves.measure(options))
            return 0
        if options.input:
            report.write_json(options.out, input_pipeline.measure(options))
            return 0
        drawer = options.pictures and python_with_matplotlib()
        for page in filter(None, (options.table, options.ratios)):
            targets_table.check(page)
        chosen = all_figures(options)
        check_programs(chosen)
        rows = figures.measure(chosen, options.rounds,
                               quiet.Gate(options.patience), say)
        report.print_table(rows)
        document = report.document(options, rows)
        if drawer and training.PART in options.only:
            document["timelines"] = timeline.record(options)
        report.write_json(options.out, document)
        if drawer:
            processes.run([drawer, PICTURES, options.out, options.pictures])
        if options.table:
            targets_table.write(document, options.table, options.pictures)
        if options.ratios:
            targets_table.write(document, options.ratios, options.pictures,
                                targets_table.ratios)
    except (processes.Failure, targets_table.TableFailure) as failure:
        say("bench.sh: %s" % failure)
        return 1
    except OSError as error:
        say("bench.sh: %s" % error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
