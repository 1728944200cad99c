#!/usr/bin/python3
"""Writes golden.txt: what scikit-learn's metrics find in 1,000 random cases.

Needs the PyPI package scikit-learn. Run as
  tests/worker/metric/generate_golden.py > tests/worker/metric/golden.txt
metric_golden_test.cc makes the same cases by the same rules.
"""

import math
import warnings

import numpy as np
import sklearn
from sklearn import metrics

from golden_cases import CASES, NAN, Case


def softmax(row):
    powers = [math.exp(x - max(row)) for x in row]
    # The same sum in any order: equal rows stay equal.
    return [power / math.fsum(powers) for power in powers]


def sigmoid(x):
    return np.array([1 / (1 + math.exp(-v)) for v in x])


def mean_of_defined(values):
    values = [value for value in values if not math.isnan(value)]
    return sum(values) / len(values) if values else NAN


def area(truth, score):
    if len(set(truth)) < 2:
        return NAN
    return metrics.roc_auc_score(truth, score)


def by_class(truth, predicted, **options):
    return metrics.precision_recall_fscore_support(
        truth, predicted, zero_division=0, **options)[:3]


def of_classes(case):
    truth = case.y[:, 0]
    predicted = np.where(case.bad, -1, np.argmax(
        np.where(np.isnan(case.x), 0, case.x), axis=1))
    there = sorted((set(truth) | set(predicted)) - {-1})
    found = by_class(truth, predicted, average="macro", labels=there)
    if case.bad.any():
        return [*found, NAN, NAN]
    if len(there) > 0:
        assert found == by_class(truth, predicted, average="macro")
    p = np.array([softmax(list(row)) for row in case.x])
    if case.outputs == 2:
        auc = area(truth == 1, p[:, 1])
    else:
        auc = mean_of_defined([area(truth == k, p[:, k])
                               for k in range(case.outputs)])
        if len(set(truth)) == case.outputs:
            assert math.isclose(auc, metrics.roc_auc_score(
                truth, p, multi_class="ovr", average="macro"))
    return [*found, auc,
            metrics.log_loss(truth, p, labels=range(case.outputs))]


def of_probabilities(case):
    predicted = np.where(case.bad[:, None], False, case.x > 0).astype(int)
    if case.outputs == 1:
        found = by_class(case.y[:, 0], predicted[:, 0], average="binary")
    else:
        found = by_class(case.y, predicted, average="macro")
    if case.bad.any():
        return [*found, NAN, NAN]
    columns = list(zip(case.x.T, case.y.T))
    return [*found, mean_of_defined([area(y, x) for x, y in columns]),
            sum(metrics.log_loss(y, np.stack([sigmoid(-x), sigmoid(x)], axis=1),
                                 labels=[0, 1]) for x, y in columns) /
            len(columns)]


def of_numbers(case):
    if case.bad.any():
        return [NAN]
    return [mean_of_defined([
        metrics.r2_score(y, x) if len(set(y)) > 1 else NAN
        for x, y in zip(case.x.T, case.y.T)])]


FIGURES = {"classes": of_classes, "probability": of_probabilities,
           "probabilities": of_probabilities, "numbers": of_numbers}


def main():
    warnings.simplefilter("ignore")
    print("# Made by generate_golden.py with scikit-learn",
          sklearn.__version__)
    for number in range(CASES):
        case = Case(number)
        case.x, case.y = np.array(case.x), np.array(case.y)
        case.bad = np.isnan(case.x).any(axis=1)
        print(*("%.15g" % value for value in FIGURES[case.kind](case)))


if __name__ == "__main__":
    main()
