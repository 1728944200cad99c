"""A transformer in PyTorch that predicts the next character of the King James
text, as Debian's bible-kjv prints it (apt install bible-kjv bible-kjv-text).

    python transformer.py --alone                                # without Muster
    muster run -H localhost:2 -- python transformer.py --train_dir=run1
"""

import argparse
import subprocess

import torch
from torch import nn
from torch.nn import functional
from torch.utils import data

CONTEXT = 64


class Transformer(nn.Module):

    def __init__(self, characters, width, layers):
        super().__init__()
        self.character = nn.Embedding(characters, width)
        self.place = nn.Embedding(CONTEXT, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(
            width, nhead=width // 32, dim_feedforward=4 * width, dropout=0.0,
            activation="gelu", batch_first=True, norm_first=True)
            for _ in range(layers))
        self.head = nn.Sequential(nn.LayerNorm(width),
                                  nn.Linear(width, characters))

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        x = self.character(x) + self.place.weight[:x.shape[1]]
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        return self.head(x)


def load(characters):
    """How many characters there are, rows to train on, and a tenth to test:
    each row CONTEXT + 1 of them."""
    verses = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], text=True,
                            capture_output=True, check=True).stdout.split("\n")
    text = "\n".join(verse.partition(" ")[2] for verse in verses)[:characters]
    known = sorted(set(text))
    numbers = {character: number for number, character in enumerate(known)}
    rows = torch.tensor([numbers[character] for character in text])
    rows = rows[:len(rows) // (CONTEXT + 1) * (CONTEXT + 1)].view(
        -1, CONTEXT + 1)
    rows = rows[torch.randperm(len(rows),
                               generator=torch.Generator().manual_seed(0))]
    return len(known), rows[len(rows) // 10:], rows[:len(rows) // 10]


def loss_of(model, rows):
    return functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1),
                                    rows[:, 1:].flatten())


def main(flags):
    torch.manual_seed(1)
    known, train, test = load(flags.characters)
    model = Transformer(known, flags.width, flags.layers)
    loader = data.DataLoader(train, batch_size=32, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if flags.alone:
        batches = (batch for _ in range(flags.epochs) for batch in loader)
    else:
        import muster.torch
        job = muster.torch.init(flags.train_dir)
        optimizer = muster.torch.DistributedOptimizer(optimizer, model)
        batches = job.shard(loader, epochs=flags.epochs)
    for rows in batches:
        optimizer.zero_grad()
        loss = loss_of(model, rows)
        loss.backward()
        if not flags.alone:
            job.log(loss=loss.item())
        optimizer.step()
    if not flags.alone:
        job.finish()
    with torch.no_grad():
        print("test_loss=%.4f" % loss_of(model.eval(), test))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--characters", type=int, default=1000000)
    parser.add_argument("--train_dir")
    main(parser.parse_args())
