"""ResNet-18 in PyTorch, on scikit-learn's digits at twice their size.

    python resnet18.py --alone                                   # without Muster
    muster run -H localhost:2 -- python resnet18.py --train_dir=run1
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils import data


class Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs))
        self.shortcut = nn.Sequential() if stride == 1 else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False),
            nn.BatchNorm2d(outputs))

    def forward(self, x):
        return functional.relu(self.main(x) + self.shortcut(x))


def resnet18(width, classes):
    """For small images: a 3x3 convolution first, no pooling after it."""
    blocks = [Block(width << max(0, stage - (block == 0)), width << stage,
                    2 if stage and block == 0 else 1)
              for stage in range(4) for block in range(2)]
    return nn.Sequential(
        nn.Conv2d(1, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width),
        nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(width * 8, classes))


def load():
    """1500 rows to train on, 297 to test."""
    x, y = map(torch.from_numpy, load_digits(return_X_y=True))
    x = functional.interpolate(x.float().view(-1, 1, 8, 8) / 16, scale_factor=2)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    return [data.TensorDataset(x[rows], y[rows])
            for rows in (order[:1500], order[1500:])]


def main(flags):
    torch.manual_seed(1)
    train, test = load()
    model = resnet18(flags.width, 10)
    loader = data.DataLoader(train, batch_size=32, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    if flags.alone:
        batches = (batch for _ in range(flags.epochs) for batch in loader)
    else:
        import muster.torch
        job = muster.torch.init(flags.train_dir)
        optimizer = muster.torch.DistributedOptimizer(optimizer, model)
        batches = job.shard(loader, epochs=flags.epochs)
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        if not flags.alone:
            job.log(loss=loss.item())
        optimizer.step()
    if not flags.alone:
        job.finish()
    x, y = test.tensors
    with torch.no_grad():
        right = model.eval()(x).argmax(1) == y
    print("test_accuracy=%.4f" % right.float().mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--train_dir")
    main(parser.parse_args())
