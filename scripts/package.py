#!/usr/bin/env python3
"""Packs what a machine needs to run Muster's tasks into one tar.

Called by package.sh. Python 3 standard library only.

    bin/        ps_server, worker, musterctl; they look for libraries in ../lib
    lib/        those libraries, but for glibc, which is the machine's, and
                libmuster.so for programs in C
    worker/python/  its header muster.h, example.c; README.md has the gcc line
    scripts/    muster and its verbs; they want a python3, and `sweep` for
                Optuna and pictures one with venv, and PyPI
    cluster_configs/, worker/model/zoo/, Containerfile, LICENSE

The same programs and libraries give the same bytes.
"""

from base import quiet_interrupt  # pylint: disable=unused-import

import argparse
import gzip
import hashlib
import os
import shutil
import sys
import tarfile
import tempfile

from base.failure import Failure
from base.launcher_flags import ROOT, add_binary_flags, local_path
from shared_libraries import (GLIBC, check_self_contained, copy_plain,
                              libraries, patch, strip)

PROGRAMS = ("ps_server/ps_server", "worker/worker", "worker/ctl/musterctl")
# For programs in C; finds its libraries beside it.
C_LIBRARY = "worker/python/libmuster.so"
PLAIN = ["LICENSE", "scripts/muster", "scripts/base/*.py", "scripts/hosts/*.py",
         "scripts/trainings/*.py", "scripts/ensemble/*.py",
         "scripts/sweep/*.py", "scripts/sweep/requirements.txt",
         "cluster_configs/*.json", "cluster_configs/*/*",
         "worker/model/zoo/*.textproto", "worker/python/README.md",
         "worker/python/example.c", "worker/python/muster.h"]
NAME = "muster"
# Of every file in it, so that the archive tells nothing of when it was made.
TIME = 946684800
# Ten lines; built in the unpacked folder: buildah bud -t muster:1 muster
CONTAINERFILE = """\
# BASE: any image with glibc 2.36 or newer.
ARG BASE=debian:12-slim
FROM ${BASE}
COPY bin /opt/muster/bin
COPY lib /opt/muster/lib
COPY scripts /opt/muster/scripts
COPY LICENSE /opt/muster/LICENSE
ENV PATH=/opt/muster/bin:/opt/muster/scripts:/usr/local/bin:/usr/bin:/bin
USER 65532:65532
CMD ["worker", "--help"]
"""


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="package.sh", allow_abbrev=False,
        description="Builds, and makes one tar with ps_server, worker, "
        "musterctl, scripts/muster, libmuster.so and the libraries that they "
        "want, to be unpacked anywhere on a machine with glibc 2.36 or newer. The "
        "same sources give the same bytes. `package.sh wheel` makes a wheel for "
        "Python instead (package.sh wheel --help).")
    parser.add_argument("--out", type=local_path, metavar="FILE.tar.gz",
                        default="muster.tar.gz",
                        help="a new file (default muster.tar.gz)")
    add_binary_flags(parser)
    return parser.parse_args(argv)


def copy_programs(bin_dir, out):
    needed = {}
    for name in PROGRAMS:
        source = os.path.join(bin_dir, name)
        if not os.access(source, os.X_OK):
            raise Failure("no program at '%s'; leave out --no_build" % source)
        needed.update(libraries(source))
        target = os.path.join(out, "bin", os.path.basename(name))
        strip(source, target)
        patch(target, "--force-rpath", "--set-rpath", "$ORIGIN/../lib")
    source = os.path.join(bin_dir, C_LIBRARY)
    if not os.path.isfile(source):
        raise Failure("no file at '%s'; leave out --no_build" % source)
    needed.update(libraries(source))
    target = os.path.join(out, "lib", os.path.basename(C_LIBRARY))
    strip(source, target)
    patch(target, "--force-rpath", "--set-rpath", "$ORIGIN")
    for name, path in needed.items():
        if not GLIBC.match(name):
            target = os.path.join(out, "lib", name)
            strip(os.path.realpath(path), target)
            patch(target, "--force-rpath", "--set-rpath", "$ORIGIN")


def _plain(entry):
    entry.mtime = TIME
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry


def pack(folder, archive):
    with open(archive, "wb") as raw, gzip.GzipFile(
            filename="", mode="wb", fileobj=raw, compresslevel=6,
            mtime=TIME) as packed, tarfile.open(
                fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        # `add` goes through a folder by name.
        tar.add(folder, arcname=NAME, filter=_plain)


def main(argv):
    options = parse_arguments(argv)
    if os.path.exists(options.out):
        print("package: '%s' is there already; give --out a new file" %
              options.out, file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory() as scratch:
            folder = os.path.join(scratch, NAME)
            copy_programs(options.bin_dir, folder)
            check_self_contained(
                [os.path.join(folder, "bin", os.path.basename(name))
                 for name in PROGRAMS], folder)
            copy_plain(PLAIN, ROOT, folder)
            with open(os.path.join(folder, "Containerfile"), "w",
                      encoding="utf-8") as file:
                file.write(CONTAINERFILE)
            archive = os.path.join(scratch, "tar")
            pack(folder, archive)
            shutil.move(archive, options.out)
    except (Failure, OSError) as failure:
        print("package: %s" % failure, file=sys.stderr)
        return 1
    with open(options.out, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    print("%s: %.1f MiB, sha256 %s; tar xzf it on each machine, in the same "
          "place" % (options.out, os.path.getsize(options.out) / 2**20, digest))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
