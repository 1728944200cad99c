"""One training of a sweep, and its folder, trial-0007/:

    trial.json     this record, replaced as a whole at each change
    worker.log     all that its worker has printed
    run/           the worker's --train_dir
"""

import json
import math
import os
import re

# RUNNING is also what one was whose sweep was killed; INTERRUPTED, one that was
# ended with the sweep. Those two go on when the sweep does.
ENDED = ("DONE", "PRUNED", "FAILED")
EVALUATION = re.compile(r" I /job:worker/task:0 step=(\d+) (test_\S+=.*)")
ERROR = re.compile(r"^\S+ \S+ [EC] /job:worker/task:0 (.*)")


class Trial:
    """`metric` is the figure that the sweep is about."""

    def __init__(self, sweep_dir, number, metric):
        self.folder = os.path.join(sweep_dir, "trial-%04d" % number)
        self.number = number
        self.metric = metric
        self.state = "RUNNING"
        # {field: text}
        self.parameters = {}
        self.device = ""
        self.command = []
        # [[step, {figure: number}], ...], steps rising; four digits each.
        self.all_evaluations = []
        # The numbers of result.json.
        self.figures = {}
        self.seconds = 0.0
        self.error = ""

    @property
    def train_dir(self):
        return os.path.join(self.folder, "run")

    @property
    def ended(self):
        return self.state in ENDED

    def evaluations(self):
        """[(step, value of the metric)]."""
        return [(step, figures[self.metric])
                for step, figures in self.all_evaluations
                if self.metric in figures]

    def latest(self):
        """{figure: number}: those of the end, or of the last evaluation."""
        if self.state == "DONE":
            return self.figures
        return self.all_evaluations[-1][1] if self.all_evaluations else {}

    def value(self):
        """The metric of a trial that is done or pruned, else None."""
        return (self.latest().get(self.metric)
                if self.state in ("DONE", "PRUNED") else None)

    def add_evaluation(self, step, figures):
        """One that went on from a checkpoint evaluates some steps again."""
        self.all_evaluations = [one for one in self.all_evaluations
                                if one[0] < step] + [[step, figures]]

    def described(self):
        return " ".join("%s=%s" % item for item in self.parameters.items())

    def save(self):
        os.makedirs(self.folder, exist_ok=True)
        record = {name: value for name, value in vars(self).items()
                  if name not in ("folder", "metric")}
        write_whole(os.path.join(self.folder, "trial.json"),
                    json.dumps(record, indent=1) + "\n")

    def read_result(self):
        """Takes the numbers of result.json; the text of an error, or ""."""
        path = os.path.join(self.train_dir, "result.json")
        try:
            with open(path, encoding="utf-8") as file:
                result = json.load(file)
        except (OSError, ValueError) as error:
            return "cannot read %s: %s" % (path, error)
        self.figures = {name: value for name, value in result.items()
                        if is_number(value)}
        return ""


def is_number(value):
    return (isinstance(value, (int, float)) and not isinstance(value, bool) and
            math.isfinite(value))


def read_evaluation(line):
    """(step, {figure: number}) of a worker's line, or None."""
    found = EVALUATION.search(line)
    if found is None:
        return None
    pairs = (word.split("=") for word in found.group(2).split())
    numbers = {name: float(value) for name, value in pairs}
    return int(found.group(1)), {name: value for name, value in numbers.items()
                                 if is_number(value)}


def write_whole(path, text):
    """A reader sees the old file or the new one."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def load_all(sweep_dir, metric):
    """The trials that are there, by number. Raises OSError, ValueError."""
    trials = []
    for name in sorted(os.listdir(sweep_dir)):
        path = os.path.join(sweep_dir, name, "trial.json")
        if re.fullmatch(r"trial-\d{4,}", name) and os.path.exists(path):
            trial = Trial(sweep_dir, int(name[len("trial-"):]), metric)
            with open(path, encoding="utf-8") as file:
                vars(trial).update(json.load(file))
            trials.append(trial)
    return sorted(trials, key=lambda one: one.number)
