"""The timeline of real steps of the MNIST CNN, for pictures.py.

Python 3 standard library only.
"""

import json
import os
import sys
import tempfile

from . import processes

# One for each core, as in the targets.
WORKERS = 2
# The worker begins with its tenth step; the second of these is drawn.
PROFILED = 2
STEPS_EACH = 14
LINKS = ("shared_memory", "grpc")


def spans(profile):
    """Those of its last step: [{lane, name, begin_ms, ms}], from the first
    one's begin; `lane` as the profile names it. Its rows were prepared
    before."""
    events = profile["traceEvents"]
    lanes = {event["tid"]: event["args"]["name"] for event in events
             if event["ph"] == "M" and event["name"] == "thread_name"}
    shown = [event for event in events
             if event["ph"] == "X" and lanes[event["tid"]] != "input"]
    last = max(event["args"]["step"] for event in shown)
    shown = [event for event in shown if event["args"]["step"] == last]
    start = min(event["ts"] for event in shown)
    return [{"lane": lanes[event["tid"]], "name": event["name"],
             "begin_ms": round((event["ts"] - start) / 1e3, 3),
             "ms": round(event["dur"] / 1e3, 3)} for event in shown]


def command_of(options, link):
    return [sys.executable, processes.LAUNCHER, "--no_build",
            "--bin_dir=" + options.bin_dir, "--link=" + link, "--ps=1",
            "--workers=%d" % WORKERS, "--compute_threads=1",
            "--steps=%d" % (WORKERS * STEPS_EACH),
            "--profile_steps=%d" % PROFILED]


def record(options):
    """[{link, workers, command, spans of worker 0}] of each link."""
    recorded = []
    for link in LINKS:
        command = command_of(options, link)
        with tempfile.TemporaryDirectory() as train_dir:
            processes.run(command + ["--train_dir=" + train_dir])
            path = os.path.join(train_dir, "profile-worker-0.json")
            with open(path, encoding="utf-8") as file:
                profile = json.load(file)
        recorded.append({"link": link, "workers": WORKERS,
                         "command": processes.shown(command),
                         "spans": spans(profile)})
    return recorded
