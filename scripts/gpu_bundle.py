#!/usr/bin/env python3
"""Packs worker, ps_server, a benchmark and the tests of the cuda backend for a
machine with a GPU.

Called by gpu_bundle.sh. Python 3 standard library only.
"""

from base import quiet_interrupt  # pylint: disable=unused-import

import argparse
import glob
import gzip
import os
import shutil
import struct
import subprocess
import sys

from base.launcher_flags import ROOT, add_binary_flags, local_path
from shared_libraries import (GLIBC, Failure, check_self_contained, libraries,
                              strip)

# One that fits through any door, with what goes along.
MAX_ARCHIVE_BYTES = 56 << 20
# Of the training set; the test set is whole.
TRAINING_EXAMPLES = 10000
DATA_SET = "/usr/share/datasets/fashion-mnist"
# The tests that want a card, as their BUILD file names them.
TESTS = "tests/worker/backend/cuda/card_*_test"
# What limits a step with a ps: copies, and the update rule.
BENCHMARK = "tests/benchmark/data_plane/data_plane"
# The parts of it that NVIDIA's libraries want beside ours.
MORE_GLIBC = ("libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1")
# What lies in the bundle as it lies here.
PLAIN = ["LICENSE", "scripts/launcher.py", "scripts/base/*.py",
         "tests/benchmark/peers/torch_gpu.py",
         "tests/benchmark/peers/torch_model.py",
         "tests/worker/model/golden/losses.txt", "worker/model/zoo/*.textproto"]
RUN = "scripts/gpu_run"
WRAPPER = """#!/bin/sh
root=$(cd "$(dirname "$0")/../.." && pwd)
exec "$root/glibc/ld-linux-x86-64.so.2" \\
  --library-path "$root/glibc:$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \\
  "$root/%s" "$@"
"""


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="gpu_bundle.sh", allow_abbrev=False,
        description="Builds with --config=cuda and makes a folder, and "
        "FOLDER.tar.xz (under 56 MiB), to be unpacked on a machine with an "
        "NVIDIA GPU; its run_all.sh tests and measures there, without network, "
        "build or install.")
    parser.add_argument("--out", type=local_path,
                        metavar="FOLDER", default="muster_gpu",
                        help="a new folder (default muster_gpu)")
    add_binary_flags(parser)
    return parser.parse_args(argv)


def binaries(bin_dir):
    """Yields (path here, path in the bundle), one folder deep, as the rpath
    wants it."""
    yield os.path.join(bin_dir, "worker/worker"), "worker/worker"
    yield os.path.join(bin_dir, "ps_server/ps_server"), "ps_server/ps_server"
    yield os.path.join(bin_dir, BENCHMARK), "benchmark/data_plane"
    tests = sorted(glob.glob(os.path.join(bin_dir, TESTS)))
    if not tests:
        raise Failure("no test of a card at '%s/%s'; leave out --no_build" %
                      (bin_dir, TESTS))
    for test in tests:
        yield test, "gpu_tests/" + os.path.basename(test)


def copy_binaries(bin_dir, out):
    needed = {}
    copies = []
    for source, name in binaries(bin_dir):
        if not os.access(source, os.X_OK):
            raise Failure("no program at '%s'; leave out --no_build" % source)
        needed.update(libraries(source))
        copies.append(os.path.join(out, name))
        strip(source, copies[-1])
    for name in MORE_GLIBC:
        needed.setdefault(name, os.path.join(
            os.path.dirname(needed["libc.so.6"]), name))
    for name, path in sorted(needed.items()):
        folder = "glibc" if GLIBC.match(name) else "lib"
        strip(os.path.realpath(path), os.path.join(out, folder, name))
    return copies


def write_wrappers(copies, out):
    """For a machine with an older glibc: each program with the bundle's."""
    for binary in copies:
        name = os.path.relpath(binary, out)
        wrapper = os.path.join(out, "with_glibc", name)
        os.makedirs(os.path.dirname(wrapper), exist_ok=True)
        with open(wrapper, "w", encoding="utf-8") as file:
            file.write(WRAPPER % name)
        os.chmod(wrapper, 0o755)


def copy_plain(out):
    for pattern in PLAIN:
        paths = sorted(glob.glob(os.path.join(ROOT, pattern)))
        if not paths:
            raise Failure("no file at '%s'" % pattern)
        for path in paths:
            target = os.path.join(out, os.path.relpath(path, ROOT))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(path, target)
    for path in glob.glob(os.path.join(ROOT, RUN, "*")):
        if path.endswith((".py", ".sh")):
            shutil.copy(path, out)


def shorten(content, examples):
    """An IDX file of bytes with only its first examples."""
    dimensions = content[3]
    sizes = list(struct.unpack(">%dI" % dimensions,
                               content[4:4 + 4 * dimensions]))
    sizes[0] = min(sizes[0], examples)
    length = 1
    for size in sizes:
        length *= size
    header = 4 + 4 * dimensions
    return content[:4] + struct.pack(
        ">%dI" % dimensions, *sizes) + content[header:header + length]


def copy_data(out):
    folder = os.path.join(out, "data")
    os.makedirs(folder)
    for split, examples in (("train", TRAINING_EXAMPLES), ("t10k", 1 << 31)):
        for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"):
            name = "%s-%s" % (split, kind)
            try:
                with gzip.open(os.path.join(DATA_SET, name + ".gz")) as file:
                    content = file.read()
            except OSError as error:
                raise Failure("cannot read the data set: %s" % error) from None
            with open(os.path.join(folder, name), "wb") as file:
                file.write(shorten(content, examples))


def pack(out):
    """Returns the archive's path and size."""
    archive = out + ".tar.xz"
    command = ["tar", "--create", "--file", archive, "--use-compress-program",
               "xz -2 --threads=0", "--owner=0", "--group=0", "--directory",
               os.path.dirname(os.path.abspath(out)), os.path.basename(out)]
    result = subprocess.run(command, capture_output=True, text=True,
                            check=False)
    if result.returncode != 0:
        raise Failure("%s: %s" % (" ".join(command), result.stderr.strip()))
    size = os.path.getsize(archive)
    if size >= MAX_ARCHIVE_BYTES:
        raise Failure("'%s' has %.1f MiB; wanted less than %d" % (
            archive, size / 2**20, MAX_ARCHIVE_BYTES >> 20))
    return archive, size


def main(argv):
    options = parse_arguments(argv)
    out = os.path.abspath(options.out)
    if os.path.exists(out):
        print("gpu_bundle: '%s' is there already; give --out a new folder" %
              out, file=sys.stderr)
        return 2
    try:
        copies = copy_binaries(options.bin_dir, out)
        check_self_contained(
            copies, out,
            hint=": build it with --config=cuda, which sets its rpath")
        write_wrappers(copies, out)
        copy_plain(out)
        copy_data(out)
        archive, size = pack(out)
    except (Failure, OSError) as failure:
        print("gpu_bundle: %s" % failure, file=sys.stderr)
        return 1
    name = os.path.basename(archive)
    print("%s\n%s: %.1f MiB; on a machine with a GPU: tar xf %s (without xz: "
          "python3 -m tarfile -e %s) && %s/run_all.sh" % (
              out, archive, size / 2**20, name, name, os.path.basename(out)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
