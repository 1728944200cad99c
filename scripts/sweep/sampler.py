"""Samplers, which choose the next trial's parameters.

Random and grid are functions of the trial's number alone, so that the same seed
has the same trials, however many run at once. Optuna's TPE is in study.py.
"""

import itertools
import math
import random

from base.failure import Failure


def create(name, parameters, seed):
    return Grid(parameters) if name == "grid" else Random(parameters, seed)


class Random:
    """Each parameter of each trial by itself."""

    # The number of different trials.
    size = math.inf

    def __init__(self, parameters, seed):
        self._parameters = parameters
        self._seed = seed

    def suggest(self, number):
        """{field: text}."""
        return {one.field: one.at(random.Random("%d/%d/%s" % (
            self._seed, number, one.field)).random())
                for one in self._parameters}


class Grid:
    """Every value of a parameter with every one of the others; the last
    parameter is the fastest. Raises Failure where a range has no points."""

    def __init__(self, parameters):
        for one in parameters:
            if one.all() is None:
                raise Failure(
                    "--sampler=grid: how many points has '%s'? Wanted, such as "
                    "for 5, %s=%s:%r:%r:5" % (one.field, one.field, one.kind,
                                              one.low, one.high))
        self._fields = [one.field for one in parameters]
        self._values = [one.all() for one in parameters]
        self.size = math.prod(map(len, self._values))

    def suggest(self, number):
        """{field: text}; `number` below size."""
        point = next(itertools.islice(itertools.product(*self._values), number,
                                      None))
        return dict(zip(self._fields, point))
