"""What an ensemble's members say of the test half, and their mean."""

import json
import os
import re
import subprocess

from base import places
from base.failure import Failure
from base.local_tasks import die_with_parent
from trainings.driver import last_error

from . import predictions

# Of probabilities, each by itself.
SIGMOID_LOSS = 'type: "sigmoid_cross_entropy"'
# Fields of rows that weigh more or less in a loss.
WEIGHTS = re.compile(r"^\s*(class_weight|weight_column)\b", re.MULTILINE)
# Counts, which have no mean.
COUNTS = ("test_examples", "test_non_finite_rows")


class Answers:
    """Runs the members' models one after the other. `flags`: those of each
    worker. `seed`: of the rows, if they are made of it; None: each member's."""

    def __init__(self, bin_dir, folder, flags, seed):
        self._worker = places.binary("worker", bin_dir)
        self._folder = folder
        self._flags = [*flags, *([] if seed is None else ["--set=seed=" + seed])]

    def evaluate(self, member):
        """{name: number} of its test half. Raises Failure."""
        path = os.path.join(member.folder, "figures.json")
        self._run("evaluate", member, "--output=" + path)
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def predict(self, member):
        """The path of its predictions, and the labels, as bytes of a file."""
        path = os.path.join(member.folder, "predictions.npy")
        labels = os.path.join(self._folder, "labels.npy")
        self._run("predict", member, "--output=" + path, "--labels=" + labels)
        with open(labels, "rb") as file:
            return path, file.read()

    def mean(self, members, names):
        """Writes predictions.npy and labels.npy; returns the mean's figures,
        those of `names` as far as a mean has them. Raises Failure if the
        members' rows have other labels."""
        paths = []
        first = None
        for member in members:
            path, labels = self.predict(member)
            paths.append(path)
            if first is not None and labels != first:
                raise Failure("%s and %s have other labels in the test half: a "
                              "mean wants members of the same rows and classes"
                              % (members[0].folder, member.folder))
            first = labels
        rows = predictions.mean(paths)
        predictions.write(os.path.join(self._folder, "predictions.npy"), rows)
        figures = predictions.figures(
            rows, predictions.read(os.path.join(self._folder, "labels.npy")),
            SIGMOID_LOSS in _training(members[0]), names)
        if self.has_weights(members):
            figures["test_loss"] = None
        return figures

    @staticmethod
    def has_weights(members):
        """Whether rows weigh more or less in a member's loss: predictions do
        not say how much."""
        return any(WEIGHTS.search(_training(member)) for member in members)

    def _run(self, verb, member, *flags):
        parent = os.getpid()
        ended = subprocess.run(
            [self._worker, verb, "--train_dir=" + member.train_dir,
             *self._flags, *flags],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False, preexec_fn=lambda: die_with_parent(parent))
        if ended.returncode != 0:
            raise Failure("%s of %s: %s" % (verb, member.folder, last_error(
                ended.stderr.splitlines())), exit_code=ended.returncode)


def _training(member):
    """Its text."""
    path = os.path.join(member.train_dir, "training.textproto")
    if not os.path.exists(path):  # A run of Muster before it wrote schemas.
        path = os.path.join(member.train_dir, "kept_training.textproto")
    with open(path, encoding="utf-8") as file:
        return file.read()


def summary(members, figures, of_mean):
    """What result.json has: the members' figures, their mean, the ensemble's.
    A figure that one member lacks has no mean."""
    named = [name for name in figures[0] if name not in COUNTS]
    means = {name: sum(one[name] for one in figures) / len(figures)
             for name in named
             if all(isinstance(one.get(name), (int, float)) for one in figures)}
    return {"members": [{"name": member.train_dir, **one}
                        for member, one in zip(members, figures)],
            "mean": means, "ensemble": of_mean}


def table(result):
    """The same in Markdown, a line each."""
    rows = [(one["name"], one) for one in result["members"]]
    rows += [("mean", result["mean"]), ("ensemble", result["ensemble"])]
    names = [name for name in result["mean"] if name.startswith("test_")]
    lines = ["| member | %s |" % " | ".join(names),
             "| --- |" + " --- |" * len(names)]
    for title, one in rows:
        lines.append("| %s | %s |" % (title, " | ".join(
            "%.4f" % one[name] if one.get(name) is not None else ""
            for name in names)))
    return "\n".join(lines)
