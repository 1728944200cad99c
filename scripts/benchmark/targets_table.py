"""The figures that have targets, as a table in a Markdown file: bench.sh
--table=FILE.

  python3 -m scripts.benchmark.targets_table bench.json FILE [PICTURES]

(in the project's folder) does it again. It replaces what is between the lines BEGIN and END of FILE, and names the pictures
that are in the folder PICTURES. So no number is typed by hand. Python 3
standard library only.
"""

import json
import os
import sys

from .figures import Target, number

BEGIN = "<!-- bench.sh --table writes from here -->"
END = "<!-- to here -->"
PICTURES = {"scaling.svg": "Steps/s by the number of workers",
            "message_size.svg": "Bytes/s by the size of a message",
            "timeline.svg": "A step, from the profile of a worker"}


class TableFailure(Exception):
    """There is no such section; the text says what is wrong."""


def row_of(figure):
    target = Target(figure["target"], figure["wanted"] == "at least")
    met = "yes" if figure["met"] else "**no**"
    if figure["noisy_samples"]:
        met += " (noisy: %d of %d)" % (
            figure["noisy_samples"], len(figure["samples"]))
    return "| %s | %s | %s | %s / %s / %s | %s |" % (
        figure["name"], figure["unit"],
        str(target).replace(">=", "≥").replace("<=", "≤"),
        number(figure["min"]), number(figure["value"]), number(figure["max"]),
        met)


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
    aimed = [one for one in document["figures"] if one["target"] is not None]
    lines = ["## Speed", machine_of(document), "%d of %d targets are met by the median." % (
        sum(one["met"] for one in aimed), len(aimed)), "",
        "| figure | unit | target | min / median / max | met |",
        "|---|---|---|---|---|"]
    lines += map(row_of, aimed)
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
