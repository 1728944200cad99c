"""How many threads a task of this machine computes with, as a worker finds it
by itself (worker/README.md).

Part of launcher.py and of the verbs that train here. Python 3 standard library
only.
"""

import math
import os
import re


def _text(*path):
    try:
        with open(os.path.join(*path), encoding="ascii") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def quotas(root="/"):
    """The cores' worth of time that the cgroups leave us, of each with a
    limit."""
    mounts = os.path.join(root, "sys/fs/cgroup")
    for line in _text(root, "proc/self/cgroup").splitlines():
        _, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        folder = os.path.join(mounts, "cpu" if controllers else "")
        # A container may see itself at the root.
        for name in [""] + path.partition("..")[0].split("/"):
            folder = os.path.join(folder, name)
            limit = _text(folder, "cpu.max") if not controllers else (
                _text(folder, "cpu.cfs_quota_us") + " " +
                _text(folder, "cpu.cfs_period_us"))
            found = re.fullmatch(r"([1-9]\d*) ([1-9]\d*)", limit)
            if found:
                yield int(found[1]) / int(found[2])


def threads(tasks, root="/"):
    """Of each of so many tasks of ours."""
    cores = min([len(os.sched_getaffinity(0)),
                 *(math.ceil(quota) for quota in quotas(root))])
    limits = [max(1, cores // tasks)]
    for name in ("OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK"):
        first = os.environ.get(name, "").partition(",")[0].strip()
        if first.isdigit() and int(first) > 0:
            limits.append(int(first))
    return min(limits)
