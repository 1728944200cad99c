"""Samplers, which choose the next trial's parameters.

A sampler is a function of the trial's number and of the trials before it, and
keeps nothing: a sweep that is started again goes on as if it had never ended.
Random and grid look at the number alone, so that the same seed has the same
trials, however many run at once.
"""

import itertools
import json
import math
import os
import random
import subprocess

from base.failure import Failure

TPE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tpe.py")


def create(name, parameters, seed, maximize, python):
    """`python`, of tpe alone: an interpreter that has Optuna."""
    if name == "grid":
        return Grid(parameters)
    if name == "tpe":
        return Tpe(parameters, seed, maximize, python)
    return Random(parameters, seed)


class Random:
    """Each parameter of each trial by itself."""

    # The number of different trials.
    size = math.inf

    def __init__(self, parameters, seed):
        self._parameters = parameters
        self._seed = seed

    def suggest(self, number, trials):
        """{field: text}."""
        del trials
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

    def suggest(self, number, trials):
        """{field: text}; `number` below size."""
        del trials
        point = next(itertools.islice(itertools.product(*self._values), number,
                                      None))
        return dict(zip(self._fields, point))


class Tpe:
    """Optuna's tree-structured Parzen estimator, which prefers what is near to
    the best trials so far. It runs in a Python of its own, tpe.py."""

    size = math.inf

    def __init__(self, parameters, seed, maximize, python):
        self._command = [python, TPE]
        self._asked = {"seed": seed, "maximize": maximize,
                       "parameters": [vars(one) for one in parameters]}

    def suggest(self, number, trials):
        """{field: text}. `trials`: those of before, whether they have ended or
        not; of a pruned one its last value counts. Raises Failure."""
        asked = dict(self._asked, number=number, trials=[
            {"parameters": one.parameters, "value": one.value()}
            for one in trials if one.state != "FAILED"])
        # A terminal's Ctrl-C is for the driver alone.
        done = subprocess.run(self._command, input=json.dumps(asked), text=True,
                              capture_output=True, check=False,
                              start_new_session=True)
        if done.returncode != 0:
            raise Failure("--sampler=tpe: Optuna failed at trial %d: %s" % (
                number, done.stderr.strip()[-2000:]), exit_code=1)
        return json.loads(done.stdout)
