"""The bare all-reduce between two processes, beside Gloo's ring (--peers).

Ours is a round of two workers over two shards: each pushes its gradients, the
shards apply their mean, each worker pulls. So it has an update, too.
Python 3 standard library only.
"""

import os

from . import peers, processes
from .figures import Figure, Measurement

PART = "training"
PROCESSES = 2
SIZES_MB = (1, 13, 100)
SECONDS = 2.0


def ours(options, link, size_mb):
    program = os.path.join(options.bin_dir,
                           "tests/benchmark/data_plane/data_plane")
    command = [program, "--figure=all_reduce", "--link=" + link,
               "--bytes=%d" % (size_mb * 1e6), "--optimizer=sgd",
               "--workers=%d" % PROCESSES, "--shards=%d" % PROCESSES,
               "--time=%gs" % seconds(options)]
    return Measurement(PART, "all-reduce of %d MB, %s" % (size_mb, link),
                       command, lambda: processes.last_json_line(
                           processes.run(command), command))


def seconds(options):
    return options.burst_s * 4 if options.quick else SECONDS


def rate(one):
    return Figure(one.name, "GB/s", [one],
                  lambda numbers: numbers["bytes_per_s"] / 1e9)


def figures(options):
    peer = peers.gloo(PART)
    for size_mb in SIZES_MB:
        mine = [ours(options, link, size_mb)
                for link in ("shared_memory", "grpc")]
        yield from map(rate, mine)
        if peer is None:
            continue
        theirs = peer.measure(
            "%d MB, %d processes" % (size_mb, PROCESSES),
            "gloo_ring.py", peer.program, PROCESSES, int(size_mb * 1e6),
            seconds(options))
        yield rate(theirs)
        for one in mine:
            yield Figure("%s over %s" % (one.name, peer.name), "x",
                         [one, theirs], lambda own, other: (
                             own["bytes_per_s"] / other["bytes_per_s"]))
