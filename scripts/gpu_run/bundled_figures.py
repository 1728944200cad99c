"""What is measured: trainings, ours and PyTorch's, and what limits them.

Part of run_all.py. Python 3 standard library only.
"""

import json
import os
import subprocess
import sys
import tempfile

import card_samples
import device_trace
import targets
from timed_runs import ROOT

LAUNCHER = os.path.join(ROOT, "scripts/launcher.py")
TORCH = os.path.join(ROOT, "tests/benchmark/peers/torch_gpu.py")
# To start, read the data, capture, save, and evaluate on the test set.
AROUND_S = {"cuda": 30.0, "cpu": 120.0}
# torch.compile builds its kernels with a compiler.
TORCH_AROUND_S = 90.0
# Steps of a trace, long after the second, which captures.
TRACE = ["--profile_steps=50", "--profile_from_step=200"]
# Of a figure of data_plane, which takes a second.
DATA_PLANE_LIMIT_S = 60.0


def model(name):
    return os.path.join(ROOT, "worker/model/zoo/%s.textproto" % name)


class Trainings:
    """Each for options.seconds, on options' device."""

    def __init__(self, runs, options, folders, programs):
        self.runs = runs
        self.programs = programs
        self.seconds = options.seconds
        self.device = "cpu" if options.cpu else "cuda"
        # Of every process of ours that computes.
        self.flags = ["--device=" + self.device]
        if not options.cpu:
            self.flags.append("--gpu_library_path=" + ":".join(folders))

    def fields(self, seconds, *more):
        return ["--set=" + field for field in (
            "input.dir=" + os.path.join(ROOT, "data"), "stop.steps=0",
            "stop.epochs=0", "stop.seconds=%g" % seconds,
            "summary.every_steps=0", "checkpoint.every_steps=0",
            # A schedule over the whole training wants to know its length.
            "optimizer.schedule.decay_steps=100000", *more)]

    def standalone(self, what, model_name, *flags, fields=(), times=1):
        seconds = times * self.seconds
        self._measure(what, seconds, flags, [
            os.path.join(self.programs, "worker/worker"), "--standalone",
            "--training=" + model(model_name),
            *self.flags, *flags, *self.fields(seconds, *fields)])

    def cluster(self, ps, workers, *flags, model_name="mnist_cnn", times=1):
        seconds = times * self.seconds
        self._measure("%s, %d ps + %d workers" % (
            model_name, ps, workers), seconds, flags, [
            sys.executable, LAUNCHER, "--no_build",
            "--bin_dir=" + self.programs,
            "--ps=%d" % ps, "--workers=%d" % workers,
            "--gpus=" + ("none" if self.device == "cpu" else "auto"),
            "--training=" + model(model_name),
            *["--worker_flag=" + flag for flag in (*self.flags, *flags)],
            *self.fields(seconds)])

    def traced(self, what, train):
        """`train(*flags)`, and what the card did meanwhile: as the worker's
        profile has it, and beside that as nvidia-smi says."""
        if self.device == "cpu":
            train()
            return
        with card_samples.CardSamples() as samples:
            train(*TRACE)
        self.runs.derive(targets.BUSY % what + ", by samples", "%",
                         samples.busy_percent,
                         "nvidia-smi " + " ".join(card_samples.ARGUMENTS))

    def _measure(self, what, seconds, flags, command):
        with tempfile.TemporaryDirectory() as train_dir:
            self.runs.measure(
                "%s on %s" % (what, self.device), "steps/s",
                command + ["--train_dir=" + train_dir],
                seconds + AROUND_S[self.device],
                lambda _: steps_per_s(train_dir))
            if TRACE[0] in flags:
                trace_figures(self.runs, what, train_dir)


def trace_figures(runs, what, train_dir):
    """Rows of what the card of worker 0 did, by its profile."""
    path = os.path.join(train_dir, "profile-worker-0.json")
    how = "the profile of %s" % what
    runs.derive(targets.BUSY % what, "%",
                lambda: device_trace.read(path).busy_percent(), how)
    for name, lane in ((targets.MB_TO_DEVICE, device_trace.TO_DEVICE),
                       (targets.MB_TO_HOST, device_trace.TO_HOST)):
        runs.derive(name % what, "MB", lambda lane=lane: round(
            device_trace.read(path).bytes_a_step(lane) / 1e6, 6), how)


def steps_per_s(train_dir):
    with open(os.path.join(train_dir, "result.json"), encoding="utf-8") as file:
        result = json.load(file)
    # Each worker's own rate, from its first to its last step.
    rates = [one["steps_per_s"] for one in result["workers"]]
    if not all(rates):
        raise ValueError("a worker had fewer than two steps")
    return round(sum(rates), 2)


def has_torch():
    return subprocess.run(
        [sys.executable, "-c",
         "import torch; assert torch.cuda.is_available()"],
        capture_output=True, check=False).returncode == 0


def torch_figures(runs, options):
    skip = ("--cpu" if options.cpu else
            None if has_torch() else "no PyTorch with a GPU here")
    for way in ("eager", "compile"):
        for precision in ("tf32", "bf16"):
            runs.measure(
                "PyTorch %s, mnist_cnn, %s" % (way, precision), "steps/s",
                [sys.executable, TORCH, "%g" % options.seconds, way, precision],
                options.seconds + TORCH_AROUND_S,
                lambda text: round(
                    json.loads(text.splitlines()[-1])["steps_per_s"], 2),
                skip)


def limits(runs, options, programs, environment):
    """What a step with a ps cannot be faster than."""
    for name, unit, figure, read in (
            (targets.TO_DEVICE, "GB/s", "to_device",
             lambda line: line["bytes_per_s"] / 1e9),
            (targets.TO_HOST, "GB/s", "to_host",
             lambda line: line["bytes_per_s"] / 1e9),
            (targets.ADAM, "steps/s", "apply",
             lambda line: 1 / line["median_s"])):
        runs.measure(
            name, unit, [
                os.path.join(programs, "benchmark/data_plane"),
                "--figure=" + figure, "--bytes=%d" % targets.MODEL_BYTES],
            DATA_PLANE_LIMIT_S,
            lambda text, read=read: round(
                read(json.loads(text.splitlines()[-1])), 2),
            "--cpu" if options.cpu and figure != "apply" else None,
            environment)


def figures(runs, options, folders, programs):
    ours = Trainings(runs, options, folders, programs)
    ours.traced(targets.ONE, lambda *flags: ours.standalone(
        targets.ONE, "mnist_cnn", *flags))
    if not options.cpu:
        ours.standalone(targets.BF16, "mnist_cnn",
                        fields=["compute.bf16=true"])
        ours.standalone(targets.PLAIN, "mnist_cnn",
                        fields=["compute.cuda_graphs=false"])
        ours.standalone(targets.HOST_UPDATE, "mnist_cnn",
                        fields=["compute.update_on_device=false"])
    ours.standalone(targets.TOWERS, "mnist_cnn",
                    "--num_devices=2", *(
                        [] if options.cpu else ["--gpu_virtual_devices=2"]))
    ours.traced(targets.PAIR, lambda *flags: ours.cluster(1, 1, *flags))
    ours.cluster(1, 2)
    # Its steps are long.
    ours.standalone(targets.INCEPTION, "inception_small", times=3)
    ours.cluster(1, 1, model_name="inception_small", times=3)
    torch_figures(runs, options)
