"""Figures of the data plane and of the update rules, by the C++ program.

Python 3 standard library only.
"""

import os

from . import peers, processes
from .figures import Figure, at_least, at_most, of_program

# Of data_plane --link.
LINKS = ("tcp", "grpc", "shared_memory", "in_process")
SAME_HOST_LINK = "shared_memory"
# Against the size of a model: more than any cache.
MEMORY_FACTOR = 20
# Of the speed of steps over TCP: over gRPC, by update rule; with keys over gRPC
# without; with small tensors; over bare TCP and the rule alone, together.
OVER_GRPC = {"sgd": 2.5, "adam": 1.8}
KEYS_OVER_GRPC = 0.9
SMALL_OVER_GRPC = 1.5
OVER_TCP_AND_RULE = 0.85
SMALL_TENSORS = {"tensors": 10000, "bytes": 10000 * 1024}
CPU_OVER_GRPC = 0.5
# By codec: of plain gRPC's time over TCP's, as it is, and with malloc told to
# keep memory that was freed.
PLAIN_STEP_TARGETS = (("", 5, 1.7), ("bf16", 8, 2.4))
# Of the tensors of an update rule that is to wait for memory.
RULE_FACTOR = 5
HAND_OFF_TARGETS_US = {"spinning": 1, "parked": 100}
OVER_PS_LITE = {"shared_memory": 8, "tcp": 1.3}
# By MB; ours has an update, too.
OVER_GLOO = {1: 0.75, 13: 1.0, 100: 1.0}


def nbytes(bytes_):
    """"13.1 MB"."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if bytes_ >= size:
            return "%.3g %s" % (bytes_ / size, unit)
    return "%d B" % bytes_


class DataPlane:
    """The program, or another build's, and each of its measurements once."""

    def __init__(self, options, program=None):
        self.options = options
        self.program = program or os.path.join(
            options.bin_dir, "tests/benchmark/data_plane/data_plane")
        self.measurements = {}

    def measure(self, figure, **flags):
        flags.setdefault("bytes", self.options.bytes)
        arguments = ["--figure=" + figure] + [
            "--%s=%s" % flag for flag in sorted(flags.items())]
        name = " ".join(arguments)
        if name not in self.measurements:
            command = [self.program, *arguments,
                       "--time=%gms" % (1000 * self.options.burst_s)]
            self.measurements[name] = of_program(name, command)
        return self.measurements[name]

    def push_pull(self, link="tcp", codec="", optimizer="sgd", **more):
        return self.measure("push_pull", link=link, codec=codec,
                            optimizer=optimizer, **more)

    def plain(self, optimizer, keep):
        return self.measure("plain_rpc", optimizer=optimizer,
                            keep_freed_memory="true" if keep else "false")

    def rules(self):
        processes.check_program(self.program)
        return processes.run([self.program, "--list_optimizers"]).split()


def rate(name, measurement):
    return Figure(name, "GB/s", [measurement],
                  lambda numbers: numbers["bytes_per_s"] / 1e9)


def times_faster(name, slow, fast, target=None):
    return Figure(name, "x", [slow, fast], lambda slow_, fast_:
                  slow_["median_s"] / fast_["median_s"], target)


def rate_over(name, fast, reference, target=None):
    return Figure(name, "x", [fast, reference], lambda fast_, reference_:
                  fast_["bytes_per_s"] / reference_["bytes_per_s"], target)


def push_pull(plane):
    """The model there and back over each link, beside bare TCP."""
    size = nbytes(plane.options.bytes)
    tcp = plane.measure("raw_tcp")
    yield rate("raw loopback TCP (cubic), %s there and back" % size, tcp)
    for link in LINKS:
        yield rate("push + pull, %s, %s" % (link, size), plane.push_pull(link))
    yield Figure("push + pull, tcp over raw TCP and the rule alone", "x",
                 [plane.push_pull(), tcp,
                  plane.measure("apply", optimizer="sgd", codec="")],
                 lambda step, *alone: sum(one["median_s"] for one in alone) /
                 step["median_s"], at_least(OVER_TCP_AND_RULE))


