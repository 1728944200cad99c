"""The replication study: trains its rows, and makes its page from the results.

Called by study.sh, from any folder. Installs what is missing and builds. Python
3 standard library only; the figures are drawn by plots.py, in an environment
that has matplotlib.
"""

import argparse
import json
import os
import subprocess
import sys
import time

from tests.benchmark.replication import original
from tests.benchmark.replication import page
from tests.benchmark.replication import results_file
from tests.benchmark.replication import rows
from tests.benchmark.replication import run_row
from tests.benchmark.replication import verdicts
from scripts.base import python_environment

FOLDER = os.path.dirname(os.path.abspath(__file__))
REQUIREMENTS = os.path.join(FOLDER, "requirements.txt")
PLOTS_S = 120
EXIT_FAILED = 1
EXIT_BAD = 2


class NoBinaries(Exception):
    """There is nothing to train with; the text says why."""


def _list_of(parse, what):
    def parse_list(text):
        try:
            values = [parse(part) for part in text.split(",")]
        except ValueError:
            values = []
        if not values or len(set(values)) != len(values):
            raise argparse.ArgumentTypeError(
                "wanted %s, each once, with commas between; found '%s'" %
                (what, text))
        return values
    return parse_list


def _seed(text):
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def _row_name(text):
    if text not in rows.BY_NAME:
        raise argparse.ArgumentTypeError("no row '%s'; there are: %s" % (
            text, ", ".join(rows.BY_NAME)))
    return text


def _epochs(text):
    value = float(text)
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError("wanted above 0 and at most 100")
    return value


def parse_arguments(argv):
    """Returns the options; ends the process with 2 after a mistake."""
    parser = argparse.ArgumentParser(
        prog="study.sh",
        description="Trains the MNIST CNN on Fashion-MNIST in each way of "
        "replication, appends a line for each finished run to results.jsonl, "
        "and makes README.md and its figures from that file. Stopped and "
        "started again, it goes on with what is missing.",
        epilog="Exit code: 0 if all runs are there and the page is made, 1 if "
        "a run or the page failed, 2 after a mistake in a flag or a file.",
        allow_abbrev=False)
    parser.add_argument("--rows", type=_list_of(_row_name, "names of rows"),
                        metavar="A,B,...",
                        help="rows to train (default: all: %s)" % ", ".join(
                            row.name for row in rows.ROWS))
    parser.add_argument("--original", action="store_true",
                        help="the page of the original's systems instead, of "
                        "the rows %s: original.jsonl and original.md" %
                        ", ".join(row.name for row in rows.ORIGINAL))
    parser.add_argument("--seeds", type=_list_of(_seed, "seeds above 0"),
                        default=list(rows.SEEDS), metavar="A,B,...",
                        help="of rows with a verdict; others have only seed "
                        "%d (default %s)" % (
                            rows.SEEDS[0], ",".join(map(str, rows.SEEDS))))
    parser.add_argument("--epochs", type=_epochs, default=1.0, metavar="E",
                        help="passes over the training set of a full run "
                        "(default 1)")
    parser.add_argument("--report_only", action="store_true",
                        help="train nothing, make the page")
    _add_files(parser)
    options = parser.parse_args(argv)
    options.report = original if options.original else page
    name, default = (("original", "original.md") if options.original else
                     ("results", "README.md"))
    options.rows = options.rows or [
        row.name for row in (rows.ORIGINAL if options.original else rows.ROWS)]
    options.results = options.results or os.path.join(FOLDER, name + ".jsonl")
    options.page = options.page or os.path.join(FOLDER, default)
    _check_files(parser, options)
    return options


def _add_files(parser):
    parser.add_argument("--results", metavar="FILE",
                        help="lines of finished runs (default: results.jsonl "
                        "beside study.sh)")
    parser.add_argument("--page", metavar="FILE",
                        help="the page; figures go into its folder (default: "
                        "README.md beside study.sh)")
    parser.add_argument("--training", metavar="FILE",
                        default=os.path.join(run_row.ROOT, rows.TRAINING),
                        help="TrainingSpec (default %s)" % rows.TRAINING)
    parser.add_argument("--set", action="append", default=[],
                        metavar="FIELD=VALUE",
                        help="override a field of the TrainingSpec in every "
                        "row; may be repeated")
    parser.add_argument("--no_build", action="store_true",
                        help="install and build nothing")
    parser.add_argument("--bin_dir", metavar="DIR",
                        default=os.path.join(run_row.ROOT, "bazel-bin"),
                        help="where ps_server/ps_server and worker/worker "
                        "are (default bazel-bin)")


