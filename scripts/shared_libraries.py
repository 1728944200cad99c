"""Programs with their shared libraries, and files, in folders that are carried
elsewhere.

Part of gpu_bundle.py, package.py and wheel.py. Python 3 standard library only.
"""

import glob
import os
import re
import shutil
import subprocess

from base.failure import Failure

# Of glibc, which belongs to a kernel and a loader: a machine's own is taken
# where it is new enough, so that these lie apart.
GLIBC = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util))\.so\.\d+$")


def found(pattern, hint=""):
    """The files; raises Failure if there is none."""
    paths = sorted(glob.glob(pattern))
    if not paths:
        raise Failure("no file at '%s'%s" % (pattern, hint))
    return paths


def copy_plain(patterns, root, out):
    """They lie in the folder `out` as they lie in `root`."""
    for pattern in patterns:
        for path in found(os.path.join(root, pattern)):
            target = os.path.join(out, os.path.relpath(path, root))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(path, target)
            os.chmod(target, 0o755 if os.access(path, os.X_OK) else 0o644)


def strip(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    command = ["strip", "--strip-unneeded", "-o", target, source]
    result = subprocess.run(command, capture_output=True, text=True,
                            check=False)
    if result.returncode != 0:
        raise Failure("%s: %s" % (" ".join(command), result.stderr.strip()))
    os.chmod(target, 0o755)


def patch(path, *options):
    """Runs patchelf. DT_RPATH (--force-rpath), unlike DT_RUNPATH, goes for
    libraries of libraries."""
    command = ["patchelf", *options, path]
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              check=False)
    except OSError as error:
        raise Failure("cannot start patchelf: %s; scripts/install_deps.sh "
                      "installs it" % error) from None
    if done.returncode != 0:
        raise Failure("%s: %s" % (" ".join(command), done.stderr.strip()))


def libraries(binary):
    """The shared libraries that `binary` would be run with: {name: path}."""
    result = subprocess.run(["ldd", binary], capture_output=True, text=True,
                            check=False, env={"PATH": os.environ["PATH"]})
    if result.returncode != 0:
        raise Failure("ldd %s: %s" % (binary, result.stderr.strip()))
    found = {}
    for line in result.stdout.splitlines():
        words = line.split()
        if "not found" in line:
            raise Failure("%s wants %s, which is not there" % (
                binary, words[0]))
        if "=>" in words:
            found[words[0]] = words[2]
        elif words[0].startswith("/"):
            found[os.path.basename(words[0])] = words[0]
    return found


def check_self_contained(programs, out, hint="", allowed=GLIBC):
    """Each finds every library in lib/ of the folder `out`, but for glibc and
    those of `allowed` names; `hint` is said of one that does not."""
    lib = os.path.realpath(os.path.join(out, "lib"))
    for program in programs:
        for name, path in libraries(program).items():
            if GLIBC.match(name) or allowed.match(name):
                continue
            if os.path.dirname(os.path.realpath(path)) != lib:
                raise Failure("%s would take %s from %s%s" % (
                    program, name, path, hint))
