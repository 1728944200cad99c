"""Figures of the data plane and of the update rules, by the C++ program.

Python 3 standard library only.
"""

import itertools
import os

from . import peers, processes
from .figures import Figure, Measurement, at_least, at_most, count

PART = "data_plane"
GRID_PART = "grid"
OPTIMIZER_PART = "optimizer"
SIZE_PART = "message_size"
# Of data_plane --link.
LINKS = ("grpc", "shared_memory", "in_process")
SAME_HOST_LINK = "shared_memory"
# Against the sizes of a model: more than any cache, a large model.
MEMORY_FACTOR = 20
LARGE_FACTOR = 30
# By codec: of plain gRPC's time over ours, as it is and, hoped for, with malloc
# told to keep memory that was freed.
GRPC_STEP_TARGETS = (("", 5, 6, 1.7), ("bf16", 8, 9, 2.4))
# Of the tensors of an update rule that is to wait for memory.
RULE_FACTOR = 5
SMALL_TENSORS = 10000
# Of workers, and of shards.
GRID = (1, 2, 4)
SMALL_PUSH_BYTES = 256
HAND_OFF_TARGETS_US = {"spinning": 1, "parked": 100}
OVER_PS_LITE = {"shared_memory": 8, "grpc": 1.3}
# 4 KB to 64 MB.
SIZES = tuple(1 << bits for bits in range(12, 27, 2))


