"""What the finished runs come to: means, verdicts, times to the target.

Python 3 standard library only.
"""

import dataclasses
import statistics

from tests.benchmark.replication import rows

# Seeds that a verdict needs.
ENOUGH_SEEDS = 3
# Other processes' share of the cores above which a run's times are doubted.
NOISY_PART = 0.1


class Study:
    """The results, by row. `results` is what results_file.read returns."""

    def __init__(self, results):
        self.by_row = {}
        for (name, seed), result in results.items():
            if name in rows.BY_NAME:
                self.by_row.setdefault(name, {})[seed] = result

    def has(self, *names):
        return all(name in self.by_row for name in names)

    def runs(self, name):
        """Of a row that has some, by rising seed."""
        return [run for _, run in sorted(self.by_row[name].items())]

    def all_runs(self):
        return [run for name in self.by_row for run in self.runs(name)]

    def mean(self, name, field):
        return statistics.fmean(run[field] for run in self.runs(name))

    def speed(self, name):
        """Examples a second; of several runs the median."""
        return statistics.median(
            run["examples_per_s"] for run in self.runs(name))

    def curve(self, name):
        """The run whose curve is shown: the one with most evaluations."""
        return max(self.runs(name), key=lambda run: len(run["test_curve"]))


@dataclasses.dataclass
class Verdict:
    """How a row's accuracy stands against the single process."""

    seeds: list
    accuracy: float
    # Points lost; negative if the row is better.
    lost: float
    limit: float
    # "met", "MISSED", or why it is open.
    text: str

    def is_missed(self):
        return self.text == "MISSED"


def judge(study, row):
    """The verdict on a row that has a limit; None if it was not run."""
    if not study.has(row.name, "single"):
        return None
    own, single = study.by_row[row.name], study.by_row["single"]
    seeds = sorted(set(own) & set(single))
    if not seeds:
        return None
    accuracy = statistics.fmean(own[seed]["accuracy"] for seed in seeds)
    base = statistics.fmean(single[seed]["accuracy"] for seed in seeds)
    lost = 100 * (base - accuracy)
    if {own[seed]["examples"] for seed in seeds} != {
            single[seed]["examples"] for seed in seeds}:
        text = "open: not the same number of examples"
    elif len(seeds) < ENOUGH_SEEDS:
        text = "open: %d of %d seeds" % (len(seeds), ENOUGH_SEEDS)
    else:
        text = "met" if lost <= row.limit else "MISSED"
    return Verdict(seeds, accuracy, lost, row.limit, text)


@dataclasses.dataclass
class Reached:
    """When a curve came to the target, between two looks at the test set."""

    steps: float
    examples: float
    wall_s: float


def reach(run, target=rows.TARGET):
    """When test accuracy was first `target`, on a straight line between the
    points; None if never."""
    before = None
    for point in run["test_curve"]:
        if point["accuracy"] >= target:
            return _between(before or point, point, target)
        before = point
    return None


def _between(a, b, target):
    rise = b["accuracy"] - a["accuracy"]
    part = (target - a["accuracy"]) / rise if rise > 0 else 1.0
    return Reached(*[a[field] + part * (b[field] - a[field])
                     for field in ("step", "examples", "wall_s")])


def _short(value):
    """A commit, "0123...", "0123...-changed", or a number, with 12 digits."""
    digits, dash, rest = value.partition("-")
    return digits[:12] + dash + rest


def doubts(study, wanted):
    """Sentences about what makes the figures doubtful; empty if nothing.
    `wanted`: the rows that there should be."""
    found = []
    noisy = [(name, seed, run["foreign_cores"])
             for name, runs in study.by_row.items()
             for seed, run in sorted(runs.items())
             if run["foreign_cores"] > NOISY_PART * run["cores"]]
    if noisy:
        found.append("Other processes used more than %.0f %% of the cores "
                     "during: %s." % (100 * NOISY_PART, ", ".join(
                         "%s seed %d (%.2f cores)" % one for one in noisy)))
    for field, what in (("commit", "commits"), ("cores", "numbers of cores")):
        values = sorted({str(run[field]) for run in study.all_runs()})
        if len(values) > 1:
            found.append("The runs are of several %s: %s." % (
                what, ", ".join(_short(value) for value in values)))
    other = sorted({run["training"] for run in study.all_runs()} |
                   {setting for run in study.all_runs()
                    for setting in run["settings"]
                    if setting.startswith("input.type=")})
    if other != [rows.TRAINING]:
        found.append("This is not the study, but a trial of its script: %s." %
                     ", ".join(other))
    missing = [row.name for row in wanted if not study.has(row.name)]
    if missing:
        found.append("Not run: %s." % ", ".join(missing))
    return found
