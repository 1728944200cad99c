"""A worker of torch_tables_test.py:

    train_tables.py TASK OUT TRAIN_DIR CLUSTER INDEX [TASK'S ARGUMENT]

writes what it found as JSON to OUT.
"""

import json
import sys

import numpy
import torch

import muster.torch

STEPS = 20
# Each row in each step, some twice: SparseAdam counts steps, not a row's.
IDS = torch.tensor([[3, 0], [1, 3], [2, 0], [3, 2 ** 40]])
KNOWN = IDS.unique()
ADAM = {"lr": 1e-2, "eps": 1e-12}


class Rows(torch.nn.Module):
    """A layer of rows, and a parameter, as an optimizer wants one."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.bias = torch.nn.Parameter(torch.zeros(1))

    def forward(self, *ids):
        return self.layer(*ids) + self.bias


def seen(layer):
    """The rows of KNOWN as they are now."""
    layer.eval()
    values = layer(KNOWN.view(-1, 1))
    layer.train()
    return values.detach().view(len(KNOWN), -1).clone()


def torchs(kind, rows, **settings):
    """torch's layer of these rows, by whose index they are."""
    return kind.from_pretrained(rows.clone(), freeze=False, **settings)


def places(ids):
    return torch.searchsorted(KNOWN, ids)


def loss_of(values, part=slice(None)):
    generator = torch.Generator().manual_seed(7)
    weights = torch.randn(len(IDS), *values.shape[1:], generator=generator)
    return (values.tanh() * weights[part]).flatten(1).sum(1).mean()


def one_worker(job, argument):
    """Beside torch alone; `argument`: "embedding", "mean" or "sum", and dim."""
    kind, dim = argument.split(",")
    if kind == "embedding":
        layer = muster.torch.Embedding(int(dim), name="user")
    else:
        layer = muster.torch.EmbeddingBag(int(dim), name="user", mode=kind)
    model = Rows(layer)
    optimizer = muster.torch.DistributedOptimizer(
        torch.optim.Adam(model.parameters(), **ADAM), model, job)
    first = seen(layer)
    own = Rows(torchs(torch.nn.Embedding, first, sparse=True)
               if kind == "embedding" else
               torchs(torch.nn.EmbeddingBag, first, mode=kind, sparse=True))
    optimizers = [torch.optim.SparseAdam([own.layer.weight], **ADAM),
                  torch.optim.Adam([own.bias], **ADAM)]
    losses = []
    for _ in range(STEPS):
        ours, theirs = loss_of(model(IDS)), loss_of(own(places(IDS)))
        losses.append([ours.item(), theirs.item()])
        ours.backward()
        optimizer.step()
        optimizer.zero_grad()
        theirs.backward()
        for each in optimizers:
            each.step()
            each.zero_grad()
    return {"losses": losses, "first": first.tolist(),
            "rows": [seen(layer).tolist(), own.layer.weight.tolist()]}


def rows_alone(job, _):
    """Rows that are in no push: their values over the steps."""
    layer = muster.torch.Embedding(2, name="user")
    model = Rows(layer)
    optimizer = muster.torch.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), model, job)
    found = []
    for ids in ([0, 1], [0, 1], [1, 2], [1]):
        model(torch.tensor(ids)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(seen(layer).tolist())
    return {"rows": found}


def half(job, _):
    """Of each batch, by the worker's index: rows of one worker, of both, and
    twice in one's."""
    layer = muster.torch.Embedding(2, name="user")
    model = Rows(layer)
    optimizer = muster.torch.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.5), model, job)
    first = seen(layer)
    part = slice(2 * job.index, 2 * job.index + 2)
    for _ in range(STEPS):
        loss_of(model(IDS[part]), part).backward()
        optimizer.step()
        optimizer.zero_grad()
    rows = seen(layer)
    own = Rows(torchs(torch.nn.Embedding, first))
    alone = torch.optim.SGD(own.parameters(), lr=0.5)
    for _ in range(STEPS):
        loss_of(own(places(IDS))).backward()
        alone.step()
        alone.zero_grad()
    return {"rows": [rows.tolist(), own.layer.weight.tolist()]}


def until_the_end(job, _):
    """Each step counts in the rows 0 to 99, and in its own; ends with the
    job."""
    layer = muster.torch.Embedding(1, name="count")
    job.table("count", initial="zeros")
    model = Rows(layer)
    optimizer = muster.torch.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0), model, job)
    ids = torch.arange(100)
    while not job.done:
        own = torch.tensor([-1 - job.index - 2 * job.global_step])
        (-layer(torch.cat([ids, own]))).sum().backward()
        optimizer.step()
        print("did step=%d" % job.step, flush=True)
    return {}


def numpys(job_arguments, _):
    """muster.Model: each float of row i has i pushed to it, three times."""
    w = numpy.zeros(1, numpy.float32)
    ids = numpy.array([4, -7, 4, 2 ** 50])
    with muster.Model({"w": w}, "sgd", 0.5, tables={
            "user": {"dim": 3, "initial": "zeros"}, "item": 1},
            steps=3, **job_arguments) as model:
        before = model.pull_rows("item", ids)
        while not model.done:
            model.push_rows("user", ids, numpy.repeat(
                ids.reshape(-1, 1), 3, 1).astype(numpy.float32))
            last = model.pull_rows("user", ids)
            model.push_pull({"w": w + 1})
    return {"item": before.tolist(), "last": last.tolist()}


def no_match(job, _):
    job.table("users")
    model = Rows(muster.torch.Embedding(1, name="user"))
    muster.torch.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0), model, job)
    model(IDS)


def main():
    task, out, train_dir, cluster, index, *argument = sys.argv[1:]
    settings = {"half": {"replication": "sync", "steps": STEPS + 1},
                "until_the_end": {"steps": 2000, "save_every_steps": 100}}
    place = {"train_dir": train_dir, "cluster": cluster, "task_index": index}
    if task == "numpys":
        found = numpys(place, *argument)
    else:
        job = muster.torch.init(**place, **settings.get(task, {}))
        found = globals()[task](job, *argument)
        job.finish()
    with open(out, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
