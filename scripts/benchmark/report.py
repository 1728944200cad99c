"""The table and bench.json. Python 3 standard library only."""

import json
import os
import platform
import shlex
import sys

from .figures import limit_text, number


def is_met(row, key):
    """Whether "met" or "stretch_met" holds. A figure with a noisy sample has met
    neither: it is open."""
    return row[key] and not row["noisy_samples"]


def word_of(row, key, met, missed):
    """`met`, "open" or `missed`; "" without this target."""
    if row[key] is None:
        return ""
    return met if is_met(row, key) else "open" if row[key] else missed


def verdict_of(row):
    words = []
    if row["target"] is not None:
        words.append(word_of(row, "met", "met", "MISSED"))
    if row["stretch"] is not None:
        words.append("(stretch %s: %s)" % (
            limit_text(row, "stretch"),
            word_of(row, "stretch_met", "met", "missed")))
    if row["noisy_samples"]:
        words.append("(noisy: %d of %d)" % (row["noisy_samples"],
                                            len(row["samples"])))
    return " ".join(words)


def count_met(rows):
    """"2 of 3 targets and 1 of 2 stretch targets"."""
    return " and ".join(
        "%d of %d %s" % (sum(is_met(row, met) for row in aimed), len(aimed),
                         what)
        for aimed, met, what in (
            ([row for row in rows if row["target"] is not None], "met",
             "targets"),
            ([row for row in rows if row["stretch"] is not None],
             "stretch_met", "stretch targets"))
        if aimed or met == "met")


def print_table(rows):
    width = max(len(row["name"]) for row in rows)
    form = "%%-%ds %%9s %%9s %%9s %%-8s %%8s %%s" % width
    print((form % ("", "min", "median", "max", "", "target", "")).rstrip())
    for row in rows:
        print((form % (row["name"], number(row["min"]), number(row["value"]),
                       number(row["max"]), row["unit"], limit_text(row),
                       verdict_of(row))).rstrip())
    print(count_met(rows) + " met")


def cpu_model():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def write_json(path, content):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
        file.write("\n")


def document(options, rows):
    return {"machine": {"architecture": platform.machine(),
                        "cpu": cpu_model(), "kernel": platform.release(),
                        "cores": len(os.sched_getaffinity(0))},
            "command": shlex.join(["scripts/bench.sh", *sys.argv[1:]]),
            "rounds": options.rounds, "steps": options.steps,
            "bytes": options.bytes, "quick": options.quick, "figures": rows}
