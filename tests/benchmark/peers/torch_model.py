"""The MNIST CNN of the zoo, in PyTorch's operations, and a batch for it."""

import torch
from torch import nn

BATCH = 128
LEARNING_RATE = 1e-3
LAYOUTS = {"contiguous": torch.contiguous_format,
           "channels_last": torch.channels_last}


def make_model(layout, device="cpu"):
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 7 * 7, 1024), nn.ReLU(),
        nn.Linear(1024, 10)).to(device, memory_format=LAYOUTS[layout])


def batch(layout, device, side):
    """Random images and labels, the same in every step: input costs nothing."""
    torch.manual_seed(2)
    images = torch.rand(BATCH, 1, side, side)
    return (images.to(device).contiguous(memory_format=LAYOUTS[layout]),
            torch.randint(10, (BATCH,)).to(device))


class Trainer:
    """One step of `model` is step(). bf16: factors of products are rounded to
    it, by autocast."""

    SIDE = 28

    def __init__(self, model, layout, device="cpu", bf16=False):
        self.model = model
        self.optimizer = self.make_optimizer()
        self.loss = nn.CrossEntropyLoss()
        self.images, self.labels = batch(layout, device, self.SIDE)
        self.autocast = torch.autocast(device, torch.bfloat16, enabled=bf16)

    def make_optimizer(self):
        return torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE,
                                fused=True)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast:
            loss = self.loss(self.model(self.images), self.labels)
        loss.backward()
        self.optimizer.step()
