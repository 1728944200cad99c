"""Which GPUs of this machine the workers of a run may use.

Part of launcher.py. Python 3 standard library only.
"""

import glob
import os
import subprocess

# nvidia-smi wakes a driver.
NVIDIA_SMI_S = 30


def _count():
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True,
                                text=True, check=True, timeout=NVIDIA_SMI_S)
        return sum(line.startswith("GPU ")
                   for line in listed.stdout.splitlines())
    except (OSError, subprocess.SubprocessError):
        return len(glob.glob("/dev/nvidia[0-9]*"))


def visible(wanted):
    """The GPUs for --gpus=`wanted`, each as CUDA_VISIBLE_DEVICES names it; of
    those that this process may see, if it was told."""
    if wanted == "none":
        return []
    told = os.environ.get("CUDA_VISIBLE_DEVICES")
    if told is not None:
        gpus = [gpu for gpu in told.split(",") if gpu]
    elif wanted == "auto":
        gpus = [str(i) for i in range(_count())]
    else:
        gpus = [str(i) for i in range(wanted)]
    return gpus if wanted == "auto" else gpus[:wanted]
