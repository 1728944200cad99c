"""Pruners, which find the trials that are not worth their end.

A pruner looks at a trial after each of its evaluations, and at all others, and
keeps nothing. Values are turned so that less is better.
"""

import statistics

NAMES = ("none", "median", "asha")
# A median of fewer trials says little.
MEDIAN_TRIALS = 3
# One in so many of the trials that reach a rung goes on to the next, which is
# so many times as far (Li et al., A System for Massively Parallel
# Hyperparameter Tuning, 2020).
ASHA_FACTOR = 3


def is_hopeless(name, trial, trials, sign):
    """Whether `trial`, one of `trials`, is better ended now. `sign`: 1 if less
    is better, -1 if more is."""
    if name == "none" or not trial.evaluations():
        return False
    rule = {"median": _below_median, "asha": _stays_on_rung}[name]
    return rule(trial, trials, sign)


def _below_median(trial, trials, sign):
    """Worse than the median of what the trials that are done had at the same
    step, or at their last evaluation before it."""
    step, value = trial.evaluations()[-1]
    theirs = []
    for other in trials:
        reached = [it for at, it in other.evaluations() if at <= step]
        if other.state == "DONE" and other is not trial and reached:
            theirs.append(sign * reached[-1])
    return (len(theirs) >= MEDIAN_TRIALS and
            sign * value > statistics.median(theirs))


def _stays_on_rung(trial, trials, sign):
    """Rungs are the evaluations 1, 3, 9, ... of a trial; it is compared with
    all that have reached its highest one. The first there have nobody to be
    compared with: they go on until somebody better comes."""
    rung = 1
    while rung * ASHA_FACTOR <= len(trial.evaluations()):
        rung *= ASHA_FACTOR
    values = sorted(sign * other.evaluations()[rung - 1][1]
                    for other in trials if len(other.evaluations()) >= rung)
    last = max(1, len(values) // ASHA_FACTOR)
    return sign * trial.evaluations()[rung - 1][1] > values[last - 1]
