#!/usr/bin/python3
"""Writes layers.txt: PyTorch's float64 losses of a network of many layers.

The mean cross-entropy of 8 consecutive steps of SGD of the network that
layer_parity_test.cc has as text: a grouped and a depthwise convolution, leaky
ReLU, and layer normalization of an image and of features. First values and the
batch are a formula (Uniform of generate.py), which the test computes too.

    apt-get install python3-torch   # 1.13
    ./generate_layers.py > layers.txt
"""

import numpy as np
import torch
import torch.nn.functional as F
from generate import Uniform

STEPS = 8
BATCH = 3
CLASSES = 5
LEARNING_RATE = 0.25
SLOPE = 0.2

# Shape, and what the first values in (-1/2, 1/2) are added to.
PARAMETERS = [
    ((6, 2, 3, 3), 0),   # grouped/weights
    ((6,), 0),           # grouped/bias
    ((6, 7, 6), 1),      # image_norm/weights
    ((6, 7, 6), 0),      # image_norm/bias
    ((12, 1, 3, 3), 0),  # depthwise/weights
    ((12,), 0),          # depthwise/bias
    ((8, 144), 0),       # dense/weights
    ((8,), 0),           # dense/bias
    ((8,), 1),           # norm/weights
    ((8,), 0),           # norm/bias
    ((5, 8), 0),         # logits/weights
    ((5,), 0),           # logits/bias
]
EXAMPLES_STREAM = 100
LABELS_STREAM = 200


def Centred(stream, shape):
    values = (Uniform(stream, int(np.prod(shape))) - 2**23) * 2.0**-24
    return torch.tensor(values.reshape(shape), dtype=torch.float64)


def Loss(parameters, examples, labels):
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5, w6, b6 = parameters
    x = F.leaky_relu(F.conv2d(examples, w1, b1, padding=1, groups=2), SLOPE)
    x = F.layer_norm(x, (6, 7, 6), w2, b2)
    x = F.conv2d(x, w3, b3, stride=2, padding=1, groups=6)
    x = F.leaky_relu(x, SLOPE)
    x = F.layer_norm(F.linear(x.flatten(1), w4, b4), (8,), w5, b5)
    return F.cross_entropy(F.linear(x, w6, b6), labels)


def main():
    parameters = []
    for index, (shape, start) in enumerate(PARAMETERS):
        first = Centred(index, shape) + start
        parameters.append(first.requires_grad_())
    examples = Centred(EXAMPLES_STREAM, (BATCH, 4, 7, 6))
    labels = torch.tensor(Uniform(LABELS_STREAM, BATCH) % CLASSES)
    optimizer = torch.optim.SGD(parameters, lr=LEARNING_RATE)
    print("# Made by generate_layers.py with PyTorch", torch.__version__)
    print("# step from 0, loss before that step's update")
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = Loss(parameters, examples, labels)
        loss.backward()
        optimizer.step()
        print(step, repr(loss.item()))


if __name__ == "__main__":
    main()
