#!/usr/bin/env python3
"""Pictures of bench.json: bench.sh --pictures=DIR.

  pictures.py bench.json DIR

writes scaling.png and message_size.png, each if its points were measured: the
median as a line, minimum to maximum as bars. Needs matplotlib.
"""

import json
import os
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # pylint: disable=wrong-import-position

LABELS = {
    "scaling": ("workers, one thread each", "steps/s, all workers", "linear"),
    "message_size": ("bytes, one way", "GB/s, both ways", "log"),
}
SIZE_INCHES = (7, 4.5)
DPI = 120


def series_of(rows, picture):
    """[(name, points sorted by x)] in the order of the table."""
    found = {}
    for row in rows:
        if row["point"] and row["point"]["picture"] == picture:
            found.setdefault(row["point"]["series"], []).append(row)
    for points in found.values():
        points.sort(key=lambda row: row["point"]["x"])
    return list(found.items())


def draw(picture, series, path):
    figure, axes = pyplot.subplots(figsize=SIZE_INCHES)
    x_label, y_label, scale = LABELS[picture]
    for name, rows in series:
        values = [row["value"] for row in rows]
        axes.errorbar(
            [row["point"]["x"] for row in rows], values,
            yerr=[[value - row["min"] for value, row in zip(values, rows)],
                  [row["max"] - value for value, row in zip(values, rows)]],
            marker="o", capsize=3, label=name)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    if scale == "log":
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
    else:
        xs = sorted({row["point"]["x"] for _, rows in series for row in rows})
        axes.set_xticks(xs)
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=DPI)
    pyplot.close(figure)


def main(path, folder):
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["figures"]
    os.makedirs(folder, exist_ok=True)
    for picture in LABELS:
        series = series_of(rows, picture)
        if series:
            draw(picture, series, os.path.join(folder, picture + ".png"))


if __name__ == "__main__":
    main(*sys.argv[1:])
