"""What is measured of ours: trainings, and what limits them.

Part of run_all.py. Python 3 standard library only.
"""

import json
import os
import platform
import shutil
import sys
import tempfile

import card_samples
import device_trace
import targets
from timed_runs import ROOT, Part, last_object

LAUNCHER = os.path.join(ROOT, "scripts/launcher.py")
# To start, read the data, capture, save, and evaluate on the test set: at most,
# and what it takes at least.
AROUND_S = {"cuda": 30.0, "cpu": 120.0}
LEAST_AROUND_S = 4.0
# Steps of a trace, long after the second, which captures; a training that is
# only traced is short.
TRACE = ["--profile_steps=50", "--profile_from_step=200"]
TRACED_S = 3.0
# A trace that slows its steps by more tells of other steps than the measured.
ALIKE = 0.1
# Of a figure of data_plane, which takes a second.
DATA_PLANE_LIMIT_S = 60.0
# What a worker says when its device does the update rule's work.
ON_DEVICE = "parameters stay on"


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

    def standalone(self, model_name, *flags, fields=()):
        """A function that makes its command: of seconds, and more flags."""
        return lambda seconds, *more: [
            os.path.join(self.programs, "worker/worker"), "--standalone",
            "--training=" + model(model_name), *self.flags, *flags, *more,
            *self.fields(seconds, *fields)]

    def cluster(self, workers, model_name):
        """The same, of one ps."""
        return lambda seconds, *more: [
            sys.executable, LAUNCHER, "--no_build",
            "--bin_dir=" + self.programs, "--ps=1", "--workers=%d" % workers,
            "--gpus=" + ("none" if self.device == "cpu" else "auto"),
            "--training=" + model(model_name),
            *["--worker_flag=" + flag for flag in (*self.flags, *more)],
            *self.fields(seconds)]

    def measure(self, what, command, times=1):
        """A row of the training; `command` is made as by the two above."""
        seconds = times * self.seconds
        with self.runs.guarded(what), TrainFolder() as train_dir:
            self._train(what, seconds, train_dir, command(seconds))

    def trace(self, what, command):
        """A short training more, by the `command` of the one that was measured:
        what the card did meanwhile, as the worker's profile has it, and beside
        that as nvidia-smi says. Both take time from a step."""
        with self.runs.guarded(targets.TRACED % what), \
                TrainFolder() as train_dir:
            with card_samples.CardSamples() as samples:
                self._train(targets.TRACED % what, TRACED_S, train_dir,
                            command(TRACED_S, *TRACE))
            trace_figures(self.runs, what, train_dir,
                          self.runs.value("%s on %s" % (what, self.device)))
            self.runs.derive(
                targets.BUSY % what + ", by samples", "%", samples.busy,
                "nvidia-smi " + " ".join(card_samples.arguments()))

    def _train(self, what, seconds, train_dir, command):
        self.runs.measure(Part(
            "%s on %s" % (what, self.device), "steps/s",
            command + ["--train_dir=" + train_dir],
            seconds + AROUND_S[self.device],
            lambda text: training_figures(train_dir, text),
            needs_s=seconds + LEAST_AROUND_S,
            skip=launcher_cannot() if LAUNCHER in command else None))


class TrainFolder:
    """A temporary folder. What cannot be removed, for a process that still
    writes there, say, is left. Raises OSError if there can be none."""

    def __enter__(self):
        self._path = tempfile.mkdtemp()
        return self._path

    def __exit__(self, *_):
        shutil.rmtree(self._path, ignore_errors=True)


def launcher_cannot():
    """Why launcher.py does not run with this Python; None if it does."""
    if hasattr(os, "pidfd_open"):
        return None
    return ("launcher.py wants os.pidfd_open, of Python 3.9 or newer; this is "
            "%s" % platform.python_version())


