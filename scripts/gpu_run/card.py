"""NVIDIA's libraries and tools, and the tests of a card. Part of run_all.py."""

import glob
import os
import platform
import re
import shutil
import site
import sysconfig

from rows import Failed, Skipped

# What worker looks up when it runs.
NAMES = ("libcudnn.so.*", "libcublasLt.so.*", "libnccl.so.*")
TOOLKITS = ["/usr/local/cuda", "/opt/cuda"]
SYSTEM = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64"]
# Of a driver whose tools are not on PATH.
DRIVER = ["/usr/local/nvidia/bin", "/usr/bin"]
# Of any question: nvidia-smi wakes a driver, a worker is read from a disk.
ANSWER_S = 30.0
CARD = "name,driver_version,memory.total,clocks.max.sm"
# They compare with plain loops on the host; under a sanitizer each kernel runs
# many times slower.
TEST_LIMIT_S = 120.0
SANITIZER_NEEDS_S = 15.0
# Those that run each kernel of ours; the others run the same ones many times.
SANITIZED = ("card_backend_parity_test", "card_backend_parity_products_test",
             "card_gradient_check_test")
# Only kernels of ours: cuDNN's and cuBLAS's are most of the time. Not for
# initcheck, which would not see what theirs have written. The option has had
# three names; the newest first.
FILTERS = ("--kernel-name", "--kernel-regex", "--filter")
OUR_KERNELS = "kns=muster"


def folders():
    """Of the libraries: the toolkit's first, then `pip install torch`'s."""
    patterns = [os.path.join(toolkit, "lib64") for toolkit in TOOLKITS]
    patterns += os.environ.get("LD_LIBRARY_PATH", "").split(":")
    patterns += [os.path.join(root, "nvidia/*/lib") for root in (
        sysconfig.get_paths()["purelib"], site.getusersitepackages(),
        *site.getsitepackages())]
    found = {}
    for pattern in filter(None, (*patterns, *SYSTEM)):
        for folder in sorted(glob.glob(pattern), reverse=True):
            if any(glob.glob(os.path.join(folder, name)) for name in NAMES):
                # One folder has many names.
                found.setdefault(os.path.realpath(folder), folder)
    return list(found.values())


def program(name):
    """Its path, or None."""
    return shutil.which(name) or shutil.which(name, path=":".join(
        [os.path.join(folder, "bin") for folder in TOOLKITS] + DRIVER))


def machine(rows):
    """What a figure means little without."""
    return {"value": rows.run([
                program("nvidia-smi") or "nvidia-smi", "--query-gpu=" + CARD,
                "--format=csv,noheader"], ANSWER_S).splitlines(),
            "cores": len(os.sched_getaffinity(0)), "machine": platform.uname()}


def tests_passed(text):
    """How many of a GoogleTest program that has exited with 0."""
    passed = re.search(r"\[  PASSED  \] (\d+) test", text)
    if passed is None:
        raise Failed("no count of tests that passed")
    skipped = re.search(r"\[  SKIPPED \] (\d+) test", text)
    # What wants no card passes without one.
    if skipped is not None and int(skipped[1]) >= int(passed[1]):
        why = re.search(r": Skipped\n+(?!\[)(.+)", text)
        raise Skipped(why[1].strip() if why else "all its tests were skipped")
    return int(passed[1])


def run_tests(rows, folder, environment, skip):
    """Every test by itself."""
    tests = sorted(glob.glob(os.path.join(folder, "gpu_tests/*")))
    if not tests:
        raise Failed("no tests in '%s'; make the bundle anew" % folder)
    for test in tests:
        rows.measure(os.path.basename(test), "tests passed", [test],
                     TEST_LIMIT_S, tests_passed, environment, skip=skip)


def sanitize(rows, folder, environment, skip):
    """Some under each tool of compute-sanitizer."""
    sanitizer = program("compute-sanitizer")
    if skip is None and sanitizer is None:
        skip = "no compute-sanitizer here"
    told = "" if skip else rows.run([sanitizer, "--help"], ANSWER_S)
    ours = next(([option, OUR_KERNELS] for option in FILTERS
                 if option in told), [])
    for name in SANITIZED:
        for tool in ("memcheck", "racecheck", "initcheck"):
            rows.measure(
                "%s of %s" % (tool, name), "tests passed",
                [sanitizer or "compute-sanitizer", "--tool", tool,
                 *(ours if tool != "initcheck" else []), "--target-processes",
                 "all", "--error-exitcode", "1",
                 os.path.join(folder, "gpu_tests", name)], TEST_LIMIT_S,
                tests_passed, environment, skip=skip, needs_s=SANITIZER_NEEDS_S)
