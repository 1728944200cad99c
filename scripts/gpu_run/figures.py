"""Trainings of ours and of PyTorch's, and ratios. Part of run_all.py."""

import glob
import json
import os
import re
import shlex
import shutil
import sys
import tempfile

from rows import ROOT, Failed, shown

TORCH = os.path.join(ROOT, "tests/benchmark/peers/torch_gpu.py")
# With those whose schedules want to know the length of the training.
SCHEDULED = ("mnist_cnn", "resnet20", "inception_small")
MODELS = ("softmax_regression", "mlp", *SCHEDULED)
# To start, read data, capture, save and evaluate, or to import PyTorch and
# compile: at most, and what it takes at least.
AROUND_S = {"cuda": 30.0, "cpu": 150.0, "torch": 120.0}
LEAST_AROUND_S = 4.0
# Steps long after the second, which captures.
TRACE = ["--profile_steps=200-249"]
BATCH = 128
WAYS = ("compile channels_last", "eager channels_last", "eager contiguous")
ALIKE = ("mnist_cnn, tf32", "mnist_cnn, bf16", "resnet20, tf32")

ONE = "mnist_cnn, standalone"
BF16 = ONE + ", bf16"
PLAIN = ONE + ", without CUDA graphs"
HOST_UPDATE = ONE + ", updated on the host"
TOWERS = ONE + ", 2 devices"
FREE = "mnist_cnn, 2 processes on one card"
PAIR = "mnist_cnn, 1 ps + 1 workers"
THREE = "mnist_cnn, 1 ps + 2 workers"
RESNET = "resnet20, standalone"


# A figure, those over whose fastest it is told, and the least that is wanted;
# None: only told. Steps may differ in rows: examples are compared.
TARGETS = (
    *((own, ["PyTorch %s, %s" % (way, what) for way in WAYS], wanted)
      for own, what, wanted in zip((ONE, BF16, RESNET), ALIKE, (1, 1, 0.9))),
    # Less, and the update held on the device is not worth its lines.
    (ONE, [PAIR], 1.15),
    (ONE, [HOST_UPDATE], None), (ONE, [PLAIN], None), (TOWERS, [ONE], None),
    (THREE, [FREE], None), (THREE, [PAIR], None), (FREE, [ONE], None),
)


def ratio(rows, name, others, wanted):
    """`why` names what was not measured."""
    known = dict({one: {"failed": "it was not run"} for one in (name, *others)},
                 **{row["name"]: row for row in rows.rows})
    speeds = {one: known[one].get("examples_per_s") or 0.0 for one in others}
    over = max(speeds, key=speeds.get)
    own = known[name].get("examples_per_s")
    found = own and speeds[over] and round(own / speeds[over], 3)
    return {"name": name, "over": over, "ratio": found, "wanted": wanted,
            "met": found and found >= (wanted or 0), "why": "; ".join(
                "%s: %s" % (one, known[one][key]) for one in (name, *others)
                for key in ("skipped", "failed") if key in known[one])}


def rate_of(text):
    """Fields of a row, of the JSON that PyTorch's program ends with."""
    speed = json.loads(text.splitlines()[-1])["steps_per_s"]
    return {"value": round(speed, 2), "examples_per_s": round(speed * BATCH, 1)}


