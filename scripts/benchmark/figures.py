"""What is measured, what is made of it, and whether it meets its target.

A Measurement is one burst, which gives named numbers. A Figure is a row of the
table: a number from its measurements of one round, which are next to each other
in time, in the other order in every second round; over the rounds it has a
minimum, a median and a maximum. Python 3 standard library only.
"""

import statistics

from . import processes


class Measurement:
    """One burst: run() returns its numbers by name."""

    def __init__(self, name, command, run):
        self.name = name
        self.command = command
        self.run = run


def of_program(name, command):
    """The Measurement by a program whose last line is the numbers as JSON."""
    return Measurement(name, command, lambda: processes.last_json_line(
        processes.run(command), command))


class Target:
    """`limit` is the least, or else the largest, value that meets it."""

    def __init__(self, limit, is_least):
        self.limit = limit
        self.is_least = is_least

    def fields(self, value):
        """What bench.json says of it and of the figure's value."""
        return {"target": self.limit,
                "wanted": "at least" if self.is_least else "at most",
                "met": value >= self.limit if self.is_least
                       else value <= self.limit}


# Of a figure without a target.
NO_TARGET = dict.fromkeys(("target", "wanted", "met"))


def at_least(limit):
    return Target(limit, True)


def at_most(limit):
    return Target(limit, False)


class Figure:
    """value(numbers of each measurement, in their order) is one sample.

    `point`: (series, x) if pictures.py draws it.
    """

    def __init__(self, name, unit, measurements, value, target=None,
                 point=None):
        self.name = name
        self.unit = unit
        self.measurements = measurements
        self.value = value
        self.target = target
        self.point = point

    def summarize(self, rounds):
        """The row, from [[(numbers, whether it was quiet)]] by round and
        measurement."""
        samples = [self.value(*(numbers for numbers, _ in bursts))
                   for bursts in rounds]
        value = statistics.median(samples)
        return {
            "name": self.name, "unit": self.unit, "value": value,
            "min": min(samples), "max": max(samples), "samples": samples,
            "noisy_samples": sum(not all(quiet for _, quiet in bursts)
                                 for bursts in rounds),
            **(self.target.fields(value) if self.target else NO_TARGET),
            "point": self.point and dict(zip(("series", "x"), self.point)),
            "command": "; ".join(processes.shown(one.command)
                                 for one in self.measurements)}


def measure(figures, rounds, gate, say):
    """Runs in every round the measurements of each figure with a target, and
    all others once; returns the rows."""
    done = [[] for _ in figures]
    for round_ in range(rounds):
        # The newest burst of each measurement of this round.
        bursts = {}
        for figure, found in sorted(zip(figures, done), key=lambda pair:
                                    pair[0].target is None):
            order = list(dict.fromkeys(figure.measurements))
            for one in order[::-1 if round_ % 2 else 1]:
                if figure.target is None and one in bursts:
                    continue
                bursts[one] = gate.run(one.run)
                say("round %d: %s%s" % (round_ + 1, one.name,
                                        "" if bursts[one][1] else " (noisy)"))
            found.append([bursts[one] for one in figure.measurements])
    return [figure.summarize(found) for figure, found in zip(figures, done)]


def count(what, number_of):
    """"1 worker", "2 workers"."""
    return "%d %s%s" % (number_of, what, "" if number_of == 1 else "s")
