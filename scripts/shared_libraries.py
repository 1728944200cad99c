"""The shared libraries of our programs, for folders that are carried elsewhere.

Part of gpu_bundle.py and package.py. Python 3 standard library only.
"""

import os
import re
import subprocess

# Of glibc, which belongs to a kernel and a loader: a machine's own is taken
# where it is new enough, so that these lie apart.
GLIBC = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util))\.so\.\d+$")


class Failure(Exception):
    """There can be no such folder; the text says why."""


def strip(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    command = ["strip", "--strip-unneeded", "-o", target, source]
    result = subprocess.run(command, capture_output=True, text=True,
                            check=False)
    if result.returncode != 0:
        raise Failure("%s: %s" % (" ".join(command), result.stderr.strip()))
    os.chmod(target, 0o755)


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


def check_self_contained(programs, out, hint=""):
    """Each finds every library in lib/ of the folder `out`, but for glibc;
    `hint` is said of one that does not."""
    lib = os.path.realpath(os.path.join(out, "lib"))
    for program in programs:
        for name, path in libraries(program).items():
            if not GLIBC.match(name) and os.path.dirname(
                    os.path.realpath(path)) != lib:
                raise Failure("%s would take %s from %s%s" % (
                    program, name, path, hint))