class Figures:
    """Each training for options.seconds, on options' device."""

    def __init__(self, rows, options, folders, programs):
        self.rows = rows
        self.programs = programs
        self.seconds = options.seconds
        self.device = "cpu" if options.cpu else "cuda"
        self.no_card = "--cpu" if options.cpu else None
        self.flags = ["--device=" + self.device]
        if not options.cpu:
            self.flags.append("--gpu_library_path=" + ":".join(folders))

    def standalone(self, model, *flags):
        return [os.path.join(self.programs, "worker/worker"), "--standalone",
                *self.flags, *self._training(model), *flags]

    def cluster(self, workers, *worker_flags):
        """Its ps computes on no card."""
        return [sys.executable, os.path.join(ROOT, "scripts/launcher.py"),
                "--no_build", "--bin_dir=" + self.programs, "--ps=1",
                "--workers=%d" % workers, *self._training("mnist_cnn"),
                "--gpus=" + ("none" if self.no_card else "auto"),
                *("--worker_flag=" + flag
                  for flag in (*self.flags, *worker_flags))]

    def _training(self, model):
        fields = ["input.dir=" + os.path.join(ROOT, "data"), "stop.steps=0",
                  "stop.epochs=0", "stop.seconds=%g" % self.seconds,
                  "summary.every_steps=0", "checkpoint.every_steps=0"]
        if model in SCHEDULED:
            fields.append("optimizer.schedule.decay_steps=100000")
        return ["--training=%s/worker/model/zoo/%s.textproto" % (ROOT, model),
                *("--set=" + field for field in fields)]

    def train(self, name, command, key="value", skip=None, at_once=1):
        """A row of the training's result.json, whose field `key` is the value.
        A profile is kept beside the results."""
        def make():
            with tempfile.TemporaryDirectory() as folder:
                text = self.rows.run(
                    _at_once(command, folder, at_once, self.seconds),
                    self.seconds + AROUND_S[self.device])
                found = [fields_of("%s/%d" % (folder, i))
                         for i in range(at_once)]
                for path in glob.glob(folder + "/0/profile-worker-0.json"):
                    shutil.copy(path, "%s.%s.json" % (
                        self.rows.path, name.replace(" ", "_")))
            fields = dict(found[0], on_card=re.findall(
                r"(?m)^\d+, \d+ MiB$", text), **{
                    each: sum(one[each] for one in found)
                    for each in ("value", "examples_per_s")})
            if not fields[key]:
                raise Failed("a worker had fewer than two steps")
            return dict(fields, value=fields[key])
        self.rows.add(name, "steps/s" if key == "value" else key,
                      shown(command), make, skip=skip,
                      needs_s=self.seconds + LEAST_AROUND_S)

    def models(self):
        """One training of each, to a loss."""
        for model in MODELS:
            self.train(model + " to a loss", self.standalone(model), "loss")

    def sharing(self):
        """Two processes with a part of one card's memory each."""
        self.train(FREE, self.standalone("mnist_cnn", *(
            [] if self.no_card else ["--gpu_memory_fraction=0.4"])), at_once=2)

    def trainings(self):
        on_card = [] if self.no_card else ["--gpu_virtual_devices=2"]
        for name, flags, skip in (
                (ONE, [], None),
                (BF16, ["--set=compute.bf16=true"], self.no_card),
                (PLAIN, ["--set=compute.cuda_graphs=false"], self.no_card),
                (HOST_UPDATE, ["--set=compute.update_on_device=false"],
                 self.no_card),
                (TOWERS, ["--devices=2", *on_card], None),
                (ONE + ", profiled", TRACE, self.no_card)):
            self.train(name, self.standalone("mnist_cnn", *flags), skip=skip)
        self.train(RESNET, self.standalone("resnet20"), skip=self.no_card)
        self.train(PAIR, self.cluster(1))
        self.train(THREE, self.cluster(2))
        self.train(PAIR + ", profiled", self.cluster(1, *TRACE),
                   skip=self.no_card)

    def torch(self):
        self.rows.measure(
            "PyTorch", "", [sys.executable, "-c", "import torch; print("
                            "torch.__version__, torch.cuda.get_device_name())"],
            AROUND_S["torch"], str.strip, skip=self.no_card)
        skip = None if "value" in self.rows.rows[-1] else "no PyTorch"
        for way in WAYS:
            for what in ALIKE:
                self.rows.measure(
                    "PyTorch %s, %s" % (way, what), "steps/s",
                    [sys.executable, TORCH, "%g" % self.seconds, *way.split(),
                     *reversed(what.split(", "))],
                    self.seconds + AROUND_S["torch"], rate_of, skip=skip,
                    needs_s=self.seconds + LEAST_AROUND_S)


def _at_once(command, folder, count, seconds):
    """So many of it; of several, it tells who is on the card meanwhile."""
    if count == 1:
        return [*command, "--train_dir=%s/0" % folder]
    return ["/bin/sh", "-c", "".join(
        "%s --train_dir=%s/%d & " % (shlex.join(command), folder, i)
        for i in range(count)) + "sleep %g; nvidia-smi --format=csv,noheader "
            "--query-compute-apps=pid,used_memory; wait" % (
                LEAST_AROUND_S + seconds / 2)]


def fields_of(train_dir):
    with open(os.path.join(train_dir, "result.json"), encoding="utf-8") as file:
        result = json.load(file)
    # Each worker's own rate, from its first to its last step: the file's own
    # examples_per_s begins where the first step is still captured.
    speed = sum(one["steps_per_s"] or 0.0 for one in result["workers"])
    return {"value": round(speed, 2), "loss": result["final_loss"],
            "examples_per_s": round(speed * result["rows_per_push"], 1)}
