#!/usr/bin/env python3
"""The figures of this machine, as a table and as bench.json.

Called by bench.sh. Every round runs every shape once, so that a slow minute of
the machine does not fall on one shape alone; the median over rounds is given.
Python 3 standard library only (--peers needs PyTorch).
"""

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORKER = os.path.join(ROOT, "bazel-bin/worker/worker")
LAUNCHER = os.path.join(ROOT, "scripts/launcher.py")
MODEL = os.path.join(ROOT, "worker/model/zoo/mnist_cnn.textproto")
# No run takes longer; one that does has hung.
LIMIT_S = 900


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="bench.sh", description="Measures steps/s of the MNIST CNN (batch "
        "128) in one process and in clusters, and the time to the first step.")
    parser.add_argument("--rounds", type=int, default=3,
                        help="runs of each shape (default 3)")
    parser.add_argument("--steps", type=int, default=150,
                        help="global steps of a run (default 150)")
    parser.add_argument("--out", default="bench.json", metavar="FILE",
                        help="where the figures go (default bench.json)")
    parser.add_argument("--saves", action="store_true",
                        help="instead: the time of a step while a checkpoint "
                        "is written and while none is, in the same run")
    parser.add_argument("--peers", action="store_true",
                        help="also the same model in PyTorch, if this python3 "
                        "can import torch")
    return parser.parse_args()


def run(command):
    process = subprocess.run(command, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             timeout=LIMIT_S, check=False)
    if process.returncode != 0:
        sys.stderr.write(process.stdout.decode("utf-8", "replace"))
        raise SystemExit("bench.sh: exit code %d of: %s" %
                         (process.returncode, " ".join(command)))
    return process.stdout.decode("utf-8", "replace")


def read_result(train_dir):
    with open(os.path.join(train_dir, "result.json"), encoding="utf-8") as file:
        result = json.load(file)
    # Each worker's own rate, from its first to its last step.
    return {"steps_per_s": sum(one["steps_per_s"] for one in result["workers"]),
            "first_step_s": result["time_to_first_step_s"]}


def standalone(threads, steps):
    with tempfile.TemporaryDirectory() as train_dir:
        run([WORKER, "--standalone", "--training=" + MODEL,
             "--train_dir=" + train_dir, "--compute_threads=%d" % threads,
             "--set=stop.steps=%d" % steps, "--set=stop.epochs=0"])
        return read_result(train_dir)


def cluster(workers, steps):
    with tempfile.TemporaryDirectory() as train_dir:
        run([sys.executable, LAUNCHER, "--no_build", "--ps=1",
             "--workers=%d" % workers, "--train_dir=" + train_dir,
             "--compute_threads=1", "--steps=%d" % (steps * workers)])
        return read_result(train_dir)


def pytorch(threads, steps):
    output = run([sys.executable, os.path.join(ROOT, "scripts/peer_torch.py"),
                  str(threads), str(steps)])
    return json.loads(output.splitlines()[-1])


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
        time_s = datetime.datetime.strptime(
            found[1], "%Y-%m-%d %H:%M:%S.%f").timestamp()
        if found.re is STEP_LINE:
            ends[int(found[2])] = time_s
        elif int(found[2]) in ends:
            # A save begins right after its step.
            saves.append((ends[int(found[2])], time_s))
    return ends, saves


def saves(options):
    """Milliseconds of the steps (during a save, outside of one)."""
    with tempfile.TemporaryDirectory() as train_dir:
        ends, spans = steps_and_saves(run([
            WORKER, "--standalone", "--training=" + MODEL,
            "--train_dir=" + train_dir, "--compute_threads=1",
            "--progress_every=0", "--set=input.batch_size=32",
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


def measure_saves(options):
    during, outside = [], []
    for _ in range(options.rounds):
        some_during, some_outside = saves(options)
        during += some_during
        outside += some_outside
    rows = {}
    print("%-28s %6s %9s %9s %9s" % ("step time, ms", "steps", "p50", "p90",
                                     "p99"))
    for name, times in (("no save running", outside),
                        ("a save running", during)):
        cuts = statistics.quantiles(times, n=100, method="inclusive")
        rows[name] = [cuts[percent - 1] for percent in PERCENTILES]
        print("%-28s %6d %9.1f %9.1f %9.1f" % (name, len(times), *rows[name]))
    ratios = [during_ms / outside_ms for during_ms, outside_ms in zip(
        rows["a save running"], rows["no save running"])]
    print("%-28s %6s %9.2f %9.2f %9.2f" % ("ratio", "", *ratios))
    return {"step_ms": rows, "ratio": ratios}


def shapes(options):
    """(name, function) in the order of the table."""
    steps = options.steps
    yield "standalone, 1 thread", lambda: standalone(1, steps)
    yield "standalone, 2 threads", lambda: standalone(2, steps)
    yield "1 ps + 1 worker, 1 thread", lambda: cluster(1, steps)
    yield "1 ps + 2 workers, 1 thread each", lambda: cluster(2, steps)
    if not options.peers:
        return
    try:
        import torch  # pylint: disable=unused-import,import-outside-toplevel
    except ImportError:
        print("bench.sh: this python3 cannot import torch; no peers",
              file=sys.stderr)
        return
    yield "PyTorch, 1 thread, channels_last", lambda: pytorch(1, steps)
    yield "PyTorch, 2 threads, channels_last", lambda: pytorch(2, steps)


def medians(rows):
    return {key: statistics.median(row[key] for row in rows)
            for key in rows[0]}


def print_table(figures):
    base = figures["standalone, 1 thread"]["steps_per_s"]
    print("%-36s %9s %8s %13s" % ("", "steps/s", "of 1st", "first step, s"))
    for name, row in figures.items():
        first = row.get("first_step_s")
        print("%-36s %9.2f %8.2f %13s" % (
            name, row["steps_per_s"], row["steps_per_s"] / base,
            "" if first is None else "%.2f" % first))


def main():
    options = parse_arguments()
    if options.saves:
        figures = measure_saves(options)
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=2)
            file.write("\n")
        return 0
    chosen = list(shapes(options))
    rows = {name: [] for name, _ in chosen}
    for round_ in range(options.rounds):
        for name, measure in chosen:
            rows[name].append(measure())
            print("round %d: %s: %.2f steps/s" % (
                round_ + 1, name, rows[name][-1]["steps_per_s"]),
                file=sys.stderr)
    figures = {name: medians(found) for name, found in rows.items()}
    print_table(figures)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump({"machine": platform.machine(), "cores": os.cpu_count(),
                   "rounds": options.rounds, "steps": options.steps,
                   "medians": figures, "runs": rows}, file, indent=2)
        file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
