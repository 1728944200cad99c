"""The figures that have targets, and those of large models and of slow links, as
a table in a Markdown file: bench.sh --table=FILE; and a few of them, with one picture, in
another: --ratios=FILE.

  python3 -m scripts.benchmark.targets_table bench.json FILE [PICTURES]
  python3 -m scripts.benchmark.targets_table --ratios bench.json FILE [PICTURES]

(in the project's folder) does it again. It replaces what is between the lines
BEGIN and END of FILE, and names the pictures that are in the folder PICTURES.
So no number is typed by hand. Python 3 standard library only.
"""

import json
import os
import sys

from . import large, links
from .figures import limit_text, number
from .report import count_met, word_of

BEGIN = "<!-- bench.sh --table writes from here -->"
END = "<!-- to here -->"
PICTURES = {"scaling.svg": "Steps/s by the number of workers",
            "message_size.svg": "Bytes/s by the size of a message",
            "timeline.svg": "A step, from the profile of a worker"}
# What somebody who chooses a system asks first. A figure that was not measured
# is left out.
RATIOS = ("standalone over PyTorch's best, 1 thread",
          "standalone over TensorFlow, 1 thread",
          "1 ps + 2 workers, shared_memory over TensorFlow's",
          "1 ps + 2 workers, shared_memory over 2 standalone at the same time",
          "1 ps + 2 workers, grpc over 2 standalone at the same time",
          "push + pull, grpc over ps-lite (BytePS's fork, the slower one)")
RATIOS_PICTURE = "scaling.svg"
# Whose figures are shown without a target, too.
SHOWN_PARTS = {large.PART, links.PART}


class TableFailure(Exception):
    """There is no such section; the text says what is wrong."""


def is_shown(figure):
    return figure["target"] is not None or SHOWN_PARTS >= set(figure["parts"])


def row_of(figure):
    def limit(key):
        return limit_text(figure, key).replace(">=", "≥").replace("<=", "≤")
    met = word_of(figure, "met", "yes", "**no**")
    if figure["noisy_samples"]:
        met += " (noisy: %d of %d)" % (
            figure["noisy_samples"], len(figure["samples"]))
    cells = (
        figure["name"], figure["unit"],
        " / ".join(number(figure[key]) for key in ("min", "value", "max")),
        limit("target"), met.strip(),
        limit("stretch"), word_of(figure, "stretch_met", "yes", "**no**"))
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
    lines = ["## Speed", machine_of(document)]
    if any(figure["target"] is not None for figure in figures):
        lines.append("%s are met by the median." % count_met(figures))
    lines += ["", "| figure | unit | min / median / max | target | met "
              "| stretch | met |", "|---|---|---|---|---|---|---|"]
    lines += map(row_of, filter(is_shown, figures))
    for link, what in pictures:
        lines += ["", "![%s](%s)" % (what, link)]
    return lines + [""]


def ratios(document, pictures):
    """As section(), of RATIOS alone."""
    by_name = {figure["name"]: figure for figure in document["figures"]}
    lines = ["| ratio | min / median / max | target | met |",
             "|---|---|---|---|"]
    for name in RATIOS:
        if name in by_name:
            cells = row_of(by_name[name])[2:-2].split(" | ")
            lines.append("| %s |" % " | ".join([cells[0]] + cells[2:5]))
    for link, what in pictures:
        if os.path.basename(link) == RATIOS_PICTURE:
            lines += ["", "![%s](%s)" % (what, link)]
    return lines


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


def write(document, path, folder=None, lines_of=section):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = replaced(text, lines_of(
        document, pictures_in(folder, path) if folder else []))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(arguments):
    lines_of = section
    if arguments[0] == "--ratios":
        lines_of = ratios
        arguments = arguments[1:]
    with open(arguments[0], encoding="utf-8") as file:
        document = json.load(file)
    try:
        write(document, *arguments[1:], lines_of=lines_of)
    except TableFailure as failure:
        sys.exit("targets_table.py: %s: %s" % (arguments[1], failure))


if __name__ == "__main__":
    main(sys.argv[1:])
