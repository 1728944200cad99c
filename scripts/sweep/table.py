"""A sweep's outcome as sweep.csv, as a table, and as a command line."""

import csv
import io
import os
import shlex

from trainings.record import write_whole

from .trial import HALVES, Trial

BEST_ROWS = 10


def best(trials, maximize):
    """The best trial that is done, the earliest of equals; None: none is."""
    done = ranked(trials, maximize)
    return done[0] if done else None


def ranked(trials, maximize):
    done = [one for one in trials
            if one.state == "DONE" and one.value() is not None]
    return sorted(done, key=lambda one: -one.value() if maximize
                  else one.value())


def write_csv(sweep_dir, trials, fields, metric):
    """A row a trial, in order: the metric, then the other figures of the
    evaluated halves; those of its last evaluation where a trial did not come to its end."""
    others = sorted({name for one in trials for name in one.latest()
                     if name.startswith(HALVES) and name != metric})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", "state", *fields, metric, *others, "seconds",
                     "error"])
    for one in trials:
        latest = one.latest()
        writer.writerow(
            [one.number, one.state] +
            [one.parameters.get(field, "") for field in fields] +
            [latest.get(name, "") for name in (metric, *others)] +
            ["%.1f" % one.seconds, one.error])
    write_whole(os.path.join(sweep_dir, "sweep.csv"), text.getvalue())


def text_table(trials, fields, metric, maximize):
    """The best trials as Markdown, and how the others ended."""
    rows = [["trial", metric, *fields, "seconds"]]
    for one in ranked(trials, maximize)[:BEST_ROWS]:
        rows.append([str(one.number), "%.6g" % one.value(),
                     *(one.parameters[field] for field in fields),
                     "%.0f" % one.seconds])
    rows.insert(1, ["---"] * len(rows[0]))
    lines = ["| %s |" % " | ".join(row) for row in rows]
    counts = ["%d %s" % (sum(one.state == state for one in trials),
                         state.lower()) for state in Trial.ENDED]
    return "\n".join(lines + [", ".join(counts)])


def best_command(trial, sweep_dir, worker, training_flags):
    """Trains once more as `trial` did, with the whole machine."""
    return shlex.join([worker, "--standalone", *training_flags(trial),
                       "--train_dir=" + os.path.join(sweep_dir, "best")])
