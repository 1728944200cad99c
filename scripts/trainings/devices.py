"""The part of this machine that a trial computes on."""

import collections
import os

from base import local_cores, local_gpus
from base.failure import Failure

# `flags` of the worker; `gpu`: its CUDA_VISIBLE_DEVICES.
Share = collections.namedtuple("Share", "name flags gpu")


def shares(names, parallel):
    """One Share for each trial that runs at once: a device of its own and as
    many cores as any other. Raises Failure."""
    count = parallel or len(names) or 1
    names = names or ["cpu:%d" % i for i in range(count)]
    if count > len(names):
        raise Failure("--parallel=%d: wanted a device for each, found "
                      "--devices=%s" % (count, ",".join(names)))
    cores = sorted(os.sched_getaffinity(0))
    threads = local_cores.threads(count)
    found = []
    for i, name in enumerate(names[:count]):
        own = cores[i * len(cores) // count:(i + 1) * len(cores) // count]
        # More trials than cores.
        own = own or [cores[i % len(cores)]]
        backend, gpu = _backend(name)
        found.append(Share(name, [
            "--device=" + backend,
            "--cpus=" + ",".join(map(str, own)),
            "--compute_threads=%d" % min(len(own), threads)], gpu))
    return found


def _backend(name):
    """(backend, CUDA_VISIBLE_DEVICES)."""
    kind, _, index = name.partition(":")
    if kind not in ("cpu", "gpu") or not index.isdigit():
        raise Failure("--devices: wanted such as cpu:0,cpu:1 or gpu:0,gpu:1, "
                      "found '%s'" % name)
    if kind == "cpu":
        return "cpu", ""
    gpus = local_gpus.visible("auto")
    if int(index) >= len(gpus):
        raise Failure("--devices: wanted '%s', found %d GPUs that can be seen" %
                      (name, len(gpus)))
    return "cuda", gpus[int(index)]
