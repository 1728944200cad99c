#!/usr/bin/env python3
"""The MNIST CNN of the zoo in PyTorch, for bench.sh --peers.

  torch_single.py THREADS STEPS contiguous|channels_last

One process, random images; prints one line of JSON.
"""

import json
import sys
import time

import torch
from torch import nn

BATCH = 128
WARM_UP = 10


def make_model(layout):
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 7 * 7, 1024), nn.ReLU(),
        nn.Linear(1024, 10)).to(memory_format=layout)


def main(threads, steps, layout):
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = make_model(layout)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_function = nn.CrossEntropyLoss()
    images = torch.rand(BATCH, 1, 28, 28).contiguous(memory_format=layout)
    labels = torch.randint(10, (BATCH,))
    for step in range(WARM_UP + steps):
        if step == WARM_UP:
            started = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        loss_function(model(images), labels).backward()
        optimizer.step()
    seconds = time.monotonic() - started
    print(json.dumps({"steps_per_s": steps / seconds}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]),
         {"contiguous": torch.contiguous_format,
          "channels_last": torch.channels_last}[sys.argv[3]])
