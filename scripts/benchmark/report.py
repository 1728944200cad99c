"""The figures as a table, as bench.json, and in Markdown pages: bench.sh
--table=FILE and, a few of them, --ratios=FILE.

  python3 -m benchmark.report [--ratios] bench.json FILE [PICTURES]

(in scripts/) writes a page again. It replaces what is between the lines BEGIN
and END of FILE, and shows the picture of the folder PICTURES. So no number is
typed by hand. Python 3 standard library only.
"""

import json
import os
import platform
import re
import shlex
import sys

BEGIN = "<!-- bench.sh --table writes from here -->"
END = "<!-- to here -->"
PICTURE = "scaling.svg"
PICTURE_SHOWS = "Steps/s by the number of workers"
# What somebody who chooses a system asks first. A figure that was not measured
# is left out.
RATIOS = ("standalone over PyTorch's best, 1 thread",
          "standalone over TensorFlow, 1 thread",
          "1 ps + 2 workers, shared_memory over TensorFlow's",
          "1 ps + 2 workers, shared_memory over 2 standalone at the same time",
          "1 ps + 2 workers, tcp over 2 standalone at the same time",
          "push + pull, tcp over ps-lite (BytePS's fork, the slower one)")


class PageFailure(Exception):
    """There is no such section; the text says what is wrong."""


def number(value):
    """Three digits, or all before the point, without an exponent."""
    for digits in range(6):
        if abs(value) >= 10 ** (2 - digits):
            return "%.*f" % (digits, value)
    return "%.6f" % value


def limit_of(row):
    """">= 1.50", or ""."""
    return "" if row["target"] is None else "%s %s" % (
        ">=" if row["wanted"] == "at least" else "<=", number(row["target"]))


def verdict_of(row, met="met", missed="MISSED"):
    """A figure with a noisy sample has not met its target: it is open."""
    words = [] if row["target"] is None else [
        missed if not row["met"] else "open" if row["noisy_samples"] else met]
    if row["noisy_samples"]:
        words.append("(noisy: %d of %d)" % (row["noisy_samples"],
                                            len(row["samples"])))
    return " ".join(words)


def count_met(rows):
    aimed = [row for row in rows if row["target"] is not None]
    return "%d of %d targets" % (
        sum(row["met"] and not row["noisy_samples"] for row in aimed),
        len(aimed))


def print_table(rows):
    width = max(len(row["name"]) for row in rows)
    form = "%%-%ds %%9s %%9s %%9s %%-8s %%8s %%s" % width
    print((form % ("", "min", "median", "max", "", "target", "")).rstrip())
    for row in rows:
        print((form % (row["name"], number(row["min"]), number(row["value"]),
                       number(row["max"]), row["unit"], limit_of(row),
                       verdict_of(row))).rstrip())
    print(count_met(rows) + " met")


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"(?m)^model name\s*: (.*)", file.read())
    return found[1] if found else platform.processor()


def document(options, rows):
    return {"machine": {"architecture": platform.machine(),
                        "cpu": cpu_model(), "kernel": platform.release(),
                        "cores": len(os.sched_getaffinity(0))},
            # Where the figures went is nobody's business.
            "command": shlex.join(["scripts/bench.sh", *(
                one for one in sys.argv[1:] if not one.startswith("--out"))]),
            "rounds": options.rounds, "steps": options.steps,
            "bytes": options.bytes, "quick": options.quick, "figures": rows}


def lines_of(content, is_short):
    """The lines between the marks, but for the picture."""
    rows = [row for row in content["figures"] if row["target"] is not None]
    machine = content["machine"]
    lines = [] if is_short else [
        "## Speed", "%d cores of %s, Linux %s; %d round%s of `%s`." % (
            machine["cores"], machine["cpu"], machine["kernel"],
            content["rounds"], "" if content["rounds"] == 1 else "s",
            content["command"]),
        "%s are met by the median." % count_met(rows), ""]
    if is_short:
        by_name = {row["name"]: row for row in rows}
        rows = [by_name[name] for name in RATIOS if name in by_name]
    lines += ["| ratio | min / median / max | target | met |" if is_short else
              "| figure | unit | min / median / max | target | met |",
              "|---|" + "---|" * (3 if is_short else 4)]
    for row in rows:
        limit = limit_of(row).replace(">=", "≥").replace("<=", "≤")
        lines.append("| %s |" % " | ".join((
            row["name"], *([] if is_short else [row["unit"]]),
            " / ".join(number(row[key]) for key in ("min", "value", "max")),
            limit, verdict_of(row, "yes", "**no**"))))
    return lines


def replaced(text, lines):
    """The text with these lines in its section."""
    old = text.split("\n")
    if old.count(BEGIN) != 1 or old.count(END) != 1 or (
            old.index(BEGIN) > old.index(END)):
        raise PageFailure("wanted one line '%s' and after it one line '%s'" % (
            BEGIN, END))
    return "\n".join(old[:old.index(BEGIN) + 1] + lines + old[old.index(END):])


def check(page):
    """Raises PageFailure if the file has no such section."""
    with open(page, encoding="utf-8") as file:
        replaced(file.read(), [])


def write(content, page, pictures=None, is_short=False):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    lines = lines_of(content, is_short)
    path = os.path.join(pictures or "", PICTURE)
    if pictures and os.path.exists(path):
        lines += ["", "![%s](%s)" % (PICTURE_SHOWS, os.path.relpath(
            path, os.path.dirname(os.path.abspath(page))))]
    text = replaced(text, lines)
    with open(page, "w", encoding="utf-8") as file:
        file.write(text)


def main(arguments):
    is_short = arguments[0] == "--ratios"
    bench, page, *pictures = arguments[is_short:]
    with open(bench, encoding="utf-8") as file:
        content = json.load(file)
    try:
        write(content, page, *pictures, is_short=is_short)
    except PageFailure as failure:
        sys.exit("report.py: %s: %s" % (page, failure))


if __name__ == "__main__":
    main(sys.argv[1:])
