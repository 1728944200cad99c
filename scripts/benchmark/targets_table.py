"""The figures that have targets, and those of large models, as a table in a
Markdown file: bench.sh --table=FILE.

  python3 -m scripts.benchmark.targets_table bench.json FILE [PICTURES]

(in the project's folder) does it again. It replaces what is between the lines
BEGIN and END of FILE, and names the pictures that are in the folder PICTURES.
So no number is typed by hand. Python 3 standard library only.
"""

import json
import os
import sys

from . import large
from .figures import limit_text, number
from .report import count_met

BEGIN = "<!-- bench.sh --table writes from here -->"
END = "<!-- to here -->"
PICTURES = {"scaling.svg": "Steps/s by the number of workers",
            "message_size.svg": "Bytes/s by the size of a message",
            "timeline.svg": "A step, from the profile of a worker"}
# Whose figures are shown without a target, too.
SHOWN_PARTS = {large.PART}
YES = {None: "", True: "yes", False: "**no**"}


class TableFailure(Exception):
    """There is no such section; the text says what is wrong."""


def is_shown(figure):
    return figure["target"] is not None or SHOWN_PARTS >= set(figure["parts"])


def row_of(figure):
    def limit(key):
        return limit_text(figure, key).replace(">=", "≥").replace("<=", "≤")
    met = YES[figure["met"]]
    if figure["noisy_samples"]:
        met += " (noisy: %d of %d)" % (
            figure["noisy_samples"], len(figure["samples"]))
    cells = (
        figure["name"], figure["unit"],
        " / ".join(number(figure[key]) for key in ("min", "value", "max")),
        limit("target"), met.strip(),
        limit("stretch"), YES[figure["stretch_met"]])
    return "| %s |" % " | ".join(cells)


def machine_of(document):
    machine = document["machine"]
    # Where the figures went is nobody's business.
    command = " ".join(word for word in document["command"].split()
                       if not word.startswith("--out"))
    return "%d cores of %s, Linux %s; %d round%s of `%s`." % (
        machine["cores"], machine["cpu"], machine["kernel"],
        document["rounds"], "" if document["rounds"] == 1 else "s",
        command)


def section(document, pictures):
    """The lines between the marks; `pictures` as (link, what it shows)."""
    figures = document["figures"]
    lines = ["## Speed", machine_of(document),
             "%s are met by the median." % count_met(figures), "",
             "| figure | unit | min / median / max | target | met "
             "| stretch | met |", "|---|---|---|---|---|---|---|"]
    lines += map(row_of, filter(is_shown, figures))
    for link, what in pictures:
        lines += ["", "![%s](%s)" % (what, link)]
    return lines + [""]


def pictures_in(folder, beside):
    """[(link from the file `beside`, what it shows)]."""
    return [(os.path.relpath(os.path.join(folder, name),
                             os.path.dirname(os.path.abspath(beside))), what)
            for name, what in PICTURES.items()
            if os.path.exists(os.path.join(folder, name))]


def replaced(text, lines):
    """The text with these lines in its section."""
    old = text.split("\n")
    if old.count(BEGIN) != 1 or old.count(END) != 1 or (
            old.index(BEGIN) > old.index(END)):
        raise TableFailure("wanted one line '%s' and after it one line '%s'" % (
            BEGIN, END))
    return "\n".join(old[:old.index(BEGIN) + 1] + lines + old[old.index(END):])


def check(path):
    """Raises TableFailure if the file has no such section."""
    with open(path, encoding="utf-8") as file:
        replaced(file.read(), [])


def write(document, path, folder=None):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = replaced(text, section(
        document, pictures_in(folder, path) if folder else []))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(arguments):
    with open(arguments[0], encoding="utf-8") as file:
        document = json.load(file)
    try:
        write(document, *arguments[1:])
    except TableFailure as failure:
        sys.exit("targets_table.py: %s: %s" % (arguments[1], failure))


if __name__ == "__main__":
    main(sys.argv[1:])
