"""Ratios of figures of one run, and whether they are what is wanted.

Part of run_all.py. Python 3 standard library only.
"""

from torch_figures import WAYS, name_of

# Of mnist_cnn's 3,274,634 parameters, each way in each step with a ps.
MODEL_BYTES = 13098536
TO_DEVICE = "parameters of mnist_cnn to the GPU, pinned"
TO_HOST = "parameters of mnist_cnn to the host, pinned"
H100_STEPS_PER_S = 8000
# Of a training that is traced: the row itself, and rows of the trace. Gaps
# inside a stretch of layers count as busy.
TRACED = "%s, traced"
BUSY = "GPU busy at most in %s"
MB_TO_DEVICE = "MB to the GPU in a step of %s"
MB_TO_HOST = "MB to the host in a step of %s"
# As many as a ps has by default.
ADAM = "Adam of mnist_cnn's parameters, one thread"


class NotMeasured(Exception):
    """A figure of the ratio is missing; the text says why."""


class Figures:
    """The rows of a run by name; trainings of ours by `device`."""

    def __init__(self, rows, device):
        self._rows = {row["name"]: row for row in rows}
        self._device = device

    def value(self, name, field="value"):
        row = self._rows.get(name, {})
        if row.get(field) is None:
            raise NotMeasured("%s: %s" % (name, self._why(name, field)))
        return row[field]

    def _why(self, name, field="value"):
        """There is no such field."""
        row = self._rows.get(name, {"failed": "it was not run"})
        return (row.get("skipped") or row.get("failed") or
                "it has no " + field)

    def ours(self, name, field="value"):
        return self.value("%s on %s" % (name, self._device), field)

    def updated_on(self, name):
        """Who has updated the parameters of a training of ours."""
        try:
            return self.ours(name, "updated_on")
        except NotMeasured:
            return "?"

    def of_card(self, name):
        if self._device != "cuda":
            raise NotMeasured("this is not a GPU")
        return self.value(name)

    def host_limit(self):
        """Steps/s that neither PCIe nor the ps's update rule lets be exceeded:
        copies go both ways at once."""
        copies = min(self.value(TO_DEVICE), self.value(TO_HOST))
        return min(copies * 1e9 / MODEL_BYTES, self.value(ADAM))

    def best_torch(self, precision):
        """(steps/s, a remark: which way that is, and why others are not
        known)."""
        found = {}
        missing = {}
        for way in WAYS:
            name = name_of(way, precision)
            try:
                found[way] = self.value(name)
            except NotMeasured:
                missing.setdefault(self._why(name), []).append(way)
        without = "; ".join("%s: %s" % (", ".join(ways), why)
                            for why, ways in missing.items())
        if not found:
            raise NotMeasured("PyTorch " + without)
        best = max(found, key=found.get)
        return found[best], "PyTorch's best is %s%s" % (
            best, "; without " + without if without else "")


def _over(name, other, field="value"):
    """Of two trainings of ours; the remark says who updates parameters."""
    def ratio(rows):
        quotient = rows.ours(name, field) / rows.ours(other, field)
        return quotient, "updated on the %s / on the %s" % (
            rows.updated_on(name), rows.updated_on(other))
    return ("%s / %s%s" % (name, other, "" if field == "value" else
                           ", in examples"), ratio)


def _over_in_examples(name, other):
    """Where steps have different numbers of rows."""
    return _over(name, other, "examples_per_s")


def _over_torch(name, way, precision):
    return ("%s / PyTorch %s, %s" % (name, way, precision),
            lambda rows: rows.ours(name) / rows.value(name_of(way, precision)))


def _over_best_torch(name, precision):
    def ratio(rows):
        best, remark = rows.best_torch(precision)
        return rows.ours(name) / best, remark
    return "%s / PyTorch's best, %s" % (name, precision), ratio


def _of_trace(name):
    yield ("%s / all of the time" % (BUSY % name),
           lambda rows: rows.of_card(BUSY % name) / 100)
    for figure in (MB_TO_DEVICE % name, MB_TO_HOST % name):
        yield ("%s / its parameters" % figure,
               lambda rows, figure=figure: rows.of_card(figure) * 1e6 /
               MODEL_BYTES)


