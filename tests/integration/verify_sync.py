#!/usr/bin/env python3
"""Compares sync replication with one process that has the whole batch: the
program of scripts/verify_sync.sh, and of verify_sync_test.

Python 3 standard library only.
"""

import argparse
import array
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(os.path.dirname(os.path.dirname(FOLDER)), "scripts")
sys.path.insert(0, SCRIPTS)
# pylint: disable=wrong-import-position
from base import quiet_interrupt  # pylint: disable=unused-import
from base.launcher_flags import (add_binary_flags, local_path, not_negative,
                                 positive)

# Rule -> (learning rate, tolerance). The tolerance is a part of the longest way
# that a parameter has gone. The two ways add the same numbers in another order,
# which changes the last bit or two of a gradient (6e-8 of it); rules that
# divide by the root of a mean of squares make of a gradient that is nearly 0 a
# step that is not, and so of its last bits more than others do.
RULES = {
    "sgd": (0.05, 1e-5),
    "momentum": (0.01, 1e-5),
    "nesterov": (0.01, 1e-5),
    "adagrad": (0.01, 1e-3),
    "rmsprop": (0.001, 1e-3),
    "adam": (0.001, 1e-3),
    "adamw": (0.001, 1e-3),
    "ftrl": (0.1, 1e-5),
}

# Layers of which N batches of b are not one of N*b: means over the batch, and
# random numbers for each row of it.
EXCEPTED_LAYERS = ("batch_norm", "dropout")

EXIT_DIFFERENT = 1
EXIT_BAD = 2
# Of one training.
DEADLINE_S = 300


def parse_arguments(argv):
    """Returns the options; ends the process with 2 after a mistake."""
    parser = argparse.ArgumentParser(
        prog="verify_sync.sh",
        description="Trains with each update rule twice from the same seed on "
        "the same rows: N synchronous workers with batches of B rows on P ps "
        "tasks, and one process with batches of N*B. Prints the largest "
        "difference between their parameters. Models with batch norm or "
        "dropout are excepted: there N batches of B are not one of N*B.",
        epilog="Exit code: 0 if no difference is above its tolerance, 1 if one "
        "is, 2 if the comparison could not be made.",
        allow_abbrev=False)
    parser.add_argument("--workers", type=positive, default=2, metavar="N",
                        help="worker tasks (default 2)")
    parser.add_argument("--ps", type=not_negative, default=2, metavar="P",
                        help="ps tasks (default 2); 0: all-reduce among the "
                        "workers, which waits for all of them")
    parser.add_argument("--batch_size", type=positive, default=16, metavar="B",
                        help="rows of one step of one worker (default 16)")
    parser.add_argument("--steps", type=positive, default=20, metavar="S",
                        help="updates (default 20)")
    parser.add_argument("--rules", metavar="A,B,...", default=",".join(RULES),
                        help="update rules (default: all)")
    parser.add_argument(
        "--training", metavar="FILE",
        default=os.path.join(FOLDER, "verify_sync.textproto"),
        help="TrainingSpec (default tests/integration/verify_sync.textproto); "
        "its optimizer, replication, batch size and end are replaced")
    parser.add_argument("--set", action="append", default=[],
                        metavar="FIELD=VALUE",
                        help="override a field of the TrainingSpec for both; "
                        "may be repeated")
    parser.add_argument("--drop_gradient", action="store_true",
                        help="drop a gradient on purpose, to see the "
                        "comparison fail: each update takes the mean of N-1 "
                        "of the N workers' gradients")
    parser.add_argument("--keep", type=local_path, metavar="DIR",
                        help="keep the trainings in this new folder (default: "
                        "they are removed)")
    add_binary_flags(parser)
    options = parser.parse_args(argv)
    options.rules = options.rules.split(",")
    for rule in options.rules:
        if rule not in RULES:
            parser.error("--rules: no tolerance is known for '%s'; known: %s" %
                         (rule, ", ".join(RULES)))
    if options.drop_gradient and options.workers < 2:
        parser.error("--drop_gradient wants --workers of 2 or more")
    if options.drop_gradient and options.ps == 0:
        parser.error("--drop_gradient wants --ps of 1 or more: all-reduce has "
                     "no backup workers")
    return options


class NoComparison(Exception):
    """The two could not be compared; the text says why."""


def check_layers(path):
    """Raises NoComparison for a model whose layers cannot be compared."""
    try:
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"#.*", "", file.read())
    except OSError as error:
        raise NoComparison("--training: %s" % error) from error
    for layer in EXCEPTED_LAYERS:
        if re.search(r"\btype\s*:\s*[\"']%s[\"']" % layer, text):
            raise NoComparison(
                "%s has a layer of type '%s', with which %s; take a model "
                "without it" % (path, layer, "N batches of B rows are not one "
                                "of N*B by definition"))


def read_parameters(train_dir, step):
    """Name -> array of floats, of the checkpoint of that step."""
    path = os.path.join(train_dir, "ckpt-%012d" % step,
                        "parameters.safetensors")
    try:
        with open(path, "rb") as file:
            contents = file.read()
    except OSError as error:
        raise NoComparison("no parameters of step %d: %s" %
                           (step, error)) from error
    length = struct.unpack("<Q", contents[:8])[0]
    header = json.loads(contents[8:8 + length])
    header.pop("__metadata__", None)
    data = contents[8 + length:]
    tensors = {}
    for name, entry in header.items():
        values = array.array("f")
        values.frombytes(data[slice(*entry["data_offsets"])])
        if sys.byteorder == "big":
            values.byteswap()
        tensors[name] = values
    return tensors


