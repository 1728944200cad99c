"""Two stages on 8 micro-batches beside the other ways to use two cores: steps/s
and memory of a model in one process, a batch of as many rows in each.

Python 3 standard library only.
"""

import os
import sys
import tempfile

from . import processes, training
from .figures import Figure, Measurement, at_least
from .peers import speed, speed_over

PART = "pipeline"
ZOO = os.path.join(processes.ROOT, "worker/model/zoo")
# Of one thread. With two even stages theory gives 1.78.
OVER_ONE_THREAD = at_least(1.5)
# Runs the rest of its command line, and then prints the most memory of it.
WITH_MEMORY = [sys.executable, "-c", """
import json, resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"memory_kib": usage.ru_maxrss}))
sys.exit(code)
"""]


class Model:
    """How one is trained in each way. The cuts are the most even ones by
    --pipeline_dry_run."""

    def __init__(self, name, file, rows, flags, stages, steps_divisor):
        self.name = name
        self.file = file
        self.rows = rows
        self.flags = flags
        self.stages = stages
        self.steps_divisor = steps_divisor


MODELS = (
    # In both, each stage has half of the two layers that are most of the work,
    # as a pair: the stages are at the same micro-batch.
    Model("MLP 784-512-512-10, 4,096 rows", "mlp", 4096,
          ["--set=model.dense1.units=512", "--set=model.dense2.units=512"],
          ["--set=model.dense1.split.parts=2",
           "--set=model.dense1.split.devices=cpu:0,cpu:1",
           "--set=model.dense2.split.parts=2",
           "--set=model.dense2.split.by=INPUTS",
           "--set=model.device_rule="
           "{pattern: 'dense2|dropout2|logits|loss' device: 'cpu:1'}"], 4),
    Model("mnist_cnn, 512 rows", "mnist_cnn", 512, [],
          ["--set=model.conv2.split.parts=2",
           "--set=model.conv2.split.devices=cpu:0,cpu:1",
           "--set=model.dense1.split.parts=2",
           "--set=model.dense1.split.by=INPUTS",
           "--set=model.device_rule={pattern: "
           "'conv2|pool2|flatten|dense1|logits|loss' "
           "device: 'cpu:1'}"], 6),
)


def run(command):
    """Steps/s, and the most memory of the process."""
    with tempfile.TemporaryDirectory() as folder:
        whole = WITH_MEMORY + command + ["--train_dir=" + folder]
        numbers = processes.last_json_line(processes.run(whole), whole)
        numbers["steps_per_s"] = training.read_result(folder)
        return numbers


def measurement(options, model, way, towers=1, flags=()):
    command = [
        os.path.join(options.bin_dir, "worker/worker"), "--standalone",
        "--training=" + os.path.join(ZOO, model.file + ".textproto"),
        "--set=stop.epochs=0",
        "--set=stop.steps=%d" % max(options.steps // model.steps_divisor, 4),
        "--set=input.type=synthetic",
        "--set=input.synthetic_examples=16384",
        # The evaluation at the end is no part of the figure.
        "--set=input.synthetic_test_examples=500",
        "--set=evaluation.batch_size=500",
        "--set=input.batch_size=%d" % (model.rows // towers),
        *model.flags, *flags]
    return Measurement(PART, "%s: %s" % (model.name, way),
                       command + ["--train_dir=DIR"], lambda: run(command))


def memory(one):
    return Figure("memory of " + one.name, "MiB", [one],
                  lambda numbers: numbers["memory_kib"] / 1024)


def figures(options):
    for model in MODELS:
        one = measurement(options, model, "one thread",
                          flags=["--compute_threads=1"])
        pipelined = measurement(
            options, model, "two stages, 8 micro-batches",
            flags=["--compute_threads=2",
                   "--set=model.pipeline.micro_batches=8", *model.stages])
        others = [
            measurement(options, model, "two threads",
                        flags=["--compute_threads=2"]),
            measurement(options, model, "two towers", towers=2,
                        flags=["--compute_threads=2", "--num_devices=2"])]
        ways = [pipelined, *others]
        yield speed(one)
        yield from map(speed, ways)
        for way in ways:
            yield speed_over("%s over one thread" % way.name, way, [one],
                             OVER_ONE_THREAD if way is pipelined else None)
        yield from map(memory, [one, *ways])