def over_grpc(plane):
    """TCP over gRPC's calls, of this build and perhaps of another one."""
    builds = {"grpc": plane}
    if plane.options.against:
        builds["another build's grpc"] = DataPlane(plane.options,
                                                   plane.options.against)
    for name, build in builds.items():
        grpc = build.push_pull("grpc")
        for rule, limit in OVER_GRPC.items():
            yield rate_over("push + pull with %s, tcp over %s" % (rule, name),
                            plane.push_pull(optimizer=rule),
                            build.push_pull("grpc", optimizer=rule),
                            at_least(limit))
        yield rate_over("push + pull, tcp with mTLS over %s" % name,
                        plane.push_pull(tls="true"), grpc,
                        at_least(KEYS_OVER_GRPC))
        yield Figure("CPU of push + pull, tcp over %s" % name, "x",
                     [plane.push_pull(), grpc],
                     lambda tcp, grpc_: tcp["cpu_s"] / grpc_["cpu_s"],
                     at_most(CPU_OVER_GRPC))
        yield rate_over("push + pull of 10,000 tensors of 1 KB, tcp over %s" %
                        name, plane.push_pull(**SMALL_TENSORS),
                        build.push_pull("grpc", **SMALL_TENSORS),
                        at_least(SMALL_OVER_GRPC))


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


def over_gloo(plane, peer):
    """A round of two workers over two shards."""
    for size_mb, limit in OVER_GLOO.items():
        size = size_mb * 1000000
        ours = plane.measure("all_reduce", link="tcp", optimizer="sgd",
                             workers=2, shards=2, bytes=size)
        theirs = of_program("%s, %d MB" % (peer.name, size_mb), [
            peer.program, str(size), "%g" % plane.options.burst_s])
        yield rate_over("all-reduce of %d MB, tcp over %s" % (
            size_mb, peer.name), ours, theirs, at_least(limit))


def adam_steps(plane):
    """A step without compute: push, Adam, pull."""
    bare = plane.measure("apply", optimizer="adam")
    plain = plane.plain("adam", keep=False)
    tuned = plane.plain("adam", keep=True)
    for codec, limit, tuned_limit in PLAIN_STEP_TARGETS:
        step = plane.push_pull("tcp", codec, "adam")
        name = "tcp " + (codec or "float32")
        yield times_faster("time of a step: plain gRPC over " + name, plain,
                           step, at_least(limit))
        yield times_faster("time of a step: plain gRPC with malloc thresholds "
                           "over " + name, tuned, step, at_least(tuned_limit))
    name = "time of a step: " + SAME_HOST_LINK
    yield times_faster(name + ", in place over bare Adam", plane.measure(
        "push_in_place", link=SAME_HOST_LINK, optimizer="adam"), bare,
        at_most(1.18))
    step = plane.push_pull(SAME_HOST_LINK, "", "adam")
    yield times_faster(name + " over bare Adam", step, bare, at_most(1.4))
    yield times_faster("time of a step: plain gRPC over " + SAME_HOST_LINK,
                       plain, step, at_least(20))
    yield times_faster("time of a step: plain gRPC with malloc thresholds over "
                       + SAME_HOST_LINK, tuned, step, at_least(10))


def optimizer(plane):
    def apply(name, codec=""):
        return plane.measure("apply", optimizer=name, codec=codec)
    yield rate_over("adam over memcpy", apply("adam"), plane.measure(
        "memcpy", bytes=MEMORY_FACTOR * plane.options.bytes), at_least(1.0))
    for name in plane.rules():
        large, bound = (
            plane.measure(figure, optimizer=name,
                          bytes=RULE_FACTOR * plane.options.bytes)
            for figure in ("apply", "apply_bound"))
        # Its own loads and stores without arithmetic: memcpy reads and writes
        # two streams, a rule up to eight.
        yield times_faster("time of %s over its loads and stores" % name, large,
                           bound, at_most(1.15))
    yield times_faster("adam with fused bf16 decode over float32, time",
                       apply("adam", "bf16"), apply("adam"), at_most(1.0))


def figures(options):
    """The part "data_plane"."""
    plane = DataPlane(options)
    for group in (push_pull, over_grpc, hand_offs, adam_steps):
        yield from group(plane)
    if options.peers:
        for get, over in ((peers.ps_lite, over_ps_lite),
                          (peers.gloo, over_gloo)):
            peer = get()
            if peer is not None:
                yield from over(plane, peer)


def rules(options):
    """The part "optimizer"."""
    return optimizer(DataPlane(options))
