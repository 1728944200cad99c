"""Prometheus' text format 0.0.4, read strictly.

parse() raises ValueError for what Prometheus might still take: a family twice,
or without HELP and TYPE before it; a counter that is not named so; a histogram
that does not add up. Python 3 standard library only.
"""

import collections
import math
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
SAMPLE = re.compile(r"(%s)(?:\{(.*)\})? (\S+)" % NAME, re.S)
TYPES = ("counter", "gauge", "histogram")
SUFFIXES = ("_bucket", "_sum", "_count")

# `samples`: values by (name, labels), labels a frozenset of (name, value).
Family = collections.namedtuple("Family", "type help samples")


def parse(text):
    """{family's name: Family}."""
    families, name = {}, None
    lines = text.split("\n")
    if lines.pop() != "":
        raise ValueError("no end of line at the end")
    for line in lines:
        comment = re.fullmatch(r"# (HELP|TYPE) (%s) (.+)" % NAME, line)
        if comment and comment[1] == "HELP":
            name = comment[2]
            if name in families:
                raise ValueError("family twice: " + line)
            families[name] = Family(None, comment[3], {})
        elif comment:
            if comment[2] != name or families[name].samples:
                raise ValueError("TYPE not after its HELP: " + line)
            if comment[3] not in TYPES:
                raise ValueError("unknown type: " + line)
            families[name] = families[name]._replace(type=comment[3])
        else:
            _add(line, name, families.get(name))
    for name, family in families.items():
        _check(name, family)
    return families


def _add(line, name, family):
    sample = SAMPLE.fullmatch(line)
    if not sample or family is None or family.type is None:
        raise ValueError("no sample of a family: " + line)
    wanted = ([name + suffix for suffix in SUFFIXES]
              if family.type == "histogram" else [name])
    if sample[1] not in wanted:
        raise ValueError("sample of another family: " + line)
    key = sample[1], _labels(sample[2] or "")
    if key in family.samples:
        raise ValueError("sample twice: " + line)
    if not re.fullmatch(r"NaN|[+-]Inf|-?\d+(\.\d+)?([eE][+-]?\d+)?", sample[3]):
        raise ValueError("no number: " + line)
    family.samples[key] = float(sample[3])


def _labels(text):
    labels = {}
    while text:
        label = LABEL.match(text)
        if not label or label[1] in labels or label[1].startswith("__"):
            raise ValueError("label: " + text)
        labels[label[1]] = re.sub(
            r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], label[2])
        text = text[label.end():]
        if label[3] == "," and not text:
            raise ValueError("a comma at the end of labels")
    return frozenset(labels.items())


def _check(name, family):
    if not family.samples:
        raise ValueError("no samples: " + name)
    if (family.type == "counter") != name.endswith("_total"):
        raise ValueError("a counter's name, and no other's, ends in _total: " +
                         name)
    if family.type == "counter" and not all(
            math.isfinite(value) and value >= 0
            for value in family.samples.values()):
        raise ValueError("counter below 0: " + name)
    if family.type == "histogram":
        _check_histogram(name, family.samples)


def _check_histogram(name, samples):
    series = collections.defaultdict(list)
    for (sample, labels), value in samples.items():
        if sample == name + "_bucket":
            bound = float(dict(labels)["le"])
            series[frozenset(one for one in labels if one[0] != "le")].append(
                (bound, value))
    for labels, buckets in series.items():
        buckets.sort()
        counts = [count for _, count in buckets]
        if (buckets[-1][0] != math.inf or counts != sorted(counts) or
                counts[-1] != samples[name + "_count", labels] or
                (name + "_sum", labels) not in samples):
            raise ValueError("histogram that does not add up: " + name)


def value(families, name, **labels):
    """The one sample of a family with at least these labels; None for none."""
    family = families.get(name)
    found = [] if family is None else [
        number for (_, own), number in family.samples.items()
        if frozenset(labels.items()) <= own]
    if len(found) > 1:
        raise ValueError("several samples of " + name)
    return found[0] if found else None
