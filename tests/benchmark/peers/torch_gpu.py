#!/usr/bin/env python3
"""A model of the zoo in one PyTorch process on a GPU.

  torch_gpu.py SECONDS eager|compile contiguous|channels_last tf32|bf16 \
      mnist_cnn|resnet20

Random images that stay on the GPU, fused optimizers; prints one line of JSON.
`compile` is torch.compile with CUDA graphs (reduce-overhead).
"""

import json
import sys
import time

import torch

import torch_model
import torch_resnet20

WARM_UP = 30
# Steps between two looks at the clock, each of which waits for the GPU.
BURST = 100
MODELS = {"mnist_cnn": torch_model, "resnet20": torch_resnet20}


def main(seconds, way, layout, precision, name):
    # What the other side does by default.
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    model = MODELS[name].make_model(layout, device="cuda")
    if way == "compile":
        model = torch.compile(model, mode="reduce-overhead")
    trainer = MODELS[name].Trainer(model, layout, device="cuda",
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
    main(float(sys.argv[1]), *sys.argv[2:6])
