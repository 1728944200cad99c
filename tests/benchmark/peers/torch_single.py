#!/usr/bin/env python3
"""A model of the zoo in one PyTorch process, for bench.sh --peers.

  torch_single.py THREADS STEPS contiguous|channels_last [mnist_cnn|resnet20]

Random images, PyTorch's fused optimizers (Adam, momentum); prints one line of
JSON.
"""

import json
import sys
import time

import torch

import torch_model
import torch_resnet20

WARM_UP = 10
MODELS = {"mnist_cnn": torch_model, "resnet20": torch_resnet20}


def main(threads, steps, layout, model="mnist_cnn"):
    torch.set_num_threads(threads)
    module = MODELS[model]
    trainer = module.Trainer(module.make_model(layout), layout)
    for step in range(WARM_UP + steps):
        if step == WARM_UP:
            started = time.monotonic()
        trainer.step()
    seconds = time.monotonic() - started
    print(json.dumps({"steps_per_s": steps / seconds}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
