"""The parameters of the next trial, by Optuna: a program of sampler.py's.

Reads {"seed", "number", "maximize", "parameters", "trials": [{"parameters",
"value"}]} on stdin and prints {field: text}. A trial without a value still
runs; Optuna stays away from it. Runs in the environment of requirements.txt.
"""

import json
import os
import sys

import optuna
from optuna.distributions import (CategoricalDistribution, FloatDistribution,
                                  IntDistribution)
from optuna.trial import TrialState

# This file is run by its path, by another Python.
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from sweep.space import Parameter  # pylint: disable=wrong-import-position


def distribution(one):
    if one.kind == "choice":
        return CategoricalDistribution(one.points)
    if one.points is not None:
        # By their places, which are at even distances.
        return IntDistribution(0, len(one.points) - 1)
    if one.kind == "int":
        return IntDistribution(one.low, one.high)
    return FloatDistribution(one.low, one.high, log=one.kind == "log")


def to_optuna(one, text):
    if one.kind == "choice":
        return text
    if one.points is not None:
        return one.points.index(text)
    return int(text) if one.kind == "int" else float(text)


def from_optuna(one, value):
    if one.kind == "choice":
        return value
    return one.points[value] if one.points is not None else one.text(value)


def past_trial(trial, parameters, distributions):
    ended = trial["value"] is not None
    return optuna.trial.create_trial(
        state=TrialState.COMPLETE if ended else TrialState.RUNNING,
        value=trial["value"], distributions=distributions,
        params={one.field: to_optuna(one, trial["parameters"][one.field])
                for one in parameters})


def main():
    asked = json.load(sys.stdin)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    parameters = [Parameter(**one) for one in asked["parameters"]]
    distributions = {one.field: distribution(one) for one in parameters}
    # A sampler that lived on would have gone on with its random numbers: so
    # that no two trials get the same, each has a seed of its own.
    study = optuna.create_study(
        direction="maximize" if asked["maximize"] else "minimize",
        sampler=optuna.samplers.TPESampler(
            seed=(asked["seed"] * 1000003 + asked["number"]) % 2 ** 32,
            constant_liar=True))
    study.add_trials([past_trial(one, parameters, distributions)
                      for one in asked["trials"]])
    found = study.ask(distributions).params
    print(json.dumps({one.field: from_optuna(one, found[one.field])
                      for one in parameters}))


if __name__ == "__main__":
    main()
