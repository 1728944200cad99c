"""results.jsonl: one line for each finished run.

    {"row": "sync2", "seed": 1, "settings": [...], "accuracy": 0.8841, ...}

run_row.py says what a line has. Python 3 standard library only.
"""

import json
import os

# Of each line.
FIELDS = frozenset((
    "row", "seed", "settings", "epochs", "training", "threads", "cores",
    "workers", "towers", "accuracy", "test_loss", "examples", "steps", "wall_s",
    "steps_per_s", "examples_per_s", "evaluation_s", "staleness_mean",
    "staleness_max", "dropped_steps", "loss_curve", "test_curve",
    "foreign_cores", "commit", "muster_version", "date"))
# Lines of before have it not.
NEWER_FIELDS = frozenset(("fullest_shard_bytes",))


class BadResults(Exception):
    """The file cannot be used; the text says why and what to do."""


def _parse(path, number, line):
    try:
        result = json.loads(line)
        lacking = sorted(FIELDS - set(result))
    except (ValueError, TypeError) as error:
        raise BadResults("%s, line %d is no result of a run (%s); remove it" % (
            path, number, error)) from error
    if lacking:
        raise BadResults("%s, line %d is no result of a run: it has no %s; "
                         "remove it" % (path, number, ", ".join(lacking)))
    return (result["row"], result["seed"]), result


def read(path):
    """{(row, seed): line}, in the order of the file. Raises BadResults.

    A last line without its end is of a run that was cut off, and left out.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadResults("cannot read %s: %s" % (path, error)) from error
    results = {}
    for number, line in enumerate(text.split("\n")[:-1], 1):
        key, result = _parse(path, number, line)
        if key in results:
            raise BadResults("%s, line %d: row %s with seed %s is there twice; "
                             "remove one" % (path, number, *key))
        results[key] = result
    return results


def append(path, result):
    """Adds a line, in place of one that was cut off."""
    line = json.dumps(result, separators=(",", ":")) + "\n"
    with open(path, "a+b") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(line.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())
