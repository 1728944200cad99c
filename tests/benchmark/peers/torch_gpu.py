#!/usr/bin/env python3
"""The MNIST CNN of the zoo in one PyTorch process on a GPU.

  torch_gpu.py SECONDS eager|compile tf32|bf16

Random images that stay on the GPU, fused Adam; prints one line of JSON.
`compile` is torch.compile with CUDA graphs (reduce-overhead).
"""

import json
import sys
import time

import torch

import torch_model

WARM_UP = 30
# Steps between two looks at the clock, each of which waits for the GPU.
BURST = 100


def main(seconds, way, precision):
    # What the other side does by default.
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    model = torch_model.make_model("channels_last", device="cuda")
    if way == "compile":
        model = torch.compile(model, mode="reduce-overhead")
    trainer = torch_model.Trainer(model, "channels_last", device="cuda",
                                  bf16=precision == "bf16")
    for _ in range(WARM_UP):
        trainer.step()
    torch.cuda.synchronize()
    started = time.monotonic()
    steps = 0
    while (elapsed := time.monotonic() - started) < seconds:
        for _ in range(BURST):
            trainer.step()
        torch.cuda.synchronize()
        steps += BURST
    print(json.dumps({"steps_per_s": steps / elapsed}))


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2], sys.argv[3])
