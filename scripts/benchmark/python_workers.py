"""Steps/s of a small CNN in PyTorch on two Python workers of a ps task, beside
those of processes that know nothing of each other, of torch RPC's parameter
server, and of DDP over Gloo; and what a step costs in Python.

Python 3 standard library only; the programs are tests/benchmark/peers's.
"""

import os

from . import peers, processes
from .figures import Figure, at_least, at_most
from .peers import speed, speed_over
from .training import over_free

WORKERS = 2
# Of async over free processes, by link.
OVER_FREE = {"shared_memory": at_least(1.0), "tcp": at_least(0.85)}
OVER_RPC = at_least(2.0)
OVER_DDP = at_least(1.5)
# Of one step, without the time in libmuster; by the model's tensors.
PYTHON_US = {8: at_most(100.0), 102: None}


class PythonWorkers:
    """The runs, each once."""

    def __init__(self, options, torch):
        self._options = options
        self._torch = torch
        self._bin_dir = options.bin_dir
        for program in ("worker/python/libmuster.so", "ps_server/ps_server"):
            processes.check_program(os.path.join(self._bin_dir, program))

    def alone(self, way="alone", what="torch's Adam"):
        return self._run("%d processes, %s" % (WORKERS, what), way)

    def peer(self, way, what):
        return self._run("%d workers, %s" % (WORKERS, what), way)

    def muster(self, mode, link):
        return self._run("%d workers, Muster, %s, %s" % (WORKERS, mode, link),
                         mode, self._bin_dir, link)

    def step(self, tensors):
        return self._torch.measure(
            "a step of %d tensors" % tensors, "torch_step.py", tensors,
            self._options.steps, self._bin_dir)

    def _run(self, what, way, *build):
        return self._torch.measure(what, "torch_cluster.py", way, WORKERS,
                                   self._options.steps, *build)


def step_figures(step, tensors):
    """Of a step of muster.torch."""
    def one(what, unit, key, scale=1, target=None):
        return Figure("%s of a Python worker's step, %d tensors" % (
            what, tensors), unit, [step],
            lambda numbers: numbers[key] / scale, target)
    yield one("Python's own part", "us", "python_us",
              target=PYTHON_US[tensors])
    yield one("calls of libmuster", "", "calls")
    yield one("copies of tensors", "", "copies")
    yield one("pushed bytes", "KB", "bytes_sent", 1e3)
    yield one("pulled bytes", "KB", "bytes_received", 1e3)


def figures(options):
    """The part "python"; none, and a line about it, without PyTorch."""
    torch = peers.torch()
    if torch is None:
        return
    runs = PythonWorkers(options, torch)
    free = runs.alone()
    yield speed(free)
    asynchronous = {link: runs.muster("async", link) for link in OVER_FREE}
    for link, target in OVER_FREE.items():
        yield speed(asynchronous[link])
        yield over_free("%s over free processes" % asynchronous[link].name,
                        asynchronous[link], free, target)
    own = asynchronous["shared_memory"]
    fused = runs.alone("alone_fused", "torch's fused Adam")
    rpc = runs.peer("rpc", "torch RPC's parameter server")
    sync = runs.muster("sync", "shared_memory")
    ddp = runs.peer("ddp", "DDP on Gloo")
    yield from map(speed, (fused, rpc, ddp, sync))
    yield speed_over("%s over free processes with fused Adam" % own.name, own,
                     [fused])
    yield speed_over("%s over torch RPC's" % own.name, own, [rpc], OVER_RPC)
    yield speed_over("%s over DDP" % sync.name, sync, [ddp], OVER_DDP)
    for tensors in PYTHON_US:
        yield from step_figures(runs.step(tensors), tensors)
