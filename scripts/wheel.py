#!/usr/bin/env python3
"""Packs Muster for Python into one wheel.

Called by `package.sh wheel`. Python 3 standard library only.

    muster/            the package (worker/python/muster), libmuster.so
    muster/bin/        ps_server, musterctl: python -m muster ps, ... ctl
    muster/lib/        the libraries that these want, under names of their own,
                       so that no other package of a process is given ours, or
                       gives us its own

The same programs and libraries give the same bytes.
"""

from base import quiet_interrupt  # pylint: disable=unused-import

import argparse
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

from base.failure import Failure
from base.launcher_flags import ROOT, add_binary_flags, local_path
from shared_libraries import (GLIBC, check_self_contained, found, libraries,
                              patch, strip)

PYTHON = "worker/python/muster/*py*"
# Where each lies in the package, and finds lib/ from there.
BINARIES = {
    "worker/python/libmuster.so": ("libmuster.so", "$ORIGIN/lib"),
    "ps_server/ps_server": ("bin/ps_server", "$ORIGIN/../lib"),
    "worker/ctl/musterctl_light": ("bin/musterctl", "$ORIGIN/../lib"),
}
# Of a machine's own: each process has one, whatever else it loads.
OF_MACHINE = re.compile(r"lib(stdc\+\+|gcc_s)\.so\.\d+$")
# By the last number of GLIBCXX_3.4.N, the least glibc 2.M with which systems
# have it: the policies of manylinux (PEP 600; auditwheel's
# manylinux-policy.json).
GLIBC_OF_GLIBCXX = {19: 17, 22: 24, 24: 27, 25: 28, 28: 31, 29: 34, 30: 35,
                    32: 38, 33: 39}
# Of every file in it: 2000-01-01.
TIME = (2000, 1, 1, 0, 0, 0)
METADATA = """\
Metadata-Version: 2.1
Name: muster
Version: %s
Summary: Parameter-server training of NumPy and PyTorch models
License: Apache-2.0
License-File: LICENSE
Requires-Python: >=3.9
Requires-Dist: numpy
"""
WHEEL = """\
Wheel-Version: 1.0
Generator: muster
Root-Is-Purelib: false
Tag: %s
"""


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="package.sh wheel", allow_abbrev=False,
        description="Builds, and makes one wheel for any Python 3 with the "
        "package muster, libmuster.so, ps_server, musterctl and the libraries "
        "that they want. Its tag tells the glibc that it needs. The same "
        "sources give the same bytes.")
    parser.add_argument("--out", type=local_path, metavar="FOLDER",
                        default=os.path.join(ROOT, "dist"),
                        help="for the wheel (default: dist of this checkout); "
                        "one of the same name is replaced")
    add_binary_flags(parser)
    return parser.parse_args(argv)


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              check=False)
    except OSError as error:
        raise Failure("cannot start %s: %s" % (command[0], error)) from None
    if done.returncode != 0:
        raise Failure("%s: %s" % (" ".join(command), done.stderr.strip()))
    return done.stdout


def copy_python(package):
    os.makedirs(package)
    for path in found(os.path.join(ROOT, PYTHON)):
        shutil.copyfile(path, os.path.join(package, os.path.basename(path)))


def copy_binaries(bin_dir, package):
    """Returns the libraries that they need of this machine: {name: path}."""
    needed = {}
    for name, (place, _) in BINARIES.items():
        source = os.path.join(bin_dir, name)
        if not os.path.isfile(source):
            raise Failure("no file at '%s'; leave out --no_build" % source)
        needed.update(libraries(source))
        strip(source, os.path.join(package, place))
    return {name: path for name, path in needed.items()
            if not GLIBC.match(name) and not OF_MACHINE.match(name)}


