"""README.md of the study, and the figures that it shows, from the results.

No number of the page is typed by hand. Python 3 standard library only.
"""

import textwrap

from tests.benchmark.replication import advice
from tests.benchmark.replication import rows
from tests.benchmark.replication import verdicts

# {file: (title, rows)}; rows that were not run are left out.
FIGURES = {
    "two_workers": ("2 workers, three modes", (
        "single", "async2", "sync2", "ssp0_2", "ssp3_2", "ssp10_2")),
    "four_workers": ("4 workers, three modes", (
        "single", "async4", "sync4", "ssp0_4", "ssp3_4", "ssp10_4")),
    "numbers_of_workers": ("1, 2 and 4 workers", (
        "single", "async1", "async2", "async4", "sync1", "sync2", "sync4")),
    "stragglers": ("one worker stands still for half of the time", (
        "sync2", "sync2_straggler", "sync4", "sync4_straggler",
        "sync4_backup", "async4_straggler")),
    "batches": ("a fixed and a grown batch", (
        "single", "sync4", "sync4_grown", "async4", "async4_grown")),
}

TOP = """# Replication, measured

The same training, replicated in each way that Muster has, on one machine:
the MNIST CNN (`worker/model/zoo/mnist_cnn.textproto`) on Fashion-MNIST.
`tests/benchmark/replication/study.sh` makes this page and its figures from
`results.jsonl`, one line a run; `--help` has its flags. **No number here is
typed by hand.** The systems of the original, with all-reduce and two ps tasks:
[original.md](original.md).
"""


def figures(study):
    """What plots.py draws: {name: {"title", "curves"}}."""
    found = {}
    for name, (title, names) in FIGURES.items():
        curves = [{"label": rows.BY_NAME[row].title,
                   "loss_curve": study.curve(row)["loss_curve"],
                   "test_curve": study.curve(row)["test_curve"]}
                  for row in names if study.has(row)]
        if curves:
            found[name] = {"title": title, "curves": curves}
    return found


def paragraph(text, width=80):
    return textwrap.fill(" ".join(text.split()), width, break_long_words=False,
                         break_on_hyphens=False) + "\n"


def table(header, lines):
    """Text left, numbers right."""
    marks = ["---"] + ["--:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(cells) + " |"
                     for cells in [header, marks, *lines]) + "\n"


def _accuracy(study):
    lines = []
    for row in rows.ROWS:
        verdict = row.limit is not None and verdicts.judge(study, row)
        if verdict:
            shown = "**%s**" % verdict.text if verdict.is_missed() else (
                verdict.text)
            lines.append([row.title, "%.2f" % (100 * verdict.accuracy),
                          "%+.2f" % (0.0 - round(verdict.lost, 2)),
                          "%g" % verdict.limit, shown])
    text = "## Accuracy at equal examples\n" + paragraph("""
        Test accuracy in percent, the mean over the seeds, and the difference in
        points from the single process with the same seeds (%s). A row meets its
        limit if it loses no more points: %g for what computes the same updates
        or nearly (sync, bound 0, towers), %g where gradients are stale.
        """ % (_single(study), rows.STRICT, rows.LOOSE)) + "\n"
    text += table(["row", "accuracy", "difference", "limit", "verdict"],
                   lines)
    missed = sum(line[-1] == "**MISSED**" for line in lines)
    met = sum(line[-1] == "met" for line in lines)
    return text + "\n%d met, %d missed, %d open.\n" % (
        met, missed, len(lines) - met - missed)


def _single(study):
    if not study.has("single"):
        return "not run"
    runs = study.by_row["single"]
    return ", ".join("seed %d: %.2f" % (seed, 100 * run["accuracy"])
                     for seed, run in sorted(runs.items()))


def _setting(run, field):
    """The last value that a run was given for a field."""
    return [setting.split("=", 1)[1] for setting in run["settings"]
            if setting.startswith(field + "=")][-1]


