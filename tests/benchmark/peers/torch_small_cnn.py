"""A CNN of 417,482 parameters in 8 tensors for images of MNIST's size, its
batches, and what trains on them. The same in each way of torch_cluster.py."""

import time

import torch
from torch import nn

BATCH = 64
# They are taken in turns.
BATCHES = 16
LEARNING_RATE = 1e-3


def make_model():
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 256), nn.ReLU(),
        nn.Linear(256, 10))


def batches(worker):
    """Random images and labels of a worker: its input costs nothing."""
    torch.manual_seed(100 + worker)
    return [(torch.rand(BATCH, 1, 28, 28), torch.randint(10, (BATCH,)))
            for _ in range(BATCHES)]


def adam(model, fused=None):
    return torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, fused=fused)


def train(model, optimizer, given, steps):
    """Returns when each step ended."""
    loss_of = nn.CrossEntropyLoss()
    times = []
    for step in range(steps):
        images, labels = given[step % len(given)]
        optimizer.zero_grad()
        loss_of(model(images), labels).backward()
        optimizer.step()
        times.append(time.monotonic())
    return times
