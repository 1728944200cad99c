#!/usr/bin/env python3
"""The figures of this machine, as a table and as bench.json.

Called by bench.sh. Every round runs every shape once, so that a slow minute of
the machine does not fall on one shape alone; the median over rounds is given.
Python 3 standard library only (--peers needs PyTorch).
"""

import argparse
import json
import os
import platform
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
