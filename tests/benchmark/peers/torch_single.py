#!/usr/bin/env python3
"""The MNIST CNN of the zoo in one PyTorch process, for bench.sh --peers.

  torch_single.py THREADS STEPS contiguous|channels_last

Random images, fused Adam; prints one line of JSON.
"""

import json
import sys
import time

import torch

import torch_model

WARM_UP = 10


def main(threads, steps, layout):
    torch.set_num_threads(threads)
    trainer = torch_model.Trainer(torch_model.make_model(layout), layout)
    for step in range(WARM_UP + steps):
        if step == WARM_UP:
            started = time.monotonic()
        trainer.step()
    seconds = time.monotonic() - started
    print(json.dumps({"steps_per_s": steps / seconds}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
