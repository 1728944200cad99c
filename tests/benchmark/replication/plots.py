#!/usr/bin/env python3
"""Draws the study's figures: plots.py FOLDER, figures as JSON on stdin.

    {name: {"title": ..., "curves": [{"label", "loss_curve", "test_curve"}]}}
    {name: {"title": ..., "bars": [{"label", "value"}]}}

Runs in an environment that has matplotlib (requirements.txt). The same
results give the same bytes.
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
    "svg.fonttype": "none", "svg.hashsalt": "replication", "font.size": 8,
    "font.sans-serif": ["DejaVu Sans", "Arial"],
    "axes.grid": True, "grid.alpha": 0.3, "lines.linewidth": 1.2,
    "path.simplify_threshold": 0.5})
# pylint: disable=wrong-import-position
from matplotlib import pyplot

# (curve, its value, what the axis says), row by row; each against two things.
ROWS = (("test_curve", "accuracy", "test accuracy"),
        ("loss_curve", "loss", "training loss"))
COLUMNS = (("step", "updates"), ("wall_s", "wall time, s"))


def smaller(svg):
    """The same picture in half the bytes."""
    # A tenth of a point is finer than any screen.
    svg = re.sub(r"(\.\d)\d{3,}", r"\1", svg)
    svg = re.sub(r" transform=\"rotate\(-0 [^\"]*\"", "", svg)
    return re.sub(r"(?m)^ +", "", svg)


def draw_bars(figure, path):
    canvas, axis = pyplot.subplots(figsize=(7, 4), layout="constrained")
    bars = axis.barh([bar["label"] for bar in figure["bars"]],
                     [bar["value"] for bar in figure["bars"]])
    axis.bar_label(bars, fmt="%.0f", padding=3)
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.margins(x=0.1)
    canvas.suptitle(figure["title"])
    save(canvas, path)


def draw_curves(figure, path):
    canvas, axes = pyplot.subplots(2, 2, figsize=(9, 6), layout="constrained")
    for row, (curve, value, value_label) in zip(axes, ROWS):
        for axis, (position, position_label) in zip(row, COLUMNS):
            for line in figure["curves"]:
                points = line[curve]
                axis.plot([point[position] for point in points],
                          [point[value] for point in points],
                          marker="." if curve == "test_curve" else None,
                          label=line["label"])
            axis.set_xlabel(position_label)
            axis.set_ylabel(value_label)
            axis.locator_params(nbins=6)
    for axis in axes[1]:
        # The first steps, which fall steeply, would hide the rest.
        later = [point["loss"] for line in figure["curves"]
                 for point in line["loss_curve"][1:]]
        axis.set_ylim(top=1.05 * max(later, default=3))
    handles, labels = axes[1][0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=3)
    canvas.suptitle(figure["title"])
    save(canvas, path)


def save(canvas, path):
    drawing = io.StringIO()
    canvas.savefig(drawing, metadata={"Date": None})
    pyplot.close(canvas)
    with open(path, "w", encoding="utf-8") as file:
        file.write(smaller(drawing.getvalue()))


def main():
    folder = sys.argv[1]
    for name, figure in json.load(sys.stdin).items():
        draw = draw_bars if "bars" in figure else draw_curves
        draw(figure, os.path.join(folder, name + ".svg"))


if __name__ == "__main__":
    main()
