#!/usr/bin/env python3
"""Small models in one PyTorch process, for bench.sh --peers.

  torch_small.py conv3x3|stride2|mlp|mnist_cnn BATCH THREADS STEPS LAYOUT

The layers of conv3x3.textproto and stride2.textproto beside this file, and of the
zoo's mlp and mnist_cnn; LAYOUT: contiguous or channels_last. Random images, PyTorch's fused Adam; prints one line of JSON.
"""

import json
import sys
import time

import torch
from torch import nn

import torch_model

# Of a batch of 1 a step takes less than a millisecond.
WARM_UP = 50


def conv3x3():
    return [nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(64 * 7 * 7, 10)]


def stride2():
    return [nn.Conv2d(1, 32, 3, padding=1, stride=2), nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1, stride=2), nn.ReLU(),
            nn.Conv2d(64, 128, 3, padding=1, stride=1), nn.ReLU(),
            nn.Flatten(), nn.Linear(128 * 7 * 7, 10)]


def mlp():
    return [nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(128, 10)]


MODELS = {"conv3x3": conv3x3, "stride2": stride2, "mlp": mlp}


def make_model(name, layout):
    if name == "mnist_cnn":
        return torch_model.make_model(layout)
    torch.manual_seed(1)
    return nn.Sequential(*MODELS[name]()).to(
        memory_format=torch_model.LAYOUTS[layout])


def make_trainer(model, batch, layout):
    memory_format = torch_model.LAYOUTS[layout]
    module = make_model(model, layout)
    trainer = torch_model.Trainer(module, layout)
    trainer.images = trainer.images[:batch].contiguous(
        memory_format=memory_format)
    trainer.labels = trainer.labels[:batch]
    return trainer


def main(model, batch, threads, steps, layout):
    torch.set_num_threads(threads)
    trainer = make_trainer(model, batch, layout)
    for step in range(WARM_UP + steps):
        if step == WARM_UP:
            started = time.monotonic()
        trainer.step()
    seconds = time.monotonic() - started
    print(json.dumps({"steps_per_s": steps / seconds}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]),
         sys.argv[5])
