"""The ResNet-20 of the zoo, in PyTorch's operations, and a batch for it."""

import torch
from torch import nn

import torch_model

LEARNING_RATE = 0.1
MOMENTUM = 0.9
# The zoo's l2.
WEIGHT_DECAY = 1e-4


def conv_norm(inputs, filters, kernel=3, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, filters, kernel, stride, padding=kernel // 2,
                  bias=False), nn.BatchNorm2d(filters))


class Block(nn.Module):
    """Two convolutions beside a way around them, a projection if it halves."""

    def __init__(self, inputs, filters):
        super().__init__()
        stride = 1 if inputs == filters else 2
        self.body = nn.Sequential(
            conv_norm(inputs, filters, stride=stride), nn.ReLU(inplace=True),
            conv_norm(filters, filters))
        self.shortcut = (nn.Identity() if stride == 1 else
                         conv_norm(inputs, filters, kernel=1, stride=stride))

    def forward(self, images):
        return nn.functional.relu(self.body(images) + self.shortcut(images),
                                  inplace=True)


def make_model(layout, device="cpu"):
    torch.manual_seed(1)
    return nn.Sequential(
        conv_norm(1, 16), nn.ReLU(inplace=True),
        Block(16, 16), Block(16, 16), Block(16, 16),
        Block(16, 32), Block(32, 32), Block(32, 32),
        Block(32, 64), Block(64, 64), Block(64, 64),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).to(
            device, memory_format=torch_model.LAYOUTS[layout])


class Trainer(torch_model.Trainer):
    """The same, with the optimizer of the zoo's."""

    SIDE = 32

    def make_optimizer(self):
        return torch.optim.SGD(
            self.model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM,
            weight_decay=WEIGHT_DECAY, fused=True)
