#!/usr/bin/env python3
"""What a step of muster.torch costs in Python, for bench.sh --only=python.

  torch_step.py 8|102 STEPS BIN_DIR [LINK]

One worker, with one ps task of the build in BIN_DIR, trains the CNN of
torch_small_cnn.py (8 tensors), or tiny convolutions with batch norms (102, of
which 40 are its averages). Prints one line of JSON, of one step():

  python_us       the median time in it that is in no call of libmuster
  calls           of libmuster
  copies          of tensors
  bytes_sent, bytes_received, model_bytes   as result.json counts them
"""

import json
import os
import statistics
import sys
import tempfile
import time

import peer_tasks
import torch_muster

# Steps whose copies are counted; they are in no time.
COUNTED = 5


class MeteredLibrary:
    """libmuster, whose calls are counted and timed."""

    def __init__(self, library):
        self._library = library
        self.calls = 0
        self.ns = 0

    def __getattr__(self, name):
        function = getattr(self._library, name)

        def metered(*arguments):
            began = time.perf_counter_ns()
            result = function(*arguments)
            self.ns += time.perf_counter_ns() - began
            self.calls += 1
            return result
        setattr(self, name, metered)
        return metered

    def ns_outside(self, call):
        """Of call(), without the time in the library."""
        inside = self.ns
        began = time.perf_counter_ns()
        call()
        return time.perf_counter_ns() - began - (self.ns - inside)


def make_model(tensors):
    import torch
    import torch_small_cnn
    if tensors == 8:
        return torch_small_cnn.make_model()
    layers = []
    for _ in range(20):
        layers += [torch.nn.Conv2d(1, 1, 1, bias=False),
                   torch.nn.BatchNorm2d(1)]
    return torch.nn.Sequential(*layers, torch.nn.Flatten(),
                               torch.nn.Linear(28 * 28, 10))


def copies_of(run):
    """Of tensors, that run() makes."""
    from torch.utils._python_dispatch import TorchDispatchMode
    copying = ("copy_", "clone", "_to_copy", "contiguous", "cat")

    class Counter(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, function, _types, args=(), kwargs=None):
            name = function.__name__.split(".")[0]
            Counter.count += (len(args[0]) if name == "_foreach_copy_"
                              else name in copying)
            return function(*args, **(kwargs or {}))
    with Counter():
        run()
    return Counter.count


def measure(model, optimizer, library, steps):
    import torch_small_cnn
    given = torch_small_cnn.batches(0)
    spent, counted = [], []

    def timed():
        calls = library.calls
        spent.append(library.ns_outside(step))
        counted.append(library.calls - calls)
    step = optimizer.step
    optimizer.step = timed
    torch_small_cnn.train(model, optimizer, given, peer_tasks.WARM_UP + steps)
    copies = []
    optimizer.step = lambda: copies.append(copies_of(step))
    torch_small_cnn.train(model, optimizer, given, COUNTED)
    # A wait that looked for Ctrl-C has one call more.
    return {"python_us": statistics.median(spent[peer_tasks.WARM_UP:]) / 1000,
            "calls": statistics.median(counted),
            "copies": statistics.median(copies)}


def run_worker(tensors, steps, folder, link):
    peer_tasks.end_with_input()
    import muster.torch as package
    import torch
    from muster import _library
    torch.set_num_threads(1)
    library = MeteredLibrary(_library.load())
    _library.use(library)
    job = package.init(
        os.path.join(folder, "run"), task_index=0, link=link,
        cluster=os.path.join(folder, "cluster.json"))
    torch.manual_seed(1)
    model = make_model(tensors)
    optimizer = package.DistributedOptimizer(
        torch.optim.Adam(model.parameters(), lr=1e-3), model)
    found = measure(model, optimizer, library, steps)
    job.finish()
    print(json.dumps(found), flush=True)


def run(tensors, steps, bin_dir, link="shared_memory"):
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": torch_muster.write_package(folder, bin_dir)}
        ps = torch_muster.start_ps(torch_muster.write_cluster(folder, 1),
                                   bin_dir)
        found, = peer_tasks.last_lines([peer_tasks.start(
            __file__, ["--task", tensors, steps, folder, link],
            environment)], [ps])
        with open(os.path.join(folder, "run/result.json"),
                  encoding="utf-8") as file:
            result = json.load(file)
    own_steps = result["workers"][0]["steps"]
    return {**found,
            "bytes_sent": result["gradient"]["bytes_sent"] / own_steps,
            "bytes_received": result["pull"]["bytes_received"] / own_steps,
            "model_bytes": result["model_bytes"]}


def main(arguments):
    if arguments[0] == "--task":
        tensors, steps, folder, link = arguments[1:]
        run_worker(int(tensors), int(steps), folder, link)
    else:
        print(json.dumps(run(int(arguments[0]), int(arguments[1]),
                             *arguments[2:])))


if __name__ == "__main__":
    main(sys.argv[1:])
