#!/usr/bin/python3
"""Writes losses.txt: PyTorch's float64 losses of the MNIST CNN.

For each update rule, the mean cross-entropy of 20 consecutive steps of the
network of worker/model/zoo/mnist_cnn.textproto. The initial parameters and
the batches are a formula (see Uniform), which golden_training.cc computes
too, so that only the losses are stored.

    apt-get install python3-torch   # 1.13
    ./generate.py > losses.txt      # about half a minute
"""

import numpy as np
import torch
import torch.nn.functional as F

STEPS = 20
BATCH = 4
BATCHES = 4  # Step s reads batch s % BATCHES.
CLASSES = 10

# Name, shape, and the exponent e of the amplitude 2^-e.
PARAMETERS = [
    ("conv1/weights", (32, 1, 5, 5), 3),
    ("conv1/bias", (32,), 6),
    ("conv2/weights", (64, 32, 5, 5), 4),
    ("conv2/bias", (64,), 6),
    ("dense1/weights", (1024, 3136), 5),
    ("dense1/bias", (1024,), 6),
    ("logits/weights", (10, 1024), 4),
    ("logits/bias", (10,), 6),
]
EXAMPLES_STREAM = 100
LABELS_STREAM = 200

RULES = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9),
    "nesterov": lambda p: torch.optim.SGD(
        p, lr=0.02, momentum=0.9, nesterov=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.001, eps=1e-10),
    "rmsprop": lambda p: torch.optim.RMSprop(
        p, lr=0.0002, alpha=0.9, eps=1e-8),
    "adam": lambda p: torch.optim.Adam(
        p, lr=0.001, betas=(0.9, 0.999), eps=1e-8),
    "adamw": lambda p: torch.optim.AdamW(
        p, lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01),
}


def Uniform(stream, n):
    """Integers in [0, 2^24): SplitMix64's output function of a counter."""
    with np.errstate(over="ignore"):
        z = (np.uint64(stream) << np.uint64(32)) + np.arange(
            1, n + 1, dtype=np.uint64)
        z = z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(40)).astype(np.int64)


def InitialParameters():
    parameters = []
    for index, (_, shape, exponent) in enumerate(PARAMETERS):
        integers = Uniform(index, int(np.prod(shape)))
        values = (integers - 2**23) * 2.0 ** -(23 + exponent)
        parameters.append(
            torch.tensor(values.reshape(shape), dtype=torch.float64,
                         requires_grad=True))
    return parameters


def Batch(index, side=28):
    examples = Uniform(EXAMPLES_STREAM + index, BATCH * side**2) * 2.0**-24
    labels = Uniform(LABELS_STREAM + index, BATCH) % CLASSES
    return (torch.tensor(examples.reshape(BATCH, 1, side, side),
                         dtype=torch.float64), torch.tensor(labels))


def Loss(parameters, examples, labels):
    w1, b1, w2, b2, w3, b3, w4, b4 = parameters
    x = F.max_pool2d(F.relu(F.conv2d(examples, w1, b1, padding=2)), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, w2, b2, padding=2)), 2)
    x = F.relu(F.linear(x.flatten(1), w3, b3))
    return F.cross_entropy(F.linear(x, w4, b4), labels)


def main():
    print("# Made by generate.py with PyTorch", torch.__version__)
    print("# rule, step from 0, loss before that step's update")
    for rule, make_optimizer in RULES.items():
        parameters = InitialParameters()
        optimizer = make_optimizer(parameters)
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = Loss(parameters, *Batch(step % BATCHES))
            loss.backward()
            optimizer.step()
            print(rule, step, repr(loss.item()))


if __name__ == "__main__":
    main()