def copy_libraries(needed, package):
    """Returns their new names, of which each has a hash of what it is."""
    names = {}
    for name, path in needed.items():
        target = os.path.join(package, "lib", name)
        strip(os.path.realpath(path), target)
        with open(target, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()[:8]
        names[name] = name.replace(".so", "-%s.so" % digest, 1)
        os.rename(target, os.path.join(package, "lib", names[name]))
    return names


def copy_licenses(needed, folder):
    """The terms of each library, by the Debian package that it is of."""
    # A package may name a file without the /usr in which /lib lies today.
    patterns = sorted("*" + re.sub("^/usr", "", os.path.realpath(path))
                      for path in needed.values())
    owners = re.findall(r"^([^\s:]+).*: /", output_of("dpkg", "-S", *patterns),
                        re.MULTILINE)
    for owner in sorted(set(owners)):
        os.makedirs(os.path.join(folder, owner))
        shutil.copyfile("/usr/share/doc/%s/copyright" % owner,
                        os.path.join(folder, owner, "copyright"))


def relocate(path, rpath, names, *options):
    """Has the file find the libraries by their new names."""
    # One after the other: patchelf 0.14 spoils what it does all this to at once.
    patch(path, "--force-rpath", "--set-rpath", rpath, *options)
    needed = []
    for name in output_of("patchelf", "--print-needed", path).split():
        if name in names:
            needed += ["--replace-needed", name, names[name]]
    if needed:
        patch(path, *needed)


def relocate_all(package, names):
    """Returns the paths of programs and libraries."""
    binaries = []
    for place, rpath in BINARIES.values():
        binaries.append(os.path.join(package, place))
        relocate(binaries[-1], rpath, names)
    shared = [os.path.join(package, "lib", name)
              for name in sorted(names.values())]
    for path in shared:
        relocate(path, "$ORIGIN", names, "--set-soname",
                 os.path.basename(path))
    # Each library is wanted by one of them.
    check_self_contained(binaries, package, allowed=OF_MACHINE)
    return binaries + shared


def platform_tag(paths):
    """By the versions of glibc and libstdc++ that the files ask for."""
    glibc = [17]
    for path in paths:
        versions = output_of("readelf", "--version-info", "--wide", path)
        glibc += map(int, re.findall(r"Name: GLIBC_2\.(\d+)", versions))
        for version in re.findall(r"Name: GLIBCXX_3\.4\.(\d+)", versions):
            enough = [minor for known, minor in GLIBC_OF_GLIBCXX.items()
                      if known >= int(version)]
            if not enough:
                raise Failure("%s wants GLIBCXX_3.4.%s, of which wheel.py does "
                              "not know the system" % (path, version))
            glibc.append(min(enough))
    return "manylinux_2_%d_x86_64" % max(glibc)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def record(folder, files, own_name):
    """A line a file: name, hash, size."""
    lines = []
    for name in files:
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
        lines.append("%s,sha256=%s,%d\n" % (
            name, digest.rstrip(b"=").decode(), len(data)))
    return "".join(lines) + own_name + ",,\n"


def pack(folder, info, archive):
    files = sorted(
        os.path.relpath(os.path.join(parent, name), folder)
        for parent, _, names in os.walk(folder) for name in names)
    own_name = os.path.join(info, "RECORD")
    write(os.path.join(folder, own_name), record(folder, files, own_name))
    # The folder of its name, as the format recommends, is the last.
    files = [name for name in files if not name.startswith(info)] + [
        name for name in files if name.startswith(info)] + [own_name]
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in files:
            path = os.path.join(folder, name)
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            mode = 0o755 if os.access(path, os.X_OK) else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            with open(path, "rb") as file:
                packed.writestr(entry, file.read())


def make(options, scratch):
    """Makes the wheel in the folder `scratch`; returns its name."""
    folder = os.path.join(scratch, "wheel")
    package = os.path.join(folder, "muster")
    copy_python(package)
    needed = copy_binaries(options.bin_dir, package)
    names = copy_libraries(needed, package)
    parts = relocate_all(package, names)
    version = output_of(os.path.join(package, "bin", "ps_server"),
                        "--version").split()[1]
    tag = "py3-none-" + platform_tag(parts)
    info = "muster-%s.dist-info" % version
    write(os.path.join(folder, info, "METADATA"), METADATA % version)
    write(os.path.join(folder, info, "WHEEL"), WHEEL % tag)
    shutil.copyfile(os.path.join(ROOT, "LICENSE"),
                    os.path.join(folder, info, "LICENSE"))
    copy_licenses(needed, os.path.join(folder, info, "licenses"))
    name = "muster-%s-%s.whl" % (version, tag)
    pack(folder, info, os.path.join(scratch, name))
    return name


def main(argv):
    options = parse_arguments(argv)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            name = make(options, scratch)
            target = os.path.join(options.out, name)
            os.makedirs(options.out, exist_ok=True)
            shutil.move(os.path.join(scratch, name), target)
    except (Failure, OSError) as failure:
        print("package: %s" % failure, file=sys.stderr)
        return 1
    with open(target, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    print("%s: %.1f MiB, sha256 %s; pip install it on each machine" % (
        target, os.path.getsize(target) / 2**20, digest))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
