#!/usr/bin/env python3
"""Packs worker, ps_server and the tests of the cuda backend for a machine with
a GPU. Called by gpu_bundle.sh. Python 3 standard library only.
"""

from base import quiet_interrupt  # pylint: disable=unused-import

import argparse
import gzip
import os
import subprocess
import sys

from base.failure import Failure
from base.launcher_flags import ROOT, add_binary_flags, local_path
from shared_libraries import (GLIBC, check_self_contained, copy_plain, found,
                              libraries, strip)

# One that fits through any door, with what goes along.
MAX_ARCHIVE_BYTES = 56 << 20
# Of the training set; the test set is whole.
TRAINING_EXAMPLES = 10000
DATA_SET = "/usr/share/datasets/fashion-mnist/*-ubyte.gz"
# The programs, in folders of the bundle, one deep, as the rpath wants it, with
# the tests that want a card.
PROGRAMS = {"worker": "worker/worker", "ps_server": "ps_server/ps_server",
            "gpu_tests": "tests/worker/backend/cuda/card_*_test"}
# The parts of glibc that NVIDIA's libraries want beside ours.
MORE_GLIBC = ("libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1")
# What lies in the bundle as it lies here.
PLAIN = ["LICENSE", "scripts/launcher.py", "scripts/base/*.py",
         "tests/integration/card_test.py", "tests/integration/device_trace.py",
         "tests/integration/harness.py",
         "tests/benchmark/peers/torch_[gmr]*.py",
         "tests/worker/model/golden/losses.txt", "worker/model/zoo/*.textproto"]
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
        "FOLDER.tar.xz (under 56 MiB), for a machine with an NVIDIA GPU; its "
        "run_all.sh tests and measures there, without network or install.")
    parser.add_argument("--out", type=local_path, default="muster_gpu",
                        help="a new folder (default muster_gpu)")
    add_binary_flags(parser)
    return parser.parse_args(argv)


def copy_programs(bin_dir, out):
    """With their libraries; each also with a wrapper, which runs it with the
    bundle's glibc on a machine with an older one. Returns the copies."""
    copies, needed = [], {}
    for folder, pattern in PROGRAMS.items():
        for source in found(os.path.join(bin_dir, pattern),
                            "; leave out --no_build"):
            name = os.path.join(folder, os.path.basename(source))
            needed.update(libraries(source))
            copies.append(os.path.join(out, name))
            strip(source, copies[-1])
            wrapper = os.path.join(out, "with_glibc", name)
            os.makedirs(os.path.dirname(wrapper), exist_ok=True)
            with open(wrapper, "w", encoding="utf-8") as file:
                file.write(WRAPPER % name)
            os.chmod(wrapper, 0o755)
    for name in MORE_GLIBC:
        needed.setdefault(name, os.path.join(
            os.path.dirname(needed["libc.so.6"]), name))
    for name, path in sorted(needed.items()):
        folder = "glibc" if GLIBC.match(name) else "lib"
        strip(os.path.realpath(path), os.path.join(out, folder, name))
    return copies


def shortened(content, examples):
    """An IDX file of bytes with only its first examples."""
    header = 4 + 4 * content[3]
    size = (len(content) - header) // int.from_bytes(content[4:8], "big")
    return (content[:4] + examples.to_bytes(4, "big") +
            content[8:header + size * examples])


def copy_data(out):
    os.makedirs(os.path.join(out, "data"))
    for path in found(DATA_SET):
        name = os.path.basename(path)[:-len(".gz")]
        with gzip.open(path) as file:
            content = file.read()
        with open(os.path.join(out, "data", name), "wb") as file:
            file.write(shortened(content, TRAINING_EXAMPLES)
                       if name.startswith("train") else content)


def pack(out):
    """Returns the archive's path and size."""
    archive = out + ".tar.xz"
    subprocess.run(["tar", "--create", "--file", archive,
                    "--use-compress-program", "xz -2 --threads=0", "--owner=0",
                    "--group=0", "--directory", os.path.dirname(out),
                    os.path.basename(out)], check=True)
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
        check_self_contained(
            copy_programs(options.bin_dir, out), out,
            hint=": build it with --config=cuda, which sets its rpath")
        copy_plain(PLAIN, ROOT, out)
        copy_plain(["*.[ps][yh]"], os.path.join(ROOT, "scripts/gpu_run"), out)
        copy_data(out)
        archive, size = pack(out)
    except (Failure, OSError, subprocess.SubprocessError) as failure:
        print("gpu_bundle: %s" % failure, file=sys.stderr)
        return 1
    name = os.path.basename(archive)
    print("%s\n%s: %.1f MiB; on a machine with a GPU: tar xf %s (without xz: "
          "python3 -m tarfile -e %s) && %s/run_all.sh" % (
              out, archive, size / 2**20, name, name, os.path.basename(out)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
