"""Ratios of figures of one run, and whether they are what is wanted.

Part of run_all.py. Python 3 standard library only.
"""

# Of mnist_cnn's 3,274,634 parameters, each way in each step with a ps.
MODEL_BYTES = 13098536
TO_DEVICE = "parameters of mnist_cnn to the GPU, pinned"
TO_HOST = "parameters of mnist_cnn to the host, pinned"
H100_STEPS_PER_S = 8000
# Of a training that is traced.
BUSY = "GPU busy in %s"
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

    def value(self, name):
        row = self._rows.get(name)
        if row is None:
            raise NotMeasured("%s was not run" % name)
        if "value" not in row:
            raise NotMeasured("%s: %s" % (
                name, row.get("skipped") or row["failed"]))
        return row["value"]

    def ours(self, name):
        return self.value("%s on %s" % (name, self._device))

    def of_card(self, name):
        if self._device != "cuda":
            raise NotMeasured("this is not a GPU")
        return self.value(name)

    def host_limit(self):
        """Steps/s that neither PCIe nor the ps's update rule lets be exceeded:
        copies go both ways at once."""
        copies = min(self.value(TO_DEVICE), self.value(TO_HOST))
        return min(copies * 1e9 / MODEL_BYTES, self.value(ADAM))


def _over(name, other):
    return ("%s / %s" % (name, other),
            lambda rows: rows.ours(name) / rows.ours(other))


def _over_torch(name, peer):
    return ("%s / PyTorch %s" % (name, peer),
            lambda rows: rows.ours(name) / rows.value(
                "PyTorch %s, mnist_cnn, %s" % tuple(peer.split(", "))))


def _over_best_torch(name, precision):
    return ("%s / PyTorch's best, %s" % (name, precision),
            lambda rows: rows.ours(name) / max(
                rows.value("PyTorch %s, mnist_cnn, %s" % (way, precision))
                for way in ("eager", "compile")))


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

# Name and ratio, and the least that is wanted; None: only told.
TARGETS = (
    (_over_best_torch(ONE, "tf32"), 1.2),
    (_over_best_torch(BF16, "bf16"), 1.2),
    (("%s / the %d a second wanted of an H100" % (ONE, H100_STEPS_PER_S),
      lambda rows: rows.of_card(ONE + " on cuda") / H100_STEPS_PER_S), 1.0),
    (_over_torch(ONE, "eager, tf32"), None),
    (_over_torch(ONE, "compile, tf32"), None),
    (_over_torch(BF16, "eager, bf16"), None),
    (_over_torch(BF16, "compile, bf16"), None),
    (("%s / the smaller of PCIe's rate and Adam's" % PAIR,
      lambda rows: rows.ours(PAIR) / rows.host_limit()), 0.8),
    (_over(INCEPTION_PAIR, INCEPTION), 0.9),
    (_over(ONE, PLAIN), None),
    (_over(ONE, HOST_UPDATE), None),
    # The rows of the original system: towers, and workers, over one device.
    (_over(TOWERS, ONE), None),
    (_over(THREE, ONE), None),
    (_over(THREE, PAIR), None),
    # What the card did, by its trace.
    *((one, None) for name in (ONE, PAIR) for one in _of_trace(name)),
)


def evaluate(rows, device):
    """One object for each of TARGETS."""
    figures = Figures(rows, device)
    found = []
    for (name, ratio), wanted in TARGETS:
        one = {"name": name, "wanted": wanted}
        try:
            one["ratio"] = round(ratio(figures), 3)
            if wanted is not None:
                one["met"] = one["ratio"] >= wanted
        except NotMeasured as why:
            one["not_measured"] = str(why)
        found.append(one)
    return found


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
        lines.append("%-*s  %7.3f  %6s  %s" % (
            width, one["name"], one["ratio"], wanted, met))
    return "\n".join(lines)
