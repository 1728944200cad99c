"""Writes scikit-learn's diabetes data as CSV, and what can be had of it.

  write_diabetes.py OUT

train.csv and test.csv, both of all 442 rows, ten columns and `target`; and
least_squares.json, the mean squared error of the solution of the normal
equations. Runs in the environment of requirements.txt.
"""

import json
import os
import sys

import numpy
from sklearn import datasets


def write_csv(path, names, rows):
    with open(path, "w", encoding="ascii") as file:
        file.write(",".join(names) + "\n")
        for row in rows:
            # As many digits as tell all float64 apart.
            file.write(",".join(repr(float(value)) for value in row) + "\n")


def least_squares(features, targets):
    """The mean squared error of the best linear model with a constant."""
    columns = numpy.column_stack([features, numpy.ones(len(features))])
    weights = numpy.linalg.solve(columns.T @ columns, columns.T @ targets)
    return float(numpy.mean((columns @ weights - targets) ** 2))


def main(out):
    data = datasets.load_diabetes()
    rows = numpy.column_stack([data.data, data.target])
    for name in ("train.csv", "test.csv"):
        write_csv(os.path.join(out, name), [*data.feature_names, "target"],
                  rows)
    with open(os.path.join(out, "least_squares.json"), "w",
              encoding="ascii") as file:
        json.dump({"rows": len(rows), "mean_squared_error":
                   least_squares(data.data, data.target)}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