def _recipe(study):
    run = study.runs("single" if study.has("single") else
                     next(iter(study.by_row)))[0]
    return "## The recipe\n" + paragraph("""
        %d rows make a batch. A worker of W takes %d / W of them in each step:
        in sync all W together are one update, in async and bounded staleness
        each push is one, so that an epoch has W times as many updates of W
        times fewer rows. The learning rate is %s, falls along half a cosine
        over the run, and is multiplied by the root of an update's rows over %d
        (`optimizer.learning_rate_scaling: SQRT`). A run of %g epochs has %d
        examples; where the first 3 of 4 workers make an update, only theirs
        count, and there are a third more updates. Rows called "128 rows each"
        have a batch of %d times W and twice the epochs; rows that only show
        time stop earlier. The settings of each run are in its line of
        `results.jsonl`; those of `%s`:
        """ % (rows.BATCH, rows.BATCH, _setting(run, "optimizer.learning_rate"),
               rows.BATCH, run["epochs"], run["examples"], rows.BATCH, run["row"])) + (
                   "```\n%s\n```\n" % "\n".join(
                       "--set=" + setting for setting in run["settings"]))


def _speed_line(study, row):
    runs = study.runs(row.name)
    relative = ("%.2f" % (study.speed(row.name) / study.speed("single"))
                if study.has("single") else "")
    return [row.title, str(len(runs)), "%.0f" % study.speed(row.name),
            relative, "%.1f" % study.mean(row.name, "steps_per_s"),
            "%.2f" % study.mean(row.name, "staleness_mean"),
            "%d" % max(run["staleness_max"] for run in runs),
            "%d" % max(run["dropped_steps"] for run in runs)]


def _speed(study):
    header = ["row", "runs", "examples/s", "of one process", "updates/s",
              "staleness, mean", "most", "dropped"]
    return "## Speed and staleness\n" + paragraph("""
        Examples a second while nobody evaluates (of several runs the median),
        updates a second, and how many updates a gradient was old when it was
        applied. All processes share the machine's cores: a row cannot be faster
        than the cores are, and what is missing to one process is the price of
        the processes.""") + "\n" + table(
            header, [_speed_line(study, row) for row in rows.ROWS
                     if study.has(row.name)])


def _target_line(study, row):
    run = study.curve(row.name)
    reached = verdicts.reach(run)
    best = max(point["accuracy"] for point in run["test_curve"])
    if reached is None:
        return [row.title, "%d" % row.rows_per_step(), "not reached", "", "",
                "", "%.2f" % (100 * best)]
    return [row.title, "%d" % row.rows_per_step(), "%.0f" % reached.wall_s,
            "%.0f" % (reached.examples / study.speed(row.name)),
            "%.0f" % reached.steps, "%.0f" % reached.examples,
            "%.2f" % (100 * best)]


def _target(study):
    header = ["row", "rows an update", "wall time, s",
              "at the speed above, s", "updates", "examples", "best, %"]
    return "## Time to test accuracy %.2f\n" % rows.TARGET + paragraph("""
        When the curve of test accuracy first crosses it, on a straight line
        between two looks at the test set. The wall time has these looks in it,
        for which the chief alone computes; the next column, the examples over
        the examples a second of the table above, has not. The rate falls over
        the whole run, so that the accuracy rises late in all rows.
        """) + "\n" + table(header, [
            _target_line(study, row) for row in rows.ROWS
            if study.has(row.name) and row.evaluations > 1])


def _advice(study):
    text = "## Which mode to choose\n"
    for number, line in enumerate(advice.lines(study), 1):
        mark = "%d. " % number
        text += mark + textwrap.indent(
            paragraph(line, 80 - len(mark)), " " * len(mark))[len(mark):]
    return text


def _figures(study):
    return "## Figures\n" + "\n".join(
        "![%s](%s.svg)" % (figure["title"], name)
        for name, figure in figures(study).items()) + "\n"


def conditions(study, wanted=rows.ROWS):
    """When and where it was run, and what makes it doubtful."""
    runs = study.all_runs()
    text = """%d runs on a machine with %s cores, %s to %s, build `%s` (version
        %s). Other processes used %.2f cores in the mean.""" % (
            len(runs), runs[0]["cores"], min(run["date"] for run in runs),
            max(run["date"] for run in runs), runs[-1]["commit"][:12],
            runs[-1]["muster_version"],
            sum(run["foreign_cores"] for run in runs) / len(runs))
    return "## How it was run\n" + "\n".join(
        paragraph(one) for one in [text, *verdicts.doubts(study, wanted)])


def render(results):
    """The page's text. `results` is what results_file.read returns."""
    study = verdicts.Study(results)
    if not study.by_row:
        return TOP + "\nNothing has been run yet.\n"
    parts = (_advice, _accuracy, _recipe, _speed, _target, _figures,
             conditions)
    return "\n".join([TOP, *[part(study) for part in parts]])
