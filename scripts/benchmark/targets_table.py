"""The figures that have targets, as a table in a Markdown file: bench.sh
--table=FILE; and a few of them in another: --ratios=FILE.

  python3 -m benchmark.targets_table bench.json FILE [PICTURES]
  python3 -m benchmark.targets_table --ratios bench.json FILE [PICTURES]

(in scripts/) does it again. It replaces what is between the lines
BEGIN and END of FILE, and shows the picture of the folder PICTURES.
So no number is typed by hand. Python 3 standard library only.
"""

import json
import os
import sys

from .figures import limit_text, number
from .report import count_met, word_of

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
          "1 ps + 2 workers, grpc over 2 standalone at the same time",
          "push + pull, grpc over ps-lite (BytePS's fork, the slower one)")


class TableFailure(Exception):
    """There is no such section; the text says what is wrong."""


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


def section(document):
    """The lines between the marks, but for the picture."""
    figures = document["figures"]
    lines = ["## Speed", machine_of(document),
             "%s are met by the median." % count_met(figures)]
    lines += ["", "| figure | unit | min / median / max | target | met "
              "| stretch | met |", "|---|---|---|---|---|---|---|"]
    return lines + [row_of(figure) for figure in figures
                    if figure["target"] is not None]


def ratios(document):
    """As section(), of RATIOS alone."""
    by_name = {figure["name"]: figure for figure in document["figures"]}
    lines = ["| ratio | min / median / max | target | met |",
             "|---|---|---|---|"]
    for name in RATIOS:
        if name in by_name:
            cells = row_of(by_name[name])[2:-2].split(" | ")
            lines.append("| %s |" % " | ".join([cells[0]] + cells[2:5]))
    return lines


def picture_in(folder, beside):
    """The lines that show it in the file `beside`, if it is there."""
    path = os.path.join(folder or "", PICTURE)
    if not folder or not os.path.exists(path):
        return []
    return ["", "![%s](%s)" % (PICTURE_SHOWS, os.path.relpath(
        path, os.path.dirname(os.path.abspath(beside))))]


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
    text = replaced(text, lines_of(document) + picture_in(folder, path))
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