def trace_figures(runs, what, train_dir, measured_steps_per_s):
    """Rows of what the card of worker 0 did, by its profile; beside them, how
    long a step took there, and where nothing was traced."""
    path = os.path.join(train_dir, "profile-worker-0.json")
    how = "the profile of %s" % what
    runs.derive(targets.BUSY % what, "%", lambda: busy(
        device_trace.read(path), measured_steps_per_s), how)
    for name, lane in ((targets.MB_TO_DEVICE, device_trace.TO_DEVICE),
                       (targets.MB_TO_HOST, device_trace.TO_HOST)):
        runs.derive(name % what, "MB", lambda lane=lane: round(
            device_trace.read(path).bytes_a_step(lane) / 1e6, 6), how)


def busy(trace, measured_steps_per_s):
    """The fields of its row."""
    fields = {"value": trace.busy_percent(),
              "period_us": round(trace.period_us(), 3)}
    if not measured_steps_per_s:
        return fields
    measured_us = 1e6 / measured_steps_per_s
    fields["measured_period_us"] = round(measured_us, 3)
    if abs(trace.period_us() / measured_us - 1) > ALIKE:
        fields["notes"] = [
            "a profiled step took %.1f us, one that was not %.1f us: they "
            "differ by more than %g %%" % (
                trace.period_us(), measured_us, 100 * ALIKE)]
    return fields


def training_figures(train_dir, text):
    """Fields of a row, of result.json and of what the training printed. Raises
    an exception if there is none, or it lacks something."""
    with open(os.path.join(train_dir, "result.json"), encoding="utf-8") as file:
        result = json.load(file)
    # Each worker's own rate, from its first to its last step: the file's own
    # examples_per_s begins where the first step is still captured.
    rates = [one["steps_per_s"] for one in result["workers"]]
    if not rates or not all(rates):
        raise ValueError("a worker had fewer than two steps")
    return {"value": round(sum(rates), 2),
            "examples_per_s": round(sum(rates) * result["rows_per_push"], 1),
            "rows_per_step": result["rows_per_push"],
            "updated_on": "ps" if result["mode"] == "cluster" else
                          "device" if ON_DEVICE in text else "host"}


def limits(runs, options, programs, environment):
    """What a step with a ps cannot be faster than."""
    for name, unit, figure, read in (
            (targets.TO_DEVICE, "GB/s", "to_device",
             lambda line: line["bytes_per_s"] / 1e9),
            (targets.TO_HOST, "GB/s", "to_host",
             lambda line: line["bytes_per_s"] / 1e9),
            (targets.ADAM, "steps/s", "apply",
             lambda line: 1 / line["median_s"])):
        runs.measure(Part(
            name, unit, [
                os.path.join(programs, "benchmark/data_plane"),
                "--figure=" + figure, "--bytes=%d" % targets.MODEL_BYTES],
            DATA_PLANE_LIMIT_S,
            lambda text, read=read: round(read(last_object(text)), 2),
            skip="--cpu" if options.cpu and figure != "apply" else None,
            environment=environment))


def figures(runs, options, folders, programs):
    """Trainings of ours; one that fails leaves the others."""
    ours = Trainings(runs, options, folders, programs)
    one = ours.standalone("mnist_cnn")
    pair = ours.cluster(1, "mnist_cnn")
    ours.measure(targets.ONE, one)
    if not options.cpu:
        for what, field in ((targets.BF16, "compute.bf16=true"),
                            (targets.PLAIN, "compute.cuda_graphs=false"),
                            (targets.HOST_UPDATE,
                             "compute.update_on_device=false")):
            ours.measure(what, ours.standalone("mnist_cnn", fields=[field]))
    ours.measure(targets.TOWERS, ours.standalone(
        "mnist_cnn", "--num_devices=2",
        *([] if options.cpu else ["--gpu_virtual_devices=2"])))
    ours.measure(targets.PAIR, pair)
    ours.measure(targets.THREE, ours.cluster(2, "mnist_cnn"))
    # Its steps are long. It has moving averages, which no device updates: the
    # worker says so, if asked.
    ours.measure(targets.INCEPTION, ours.standalone(
        "inception_small", fields=["compute.update_on_device=true"]), times=3)
    ours.measure(targets.INCEPTION_PAIR, ours.cluster(1, "inception_small"),
                 times=3)
    if not options.cpu:
        ours.trace(targets.ONE, one)
        ours.trace(targets.PAIR, pair)
