"""The tests of the cuda backend: by themselves, and under compute-sanitizer.

Part of run_all.py. Python 3 standard library only.
"""

import glob
import os
import re

import find_libraries
import processes
from timed_runs import Part, Skipped

# They compare with plain loops on the host.
TEST_LIMIT_S = 120.0
TEST_NEEDS_S = 5.0
# Each kernel runs many times slower.
SANITIZER_LIMIT_S = 90.0
SANITIZER_NEEDS_S = 15.0
SANITIZERS = ("memcheck", "racecheck", "initcheck")
# The one that runs each kernel by itself, under all tools, before the others.
FIRST_SANITIZED = "card_backend_parity_test"
# The same kernels as in the others, many times: minutes for nothing.
NOT_SANITIZED = ("card_parity_test", "card_step_allocation_test")
# Only kernels of ours, by a part of their names: cuDNN's and cuBLAS's are most
# of the time. Not for initcheck, which would not see what theirs have written,
# and call that uninitialised where ours read it. The option has had three names;
# the newest first.
FILTERED = ("memcheck", "racecheck")
FILTERS = ("--kernel-name", "--kernel-regex", "--filter")
OUR_KERNELS = "kns=muster"
# To print its --help.
HELP_S = 20.0
# What the tool prints where a GPU cannot be watched, in some containers.
NOT_SUPPORTED = "Device not supported"


def tests_passed(text):
    """How many of a GoogleTest program that has exited with 0."""
    passed = re.search(r"\[  PASSED  \] (\d+) test", text)
    if passed is None:
        raise ValueError("no count of tests that passed")
    skipped = re.search(r"\[  SKIPPED \] (\d+) test", text)
    # What wants no card passes without one.
    if skipped is not None and int(skipped.group(1)) >= int(passed.group(1)):
        # GTEST_SKIP's own words, after the line with its place.
        why = re.search(r": Skipped\n+(?!\[)(.+)", text)
        raise Skipped(why.group(1).strip() if why else
                      "all of its tests were skipped")
    return int(passed.group(1))


def not_supported(text):
    """Why a tool could not do its work, or None."""
    if NOT_SUPPORTED not in text:
        return None
    return next(line.strip(" =") for line in text.splitlines()
                if NOT_SUPPORTED in line)


def kernel_filter(sanitizer):
    """Its arguments for kernels of ours only; none if it has no such option."""
    try:
        told = processes.output_of([sanitizer, "--help"], HELP_S)
    except ValueError:
        return []
    return next(([option, OUR_KERNELS] for option in FILTERS
                 if option in told), [])


class GpuTests:
    """Those in gpu_tests/ of `folder`."""

    def __init__(self, runs, options, folder, environment):
        self._runs = runs
        self._folder = os.path.join(folder, "gpu_tests")
        self._environment = environment
        self._skip = "--cpu" if options.cpu else None

    def run(self):
        """Every test by itself. Raises ValueError if there is none."""
        tests = sorted(glob.glob(os.path.join(self._folder, "*")))
        if not tests:
            raise ValueError("no tests in '%s'; make the bundle anew" %
                             self._folder)
        for test in tests:
            self._runs.measure(Part(
                os.path.basename(test), "tests passed", [test], TEST_LIMIT_S,
                tests_passed, TEST_NEEDS_S, self._skip, self._environment))

    def sanitize(self):
        """Under each tool of compute-sanitizer, where there is time left."""
        sanitizer = find_libraries.program("compute-sanitizer")
        skip = self._skip
        if skip is None and sanitizer is None:
            skip = "no compute-sanitizer here"
        ours = [] if skip else kernel_filter(sanitizer)
        # False comes before True.
        for name in sorted(set(os.listdir(self._folder)) - set(NOT_SANITIZED),
                           key=lambda name: (name != FIRST_SANITIZED, name)):
            for tool in SANITIZERS:
                self._runs.measure(Part(
                    "%s of %s" % (tool, name), "tests passed",
                    [sanitizer or "compute-sanitizer", "--tool", tool,
                     *(ours if tool in FILTERED else []),
                     "--target-processes", "all", "--error-exitcode", "1",
                     os.path.join(self._folder, name)],
                    SANITIZER_LIMIT_S, tests_passed, SANITIZER_NEEDS_S, skip,
                    self._environment, not_supported))
