"""Runs the tests and the figures of a GPU bundle; see run_all.sh.
Python 3.9 or newer, standard library only.
"""

import argparse
import os
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
# In a bundle, and in the project's folder.
sys.path[1:1] = [os.path.join(ROOT, "scripts"), os.path.dirname(ROOT)]
# pylint: disable=wrong-import-position
import card
import figures
from base.programs import Interrupted
from rows import Rows, show

# In this order: figures are what a short stay on a machine is for.
PARTS = ("figures", "models", "sharing", "tests", "torch", "sanitizer")


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="run_all.sh", allow_abbrev=False,
        description="Tests and measures on this machine's GPU, and writes a "
        "JSON, whole after every row, with the value of each test and figure, "
        "or why there is none, and ratios of them; and a log beside it.")
    parser.add_argument("--only", choices=PARTS, action="append",
                        help="this part; may be repeated (default: all)")
    parser.add_argument("--cpu", action="store_true",
                        help="the same trainings on the cpu, no test of a GPU")
    parser.add_argument("--out", default="results.json", metavar="FILE")
    parser.add_argument("--seconds", type=float, default=6,
                        help="of each training (default 6)")
    # Some machines kill after ten minutes all that runs.
    parser.add_argument("--time_limit", type=float, default=510,
                        help="seconds; what does not fit is skipped "
                        "(default 510)")
    return parser.parse_args(argv)


def choose_programs(rows):
    """Where the machine's glibc is too old, those with the bundle's."""
    for folder in (ROOT, os.path.join(ROOT, "with_glibc")):
        rows.measure("version of " + os.path.basename(folder), "", [
            os.path.join(folder, "worker/worker"), "--version"], card.ANSWER_S,
                     str.strip)
        if "value" in rows.rows[-1]:
            break
    return folder


def run(rows, options):
    folders = [] if options.cpu else card.folders()
    programs = choose_programs(rows)
    made = figures.Figures(rows, options, folders, programs)
    rows.add("machine", "", "", lambda: card.machine(rows), made.no_card)
    # Of the tests, which have no flags; programs get --gpu_library_path.
    environment = dict(os.environ, LD_LIBRARY_PATH=":".join(filter(
        None, [*folders, os.environ.get("LD_LIBRARY_PATH")])))
    rows.measure("list of devices", "", [
        os.path.join(programs, "worker/worker"), "devices",
        "--gpu_library_path=" + ":".join(folders)], card.ANSWER_S,
                 str.splitlines)
    tests = (rows, programs, environment, made.no_card)
    parts = dict(zip(PARTS, (
        made.trainings, made.models, made.sharing,
        lambda: card.run_tests(*tests), made.torch,
        lambda: card.sanitize(*tests))))
    for part in options.only or PARTS:
        try:
            parts[part]()
        except Exception as error:  # pylint: disable=broad-except
            # The other parts are run.
            rows.rows.append({"name": part, "failed": "%s: %s" % (
                type(error).__name__, error)})


def main(argv):
    options = parse_arguments(argv)
    try:
        rows = Rows(options.out, options.time_limit)
    except OSError as error:
        show("run_all: --out: %s" % error)
        return 2
    rows.programs.take_signals()
    with rows.programs:
        try:
            run(rows, options)
            rows.found["end"] = "complete"
            code = 1 if any("failed" in row for row in rows.rows) else 0
        except Interrupted as stop:
            rows.found["end"] = "ended by %s" % stop
            code = 128 + stop.signum
        finally:
            rows.found["targets"] = [figures.ratio(rows, *target)
                                     for target in figures.TARGETS]
            rows.write()
    for one in rows.found["targets"]:
        show("%(name)s / %(over)s: %(ratio)s, wanted %(wanted)s %(why)s" % one)
    show("%s: %s, %d rows" % (rows.path, rows.found["end"], len(rows.rows)))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
