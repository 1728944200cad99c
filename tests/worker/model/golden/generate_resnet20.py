#!/usr/bin/python3
"""Writes resnet20_losses.txt: PyTorch's float64 losses of ResNet-20.

The loss (mean cross-entropy and L2 penalty) of 20 consecutive steps of the
network of worker/model/zoo/resnet20.textproto with momentum. As in generate.py,
initial weights and batches are a formula that golden_training.cc computes too.

    apt-get install python3-torch   # or PyTorch from PyPI
    ./generate_resnet20.py > resnet20_losses.txt      # some seconds
    ./generate_resnet20.py float32 channels_last      # how far rounding goes
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F

import generate

STEPS = generate.STEPS
SIDE = 32
CLASSES = generate.CLASSES
# Rounding grows with the rate: PyTorch's two layouts in float32 differ by 2e-3
# at this one, and by 4e-2 at 0.02.
LEARNING_RATE = 0.001
MOMENTUM = 0.9
L2 = 1e-4
# Name, filters, and the first convolution's stride: 2 wants a shortcut.
BLOCKS = [("a1", 16, 1), ("a2", 16, 1), ("a3", 16, 1),
          ("b1", 32, 2), ("b2", 32, 1), ("b3", 32, 1),
          ("c1", 64, 2), ("c2", 64, 1), ("c3", 64, 1)]


class Parameters:
    """Tensors by name, made when they are first asked for: weights by the
    formula, in the order in which the layers stand, others constant."""

    def __init__(self, dtype, memory_format):
        self.dtype = dtype
        self.memory_format = memory_format
        self.tensors = {}
        self.weights = []

    def weight(self, name, shape):
        if name not in self.tensors:
            fan_in = int(np.prod(shape[1:]))
            # The amplitude is a power of 2 near that of He et al.
            exponent = (fan_in.bit_length() - 1) // 2 - 1
            integers = generate.Uniform(len(self.weights), int(np.prod(shape)))
            values = (integers - 2**23) * 2.0 ** -(23 + exponent)
            self._add(name, torch.tensor(values.reshape(shape)))
            self.weights.append(name)
        return self.tensors[name]

    def constant(self, name, size, value):
        if name not in self.tensors:
            self._add(name, torch.full((size,), value, dtype=torch.float64))
        return self.tensors[name]

    def _add(self, name, values):
        values = values.to(self.dtype)
        if values.dim() == 4:
            values = values.contiguous(memory_format=self.memory_format)
        self.tensors[name] = values.requires_grad_()


class Resnet20:

    def __init__(self, dtype, memory_format):
        self.parameters = Parameters(dtype, memory_format)
        self.penalty = 0

    def conv_norm(self, x, name, filters, kernel=3, stride=1):
        weights = self.parameters.weight(
            name, (filters, x.shape[1], kernel, kernel))
        self.penalty = self.penalty + L2 * weights.square().sum() / 2
        # "same": an odd row or column of padding is behind the image.
        out = -(-x.shape[2] // stride)
        pad = max((out - 1) * stride + kernel - x.shape[2], 0)
        before, after = pad // 2, pad - pad // 2
        x = F.conv2d(F.pad(x, (before, after, before, after)), weights,
                     stride=stride)
        scale = self.parameters.constant(name + "/scale", filters, 1)
        shift = self.parameters.constant(name + "/shift", filters, 0)
        return F.batch_norm(x, None, None, scale, shift, training=True,
                            eps=1e-5)

    def block(self, x, name, filters, stride):
        y = F.relu(self.conv_norm(x, name + "/conv1", filters, stride=stride))
        y = self.conv_norm(y, name + "/conv2", filters)
        if stride != 1:
            x = self.conv_norm(x, name + "/shortcut", filters, kernel=1,
                               stride=stride)
        return F.relu(y + x)

    def loss(self, x, labels):
        self.penalty = 0
        x = F.relu(self.conv_norm(x, "stem", 16))
        for block in BLOCKS:
            x = self.block(x, *block)
        x = x.mean((2, 3))
        logits = F.linear(
            x, self.parameters.weight("logits", (CLASSES, x.shape[1])),
            self.parameters.constant("logits/bias", CLASSES, 0))
        return F.cross_entropy(logits, labels) + self.penalty


def main(dtype="float64", layout="contiguous_format"):
    model = Resnet20(getattr(torch, dtype), getattr(torch, layout))
    batches = [generate.Batch(i, SIDE) for i in range(generate.BATCHES)]
    batches = [(x.to(model.parameters.dtype), y) for x, y in batches]
    model.loss(*batches[0])
    optimizer = torch.optim.SGD(model.parameters.tensors.values(),
                                lr=LEARNING_RATE, momentum=MOMENTUM)
    print("# Made by generate_resnet20.py with PyTorch", torch.__version__)
    print("# model, step from 0, loss before that step's update")
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = model.loss(*batches[step % generate.BATCHES])
        loss.backward()
        optimizer.step()
        print("resnet20", step, repr(loss.item()))


if __name__ == "__main__":
    main(*sys.argv[1:])
