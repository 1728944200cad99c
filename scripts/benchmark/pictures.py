#!/usr/bin/env python3
"""Pictures of bench.json: bench.sh --pictures=DIR.

  pictures.py bench.json DIR

writes scaling.svg and message_size.svg (the median as a line, minimum to
maximum as bars) and timeline.svg, each if it was measured. The same figures
give the same bytes. Needs matplotlib.
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

LABELS = {
    "scaling": ("workers, one thread each", "steps/s, all workers", "linear"),
    "message_size": ("bytes, one way", "GB/s, both ways", "log"),
}
SIZE_INCHES = (7, 4.5)
# Of a lane of the timeline, above those of the sends.
LANE_INCHES = 0.28
COLOURS = {"pull": "tab:blue", "forward": "tab:green", "backward": "tab:olive",
           "push": "tab:orange"}
SEND_COLOUR = "tab:red"
OTHER_COLOUR = "lightgray"


def series_of(rows, picture):
    """[(name, points sorted by x)] in the order of the table."""
    found = {}
    for row in rows:
        if row["point"] and row["point"]["picture"] == picture:
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


def draw_series(picture, series):
    figure, axes = pyplot.subplots(figsize=SIZE_INCHES, layout="constrained")
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
    axes.legend()
    return figure


def lanes_of(spans):
    """In the order in which a step first uses them."""
    by_begin = sorted(spans, key=lambda span: span["begin_ms"])
    return list(dict.fromkeys(span["lane"] for span in by_begin))


def colour_of(span):
    if span["lane"].startswith("send"):
        return SEND_COLOUR
    return COLOURS.get(span["name"], OTHER_COLOUR)


def draw_lanes(axes, timeline):
    spans = timeline["spans"]
    lanes = lanes_of(spans)
    for span in spans:
        axes.broken_barh(
            [(span["begin_ms"], span["ms"])],
            (lanes.index(span["lane"]) - 0.4, 0.8), facecolor=colour_of(span),
            edgecolor="black", linewidth=0.2)
        if span["name"] in COLOURS and span["name"] != span["lane"]:
            axes.text(span["begin_ms"] + span["ms"] / 2,
                      lanes.index(span["lane"]), span["name"], ha="center",
                      va="center")
    axes.set_yticks(range(len(lanes)), lanes)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_title("one of %d workers, %s" % (
        timeline["workers"], timeline["link"]), loc="left")


def draw_timelines(timelines):
    heights = [len(lanes_of(one["spans"])) for one in timelines]
    figure, all_axes = pyplot.subplots(
        len(timelines), 1, squeeze=False, layout="constrained",
        sharex=True, height_ratios=heights,
        figsize=(SIZE_INCHES[0], 1 + LANE_INCHES * sum(heights)))
    for [axes], timeline in zip(all_axes, timelines):
        draw_lanes(axes, timeline)
    all_axes[-1][0].set_xlabel("ms from the beginning of the step")
    return figure


def main(path, folder):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    os.makedirs(folder, exist_ok=True)
    for picture in LABELS:
        series = series_of(document["figures"], picture)
        if series:
            save(draw_series(picture, series),
                 os.path.join(folder, picture + ".svg"))
    if document.get("timelines"):
        save(draw_timelines(document["timelines"]),
             os.path.join(folder, "timeline.svg"))


if __name__ == "__main__":
    main(*sys.argv[1:])
