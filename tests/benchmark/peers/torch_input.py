#!/usr/bin/env python3
"""A folder of JPEGs, and how fast torch's DataLoader reads it on one core.

  torch_input.py make DIR IMAGES WIDTH HEIGHT
  torch_input.py read DIR SIDE SECONDS

The transforms are torchvision's of a training on ImageNet without the random
crop: scaled (by Pillow, as there), turned round, normalized. Prints one line of
JSON.
"""

import glob
import json
import os
import random
import sys
import time

import numpy
import torch
from PIL import Image

BATCH = 32
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


class Folder(torch.utils.data.Dataset):

    def __init__(self, folder, side):
        self.side = side
        self.paths = sorted(glob.glob(os.path.join(folder, "train/*/*.jpg")))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index])
        # As Pillow's users do it who know how: decoded at a smaller scale.
        image.draft("RGB", (self.side, self.side))
        image = image.convert("RGB").resize((self.side, self.side),
                                            Image.Resampling.BILINEAR)
        if random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        values = torch.from_numpy(numpy.array(image))
        values = values.permute(2, 0, 1).contiguous().float().div(255)
        return values.sub_(MEAN).div_(STD), 0


def make(folder, images, width, height):
    """Smooth noise: as many bytes as a photograph of the size."""
    numbers = numpy.random.default_rng(1)
    for i in range(images):
        coarse = numbers.integers(0, 256, (height // 10, width // 10, 3),
                                  dtype=numpy.uint8)
        path = os.path.join(folder, ("train" if i % 8 else "test"),
                            "class%d" % (i % 2))
        os.makedirs(path, exist_ok=True)
        Image.fromarray(coarse).resize(
            (width, height), Image.Resampling.BICUBIC).save(
                os.path.join(path, "%05d.jpg" % i), quality=90)


def read(folder, side, seconds):
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Folder(folder, side), BATCH,
                                         shuffle=True, num_workers=0)
    for _ in loader:
        break
    rows = 0
    begun = time.monotonic()
    while time.monotonic() < begun + seconds:
        for batch, _ in loader:
            rows += len(batch)
            if time.monotonic() >= begun + seconds:
                break
    print(json.dumps({"examples_per_s": rows / (time.monotonic() - begun)}))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], *map(int, sys.argv[3:6]))
    else:
        read(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