def _check_files(parser, options):
    options.training = os.path.abspath(options.training)
    for path in (options.results, options.page):
        if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            parser.error("no folder for '%s'" % path)
    if options.report_only:
        return
    if not any(planned(options)):
        parser.error("nothing to train: these rows have only seed %d" %
                     rows.SEEDS[0])
    if not os.path.isfile(options.training):
        parser.error("--training: no file '%s'" % options.training)


def planned(options):
    """(row, seed, settings) of all runs: one round of rows for each seed, so
    that a slow hour of the machine does not fall on one row alone."""
    for seed in options.seeds:
        for name in options.rows:
            row = rows.BY_NAME[name]
            if row.has_seed(seed):
                yield row, seed, row.settings(
                    options.epochs, seed) + options.set


def _training_name(options):
    return os.path.relpath(options.training, run_row.ROOT)


def missing(options, results):
    """What is planned and not there. Raises BadResults for another recipe."""
    for row, seed, settings in planned(options):
        found = results.get((row.name, seed))
        if found is None:
            yield row, seed, settings
            continue
        other = set(found["settings"]) ^ set(settings) | (
            {found["training"]} ^ {_training_name(options)})
        if other:
            raise results_file.BadResults(
                "%s: row %s with seed %d was trained with other settings (%s); "
                "remove that line, or give another --results" % (
                    options.results, row.name, seed,
                    ", ".join(sorted(other))))


def _say(text):
    print("study: " + text, flush=True)


def build(options):
    """Raises NoBinaries."""
    if not options.no_build:
        for command in (["scripts/install_deps.sh"],
                        ["bazel", "build", "//ps_server", "//worker"]):
            try:
                subprocess.run(command, cwd=run_row.ROOT, check=True,
                               stdin=subprocess.DEVNULL)
            except (OSError, subprocess.CalledProcessError) as error:
                raise NoBinaries("%s: %s" % (" ".join(command),
                                             error)) from error
    for name in ("ps_server/ps_server", "worker/worker"):
        path = os.path.join(options.bin_dir, name)
        if not os.access(path, os.X_OK):
            raise NoBinaries("no binary at '%s'; run bazel build //ps_server "
                             "//worker" % path)


def train(options, results, left):
    """Trains what is left. Returns the number of runs that failed."""
    failed = 0
    for number, (row, seed, settings) in enumerate(left, 1):
        begun = time.monotonic()
        try:
            result = {"row": row.name, "seed": seed, "settings": settings,
                      "epochs": options.epochs,
                      "training": _training_name(options),
                      **run_row.Run(row, settings, options).train()}
        except run_row.RunFailure as failure:
            failed += 1
            _say("%s seed %d FAILED: %s" % (row.name, seed, failure))
            continue
        results_file.append(options.results, result)
        results[row.name, seed] = result
        _say("%d of %d: %s seed %d: accuracy %.4f, %.0f examples/s, %.0f s; "
             "others used %.2f cores" % (
                 number, len(left), row.name, seed, result["accuracy"],
                 result["examples_per_s"], time.monotonic() - begun,
                 result["foreign_cores"]))
    return failed


def make_page(options, results):
    """Raises EnvironmentFailure or OSError if it cannot be made."""
    figures = options.report.figures(verdicts.Study(results))
    if figures:
        python = python_environment.interpreter(REQUIREMENTS)
        done = subprocess.run(
            [python, os.path.join(FOLDER, "plots.py"),
             os.path.dirname(os.path.abspath(options.page))],
            input=json.dumps(figures), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=PLOTS_S, check=False)
        if done.returncode != 0:
            raise OSError("plots.py failed:\n" + done.stdout[-2000:])
    with open(options.page, "w", encoding="utf-8") as file:
        file.write(options.report.render(results))
    _say("wrote %s" % options.page)


def main(argv):
    options = parse_arguments(argv)
    try:
        results = results_file.read(options.results)
        left = [] if options.report_only else list(missing(options, results))
        _say("%d runs are there, %d to do" % (len(results), len(left)))
        if left:
            build(options)
    except (results_file.BadResults, NoBinaries) as error:
        _say(str(error))
        return EXIT_BAD
    failed = train(options, results, left)
    try:
        make_page(options, results)
    except (python_environment.EnvironmentFailure, OSError,
            subprocess.TimeoutExpired) as error:
        _say("no page: %s" % error)
        return EXIT_FAILED
    if failed:
        _say("%d runs failed; start it again to try them once more" % failed)
    return EXIT_FAILED if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