def nbytes(bytes_):
    """"13.1 MB"."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if bytes_ >= size:
            return "%.3g %s" % (bytes_ / size, unit)
    return "%d B" % bytes_


def codec_name(codec):
    return codec or "float32"


class DataPlane:
    """The program, and each of its measurements once."""

    def __init__(self, options):
        self.options = options
        self.program = os.path.join(
            options.bin_dir, "tests/benchmark/data_plane/data_plane")
        self.measurements = {}

    def measure(self, figure, part=PART, **flags):
        flags.setdefault("bytes", self.options.bytes)
        arguments = ["--figure=" + figure] + [
            "--%s=%s" % flag for flag in sorted(flags.items())]
        key = " ".join(arguments)
        if (part, key) not in self.measurements:
            command = [self.program, *arguments,
                       "--time=%gms" % (1000 * self.options.burst_s)]
            self.measurements[part, key] = Measurement(
                part, key, command, lambda: processes.last_json_line(
                    processes.run(command), command))
        return self.measurements[part, key]

    def push_pull(self, link="grpc", codec="", optimizer="sgd", **more):
        return self.measure("push_pull", link=link, codec=codec,
                            optimizer=optimizer, **more)

    def in_place(self):
        """A step after which parameters are read where the shard keeps them."""
        return self.measure("push_in_place", link=SAME_HOST_LINK,
                            optimizer="adam")

    def memory(self, part=PART):
        return self.measure("memcpy", part,
                            bytes=MEMORY_FACTOR * self.options.bytes)

    def plain(self, optimizer, keep):
        return self.measure("plain_rpc", optimizer=optimizer,
                            keep_freed_memory="true" if keep else "false")

    def rules(self):
        return self._listed("--list_optimizers")

    def codecs(self):
        """With "" for float32."""
        return ["", *self._listed("--list_codecs")]

    def _listed(self, flag):
        processes.check_program(self.program)
        return processes.run([self.program, flag]).split()


def rate(name, measurement):
    return Figure(name, "GB/s", [measurement],
                  lambda numbers: numbers["bytes_per_s"] / 1e9)


def cpu(name, measurement):
    return Figure("CPU a step: " + name, "ms", [measurement],
                  lambda numbers: 1e3 * numbers["cpu_s"])


def milliseconds(name, measurement):
    return Figure(name, "ms", [measurement],
                  lambda numbers: 1e3 * numbers["median_s"])


def times_faster(name, slow, fast, target=None):
    return Figure(name, "x", [slow, fast], lambda slow_, fast_:
                  slow_["median_s"] / fast_["median_s"], target)


def rate_over(name, fast, reference, target=None):
    return Figure(name, "x", [fast, reference], lambda fast_, reference_:
                  fast_["bytes_per_s"] / reference_["bytes_per_s"], target)


def limits(plane):
    size = nbytes(plane.options.bytes)
    memory = plane.memory()
    yield rate("memcpy %s, read + written" %
               nbytes(MEMORY_FACTOR * plane.options.bytes), memory)
    yield rate("memcpy %s, read + written" % size, plane.measure("memcpy"))
    for name, one in (
            ("raw loopback TCP (cubic)", plane.measure("raw_tcp")),
            ("gRPC frames, nobody looks", plane.measure("grpc_frames")),
            ("plain gRPC, no optimizer", plane.plain("", keep=False))):
        yield from rate_and_cpu("%s, %s there and back" % (name, size), one)


def rate_and_cpu(name, measurement):
    yield rate(name, measurement)
    yield cpu(name, measurement)


def models(bytes_):
    """(name, flags): one of a few tensors, a large one, one of many."""
    yield nbytes(bytes_), {}
    yield nbytes(LARGE_FACTOR * bytes_), {"bytes": LARGE_FACTOR * bytes_}
    yield "%s in %d tensors" % (nbytes(bytes_), SMALL_TENSORS), {
        "tensors": SMALL_TENSORS}


def push_pull(plane):
    """Each model over each link with each codec, 1 worker and 1 shard."""
    for link, codec, (model, flags) in itertools.product(
            LINKS, plane.codecs(), models(plane.options.bytes)):
        yield from rate_and_cpu(
            "push + pull, %s, %s, %s" % (link, codec_name(codec), model),
            plane.push_pull(link, codec, **flags))
    yield from rate_and_cpu("push + pull, grpc with mTLS",
                            plane.push_pull(tls="true"))
    yield rate_over("push + pull, grpc with mTLS over grpc",
                    plane.push_pull(tls="true"), plane.push_pull(),
                    at_least(0.6))
    yield rate_over("push + pull, grpc over raw TCP", plane.push_pull(),
                    plane.measure("raw_tcp"), at_least(0.42, stretch=0.7))


def grid(plane):
    """The first of these models by workers and shards."""
    counts = GRID[:2] if plane.options.quick else GRID
    for link, codec, workers, shards in itertools.product(
            LINKS, plane.codecs(), counts, counts):
        yield from rate_and_cpu(
            "push + pull, %s, %s, %s, %s" % (
                link, codec_name(codec), count("worker", workers),
                count("shard", shards)),
            plane.push_pull(link, codec, part=GRID_PART, workers=workers,
                            shards=shards))


def latency(plane):
    for link in LINKS:
        one = plane.measure("push", bytes=SMALL_PUSH_BYTES, tensors=1,
                            link=link, optimizer="sgd")
        for name, key in (("median", "median_s"), ("p99", "p99_s")):
            yield Figure("push of %d B, %s, %s" % (
                SMALL_PUSH_BYTES, link, name), "us", [one],
                lambda numbers, key=key: 1e6 * numbers[key])


def hand_offs(plane):
    """From one process to another; a step is there and back."""
    for wait, limit_us in HAND_OFF_TARGETS_US.items():
        yield Figure("hand-off latency, " + wait, "us",
                     [plane.measure("hand_off_" + wait)],
                     lambda numbers: 1e6 * numbers["median_s"] / 2,
                     at_most(limit_us))


def over_ps_lite(plane, peer):
    """Push + pull of the same bytes, added up at the server."""
    theirs = peer.measure(
        "push + pull of " + nbytes(plane.options.bytes), "ps_lite.py",
        peer.program, plane.options.bytes, plane.options.burst_s)
    yield rate(theirs.name, theirs)
    for link, limit in OVER_PS_LITE.items():
        yield rate_over("push + pull, %s over %s" % (link, peer.name),
                        plane.push_pull(link), theirs, at_least(limit))


def adam_steps(plane):
    """A step without compute: push, Adam, pull."""
    bare = plane.measure("apply", optimizer="adam")
    plain = plane.plain("adam", keep=False)
    tuned = plane.plain("adam", keep=True)
    yield milliseconds("bare Adam kernel", bare)
    yield milliseconds("step with Adam: plain gRPC", plain)
    yield milliseconds("step with Adam: plain gRPC, malloc thresholds", tuned)
    for link in LINKS:
        for codec in plane.codecs():
            yield milliseconds("step with Adam: %s, %s" % (
                link, codec_name(codec)),
                plane.push_pull(link, codec, "adam"))
    for codec, limit, stretch, tuned_limit in GRPC_STEP_TARGETS:
        step = plane.push_pull("grpc", codec, "adam")
        name = "grpc " + codec_name(codec)
        yield times_faster("time of a step: plain gRPC over " + name, plain,
                           step, at_least(limit, stretch=stretch))
        yield times_faster("time of a step: plain gRPC with malloc thresholds "
                           "over " + name, tuned, step, at_least(tuned_limit))
    in_place = plane.in_place()
    yield milliseconds("step with Adam: %s, in place" % SAME_HOST_LINK, in_place)
    yield times_faster("time of a step: %s, in place over bare Adam" %
                       SAME_HOST_LINK, in_place, bare, at_most(1.18))
    for link in LINKS:
        step = plane.push_pull(link, "", "adam")
        same_host = link == SAME_HOST_LINK
        # The stretch: 0.85 of the kernel's speed.
        yield times_faster("time of a step: %s over bare Adam" % link, step,
                           bare, at_most(1.4, stretch=1.18)
                           if same_host else None)
        if link == "grpc":
            continue
        yield times_faster("time of a step: plain gRPC over %s" % link, plain,
                           step, at_least(20) if same_host else None)
        yield times_faster(
            "time of a step: plain gRPC with malloc thresholds over %s" % link,
            tuned, step, at_least(10) if same_host else None)


def optimizer(plane):
    memory = plane.memory(OPTIMIZER_PART)

    def apply(name, codec=""):
        return plane.measure("apply", OPTIMIZER_PART, optimizer=name,
                             codec=codec)
    for name in plane.rules():
        yield rate("%s, read + written" % name, apply(name))
        yield rate_over("%s over memcpy" % name, apply(name), memory,
                        at_least(1.0) if name == "adam" else None)
        large, bound = (
            plane.measure(figure, OPTIMIZER_PART, optimizer=name,
                          bytes=RULE_FACTOR * plane.options.bytes)
            for figure in ("apply", "apply_bound"))
        # Its own loads and stores without arithmetic: memcpy reads and writes
        # two streams, a rule up to eight.
        yield times_faster("time of %s over its loads and stores" % name, large,
                           bound, at_most(1.15))
    yield Figure("adam with fused bf16 decode over float32, time", "x",
                 [apply("adam", "bf16"), apply("adam")],
                 lambda bf16, float32: bf16["median_s"] / float32["median_s"],
                 at_most(1.0))


def message_sizes(plane):
    """There and back, by size and way."""
    ways = [("raw TCP", "raw_tcp", {}),
            ("gRPC frames", "grpc_frames", {}),
            ("plain gRPC", "plain_rpc", {"optimizer": "",
                                         "keep_freed_memory": "false"})]
    ways += [("push + pull, " + link, "push_pull",
              {"optimizer": "sgd", "link": link}) for link in LINKS]
    for series, figure, flags in ways:
        for size in SIZES[::3] if plane.options.quick else SIZES:
            yield Figure(
                "%s, %d KB" % (series, size >> 10), "GB/s",
                [plane.measure(figure, SIZE_PART, bytes=size, **flags)],
                lambda numbers: numbers["bytes_per_s"] / 1e9,
                point=("message_size", series, size))


def figures(plane, parts):
    found = []
    if PART in parts:
        for group in (limits, push_pull, latency, hand_offs, adam_steps):
            found += group(plane)
        ps_lite = peers.ps_lite(PART) if plane.options.peers else None
        if ps_lite is not None:
            found += over_ps_lite(plane, ps_lite)
    if GRID_PART in parts:
        found += grid(plane)
    if OPTIMIZER_PART in parts:
        found += optimizer(plane)
    if SIZE_PART in parts:
        found += message_sizes(plane)
    return found
