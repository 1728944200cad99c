"""Models of many tensors and of large ones: steps without compute, and
checkpoints.

Python 3 standard library only.
"""

import os
import re
import sys
import tempfile

from . import processes
from .data_plane import SMALL_TENSORS, nbytes, rate
from .figures import Figure, Measurement

PART = "large"
LINKS = ("shared_memory", "grpc")
# float32 values of one tensor, and all that one shard holds.
TENSOR_BYTES = 3 << 30
SHARD_BYTES = 8 << 30
# Adam has two slots.
ADAM_COPIES = 3
SMALL_TENSOR_BYTES = 1024
# Of --quick.
QUICK_PART = 1024
# Copies of the model that all processes of a figure hold together, at most:
# values and gradients of the worker, the shard's values, and what is on its way.
STEP_COPIES = 4
# Measured: 18.5 GB of one process for 3.2 GB.
CHECKPOINT_COPIES = 6
INPUTS = 1024
# One dense layer, so that a step is one pass over its weights.
TRAINING = """
model {
  name: "large"
  input_shape: [%d]
  layer { name: "logits" type: "dense"
          attr { name: "units" i: %d } attr { name: "use_bias" b: false } }
  layer { name: "loss" type: "softmax_cross_entropy" }
}
input {
  type: "synthetic" batch_size: 1
  synthetic_examples: 4 synthetic_test_examples: 1 synthetic_classes: 2
}
optimizer { name: "sgd" attr { name: "learning_rate" f: 0.1 } }
evaluation { batch_size: 1 }
checkpoint { every_seconds: 0 every_steps: 0 keep: 1 }
summary { every_steps: 0 }
seed: 1
"""
LINE = re.compile(r"^(\S+ \S+) I \S+ (.*)$")
LINE_RESOLUTION_S = 0.001


def available_bytes():
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 0


def fits(what, bytes_):
    available = available_bytes()
    if available >= bytes_:
        return True
    print("bench.sh: %s is left out: it takes %s of memory, %s is available" % (
        what, nbytes(bytes_), nbytes(available)), file=sys.stderr)
    return False


def seconds_between(output, begin, end):
    """From the last line that begins like `begin` before the first that begins
    like `end`; at least what their times tell apart."""
    begun = None
    for line in output.splitlines():
        found = LINE.match(line)
        if not found:
            continue
        time_s = processes.log_time_s(found[1])
        if found[2].startswith(end) and begun is not None:
            return max(time_s - begun, LINE_RESOLUTION_S)
        if found[2].startswith(begin):
            begun = time_s
    raise processes.Failure("no line '%s' after a line '%s'" % (end, begin))


def save_and_restore(command, bytes_):
    """Two runs of a step each, the second from the checkpoint of the first."""
    with tempfile.TemporaryDirectory() as folder:
        training = os.path.join(folder, "training.textproto")
        with open(training, "w", encoding="utf-8") as file:
            file.write(TRAINING % (INPUTS, bytes_ // 4 // INPUTS))
        outputs = [processes.run(command + [
            "--training=" + training,
            "--train_dir=" + os.path.join(folder, "train"),
            "--set=stop.steps=%d" % steps]) for steps in (1, 2)]
    return {
        "save": bytes_ / seconds_between(outputs[0], "step=1 loss=", "saved "),
        "restore": bytes_ / seconds_between(outputs[1], "imbalance ratio",
                                            "restored ")}


def checkpoint_figures(options, bytes_):
    command = [os.path.join(options.bin_dir, "worker/worker"), "--standalone"]
    one = Measurement(PART, "checkpoint of one tensor of " + nbytes(bytes_),
                      command + ["--training=FILE", "--train_dir=DIR"],
                      lambda: save_and_restore(command, bytes_))
    for key in ("save", "restore"):
        yield Figure("%s: %s" % (one.name, key), "GB/s", [one],
                     lambda numbers, key=key: numbers[key] / 1e9)


def step_figures(plane, what, bytes_, **flags):
    for link in LINKS:
        yield rate("push + pull, %s, %s" % (link, what), plane.measure(
            "push_pull", PART, bytes=bytes_, link=link, min_steps=3, **flags))


def figures(options, plane):
    part = QUICK_PART if options.quick else 1
    small = SMALL_TENSORS * SMALL_TENSOR_BYTES
    yield from step_figures(
        plane, "%d tensors of %s" % (SMALL_TENSORS, nbytes(SMALL_TENSOR_BYTES)),
        small, tensors=SMALL_TENSORS, optimizer="sgd")
    bytes_ = TENSOR_BYTES // part
    what = "one tensor of " + nbytes(bytes_)
    if fits(what, STEP_COPIES * bytes_):
        yield from step_figures(plane, what, bytes_, tensors=1, optimizer="sgd")
    if fits("the checkpoint of " + what, CHECKPOINT_COPIES * bytes_):
        yield from checkpoint_figures(options, bytes_)
    bytes_ = SHARD_BYTES // part // ADAM_COPIES // 4 * 4
    what = "a shard of %s with Adam's slots" % nbytes(SHARD_BYTES // part)
    # The values are in STEP_COPIES, the slots not.
    if fits(what, (STEP_COPIES + ADAM_COPIES - 1) * bytes_):
        yield from step_figures(plane, what, bytes_, optimizer="adam")
