"""Results that nobody measured, for the tests of the page.

Python 3 standard library only.
"""

from tests.benchmark.replication import rows

# Test accuracy of the single process, by seed.
SINGLE = {1: 0.8800, 2: 0.8850, 3: 0.8900}


def _point(part, examples, wall_s):
    at = int(part * examples)
    return {"step": at // 128, "wall_s": round(part * wall_s, 3),
            "examples": at}


def curves(accuracy, examples, wall_s):
    """Test accuracy rises by 2 points on a straight line."""
    return {
        "loss_curve": [
            {**_point(part / 30, examples, wall_s),
             "loss": round(2.3 - 2 * (part / 30) ** 0.5, 5)}
            for part in range(1, 31)],
        "test_curve": [
            {**_point(part / 4, examples, wall_s),
             "accuracy": accuracy - 0.02 * (1 - part / 4), "loss": 0.4}
            for part in range(1, 5)]}


def result(name, seed, **changes):
    """A line of results.jsonl: 51 s at 1200 examples/s."""
    row = rows.BY_NAME[name]
    line = {
        "row": name, "seed": seed, "settings": row.settings(1.0, seed),
        "epochs": 1.0, "training": rows.TRAINING, "threads": 1, "cores": 2,
        "workers": row.workers, "towers": row.towers,
        "accuracy": SINGLE.get(seed, 0.88), "test_loss": 0.31,
        "examples": 59904, "steps": 468, "wall_s": 51.0, "steps_per_s": 9.4,
        "examples_per_s": 1200.0, "evaluation_s": 3.0, "staleness_mean": 0.0,
        "staleness_max": 0, "dropped_steps": 0, "foreign_cores": 0.01,
        "commit": "0123456789abcdef", "muster_version": "0.1.0",
        "date": "2026-11-22"}
    line.update(changes)
    return {**curves(line["accuracy"], line["examples"], line["wall_s"]),
            **line}


def results(*lines):
    """As results_file.read returns them."""
    return {(line["row"], line["seed"]): line for line in lines}


def row(name, lost_points):
    """Three seeds that lose so many points against SINGLE."""
    return [result(name, seed, accuracy=accuracy - lost_points / 100)
            for seed, accuracy in SINGLE.items()]


def whole():
    """Every row; each with a limit meets it."""
    lines = []
    for one in rows.ROWS:
        lines += [result(one.name, seed) for seed in rows.SEEDS
                  if one.has_seed(seed)]
    return results(*lines)
