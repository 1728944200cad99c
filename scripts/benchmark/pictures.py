#!/usr/bin/env python3
"""The picture of bench.json: bench.sh --pictures=DIR.

  pictures.py bench.json DIR

writes scaling.svg (the median as a line, minimum to maximum as bars) if it was
measured. The same figures give the same bytes. Needs matplotlib.
"""

import io
import json
import os
import re
import sys

import matplotlib

matplotlib.use("svg")
# Text stays text, which is smaller; names of elements do not change.
matplotlib.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "bench", "font.size": 8,
    "font.sans-serif": ["DejaVu Sans", "Arial"], "axes.grid": True,
    "grid.alpha": 0.3})
from matplotlib import pyplot  # pylint: disable=wrong-import-position

PICTURE = "scaling"
SIZE_INCHES = (7, 4.5)


def series_of(rows):
    """[(name, points sorted by x)] in the order of the table."""
    found = {}
    for row in rows:
        if row["point"]:
            found.setdefault(row["point"]["series"], []).append(row)
    for points in found.values():
        points.sort(key=lambda row: row["point"]["x"])
    return list(found.items())


def save(figure, path):
    drawing = io.StringIO()
    figure.savefig(drawing, metadata={"Date": None})
    pyplot.close(figure)
    # A tenth of a point is finer than any screen; indentation is not seen.
    svg = re.sub(r"(\.\d)\d{3,}", r"\1", drawing.getvalue())
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r"(?m)^ +", "", svg))


def draw_series(series):
    figure, axes = pyplot.subplots(figsize=SIZE_INCHES, layout="constrained")
    for name, rows in series:
        values = [row["value"] for row in rows]
        axes.errorbar(
            [row["point"]["x"] for row in rows], values,
            yerr=[[value - row["min"] for value, row in zip(values, rows)],
                  [row["max"] - value for value, row in zip(values, rows)]],
            marker="o", capsize=3, label=name)
    axes.set_xlabel("workers, one thread each")
    axes.set_ylabel("steps/s, all workers")
    axes.set_xticks(sorted({row["point"]["x"] for _, rows in series
                            for row in rows}))
    axes.set_ylim(bottom=0)
    axes.legend()
    return figure


def main(path, folder):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    os.makedirs(folder, exist_ok=True)
    series = series_of(document["figures"])
    if series:
        save(draw_series(series), os.path.join(folder, PICTURE + ".svg"))


if __name__ == "__main__":
    main(*sys.argv[1:])
