"""The page of the original's systems: one device, towers in one graph,
distributed, both, and the all-reduce that it names beside them.

No number of ours is typed by hand. Python 3 standard library only.
"""

from tests.benchmark.replication import page
from tests.benchmark.replication import rows
from tests.benchmark.replication import verdicts

BASE = "one_thread"

TOP = """# The original's systems, measured

The same training in every system that the original has, on one machine: the
MNIST CNN (`worker/model/zoo/mnist_cnn.textproto`) on Fashion-MNIST, by the
recipe of [README.md](README.md). `study.sh --original` makes this page and its
picture from `original.jsonl`, one line a run, rows interleaved.
"""

# As its authors gave them.
THEIRS = """
    The original's own figures are 200, 80 and 50 batches/s, and 2.7 times the
    speed of one GPU with 3 of them. They are of other hardware (GPUs, several
    machines), of another model and of other batches: what can be compared is
    how a system stands to one device beside it, which is the column "of one
    thread". Here all tasks share %d cores, so that a row with more of them than
    that cannot be faster; what is missing is the price of the processes and of
    waiting for each other.
    """


def figures(study):
    """What plots.py draws: {name: {"title", "bars"}}."""
    bars = [{"label": _name(row), "value": study.speed(row.name)}
            for row in rows.ORIGINAL if study.has(row.name)]
    if not bars:
        return {}
    return {"original": {"title": "the original's systems, examples/s",
                         "bars": bars}}


def _name(row):
    if not row.workers:
        return row.title
    return "%s, %d worker%s%s" % (
        row.title, row.workers, "" if row.workers == 1 else "s",
        ", %d ps" % row.ps if row.ps else "")


def _line(study, row):
    reached = verdicts.reach(study.curve(row.name))
    fullest = max(run.get("fullest_shard_bytes", 0)
                  for run in study.runs(row.name))
    return [
        _name(row), "%.0f" % study.speed(row.name),
        "%.2f" % (study.speed(row.name) / study.speed(BASE))
        if study.has(BASE) else "",
        "%.1f" % (study.speed(row.name) / row.rows_per_step()),
        "%.2f" % (100 * study.mean(row.name, "accuracy")),
        "%.0f" % reached.wall_s if reached else "not reached",
        "%.2f" % (fullest / 1e6) if fullest else ""]


def _shards(study):
    def fullest(name):
        return max(run.get("fullest_shard_bytes", 0)
                   for run in study.runs(name))
    if not study.has("sync2_ps1", "sync2_ps2") or not fullest("sync2_ps1"):
        return ""
    return "\n" + page.paragraph(
        "A second ps task takes its half of the parameters: the fullest one "
        "holds %.2f of what the only one held." % (
            fullest("sync2_ps2") / fullest("sync2_ps1")))


def render(results):
    """The page's text. `results` is what results_file.read returns."""
    study = verdicts.Study(results)
    if not study.by_row:
        return TOP + "\nNothing has been run yet.\n"
    header = ["system", "examples/s", "of one thread", "batches/s",
              "accuracy, %", "s to %.2f" % rows.TARGET, "fullest shard, MB"]
    text = TOP + "\n" + page.table(header, [
        _line(study, row) for row in rows.ORIGINAL if study.has(row.name)])
    text += "\n" + page.paragraph("""
        Examples/s: the median of the runs, while nobody evaluates. Batches/s:
        updates, of as many rows as the row says in README.md's recipe (128 over
        the workers where each push is one). The time to accuracy has the looks
        at the test set in it.""")
    text += _shards(study)
    text += "\n" + page.paragraph(
        THEIRS % study.all_runs()[0]["cores"])
    if figures(study):
        text += "\n![examples/s of each system](original.svg)\n"
    return text + "\n" + page.conditions(study, rows.ORIGINAL)
