"""The time of a step while a checkpoint is written and while none is.

Python 3 standard library only.
"""

import os
import re
import statistics
import tempfile

from . import processes

# A step's line with --progress_every=0, and a save's.
STEP_LINE = re.compile(r"^(\S+ \S+) I \S+ step=(\d+) loss=")
SAVED_LINE = re.compile(r"^(\S+ \S+) I \S+ saved .*ckpt-(\d+)$")
SAVE_EVERY = 25
WARM_UP_STEPS = 10
PERCENTILES = (50, 90, 99)


def steps_and_saves(output):
    """(end of each step in s, [(start, end) of each save in s])."""
    ends, saves = {}, []
    for line in output.splitlines():
        found = STEP_LINE.match(line) or SAVED_LINE.match(line)
        if not found:
            continue
        time_s = processes.log_time_s(found[1])
        if found.re is STEP_LINE:
            ends[int(found[2])] = time_s
        elif int(found[2]) in ends:
            # A save begins right after its step.
            saves.append((ends[int(found[2])], time_s))
    return ends, saves


def step_times(options):
    """Milliseconds of the steps (during a save, outside of one)."""
    with tempfile.TemporaryDirectory() as train_dir:
        ends, spans = steps_and_saves(processes.run([
            os.path.join(options.bin_dir, "worker/worker"), "--standalone",
            "--training=" + processes.MODEL, "--train_dir=" + train_dir,
            "--compute_threads=1", "--progress_every=0",
            "--set=input.batch_size=32",
            "--set=checkpoint.every_steps=%d" % SAVE_EVERY,
            "--set=stop.steps=%d" % options.steps, "--set=stop.epochs=0"]))
    during, outside = [], []
    for step in sorted(ends):
        if step <= WARM_UP_STEPS or step - 1 not in ends:
            continue
        start, end = ends[step - 1], ends[step]
        overlaps = any(start < stop and begin < end for begin, stop in spans)
        (during if overlaps else outside).append(1000 * (end - start))
    return during, outside


def measure(options):
    during, outside = [], []
    for _ in range(options.rounds):
        some_during, some_outside = step_times(options)
        during += some_during
        outside += some_outside
    rows = {}
    print("%-28s %6s %9s %9s %9s" % ("step time, ms", "steps", "p50", "p90",
                                     "p99"))
    for name, times in (("no save running", outside),
                        ("a save running", during)):
        if len(times) < 2:
            raise processes.Failure(
                "only %d steps with %s; give more --steps" % (
                    len(times), name))
        cuts = statistics.quantiles(times, n=100, method="inclusive")
        rows[name] = [cuts[percent - 1] for percent in PERCENTILES]
        print("%-28s %6d %9.1f %9.1f %9.1f" % (name, len(times), *rows[name]))
    ratios = [during_ms / outside_ms for during_ms, outside_ms in zip(
        rows["a save running"], rows["no save running"])]
    print("%-28s %6s %9.2f %9.2f %9.2f" % ("ratio", "", *ratios))
    return {"step_ms": rows, "ratio": ratios}
