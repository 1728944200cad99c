"""What is measured, what is made of it, and whether it meets its target.

A Measurement is one burst, which gives named numbers. A Figure is a row of the
table: a number from the measurements of one round, so that both sides of a
ratio are of the same minutes; over the rounds it has a minimum, a median and a
maximum. A figure that has a target and several measurements takes them for
itself, next to each other, in the other order in every second round. Python 3
standard library only.
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
    """`limit` is the least, or else the largest, value that meets it; so is
    `stretch`, if there is one, of what is hoped for beyond."""

    def __init__(self, limit, at_least, stretch=None):
        self.limit = limit
        self.at_least = at_least
        self.stretch = stretch

    def is_met(self, value):
        return self._reaches(value, self.limit)

    def stretch_is_met(self, value):
        """None without a stretch."""
        return self.stretch and self._reaches(value, self.stretch)

    def _reaches(self, value, limit):
        return value >= limit if self.at_least else value <= limit

    def fields(self, value):
        """What bench.json says of it and of the figure's value."""
        return {"target": self.limit,
                "wanted": "at least" if self.at_least else "at most",
                "met": self.is_met(value), "stretch": self.stretch,
                "stretch_met": self.stretch_is_met(value)}


# Of a figure without a target.
NO_TARGET = dict.fromkeys(("target", "wanted", "met", "stretch",
                           "stretch_met"))


def limit_text(row, key="target"):
    """">= 1.50" of a row that has this limit (or "stretch"), else ""."""
    if row[key] is None:
        return ""
    return "%s %s" % (">=" if row["wanted"] == "at least" else "<=",
                      number(row[key]))


def at_least(limit, stretch=None):
    return Target(limit, True, stretch)


def at_most(limit, stretch=None):
    return Target(limit, False, stretch)


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

    def is_pair(self):
        """Its measurements are to be next to each other in time."""
        return self.target is not None and len(self.measurements) > 1

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
            **(self.target.fields(value) if self.target else NO_TARGET),
            "samples": samples, "noisy_samples": noisy,
            "parts": sorted(self.parts()),
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
    """Runs in every round the measurements of each pair, and all others once;
    returns the rows."""
    done = [[] for _ in figures]
    for round_ in range(rounds):
        def burst(one, round_=round_):
            numbers, quiet = gate.run(one.run)
            say("round %d: %s%s" % (round_ + 1, one.name,
                                    "" if quiet else " (noisy)"))
            return Burst(numbers, quiet)

        shared = {}
        for figure, bursts in zip(figures, done):
            if not figure.is_pair():
                continue
            own = {one: burst(one) for one in dict.fromkeys(
                figure.measurements[::-1 if round_ % 2 else 1])}
            shared.update(own)
            bursts.append(own)
        for one in needed(figures):
            if one not in shared:
                shared[one] = burst(one)
        for figure, bursts in zip(figures, done):
            if not figure.is_pair():
                bursts.append(shared)
    return [figure.summarize(bursts) for figure, bursts in zip(figures, done)]


def count(what, number_of):
    """"1 worker", "2 workers"."""
    return "%d %s%s" % (number_of, what, "" if number_of == 1 else "s")


def number(value):
    """Three digits, or all before the point, without an exponent."""
    for digits in range(6):
        if abs(value) >= 10 ** (2 - digits):
            return "%.*f" % (digits, value)
    return "%.6f" % value
