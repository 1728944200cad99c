"""The space that a sweep searches: fields and their distributions.

    parse("optimizer.adam.learning_rate=log:1e-5:1e-1")

A value is a text, as `--set FIELD=VALUE` has it. Python 3 standard library
only.
"""

import math

from base.failure import Failure, nearest

FORMS = {"log": "log:LO:HI[:POINTS]", "uniform": "uniform:LO:HI[:POINTS]",
         "int": "int:LO:HI[:POINTS]", "choice": "choice:A,B,C"}


class Parameter:
    """A field and what it may be.

    `kind` is one of FORMS. `low` and `high` are the ends, both included, of a
    range; `points` the texts of those values that alone are taken, in order, or
    None: all of the range.
    """

    def __init__(self, field, kind, low=None, high=None, points=None):
        self.field = field
        self.kind = kind
        self.low = low
        self.high = high
        self.points = points

    def at(self, part):
        """The text of the value at `part` of the way, 0 <= part < 1, which is
        even on a line, or on a logarithmic scale."""
        if self.points is not None:
            return self.points[int(part * len(self.points))]
        if self.kind == "int":
            return str(self.low + int(part * (self.high - self.low + 1)))
        return self.text(self.on_scale(part))

    def all(self):
        """The texts of all values, or None of a range that has no end."""
        if self.points is None and self.kind == "int":
            return [str(i) for i in range(self.low, self.high + 1)]
        return self.points

    def ends(self):
        """Values by which the field can be checked."""
        if self.points is not None:
            return self.points
        return [self.text(self.low), self.text(self.high)]

    def text(self, value):
        """Six digits are finer than any training can tell."""
        if self.kind == "int":
            return str(round(value))
        return repr(min(max(float("%.6g" % value), self.low), self.high))

    def on_scale(self, part):
        """The number at `part` of the way, 0 <= part <= 1."""
        if self.kind == "log":
            return self.low * math.exp(part * math.log(self.high / self.low))
        return self.low + part * (self.high - self.low)

    def take_points(self, count):
        """Leaves so many of the range, with its ends, at even distances."""
        texts = [self.text(self.on_scale(i / max(1, count - 1)))
                 for i in range(count)]
        self.points = list(dict.fromkeys(texts))


def parse(text):
    """A Parameter of FIELD=DISTRIBUTION. Raises Failure."""
    field, equals, distribution = text.partition("=")
    if not equals or not field:
        raise Failure("--param '%s': wanted FIELD=DISTRIBUTION, such as "
                      "optimizer.adam.learning_rate=log:1e-5:1e-1" % text)
    kind, _, rest = distribution.partition(":")
    if kind not in FORMS:
        raise Failure("--param '%s': '%s' is no distribution%s" % (
            text, kind, nearest(kind, list(FORMS))))
    if kind == "choice":
        return _choice(field, rest, text)
    return _range(field, kind, rest, text)


def parse_all(texts):
    """The Parameters, each of another field. Raises Failure."""
    parameters = [parse(text) for text in texts]
    for i, one in enumerate(parameters):
        if one.field in [other.field for other in parameters[:i]]:
            raise Failure("--param: '%s' is given twice" % one.field)
    return parameters


def _choice(field, rest, text):
    points = rest.split(",")
    if "" in points or len(set(points)) < len(points):
        raise Failure("--param '%s': wanted %s, each once" % (
            text, FORMS["choice"]))
    return Parameter(field, "choice", points=points)


def _range(field, kind, rest, text):
    number = int if kind == "int" else float
    try:
        low, high, *points = rest.split(":")
        parameter = Parameter(field, kind, number(low), number(high))
        count = int(points[0]) if points else None
    except ValueError:
        raise Failure("--param '%s': wanted %s in numbers" % (
            text, FORMS[kind])) from None
    least = 0 if kind == "log" else -math.inf
    if not least < parameter.low < parameter.high < math.inf or len(points) > 1:
        raise Failure("--param '%s': wanted %s with %sLO < HI" % (
            text, FORMS[kind], "0 < " if kind == "log" else ""))
    if count is not None:
        if count < 2:
            raise Failure("--param '%s': wanted 2 POINTS or more" % text)
        parameter.take_points(count)
    return parameter
