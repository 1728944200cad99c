#!/usr/bin/env python3
"""The MNIST CNN of the zoo with PyTorch's DistributedDataParallel over gloo,
for bench.sh --peers.

  torch_ddp.py WORKERS STEPS contiguous|channels_last

WORKERS processes of one thread and STEPS steps each, on loopback: synchronous,
without a server. Prints one line of JSON: the steps a second of all workers
together, a batch of each being a step.
"""

import json
import os
import sys
import time

import torch
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel

import torch_model
from loopback_ports import free_ports

WARM_UP = 10


def work(rank, workers, steps, layout, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                      GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=workers)
    trainer = torch_model.Trainer(
        DistributedDataParallel(torch_model.make_model(layout),
                                gradient_as_bucket_view=True), layout)
    for step in range(WARM_UP + steps):
        if step == WARM_UP:
            distributed.barrier()
            started = time.monotonic()
        trainer.step()
    distributed.barrier()
    seconds = time.monotonic() - started
    if rank == 0:
        print(json.dumps({"steps_per_s": workers * steps / seconds}),
              flush=True)
    distributed.destroy_process_group()


def main(workers, steps, layout):
    os.environ["OMP_NUM_THREADS"] = "1"
    [port] = free_ports(1)
    # Ends the others with one that fails.
    multiprocessing.spawn(work, (workers, steps, layout, port), nprocs=workers)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
