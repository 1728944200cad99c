"""One training of a sweep (trainings/record.py), with its evaluations."""

import math
import re

from trainings.record import Record, is_number

HALVES = ("test_", "validation_")
EVALUATION = re.compile(
    r" I /job:worker/task:0 step=(\d+) ((%s)\S+=.*)" % "|".join(HALVES))


class Trial(Record):
    """`metric` is the figure that the sweep is about."""

    KIND = "trial"
    ENDED = ("DONE", "PRUNED", "FAILED")
    UNSAVED = ("folder", "metric")

    def __init__(self, sweep_dir, number, metric):
        super().__init__(sweep_dir, number)
        self.metric = metric
        # [[step, {figure: number}], ...], steps rising; four digits each.
        self.all_evaluations = []

    def evaluations(self):
        """[(step, value of the metric)]."""
        return [(step, figures[self.metric])
                for step, figures in self.all_evaluations
                if self.metric in figures]

    def reported(self):
        """The metric at each evaluation, NaN where it was no number; of a
        metric that evaluations do not have, none."""
        return [figures.get(self.metric, math.nan)
                for _, figures in self.all_evaluations
                if self.metric.startswith(HALVES)]

    def latest(self):
        """{figure: number}: those of the end, or of the last evaluation."""
        if self.state == "DONE":
            return self.figures
        return self.all_evaluations[-1][1] if self.all_evaluations else {}

    def value(self):
        """The metric of a trial that is done or pruned, else None."""
        return (self.latest().get(self.metric)
                if self.state in ("DONE", "PRUNED") else None)

    def add_evaluation(self, step, figures, half):
        """One that went on from a checkpoint evaluates some steps again; at the
        end there are figures of two halves."""
        others = {name: value for at, found in self.all_evaluations
                  if at == step for name, value in found.items()
                  if not name.startswith(half)}
        self.all_evaluations = [one for one in self.all_evaluations
                                if one[0] < step] + [[step, others | figures]]


def read_evaluation(line):
    """(step, {figure: number}, half) of a worker's line, or None."""
    found = EVALUATION.search(line)
    if found is None:
        return None
    pairs = (word.split("=") for word in found.group(2).split())
    numbers = {name: float(value) for name, value in pairs}
    return int(found.group(1)), {name: value for name, value in numbers.items()
                                 if is_number(value)}, found.group(3)
