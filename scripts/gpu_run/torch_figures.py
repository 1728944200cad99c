"""PyTorch's side of what is measured.

Part of run_all.py. Python 3 standard library only.
"""

import os
import sys

from timed_runs import ROOT, Part, Skipped, last_object

TORCH = os.path.join(ROOT, "tests/benchmark/peers/torch_gpu.py")
# From a network's file system the first import takes most of a minute.
IMPORT_S = 120.0
# To import, start CUDA and try cuDNN's algorithms: at most, and at least.
# torch.compile builds its kernels with a compiler.
AROUND_S = 90.0
LEAST_AROUND_S = {"compile": 25.0}
# The fastest first; in PyTorch's own layout, which is mostly slower, last.
FIRST_WAYS = ("graph", "compile", "eager")
LAST_WAYS = ("graph contiguous", "eager contiguous")
WAYS = FIRST_WAYS + LAST_WAYS
PRECISIONS = ("tf32", "bf16")
VERSIONS = """
import json, torch
found = torch.cuda.is_available()
print(json.dumps({
    "torch": torch.__version__, "cuda": torch.version.cuda,
    "cudnn": torch.backends.cudnn.version() if found else None,
    "gpu": torch.cuda.get_device_name() if found else None}))
"""


def name_of(way, precision):
    return "PyTorch %s, mnist_cnn, %s" % (way, precision)


def versions(text):
    """Fields of a row. Raises Skipped if this PyTorch finds no GPU."""
    found = last_object(text)
    if found["gpu"] is None:
        raise Skipped("PyTorch %s for CUDA %s finds no GPU" % (
            found["torch"], found["cuda"]))
    return {"value": found["torch"], **found}


def why_no_torch(runs, options):
    """Imports it, once, in a row of its own; returns why it is of no use, or
    None."""
    row = runs.measure(Part(
        "PyTorch", "", [sys.executable, "-c", VERSIONS], IMPORT_S, versions,
        skip="--cpu" if options.cpu else None,
        # Not to have it is no failure.
        excuse=lambda text: "no PyTorch here" if
        "No module named 'torch'" in text else None))
    if "value" in row:
        return None
    why = row.get("skipped") or row["failed"]
    return why if options.cpu else "no PyTorch with a GPU here: " + why


def torch_figures(runs, options, ways, skip):
    """`skip`: what why_no_torch() has returned."""
    for way in ways:
        for precision in PRECISIONS:
            runs.measure(Part(
                name_of(way, precision), "steps/s",
                [sys.executable, TORCH, "%g" % options.seconds,
                 *(way.split() + ["channels_last"])[:2], precision],
                options.seconds + AROUND_S,
                lambda text: round(last_object(text)["steps_per_s"], 2),
                needs_s=options.seconds + LEAST_AROUND_S.get(way, 6.0),
                skip=skip))
