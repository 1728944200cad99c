"""Finds NVIDIA's libraries and tools on this machine.

Part of run_all.py. Python 3 standard library only.
"""

import glob
import os
import platform
import shutil
import site
import sysconfig

import processes

# What worker looks up when it runs, by whatever version.
NAMES = ("libcudnn.so.*", "libcublasLt.so.*", "libnccl.so.*")
TOOLKITS = ("/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda")
SYSTEM = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/lib/x86_64-linux-gnu")
# Where a driver lies whose tools are not on PATH.
DRIVER = ("/usr/local/nvidia/bin", "/usr/bin")
# Of any question here: nvidia-smi wakes a driver.
ANSWER_S = 20.0
CARD = ("name", "driver_version", "memory.total", "compute_cap",
        "clocks.max.sm")
# Apart: an old driver that does not know one of them knows none.
CLOCKS = ("clocks.sm", "clocks.mem", "clocks.max.mem", "power.limit")


def _python_folders():
    """Where `pip install torch` puts them: nvidia/cudnn/lib and so on."""
    roots = {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"],
             site.getusersitepackages(), *site.getsitepackages()}
    # Of the python that has PyTorch, if it is another one.
    roots.update(_lines("python3", "-c",
                        "import site; print('\\n'.join("
                        "site.getsitepackages() + "
                        "[site.getusersitepackages()]))"))
    for root in sorted(filter(None, roots)):
        yield from sorted(glob.glob(os.path.join(root, "nvidia/*/lib")))


def folders():
    """Those with one of the libraries, the toolkit's first."""
    candidates = [os.path.join(toolkit, part)
                  for pattern in TOOLKITS
                  for toolkit in sorted(glob.glob(pattern), reverse=True)
                  for part in ("lib64", "targets/x86_64-linux/lib")]
    candidates += os.environ.get("LD_LIBRARY_PATH", "").split(":")
    candidates += list(_python_folders()) + list(SYSTEM)
    found = {}
    for folder in filter(None, candidates):
        if libraries_in(folder):
            # One folder has many names.
            found.setdefault(os.path.realpath(folder), folder)
    return list(found.values())


def libraries_in(folder):
    """The paths of those in NAMES."""
    return sorted(path for name in NAMES
                  for path in glob.glob(os.path.join(folder, name)))


def program(name):
    """Its path, in a toolkit, on PATH or beside a driver; None if it is not
    there."""
    for pattern in TOOLKITS:
        for path in sorted(glob.glob(os.path.join(pattern, "bin", name))):
            if os.access(path, os.X_OK):
                return path
    return shutil.which(name) or shutil.which(name, path=":".join(DRIVER))


def _lines(*command):
    """What it prints; nothing if it fails, or takes too long."""
    try:
        return processes.output_of(command, ANSWER_S).splitlines()
    except ValueError:
        return []


def _ask_cards(fields):
    return _lines(program("nvidia-smi") or "nvidia-smi",
                  "--query-gpu=" + ",".join(fields), "--format=csv,noheader")


def machine():
    """What a figure means little without."""
    return {
        "gpus": _ask_cards(CARD),
        # Idle, before anything has run.
        "clocks": dict(zip(("fields", "gpus"), (
            ",".join(CLOCKS), _ask_cards(CLOCKS)))),
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
    }
