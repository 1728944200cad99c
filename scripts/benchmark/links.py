"""Steps/s of two workers and a ps task over gRPC, each on a host of its own: a
network namespace whose link carries 1 Gbit/s or 100 Mbit/s (tbf), without a
codec and with each. What codecs are worth.

Not among the parts that are measured by default: it needs the right to make
network namespaces. Python 3 standard library only.
"""

import json
import os
import subprocess
import sys
import tempfile

from . import processes, training
from .figures import Measurement
from .peers import speed, speed_over

sys.path.append(processes.ROOT)
# pylint: disable=wrong-import-position
from tests.integration import network_hosts

PART = "links"
WORKERS = 2
PORT = 2222
RATES = ("1gbit", "100mbit")
# Flags of both directions; the first is what the others are compared with.
CODECS = {
    "float32": [],
    "bf16": ["--set=gradient.codec=bf16", "--set=pull.codec=bf16"],
    "fp16": ["--set=gradient.codec=fp16", "--set=pull.codec=fp16"],
}
FLAGS = ["--compute_threads=1", "--link=grpc", "--allow_insecure_network",
         "--training=" + processes.MODEL, "--set=input.type=synthetic",
         "--set=stop.epochs=0", "--set=input.synthetic_test_examples=500"]


def commands(options, steps, codec):
    """Of the ps task and of a worker, without their cluster and folders."""
    ps = [os.path.join(options.bin_dir, "ps_server/ps_server"),
          "--allow_insecure_network"]
    worker = [os.path.join(options.bin_dir, "worker/worker"), *FLAGS,
              "--set=stop.steps=%d" % (steps * WORKERS), *CODECS[codec]]
    return ps, worker


def run(ps, worker, rate):
    """Steps/s of all workers together."""
    with tempfile.TemporaryDirectory() as folder, \
            network_hosts.Hosts(1 + WORKERS, rate) as hosts:
        cluster = os.path.join(folder, "cluster.json")
        tasks = ["%s:%d" % (address, PORT) for address in hosts.addresses]
        with open(cluster, "w", encoding="utf-8") as file:
            json.dump({"ps": tasks[:1], "worker": tasks[1:]}, file)
        started = [processes.Process(hosts.on(
            0, ps + ["--cluster=" + cluster, "--task_index=0"]))]
        try:
            for i in range(WORKERS):
                started.append(processes.Process(hosts.on(1 + i, worker + [
                    "--cluster=" + cluster, "--task_index=%d" % i,
                    "--train_dir=" + os.path.join(folder, "run%d" % i)])))
            for process in reversed(started):
                process.finish()
        finally:
            for process in started:
                process.stop()
        return {"steps_per_s": training.read_result(
            os.path.join(folder, "run0"))}


def measurement(options, rate, codec):
    # A step takes seconds at the lower rate.
    steps = max(4, options.steps // (4 if rate == RATES[0] else 20))
    ps, worker = commands(options, steps, codec)
    return Measurement(PART, "%s, %s" % (rate, codec), worker,
                       lambda: run(ps, worker, rate))


def figures(options):
    """Raises Failure where there can be no namespaces."""
    reason = network_hosts.missing_right()
    if reason is not None:
        raise processes.Failure("--only=%s: %s" % (PART, reason))
    found = []
    for rate in RATES:
        by_codec = {codec: measurement(options, rate, codec)
                    for codec in CODECS}
        plain = by_codec["float32"]
        for codec, one in by_codec.items():
            found.append(speed(one))
            if one is not plain:
                found.append(speed_over(
                    "%s over float32" % one.name, one, [plain]))
    return found
