"""What is measured, what is made of it, and whether it meets its target.

A Measurement is one burst, which gives named numbers. A Figure is a row of the
table: a number from the measurements of one round, so that both sides of a
ratio are of the same minutes; over the rounds it has a minimum, a median and a
maximum. Python 3 standard library only.
"""

import statistics

from . import processes


class Measurement:
    """One burst: run() returns its numbers by name.

    `part` is the part of the benchmark (--only) that it belongs to.
    """

    def __init__(self, part, name, command, run):
        self.part = part
        self.name = name
        self.command = command
        self.run = run


class Burst:
    """What one run of a measurement gave."""

    def __init__(self, numbers, quiet):
        self.numbers = numbers
        self.quiet = quiet


class Target:
    """`limit` is the least, or else the largest, value that meets it."""

    def __init__(self, limit, at_least):
        self.limit = limit
        self.at_least = at_least

    def is_met(self, value):
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self):
        return "%s %s" % (">=" if self.at_least else "<=", number(self.limit))


def at_least(limit):
    return Target(limit, True)


def at_most(limit):
    return Target(limit, False)


class Figure:
    """value(numbers of each measurement, in their order) is one sample.

    `point`: (picture, series, x) if pictures.py draws it.
    """

    def __init__(self, name, unit, measurements, value, target=None,
                 point=None):
        self.name = name
        self.unit = unit
        self.measurements = measurements
        self.value = value
        self.target = target
        self.point = point

    def parts(self):
        return {measurement.part for measurement in self.measurements}

    def summarize(self, rounds):
        """The row, from [{measurement: Burst}] by round."""
        bursts = [[round_[one] for one in self.measurements]
                  for round_ in rounds]
        samples = [self.value(*(burst.numbers for burst in of_round))
                   for of_round in bursts]
        noisy = sum(not all(burst.quiet for burst in of_round)
                    for of_round in bursts)
        value = statistics.median(samples)
        return {
            "name": self.name, "unit": self.unit, "value": value,
            "min": min(samples), "max": max(samples),
            "target": self.target and self.target.limit,
            "wanted": self.target and (
                "at least" if self.target.at_least else "at most"),
            "met": self.target and self.target.is_met(value),
            "samples": samples, "noisy_samples": noisy,
            "point": self.point and dict(zip(("picture", "series", "x"),
                                             self.point)),
            "command": "; ".join(processes.shown(one.command)
                                 for one in self.measurements),
        }


def chosen(figures, parts):
    """The figures for which these parts measure everything."""
    return [figure for figure in figures if figure.parts() <= set(parts)]


def needed(figures):
    """Their measurements, each once, in the order of first use."""
    return list(dict.fromkeys(
        one for figure in figures for one in figure.measurements))


def measure(figures, rounds, gate, say):
    """Runs every measurement once in every round; returns the rows."""
    done = []
    for round_ in range(rounds):
        bursts = {}
        for one in needed(figures):
            numbers, quiet = gate.run(one.run)
            bursts[one] = Burst(numbers, quiet)
            say("round %d: %s%s" % (round_ + 1, one.name,
                                    "" if quiet else " (noisy)"))
        done.append(bursts)
    return [figure.summarize(done) for figure in figures]


def number(value):
    """Three digits, or all before the point, without an exponent."""
    for digits in range(6):
        if abs(value) >= 10 ** (2 - digits):
            return "%.*f" % (digits, value)
    return "%.6f" % value
