#!/usr/bin/env python3
"""Checks how large parts of the source, and subjects of commits, may get.

  limits.py [--root FOLDER] [--since COMMIT]

In common/, ps_server/ and worker/: 500 lines of a .cc file, 60 lines of a
function, 30 private methods of a class. The subject of each commit after COMMIT
has at most 72 characters, and is no "wip"; of a clone that lacks COMMIT that is
said, and no subject is checked. Prints what is larger, a line each, and exits
with 1 if anything is. Python 3 standard library only.
"""

import argparse
import pathlib
import re
import subprocess
import sys

FOLDERS = ("common", "ps_server", "worker")
FILE_LINES = 500
FUNCTION_LINES = 60
PRIVATE_METHODS = 30
SUBJECT_CHARACTERS = 72

# Comments, literals and preprocessor lines: what may have braces of no meaning.
OPAQUE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
    r"|\b\d[\w']*|'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
ACCESS = re.compile(r"\b(public|protected|private)\s*:(?!:)")
ATTRIBUTES = re.compile(r"\[\[.*?\]\]|\bABSL_\w+(\s*\((?:[^()]|\([^()]*\))*\))?",
                        re.S)
CLASS = re.compile(r"\b(class|struct|union)\s+(\w+)[^()=]*$", re.S)
NO_METHOD = re.compile(r"\s*(friend|using|typedef|static_assert|enum)\b")


def blank(text):
    """The text without what is opaque, with as many lines."""
    return OPAQUE.sub(lambda found: re.sub(r"[^\n]", " ", found.group())
                      if not found.group()[0].isdigit() else "0", text)


def drop_brackets(text):
    """A declaration without template arguments and attributes."""
    text = re.sub(r"\boperator\s*[^\w\s(]+", "operator_", text)
    text = ATTRIBUTES.sub(" ", text)
    before = None
    while text != before:
        before, text = text, re.sub(r"<[^<>;{}]*>", " ", text)
    return text


def is_function(header):
    """Whether a block in a class or a namespace is a function's body."""
    header = drop_brackets(header)
    first = re.search(r"[(=]", header)
    return first is not None and first.group() == "("


def is_method(declaration):
    """Whether a statement of a class declares a method that can be called."""
    if NO_METHOD.match(declaration) or re.search(r"=\s*delete\s*$", declaration):
        return False
    # A member's brackets are those of its type or of its first value.
    declaration = drop_brackets(declaration)
    return is_function(declaration) and re.search(
        r"[~\w]\s*\(", declaration.split("=")[0]) is not None


class Scope:
    """A block of the source that is open."""

    def __init__(self, kind, name, line, access):
        self.kind = kind  # "outer" (namespace, or the file), "class", "function"
        self.name = name
        self.line = line
        self.access = access
        self.private_methods = 0


class Source:
    """A source file's findings."""

    def __init__(self, path, text):
        self.path = path
        self.found = []
        self._scopes = [Scope("outer", "", 1, "")]
        if path.suffix == ".cc":
            self._check(text.count("\n"), FILE_LINES, f"{path}: ", "lines")
        self._read(blank(text))

    def _check(self, count, most, what, unit):
        if count > most:
            self.found.append(f"{what}{count} {unit}, at most {most}")

    def _read(self, text):
        begin = 0
        line = 1
        for token in re.finditer(r"[{};\n]|" + ACCESS.pattern, text):
            scope = self._scopes[-1]
            if token.group() == "\n":
                line += 1
                continue
            statement = text[begin:token.start()]
            if token.group() in "{};":
                first = line - statement.lstrip().count("\n")
            if token.group() == "{":
                self._open(statement, first)
            elif token.group() == ";" and scope.kind == "class":
                self._count(statement)
            elif token.group() == "}":
                self._close(line)
            elif token.group(1) and scope.kind == "class":
                scope.access = token.group(1)
            begin = token.end()

    def _count(self, declaration):
        scope = self._scopes[-1]
        if scope.access == "private" and is_method(declaration):
            scope.private_methods += 1

    def _open(self, header, line):
        outer = self._scopes[-1]
        found = CLASS.search(drop_brackets(header))
        if outer.kind == "function":
            self._scopes.append(Scope("block", "", line, ""))
        elif found:
            access = "private" if found.group(1) == "class" else "public"
            self._scopes.append(Scope("class", found.group(2), line, access))
        elif re.search(r'\b(namespace|extern)\b', header):
            self._scopes.append(Scope("outer", "", line, ""))
        elif is_function(header):
            if outer.kind == "class":
                self._count(header)
            name = re.search(r"([~\w:]+)\s*\(", drop_brackets(header))
            self._scopes.append(
                Scope("function", name.group(1) if name else "", line, ""))
        else:
            self._scopes.append(Scope("block", "", line, ""))

    def _close(self, line):
        scope = self._scopes.pop() if len(self._scopes) > 1 else self._scopes[0]
        what = f"{self.path}:{scope.line}: {scope.name}: "
        if scope.kind == "function":
            self._check(line - scope.line + 1, FUNCTION_LINES, what, "lines")
        elif scope.kind == "class":
            self._check(scope.private_methods, PRIVATE_METHODS, what,
                        "private methods")


def check_sources(root):
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".cc", ".h"):
                text = path.read_text(encoding="utf-8")
                found += Source(path.relative_to(root), text).found
    return found


def git(root, *arguments):
    return subprocess.run(["git", "-C", str(root), *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          encoding="utf-8", errors="replace", check=False)


def check_subjects(root, since):
    log = git(root, "log", "--no-merges", "--format=%h %s", f"{since}..HEAD")
    if log.returncode != 0:
        print(f"limits.py: this clone has no commit {since}; no subject is "
              "checked")
        return []
    found = []
    for line in log.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > SUBJECT_CHARACTERS:
            found.append(f"{commit} '{subject}': {len(subject)} characters, at "
                         f"most {SUBJECT_CHARACTERS}")
        if re.search(r"\bwip\b", subject, re.I):
            found.append(f"{commit} '{subject}': not finished; say what it does")
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--since", metavar="COMMIT")
    flags = parser.parse_args()
    found = check_sources(flags.root)
    if flags.since:
        found += check_subjects(flags.root, flags.since)
    for line in found:
        print(f"limits.py: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
