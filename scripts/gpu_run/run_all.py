#!/usr/bin/env python3
"""Runs the tests and the figures of a GPU bundle; see run_all.sh.

Python 3 standard library only. Neither network nor installation.
"""

import argparse
import glob
import json
import os
import sys

import find_libraries
import targets
from bundled_figures import figures, limits
from timed_runs import Runs, programs, tests_passed

# They compare with plain loops on the host.
TEST_LIMIT_S = 120
# Each kernel runs many times slower.
SANITIZER_LIMIT_S = 90
SANITIZERS = ("memcheck", "racecheck")
# The same kernels as in the others, many times: minutes for nothing.
NOT_SANITIZED = ("card_parity_test", "card_step_allocation_test")


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="run_all.sh", allow_abbrev=False,
        description="Tests and measures on this machine's GPU, in at most ten "
        "minutes, and writes a JSON with one row for each test and figure: "
        "name, value, unit, command, and the reason of what was skipped; and "
        "with the ratios of figures that targets are about.")
    parser.add_argument("--cpu", action="store_true",
                        help="the same trainings on the cpu, no test of a GPU")
    parser.add_argument("--out", metavar="FILE", default="results.json",
                        help="default results.json")
    parser.add_argument("--seconds", type=float, default=6, metavar="S",
                        help="of training for each figure (default 6)")
    parser.add_argument("--time_limit", type=float, default=600, metavar="S",
                        help="of all together; what does not fit is skipped "
                        "(default 600)")
    return parser.parse_args(argv)


def run_tests(runs, options, folder, environment):
    """Every GPU test by itself, then under each tool of compute-sanitizer."""
    tests = sorted(glob.glob(os.path.join(folder, "gpu_tests", "*")))
    sanitizer = find_libraries.program("compute-sanitizer")
    reason = "--cpu" if options.cpu else None
    for test in tests:
        name = os.path.basename(test)
        runs.measure(name, "tests passed", [test], TEST_LIMIT_S, tests_passed,
                     reason, environment)
    for tool in SANITIZERS:
        for test in tests:
            if os.path.basename(test) in NOT_SANITIZED:
                continue
            command = [sanitizer or "compute-sanitizer", "--tool=" + tool,
                       "--target-processes=all", "--error-exitcode=1", test]
            missing = None if sanitizer else "no compute-sanitizer here"
            runs.measure("%s of %s" % (tool, os.path.basename(test)),
                         "tests passed", command, SANITIZER_LIMIT_S,
                         tests_passed, reason or missing, environment)


def main(argv):
    options = parse_arguments(argv)
    folders = [] if options.cpu else find_libraries.folders()
    environment = dict(os.environ)
    if folders:
        # Of the tests, which have no flags; programs get --gpu_library_path.
        environment["LD_LIBRARY_PATH"] = ":".join(
            folders + [environment.get("LD_LIBRARY_PATH", "")]).rstrip(":")
    folder = programs()
    runs = Runs(options.time_limit)
    runs.measure("list of devices", "", [
        os.path.join(folder, "worker/worker"), "--list_devices",
        "--gpu_library_path=" + ":".join(folders)], 30, str.splitlines)
    # Figures first: they are what a short stay on a machine is for.
    limits(runs, options, folder, environment)
    figures(runs, options, folders, folder)
    run_tests(runs, options, folder, environment)
    ratios = targets.evaluate(runs.rows, "cpu" if options.cpu else "cuda")
    print(targets.table(ratios))
    report = {"machine": find_libraries.machine(), "library_path": folders,
              "seconds": runs.elapsed_s(), "rows": runs.rows,
              "targets": ratios}
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")
    print("%s: %d rows, %d skipped, %d failed" % (
        options.out, len(runs.rows), runs.count("skipped"),
        runs.count("failed")))
    return 1 if runs.count("failed") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
