"""A sweep as parallel coordinates.

In SWEEP_DIR/parallel.svg each trial is a line across one axis a parameter and,
last, that of the metric; the better of two is the darker, and pruned ones are
dotted. The same trials give the same bytes. Needs the packages of
requirements.txt.
"""

import math
import os

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "sweep", "font.size": 8,
    "font.sans-serif": ["DejaVu Sans", "Arial"]})
from matplotlib import pyplot  # pylint: disable=wrong-import-position

AXIS_INCHES = 1.6
HEIGHT_INCHES = 3.5
TICKS = 5


def height(one, text):
    """Where a value is on its parameter's axis, from 0 to 1."""
    if one.points is not None:
        return one.points.index(text) / max(1, len(one.points) - 1)
    low, high, value = one.low, one.high, float(text)
    if one.kind == "log":
        low, high, value = math.log(low), math.log(high), math.log(value)
    return (value - low) / (high - low)


def ticks(one):
    """[(height, text)] of an axis."""
    texts = one.points or [one.text(one.on_scale(i / (TICKS - 1)))
                           for i in range(TICKS)]
    return [(height(one, text), "%.3g" % float(text)
             if one.kind != "choice" else text)
            for text in dict.fromkeys(texts)]


def draw_axis(axes, x, name, labels):
    axes.axvline(x, color="gray", linewidth=0.8)
    axes.annotate(name, (x, 1.04), ha="center", va="bottom")
    for y, text in labels:
        axes.annotate(text, (x, y), (-3, 0), textcoords="offset points",
                      ha="right", va="center", zorder=3,
                      bbox={"color": "white", "alpha": 0.7, "pad": 1})


def draw(trials, parameters, metric, maximize):
    values = [one.value() for one in trials]
    low, high = min(values), max(values)
    width = (high - low) or 1.0
    figure, axes = pyplot.subplots(layout="constrained", figsize=(
        AXIS_INCHES * (len(parameters) + 1), HEIGHT_INCHES))
    best_first = sorted(set(values), reverse=maximize)
    colours = matplotlib.colormaps["viridis"]
    for trial in trials:
        axes.plot([height(one, trial.parameters[one.field])
                   for one in parameters] + [(trial.value() - low) / width],
                  color=colours(best_first.index(trial.value()) /
                                len(best_first)),
                  linestyle="-" if trial.state == "DONE" else ":")
    for x, one in enumerate(parameters):
        draw_axis(axes, x, one.field.replace(".", ".\n"), ticks(one))
    draw_axis(axes, len(parameters), metric, [
        (i / (TICKS - 1), "%.4g" % (low + width * i / (TICKS - 1)))
        for i in range(TICKS)])
    axes.set_xlim(-0.5, len(parameters) + 0.2)
    axes.set_axis_off()
    return figure


def write(options, trials, parameters):
    """`trials`: those with a value. Returns where it is."""
    path = os.path.join(options.sweep_dir, "parallel.svg")
    draw(trials, parameters, options.metric, options.maximize).savefig(
        path, metadata={"Date": None})
    return path
