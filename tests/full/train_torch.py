"""A worker of torch_training_test.py:

    train_torch.py TASK OUT TRAIN_DIR CLUSTER INDEX [TASK'S ARGUMENT]

writes what it found as JSON to OUT.
"""

import json
import sys

import torch
from torch.utils import data

import muster.torch

STEPS = 50
# Rows of a batch of the whole job.
ROWS = 32

RULES = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9,
                                          nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2, weight_decay=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1),
    "adagrad": lambda p: torch.optim.Adagrad(
        p, lr=0.05, initial_accumulator_value=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, momentum=0.5)}


def two_dense_layers(norm=False):
    torch.manual_seed(1)
    layers = [torch.nn.Linear(20, 16), torch.nn.ReLU(),
              torch.nn.Linear(16, 4)]
    if norm:
        layers.insert(1, torch.nn.BatchNorm1d(16))
    return torch.nn.Sequential(*layers)


def rows_of(step):
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(ROWS, 20, generator=generator)
    return x, x[:, :4].argmax(1)


def train(model, optimizer, part=slice(None), scheduler=None):
    """The losses of STEPS steps, of a part of each batch."""
    losses = []
    for step in range(STEPS):
        x, y = rows_of(step)
        loss = torch.nn.functional.cross_entropy(model(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(loss.item())
    return losses


def alone(rule, norm=False, schedule=False):
    model = two_dense_layers(norm)
    optimizer = RULES[rule](model.parameters())
    scheduler = decay(optimizer) if schedule else None
    return train(model, optimizer, scheduler=scheduler), model


def decay(optimizer):
    return torch.optim.lr_scheduler.StepLR(optimizer, 10, gamma=0.5)


def distributed(job, rule, norm=False, overlap=False):
    model = two_dense_layers(norm)
    if not job.is_chief:
        # Another one's values: those of the ps tasks take their place.
        torch.nn.init.zeros_(model[0].weight)
    return model, muster.torch.DistributedOptimizer(
        RULES[rule](model.parameters()), model, job, overlap=overlap)


def one_worker(job, rule):
    """Beside torch alone, with a batch norm, a schedule and overlap where
    `rule` says so: "sgd,norm,schedule,overlap"."""
    rule, *more = rule.split(",")
    norm, schedule = "norm" in more, "schedule" in more
    model, optimizer = distributed(job, rule, norm, "overlap" in more)
    found = train(model, optimizer,
                  scheduler=decay(optimizer) if schedule else None)
    wanted, model_alone = alone(rule, norm, schedule)
    buffers = [[own.tolist(), other.tolist()] for own, other in zip(
        model.buffers(), model_alone.buffers())]
    return {"losses": [found, wanted], "buffers": buffers}


def half(job, rule):
    """Of each batch, by the worker's index; "adam,schedule,overlap": with both."""
    rule, *more = rule.split(",")
    model, optimizer = distributed(job, rule, overlap="overlap" in more)
    part = slice(job.index * ROWS // 2, (job.index + 1) * ROWS // 2)
    return {"losses": train(model, optimizer, part,
                            decay(optimizer) if "schedule" in more else None)}


def whole(rule):
    rule, *more = rule.split(",")
    return alone(rule, schedule="schedule" in more)[0]


class Numbers(data.Dataset):
    def __init__(self, size):
        self._size = size

    def __len__(self):
        return self._size

    def __getitem__(self, row):
        return row


class Count(torch.nn.Module):
    """Its weight is the count of updates, with a learning rate of 1."""

    def __init__(self):
        super().__init__()
        self.updates = torch.nn.Parameter(torch.zeros(1))

    def forward(self, rows):
        return -self.updates.sum() + 0 * rows.float().sum()


def counting(job):
    model = Count()
    return model, muster.torch.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0), model, job)


def sharded(job, processes):
    """The rows of each batch that was pushed."""
    model, optimizer = counting(job)
    loader = data.DataLoader(Numbers(304), batch_size=8, shuffle=True,
                             num_workers=int(processes))
    rows = []
    for batch in job.shard(loader, epochs=2):
        model(batch).backward()
        optimizer.step()
        optimizer.zero_grad()
        rows.append(batch.tolist())
    return {"rows": rows, "updates": model.updates.item()}


sharded_in_sync = sharded


def until_the_end(job, _):
    """Prints its steps; ends with the job."""
    model, optimizer = counting(job)
    while not job.done:
        optimizer.zero_grad()
        model(torch.zeros(1)).backward()
        optimizer.step()
        print("did step=%d global_step=%d" % (job.step, job.global_step),
              flush=True)
    return {"updates": model.updates.item()}


class Visits(torch.nn.Module):
    """Each row that a step is of counts one down in its weight."""

    def __init__(self, rows):
        super().__init__()
        self.visits = torch.nn.Parameter(torch.zeros(rows))

    def forward(self, rows):
        return self.visits[rows].sum()


def visits(job, argument, rate=1.0):
    """`argument`: rows; after a colon steps after which a gate is waited for, a
    named pipe, with the gradient of the next one: "4000:gate,150,300"."""
    rows, _, gate = argument.partition(":")
    gate, *gates = gate.split(",")
    model = Visits(int(rows))
    optimizer = muster.torch.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=rate), model, job)
    loader = data.DataLoader(Numbers(int(rows)), batch_size=4, shuffle=True,
                             num_workers=1)
    for steps, batch in enumerate(job.shard(loader, epochs=2)):
        optimizer.zero_grad()
        model(batch).backward()
        if str(steps) in gates:
            print("at gate", steps, flush=True)
            open(gate).close()
        optimizer.step()
        if steps % 10 == 0:
            print("did steps=%d" % steps, flush=True)
    return {}


def visits_in_sync(job, argument):
    # An update is the mean of two gradients.
    return visits(job, argument, rate=2.0)


def main():
    task, out, train_dir, cluster, index, *argument = sys.argv[1:]
    settings = {"one_worker": {}, "half": {"replication": "sync"},
                "sharded": {}, "sharded_in_sync": {"replication": "sync"},
                "until_the_end": {"steps": 4000, "save_every_steps": 100},
                "visits": {"save_every_steps": 100},
                "visits_in_sync": {"replication": "sync",
                                   "save_every_steps": 50}}
    job = muster.torch.init(train_dir, cluster=cluster, task_index=index,
                            **settings[task])
    found = globals()[task](job, *argument)
    job.finish()
    if task == "half":
        found["whole"] = whole(*argument)
    with open(out, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
