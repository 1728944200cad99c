#!/usr/bin/env python3
"""A small CNN on several PyTorch workers, for bench.sh --only=python.

  torch_cluster.py alone|alone_fused|ddp|rpc WORKERS STEPS
  torch_cluster.py async|sync WORKERS STEPS BIN_DIR LINK

Each worker takes so many steps with Adam, a process with one thread of
PyTorch's:

  alone, alone_fused  knowing nothing of the others, with PyTorch's Adam as it
                      is, and fused
  ddp                 in DistributedDataParallel over Gloo
  rpc                 on a ps of PyTorch's RPC framework (torch_rpc.py)
  async, sync         on a ps task of Muster's: the build in BIN_DIR, over LINK

Prints one line of JSON: the steps a second of all workers together while all
of them ran, a batch of each being a step.
"""

import dataclasses
import json
import os
import sys
import tempfile

import torch

import peer_tasks
import torch_small_cnn


@dataclasses.dataclass
class Place:
    """Of a task."""

    index: int
    workers: int
    # Of the cluster.
    folder: str
    # Muster's, else "".
    bin_dir: str = ""
    link: str = ""


def alone(place, fused=None):
    del place
    model = torch_small_cnn.make_model()
    return model, torch_small_cnn.adam(model, fused), None


def alone_fused(place):
    return alone(place, fused=True)


def ddp(place):
    from torch import distributed
    distributed.init_process_group(
        "gloo", init_method="file://" + os.path.join(place.folder, "ddp"),
        rank=place.index, world_size=place.workers)
    model = torch.nn.parallel.DistributedDataParallel(
        torch_small_cnn.make_model())
    return model, torch_small_cnn.adam(model), (
        distributed.destroy_process_group)


def rpc(place):
    import torch_rpc
    torch_rpc.join("trainer%d" % place.index, 1 + place.index, place.workers,
                   place.folder)
    model = torch_small_cnn.make_model()
    return model, torch_rpc.RemoteOptimizer(model), torch_rpc.rpc.shutdown


def muster(place, replication):
    import muster.torch as package
    job = package.init(
        cluster=os.path.join(place.folder, "cluster.json"),
        task_index=place.index, link=place.link, replication=replication)
    model = torch_small_cnn.make_model()
    return model, package.DistributedOptimizer(
        torch_small_cnn.adam(model), model), job.finish


# Each gives model, optimizer, and what ends it or None.
WAYS = {"alone": alone, "alone_fused": alone_fused, "ddp": ddp, "rpc": rpc,
        "async": lambda place: muster(place, "async"),
        "sync": lambda place: muster(place, "sync")}


def work(way, steps, place):
    """Prints when each step ended."""
    given = torch_small_cnn.batches(place.index)
    model, optimizer, end = WAYS[way](place)
    marks = peer_tasks.Marks(place.folder)
    times = []
    for part, count in (("warm-up", peer_tasks.WARM_UP), ("steps", steps)):
        marks.meet(place.index, place.workers, part)
        times += torch_small_cnn.train(model, optimizer, given, count)
    if end is not None:
        end()
    print(json.dumps(times), flush=True)


def run_task(way, index, workers, steps, folder, *build):
    peer_tasks.end_with_input()
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    if index == "ps":
        import torch_rpc
        torch_rpc.serve(int(workers), folder)
    else:
        work(way, int(steps), Place(int(index), int(workers), folder, *build))


def run(way, workers, steps, *build):
    """Returns the steps a second."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
            # Gloo and TensorPipe would ask the machine's name for an address.
            "GLOO_SOCKET_IFNAME": "lo", "TP_SOCKET_IFNAME": "lo"}
        ps = []
        if build:
            import torch_muster
            environment["PYTHONPATH"] = torch_muster.write_package(folder,
                                                                   build[0])
            ps = [torch_muster.start_ps(
                torch_muster.write_cluster(folder, workers), build[0])]

        def start(index):
            return peer_tasks.start(__file__, [
                "--task", way, index, workers, steps, folder, *build],
                environment)
        if way == "rpc":
            ps = [start("ps")]
        return peer_tasks.steps_per_s(peer_tasks.last_lines(
            [start(index) for index in range(workers)], ps))


def main(arguments):
    if arguments[0] == "--task":
        run_task(*arguments[1:])
    else:
        way, workers, steps, *build = arguments
        print(json.dumps({"steps_per_s": run(way, int(workers), int(steps),
                                             *build)}))


if __name__ == "__main__":
    main(sys.argv[1:])
