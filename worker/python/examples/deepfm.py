"""DeepFM in PyTorch: who will like which film? Its rows are in sparse tables,
by the hash of each value of a field, whose number nobody need know before.

    python deepfm.py --alone                                     # without Muster
    muster run -H localhost:2 -- python deepfm.py --train_dir=run1

--data=FOLDER trains on MovieLens-100K, as the wheel of recbole 1.2.1 has it
(recbole/dataset_example/ml-100k, whose licence forbids to give it away);
without it rows are drawn from a model of users and items.
"""

import argparse
import hashlib
import os

import numpy
import torch
from torch import nn
from torch.nn import functional
from torch.utils import data

FIELDS = ("user", "item", "age", "gender", "occupation", "zip", "year", "genre")
DIM = 16


class DeepFM(nn.Module):

    def __init__(self, factor, weight):
        """Layers of DIM floats a value, and of the sum of one float each."""
        super().__init__()
        self.factor, self.weight = factor, weight
        self.deep = nn.Sequential(
            nn.Linear(len(FIELDS) * DIM, 128), nn.ReLU(),
            nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, ids):
        rows = self.factor(ids)
        pairs = (rows.sum(1) ** 2 - (rows ** 2).sum(1)).sum(1) / 2
        more = self.weight(ids) + self.deep(rows.flatten(1))
        return pairs + more.squeeze(1)


def table_of(folder, name):
    with open(os.path.join(folder, "ml-100k." + name),
              encoding="latin-1") as file:
        return [line.split("\t") for line in file.read().splitlines()[1:]]


def movie_lens(folder):
    """Values of FIELDS, and whether the user gave 4 stars or more."""
    users = {row[0]: row[1:] for row in table_of(folder, "user")}
    items = {row[0]: row[1:] for row in table_of(folder, "item")}
    for user, item, rating, _ in table_of(folder, "inter"):
        age, gender, occupation, place = users[user]
        _, year, genres = items[item]
        yield (user, item, int(age) // 10, gender, occupation, place[:3], year,
               (genres.split() or [""])[0]), float(rating) >= 4


def drawn(rows=40000):
    """The same of made-up users and items, each of which has a taste."""
    random = numpy.random.default_rng(0)
    users, items = random.normal(size=(500, 4)), random.normal(size=(200, 4))
    for user, item, luck in zip(random.integers(500, size=rows),
                                random.integers(200, size=rows),
                                random.logistic(size=rows)):
        yield (user, item, user % 7, user % 2, user % 21, user % 100,
               item % 70, item % 18), 2 * users[user] @ items[item] + luck > 0


def hashed(field, value):
    """An id of 64 bits."""
    text = ("%s=%s" % (field, value)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(),
                          "little", signed=True)


def load(folder):
    """(ids, labels) to train on, and a tenth to test."""
    rows = list(movie_lens(folder) if folder else drawn())
    ids = torch.tensor([[hashed(*each) for each in zip(FIELDS, values)]
                        for values, _ in rows])
    labels = torch.tensor([label for _, label in rows], dtype=torch.float32)
    order = torch.randperm(len(rows),
                           generator=torch.Generator().manual_seed(1))
    train, test = order[len(rows) // 10:], order[:len(rows) // 10]
    return (ids[train], labels[train]), (ids[test], labels[test])


def auc(scores, labels):
    """The part of all pairs of a 1 and a 0 in which the 1 has more."""
    ranks = scores.argsort().argsort()[labels > 0].double() + 1
    ones, zeros = len(ranks), len(labels) - len(ranks)
    return ((ranks.sum() - ones * (ones + 1) / 2) / (ones * zeros)).item()


def layers_alone(*ids):
    """torch's own, of as many rows as there are values; and ids from 0 on."""
    known, places = torch.cat(ids).unique(return_inverse=True)
    factor = nn.Embedding(len(known), DIM)
    nn.init.uniform_(factor.weight, -0.01, 0.01)
    weight = nn.EmbeddingBag(len(known), 1, mode="sum")
    nn.init.zeros_(weight.weight)
    return factor, weight, places.split([len(each) for each in ids])


def main(flags):
    torch.manual_seed(1)
    (ids, labels), (test_ids, test_labels) = load(flags.data)
    if flags.alone:
        factor, weight, (ids, test_ids) = layers_alone(ids, test_ids)
    else:
        import muster.torch
        factor = muster.torch.Embedding(DIM, name="factor")
        weight = muster.torch.EmbeddingBag(1, name="weight", mode="sum")
    model = DeepFM(factor, weight)
    loader = data.DataLoader(data.TensorDataset(ids, labels), batch_size=256,
                             shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=flags.rate)
    if flags.alone:
        batches = (batch for _ in range(flags.epochs) for batch in loader)
    else:
        job = muster.torch.init(flags.train_dir)
        job.table("factor", scale=0.01)
        job.table("weight", initial="zeros")
        optimizer = muster.torch.DistributedOptimizer(optimizer, model)
        batches = job.shard(loader, epochs=flags.epochs)
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.binary_cross_entropy_with_logits(model(x), y)
        loss.backward()
        if not flags.alone:
            job.log(loss=loss.item())
        optimizer.step()
    if not flags.alone:
        job.finish()
        tables = muster.torch.load(flags.train_dir).tables
        factor.use(tables["factor"])
        weight.use(tables["weight"])
    with torch.no_grad():
        print("test_auc=%.4f" % auc(model.eval()(test_ids), test_labels))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--data")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--train_dir")
    flags = parser.parse_args()
    if not flags.alone and flags.train_dir is None:
        parser.error("--train_dir: where the chief saves, and all look at the "
                     "end what was trained")
    main(flags)