ONE = "mnist_cnn, standalone"
BF16 = "mnist_cnn, standalone, bf16"
PLAIN = "mnist_cnn, standalone, without CUDA graphs"
HOST_UPDATE = "mnist_cnn, standalone, updated on the host"
TOWERS = "mnist_cnn, standalone, 2 devices"
PAIR = "mnist_cnn, 1 ps + 1 workers"
THREE = "mnist_cnn, 1 ps + 2 workers"
INCEPTION = "inception_small, standalone"
INCEPTION_PAIR = "inception_small, 1 ps + 1 workers"

# Name and ratio, and the least that is wanted; None: only told. A ratio is a
# number, or that and a remark.
TARGETS = (
    (_over_best_torch(ONE, "tf32"), 1.2),
    (_over_best_torch(BF16, "bf16"), 1.2),
    (("%s / the %d a second wanted of an H100" % (ONE, H100_STEPS_PER_S),
      lambda rows: rows.of_card(ONE + " on cuda") / H100_STEPS_PER_S), 1.0),
    *((_over_torch(name, way, precision), None)
      for name, precision in ((ONE, "tf32"), (BF16, "bf16")) for way in WAYS),
    (("%s / the smaller of PCIe's rate and Adam's" % PAIR,
      lambda rows: rows.ours(PAIR) / rows.host_limit()), 0.8),
    (_over(INCEPTION_PAIR, INCEPTION), 0.9),
    (_over(ONE, PLAIN), None),
    (_over(ONE, HOST_UPDATE), None),
    # The rows of the original system: towers, and workers, over one device. A
    # step of towers has the rows of all, so that examples are compared.
    (_over_in_examples(TOWERS, ONE), None),
    (_over_in_examples(THREE, ONE), None),
    (_over_in_examples(THREE, PAIR), None),
    # The same over the one that has its parameters on the host, as they have.
    (_over_in_examples(TOWERS, HOST_UPDATE), None),
    (_over_in_examples(PAIR, HOST_UPDATE), None),
    (_over_in_examples(THREE, HOST_UPDATE), None),
    # What the card did, by its trace.
    *((one, None) for name in (ONE, PAIR) for one in _of_trace(name)),
)


def evaluate(rows, device):
    """One object for each of TARGETS."""
    figures = Figures(rows, device)
    return [dict({"name": name, "wanted": wanted},
                 **_evaluated(ratio, wanted, figures))
            for (name, ratio), wanted in TARGETS]


def _evaluated(ratio, wanted, figures):
    """The ratio and whether it is met, or why it is not known."""
    try:
        found = ratio(figures)
        number, remark = found if isinstance(found, tuple) else (found, None)
        fields = {"ratio": round(number, 3)}
    except NotMeasured as why:
        return {"not_measured": str(why)}
    except Exception as error:  # pylint: disable=broad-except
        # A figure of 0, say: the other ratios are known all the same.
        return {"not_measured": "it cannot be computed: %s: %s" % (
            type(error).__name__, error)}
    if wanted is not None:
        fields["met"] = fields["ratio"] >= wanted
    if remark is not None:
        fields["remark"] = remark
    return fields


def table(evaluated):
    width = max(len(one["name"]) for one in evaluated)
    lines = ["%-*s  %7s  %6s  %s" % (width, "ratio", "found", "wanted", "met")]
    for one in evaluated:
        wanted = "-" if one["wanted"] is None else ">= %g" % one["wanted"]
        if "not_measured" in one:
            lines.append("%-*s  %7s  %6s  not measured, because %s" % (
                width, one["name"], "-", wanted, one["not_measured"]))
            continue
        met = {True: "yes", False: "NO", None: "-"}[one.get("met")]
        remark = "  (%s)" % one["remark"] if "remark" in one else ""
        lines.append("%-*s  %7.3f  %6s  %s%s" % (
            width, one["name"], one["ratio"], wanted, met, remark))
    return "\n".join(lines)
