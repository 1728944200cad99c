#!/usr/bin/env python3
"""The MNIST CNN of the zoo in one PyTorch process on a GPU.

  torch_gpu.py SECONDS eager|compile|graph contiguous|channels_last tf32|bf16

Random images that stay on the GPU, fused Adam; prints one line of JSON.
`compile` is torch.compile with CUDA graphs (reduce-overhead); `graph` is the
whole step, Adam too, as one CUDA graph.
"""

import json
import sys
import time

import torch

import torch_model

WARM_UP = 30
# Steps between two looks at the clock, each of which waits for the GPU.
BURST = 100


class GraphTrainer(torch_model.Trainer):
    """Its step() copies a batch to where the graph reads it, and replays."""

    def __init__(self, *arguments, **more):
        # Adam keeps its count of steps on the device, where a replay moves it.
        super().__init__(*arguments, capturable=True, **more)
        self.batch = self.images.clone(), self.labels.clone()
        self._warm_up()
        self.graph = torch.cuda.CUDAGraph()
        # Gradients that the capture makes lie in the graph's own memory.
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph):
            self._compute()

    def _warm_up(self):
        """On another stream, as a capture wants it: libraries make what they
        need, cuDNN tries its algorithms, Adam makes its state."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                super().step()
        torch.cuda.current_stream().wait_stream(stream)

    def _compute(self):
        with self.autocast:
            loss = self.loss(self.model(self.images), self.labels)
        loss.backward()
        self.optimizer.step()

    def step(self):
        images, labels = self.batch
        self.images.copy_(images)
        self.labels.copy_(labels)
        self.graph.replay()


def make_trainer(way, layout, bf16):
    model = torch_model.make_model(layout, device="cuda")
    if way == "compile":
        model = torch.compile(model, mode="reduce-overhead")
    kind = GraphTrainer if way == "graph" else torch_model.Trainer
    return kind(model, layout, device="cuda", bf16=bf16)


def main(seconds, way, layout, precision):
    # What the other side does by default.
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    trainer = make_trainer(way, layout, precision == "bf16")
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
    main(float(sys.argv[1]), *sys.argv[2:5])
