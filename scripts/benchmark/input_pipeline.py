"""Where a machine's threads do most: steps/s over threads that prepare rows,
threads of the ps that apply updates, and towers (whose mean one thread makes);
and how many JPEGs a core decodes, beside torch's DataLoader.

Python 3 standard library only; the images, and torch, are of a Python made for
them.
"""

import itertools
import json
import os
import re
import socket
import statistics
import tempfile

from . import peers, processes

INPUT_THREADS = (1, 2)
APPLY_THREADS = (1, 2)
TOWERS = (1, 2)
# Augmentation that costs about as much as the MLP's step.
MAPS = """
  map { type: "random_crop" attr { name: "padding" i: 4 } }
  map { type: "random_flip" }
  map { type: "resize" attr { name: "size" i: 32 } }
  map { type: "random_crop" attr { name: "size" i: 28 } }
"""
TABLE_TRAINING = """
model {
  name: "augmented_mlp"
  input_shape: [1, 28, 28]
  layer { name: "flatten" type: "flatten" }
  layer { name: "hidden" type: "dense" attr { name: "units" i: 256 } }
  layer { name: "relu" type: "relu" }
  layer { name: "logits" type: "dense" attr { name: "units" i: 10 } }
  layer { name: "loss" type: "softmax_cross_entropy" }
}
input {
  type: "synthetic" batch_size: 128 synthetic_examples: 12800
  synthetic_test_examples: 128 shape: [1, 28, 28] %s
}
optimizer { name: "adam" attr { name: "learning_rate" f: 1e-3 } }
seed: 1
""" % MAPS
# As photographs that a net for ImageNet reads.
IMAGES = 256
IMAGE_SIZE = (400, 300)
SIDE = 224
JPEG_TRAINING = """
model {
  name: "jpegs"
  input_shape: [3, %d, %d]
  layer { name: "flatten" type: "flatten" }
  layer { name: "logits" type: "dense" attr { name: "units" i: 2 } }
  layer { name: "loss" type: "softmax_cross_entropy" }
}
input {
  type: "image_folder" batch_size: 32 threads: 1 dir: "%s"
  shape: [3, %d, %d]
  map { type: "random_flip" }
  map { type: "normalize" attr { name: "mean" s: "0.485, 0.456, 0.406" }
                          attr { name: "std" s: "0.229, 0.224, 0.225" } }
}
optimizer { name: "sgd" }
stop { steps: 1 }
"""
REQUIREMENTS = "torch_input_requirements.txt"
OVER_TORCH = 2.0


def free_ports(count):
    """Ports of this moment: others may take them."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def steps_per_s(options, input_threads, apply_threads, towers):
    """Of 1 ps + 1 worker."""
    with tempfile.TemporaryDirectory() as folder:
        ps, worker = ("127.0.0.1:%d" % port for port in free_ports(2))
        cluster = write(os.path.join(folder, "cluster.json"), json.dumps(
            {"ps": [ps], "worker": [worker]}))
        training = write(os.path.join(folder, "training.textproto"),
                         TABLE_TRAINING)
        train_dir = os.path.join(folder, "run")
        tasks = [
            processes.Process([
                os.path.join(options.bin_dir, "ps_server/ps_server"),
                "--cluster=" + cluster, "--task_index=0",
                "--apply_threads=%d" % apply_threads]),
            processes.Process([
                os.path.join(options.bin_dir, "worker/worker"),
                "--cluster=" + cluster, "--task_index=0",
                "--training=" + training, "--train_dir=" + train_dir,
                "--compute_threads=2", "--num_devices=%d" % towers,
                "--set=input.batch_size=%d" % (128 // towers),
                "--set=input.threads=%d" % input_threads,
                "--set=stop.steps=%d" % (10 * options.steps)])]
        try:
            for task in reversed(tasks):
                task.finish()
        finally:
            for task in tasks:
                task.stop()
        with open(os.path.join(train_dir, "result.json"),
                  encoding="utf-8") as file:
            return sum(one["steps_per_s"] or 0.0
                       for one in json.load(file)["workers"])


def thread_table(options):
    cells = list(itertools.product(INPUT_THREADS, APPLY_THREADS, TOWERS))
    samples = {cell: [] for cell in cells}
    for _ in range(options.rounds):
        for cell in cells:
            samples[cell].append(steps_per_s(options, *cell))
    print("%-14s %-14s %-8s %10s %10s %10s" % (
        "input.threads", "apply_threads", "towers", "min", "median", "max"))
    rows = []
    for cell in cells:
        row = (min(samples[cell]), statistics.median(samples[cell]),
               max(samples[cell]))
        print("%-14d %-14d %-8d %10.1f %10.1f %10.1f" % (*cell, *row))
        rows.append({"input_threads": cell[0], "apply_threads": cell[1],
                     "towers": cell[2], "steps_per_s": samples[cell]})
    return rows


def own_examples_per_s(options, training, seconds):
    """Of one thread that reads, decodes and maps."""
    text = processes.run([
        os.path.join(options.bin_dir, "worker/ctl/musterctl"), "data", "bench",
        "--training=" + training, "--seconds=%g" % seconds])
    return float(re.search(r"(?m)^batches of .* (\d+) examples/s", text)[1])


def jpegs(options):
    """Pairs of ours and torch's, one core each; None without torch."""
    peer = peers.in_own_python("input", "PyTorch", REQUIREMENTS)
    if peer is None:
        return None
    program = os.path.join(peers.FOLDER, "torch_input.py")
    seconds = 10 * options.burst_s
    with tempfile.TemporaryDirectory() as folder:
        processes.run([peer.python, program, "make", folder, str(IMAGES),
                       *map(str, IMAGE_SIZE)])
        training = write(os.path.join(folder, "training.textproto"),
                         JPEG_TRAINING % (SIDE, SIDE, folder, SIDE, SIDE))
        pairs = []
        for _ in range(options.rounds):
            command = [peer.python, program, "read", folder, str(SIDE),
                       str(seconds)]
            pairs.append((own_examples_per_s(options, training, seconds),
                          processes.last_json_line(
                              processes.run(command),
                              command)["examples_per_s"]))
    ratios = [own / theirs for own, theirs in pairs]
    own, theirs = (" ".join("%.0f" % one for one in side)
                   for side in zip(*pairs))
    print("JPEG folder, one core, examples/s: %s; torch's DataLoader: %s" % (
        own, theirs))
    print("ratio %.2f / %.2f / %.2f, wanted >= %.1f" % (
        min(ratios), statistics.median(ratios), max(ratios), OVER_TORCH))
    return {"pairs": pairs, "ratio": statistics.median(ratios)}


def measure(options):
    return {"threads": thread_table(options), "jpegs": jpegs(options)}