def largest_difference(a, b):
    """(difference, parameter, element); NaN counts as infinitely far."""
    if {name: len(values) for name, values in a.items()} != {
            name: len(values) for name, values in b.items()}:
        raise NoComparison("the two models have not the same parameters: %s "
                           "and %s" % (sorted(a), sorted(b)))
    largest = (0.0, "", 0)
    for name in a:
        for i, (x, y) in enumerate(zip(a[name], b[name])):
            distance = abs(x - y)
            if distance != distance:
                distance = float("inf")
            if distance > largest[0]:
                largest = (distance, name, i)
    return largest


def run(what, command):
    """Runs a training to its end."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=DEADLINE_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise NoComparison("%s did not end in %d s" %
                           (what, DEADLINE_S)) from error
    except OSError as error:
        raise NoComparison("%s: %s (without --no_build it is built)" %
                           (what, error)) from error
    if done.returncode != 0:
        tail = done.stdout.decode("utf-8", "replace").splitlines()[-10:]
        raise NoComparison("%s ended with exit code %d; its last lines:\n  %s" %
                           (what, done.returncode, "\n  ".join(tail)))


def fields(options, rule, batch_size, mode):
    """The --set flags of one training."""
    assignments = [
        "optimizer=" + rule, "optimizer.learning_rate=%r" % RULES[rule][0],
        *options.set, "input.batch_size=%d" % batch_size, "input.global_batch_size=0",
        "stop.steps=%d" % options.steps, "stop.epochs=0", "stop.seconds=0",
        "stop.target_accuracy=0", "checkpoint.every_steps=0",
        "checkpoint.every_seconds=0", "summary.every_steps=0", *mode]
    return ["--set=" + assignment for assignment in assignments]


def train_alone(options, rule, train_dir):
    run("one process with %s" % rule, [
        os.path.join(options.bin_dir, "worker", "worker"), "--standalone",
        "--training=" + options.training, "--train_dir=" + train_dir,
        "--compute_threads=1", *fields(
            options, rule, options.workers * options.batch_size,
            ["replication=async"])])


def train_in_sync(options, rule, train_dir):
    aggregate = options.workers - 1 if options.drop_gradient else 0
    mode = [] if options.ps == 0 else [
        "replication=sync",
        "replication.sync.replicas_to_aggregate=%d" % aggregate,
        # From the first step on, however late a worker is.
        "replication.sync.min_replicas=%d" % (aggregate or options.workers)]
    run("sync with %s" % rule, [
        sys.executable, os.path.join(SCRIPTS, "launcher.py"), "--no_build",
        "--bin_dir=" + options.bin_dir, "--ps=%d" % options.ps,
        "--workers=%d" % options.workers, "--compute_threads=1",
        "--training=" + options.training, "--train_dir=" + train_dir, *fields(
            options, rule, options.batch_size, mode)])


def verify(options, rule, folder):
    """Prints one rule's line; whether it is within its tolerance."""
    alone = os.path.join(folder, rule + "-one")
    sync = os.path.join(folder, rule + "-sync")
    train_alone(options, rule, alone)
    train_in_sync(options, rule, sync)
    start = read_parameters(alone, 0)
    if largest_difference(start, read_parameters(sync, 0))[0] > 0:
        raise NoComparison("%s: the two did not start from the same "
                           "parameters" % rule)
    end = read_parameters(alone, options.steps)
    moved = largest_difference(start, end)[0]
    difference, name, element = largest_difference(
        end, read_parameters(sync, options.steps))
    tolerance = RULES[rule][1] * moved
    good = difference <= tolerance
    print("%-10s %12.2e %12.2e %12.2e  %-4s %s" % (
        rule, difference, tolerance, moved, "ok" if good else "FAIL",
        "%s[%d]" % (name, element) if name else "equal bit for bit"),
          flush=True)
    return good


def main(argv):
    options = parse_arguments(argv)
    folder = options.keep or tempfile.mkdtemp(prefix="verify_sync.")
    try:
        if options.keep:
            os.makedirs(folder)
        check_layers(options.training)
        print("sync: %d workers x %d rows on %d ps; one process: %d rows; "
              "%d updates%s" % (
                  options.workers, options.batch_size, options.ps,
                  options.workers * options.batch_size, options.steps,
                  "; ONE GRADIENT OF EACH UPDATE IS DROPPED ON PURPOSE"
                  if options.drop_gradient else ""))
        print("%-10s %12s %12s %12s  %-4s %s" % (
            "rule", "difference", "tolerance", "moved", "", "where"))
        bad = [rule for rule in options.rules
               if not verify(options, rule, folder)]
    except (NoComparison, OSError) as error:
        print("verify_sync: %s" % error, file=sys.stderr)
        return EXIT_BAD
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    if bad:
        print("FAILED: sync is not one process with the whole batch for: " +
              ", ".join(bad))
        return EXIT_DIFFERENT
    print("sync equals one process with the whole batch, for each of %d rules"
          % len(options.rules))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
