"""Finds NVIDIA's libraries and tools on this machine.

Part of run_all.py. Python 3 standard library only.
"""

import glob
import os
import platform
import shutil
import site
import subprocess
import sysconfig

# What worker looks up when it runs, by whatever version.
NAMES = ("libcudnn.so.*", "libcublasLt.so.*", "libnccl.so.*")
TOOLKITS = ("/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda")
SYSTEM = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/lib/x86_64-linux-gnu")


def _python_folders():
    """Where `pip install torch` puts them: nvidia/cudnn/lib and so on."""
    roots = {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"],
             site.getusersitepackages(), *site.getsitepackages()}
    # Of the python that has PyTorch, if it is another one.
    found = subprocess.run(
        ["python3", "-c", "import site; print('\\n'.join("
         "site.getsitepackages() + [site.getusersitepackages()]))"],
        capture_output=True, text=True, check=False)
    roots.update(found.stdout.split("\n"))
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
        if any(glob.glob(os.path.join(folder, name)) for name in NAMES):
            # One folder has many names.
            found.setdefault(os.path.realpath(folder), folder)
    return list(found.values())


def program(name):
    """Its path, on PATH or in a toolkit; None if it is not there."""
    for pattern in TOOLKITS:
        for path in sorted(glob.glob(os.path.join(pattern, "bin", name))):
            if os.access(path, os.X_OK):
                return path
    return shutil.which(name)


def _output(*command):
    try:
        result = subprocess.run(command, capture_output=True, text=True,
                                check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""


def machine():
    """What a figure means little without."""
    return {
        "gpus": _output("nvidia-smi", "--query-gpu=name,driver_version,"
                        "memory.total,compute_cap,clocks.max.sm",
                        "--format=csv,noheader").splitlines(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
    }
