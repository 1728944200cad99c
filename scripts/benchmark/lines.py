"""Push + pull between two hosts whose line is slow, long or bad.

Each host is a network namespace (tests/integration/network_hosts.py,
network_switch.py). Python 3 standard library only.
"""

import sys

from . import processes
from .data_plane import DataPlane
from .figures import Figure, Measurement, at_least

RATE, RATE_BYTES_PER_S = "1gbit", 1e9 / 8
# Of that rate, each way; TCP over Ethernet has 0.956.
WORKERS = 2
PAYLOAD = 0.93
DELAY_S = 0.05
# Steps/s over one step a round trip.
STEPS_A_ROUND_TRIP = 0.97
# Packets are lost by chance, of one link other ones than of the other.
NOT_LESS = 0.9
# As network_switch.Faults.
BAD_LINES = {"5 % of packets lost": {"loss": 0.05},
             "5 % of packets overtaken, 5 % doubled":
                 {"overtaken": 0.05, "doubled": 0.05}}
SEED = 1
# Softmax regressions of 64 inputs, which fit two packets, and of 784; 10 classes.
SMALL = {"tensors": 2, "bytes": (64 + 1) * 10 * 4}
LARGER = {"tensors": 2, "bytes": (784 + 1) * 10 * 4}


def push_pull(plane, make_hosts, link, **flags):
    """With a ps task on host 0 and the workers on host 1."""
    found = plane.push_pull(link, **flags)

    def run():
        with make_hosts() as hosts:
            command = hosts.on(1, found.command + [
                "--server_netns=" + hosts.names[0],
                "--server_host=" + hosts.addresses[0]])
            return processes.last_json_line(processes.run(command), command)
    return Measurement(found.name, found.command, run)


def figures(options):
    """The part "lines"; none, and a line about it, without the right to make
    hosts."""
    sys.path.append(processes.ROOT)
    # They try it when they are imported.
    from tests.integration import network_hosts, network_switch
    if network_switch.REASON is not None:
        print("bench.sh: %s; lines between hosts are left out" %
              network_switch.REASON, file=sys.stderr)
        return
    plane = DataPlane(options)

    def bad_line(faults):
        switch = network_switch.Switch(2, SEED)
        switch.faults = network_switch.Faults(**faults)
        return switch

    def number(of_steps):
        return 5 if options.quick else of_steps

    def steps(link, of_steps, faults, model):
        return push_pull(plane, lambda: bad_line(faults), link,
                         min_steps=number(of_steps), **model)
    # The median of two workers, who share the line unevenly, is not its speed.
    yield Figure("1 Gbit/s: payload over the line's rate, tcp", "x", [push_pull(
        plane, lambda: network_hosts.Hosts(2, RATE), "tcp", workers=WORKERS,
        min_steps=number(20))],
        lambda step: WORKERS * step["bytes"] / step["mean_s"] /
        RATE_BYTES_PER_S, at_least(PAYLOAD))
    yield Figure("50 ms each way: steps over round trips, tcp", "x",
                 [steps("tcp", 40, {"delay_s": DELAY_S}, SMALL)],
                 lambda step: 2 * DELAY_S / step["median_s"],
                 at_least(STEPS_A_ROUND_TRIP))
    for name, faults in BAD_LINES.items():
        yield Figure("%s: steps/s, tcp over grpc" % name, "x",
                     [steps(link, 400, faults, LARGER)
                      for link in ("tcp", "grpc")],
                     lambda tcp, grpc: grpc["mean_s"] / tcp["mean_s"],
                     at_least(NOT_LESS))
