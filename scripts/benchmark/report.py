"""The table and bench.json. Python 3 standard library only."""

import json
import os
import platform
import shlex
import sys

from .figures import Target, number


def target_text(row):
    if row["target"] is None:
        return "", ""
    target = Target(row["target"], row["wanted"] == "at least")
    return str(target), "met" if row["met"] else "MISSED"


def print_table(rows):
    width = max(len(row["name"]) for row in rows)
    form = "%%-%ds %%9s %%9s %%9s %%-8s %%8s %%s" % width
    print((form % ("", "min", "median", "max", "", "target", "")).rstrip())
    for row in rows:
        wanted, verdict = target_text(row)
        if row["noisy_samples"]:
            verdict = (verdict + " (noisy: %d of %d)" % (
                row["noisy_samples"], len(row["samples"]))).strip()
        print((form % (row["name"], number(row["min"]), number(row["value"]),
                       number(row["max"]), row["unit"], wanted,
                       verdict)).rstrip())
    aimed = [row for row in rows if row["target"] is not None]
    print("%d of %d targets met" % (sum(row["met"] for row in aimed),
                                    len(aimed)))


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
