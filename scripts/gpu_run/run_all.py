#!/usr/bin/env python3
"""Runs the tests and the figures of a GPU bundle; see run_all.sh.

Python 3 standard library only. Neither network nor installation.
"""

import argparse
import os
import sys

import find_libraries
import gpu_tests
import processes
import targets
from bundled_figures import figures, limits
from report import open_report, say, show
from timed_runs import ROOT, Part, Runs
from torch_figures import (FIRST_WAYS, LAST_WAYS, torch_figures,
                           why_no_torch)

# Less than ten minutes, after which some machines kill all that runs.
TIME_LIMIT_S = 510
# Of a worker that says its version: to be read from a disk.
VERSION_S = 30.0


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="run_all.sh", allow_abbrev=False,
        description="Tests and measures on this machine's GPU, in less than "
        "ten minutes, and writes a JSON with one row for each test and figure: "
        "name, value, unit, command, and the reason of what failed or was "
        "skipped; and with the ratios of figures that targets are about. It is "
        "written anew after every row, also when SIGTERM, SIGINT or SIGHUP "
        "ends this program. What was printed is in a log beside it.")
    parser.add_argument("--cpu", action="store_true",
                        help="the same trainings on the cpu, no test of a GPU")
    parser.add_argument("--out", metavar="FILE", default="results.json",
                        help="default results.json, and results.log; in TMPDIR "
                        "if nothing can be written there")
    parser.add_argument("--seconds", type=float, default=6, metavar="S",
                        help="of training for each figure (default 6)")
    parser.add_argument("--time_limit", type=float, default=TIME_LIMIT_S,
                        metavar="S", help="of all together; what does not fit "
                        "is skipped (default %d)" % TIME_LIMIT_S)
    return parser.parse_args(argv)


class Session:
    """One call of run_all.sh: what is found out, run, and written."""

    def __init__(self, options, report):
        self.options = options
        self.report = report
        self.runs = Runs(options.time_limit, self.write, report.log)
        # Of this machine, and of the bundle on it.
        self.found = {}
        # "under way" in a file that nobody has finished.
        self.end = "under way"
        self.environment = dict(os.environ)
        self.folders = []
        # Of worker/worker and the others.
        self.programs = ROOT

    def ratios(self):
        return targets.evaluate(self.runs.rows,
                                "cpu" if self.options.cpu else "cuda")

    def write(self):
        self.report.write(dict(
            self.found, end=self.end,
            seconds=round(self.runs.elapsed_s(), 1),
            time_limit=self.options.time_limit, rows=self.runs.rows,
            targets=self.ratios()))

    def look_around(self):
        """Where the libraries are, and with which glibc programs run."""
        self.found["machine"] = find_libraries.machine()
        self.write()
        if not self.options.cpu:
            self.folders = find_libraries.folders()
        self.found["library_path"] = self.folders
        self.found["libraries"] = [
            path for folder in self.folders
            for path in find_libraries.libraries_in(folder)]
        if self.folders:
            # Of the tests, which have no flags; programs get
            # --gpu_library_path.
            self.environment["LD_LIBRARY_PATH"] = ":".join(
                self.folders + [os.environ.get("LD_LIBRARY_PATH", "")]
            ).rstrip(":")
        self.choose_programs()

    def choose_programs(self):
        """As they are where the machine's own glibc is new enough, else with
        the one of the bundle."""
        try:
            self.found["version"] = processes.output_of(
                [os.path.join(ROOT, "worker/worker"), "--version"], VERSION_S)
        except ValueError as why:
            self.found["why_with_glibc"] = str(why)
            self.programs = os.path.join(ROOT, "with_glibc")
        self.found["with_glibc"] = self.programs != ROOT

    def run(self):
        """All parts; figures first: they are what a short stay on a machine is
        for."""
        runs, options = self.runs, self.options
        with runs.guarded("facts of the machine"):
            self.look_around()
        runs.measure(Part("list of devices", "", [
            os.path.join(self.programs, "worker/worker"), "--list_devices",
            "--gpu_library_path=" + ":".join(self.folders)], 30.0,
                          str.splitlines))
        with runs.guarded("limits"):
            limits(runs, options, self.programs, self.environment)
        with runs.guarded("trainings"):
            figures(runs, options, self.folders, self.programs)
        no_torch = "nobody could look for PyTorch"
        with runs.guarded("a look for PyTorch"):
            no_torch = why_no_torch(runs, options)
        with runs.guarded("PyTorch's trainings"):
            torch_figures(runs, options, FIRST_WAYS, no_torch)
        tests = gpu_tests.GpuTests(runs, options, self.programs,
                                   self.environment)
        with runs.guarded("tests"):
            tests.run()
        with runs.guarded("PyTorch's other trainings"):
            torch_figures(runs, options, LAST_WAYS, no_torch)
        with runs.guarded("compute-sanitizer"):
            tests.sanitize()
        self.end = "complete"

    def exit_code(self):
        if self.end != "complete":
            return 1
        return 1 if self.runs.count("failed") or (
            not self.report.is_written) else 0


def main(argv):
    options = parse_arguments(argv)
    processes.take_signals()
    processes.adopt_orphans()
    try:
        report = open_report(options.out)
    except OSError as error:
        say(str(error))
        return 2
    session = Session(options, report)
    code = None
    try:
        session.run()
    except processes.Interrupted as stop:
        session.end = "ended by %s" % stop
        code = 128 + stop.signum
    finally:
        session.write()
    show(targets.table(session.ratios()))
    show("%s: %s: %d rows, %d skipped, %d failed" % (
        report.path, session.end, len(session.runs.rows),
        session.runs.count("skipped"), session.runs.count("failed")))
    return session.exit_code() if code is None else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
