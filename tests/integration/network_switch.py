"""Hosts on one machine with a switch between them that fails as networks do.

    with network_switch.Switch(3, seed=7) as switch:
        run(switch.on(0, ["ps_server", ...]))      # listens on addresses[0]
        switch.faults = network_switch.Faults(loss=0.05, delay_s=0.05)
        switch.cut(1)                # nothing reaches host 1, nothing leaves it
        switch.cut(1, "from")        # others are heard, it is not
        switch.heal(1)

Each host is a network namespace with a TUN device, whose packets the switch
reads and hands on: it may lose, delay, double or damage them, and let others
overtake them. No packet leaves the machine. Needs root. Python 3 standard
library only.
"""

import collections
import ctypes
import fcntl
import heapq
import itertools
import os
import random
import selectors
import struct
import threading
import time

from tests.integration import network_hosts

MTU = 1500
IP_HEADER_BYTES = 20
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_CLONE_NEWNET = 0x40000000
_TCP = 6
_NUMBERS = itertools.count()

# Shares of all packets, and seconds each way. TCP finds what is `damaged`; its
# sum does not change when two words of the bytes that it carries are `swapped`.
Faults = collections.namedtuple(
    "Faults", "loss delay_s doubled damaged overtaken swapped",
    defaults=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
# How much later a packet comes that others overtake.
OVERTAKEN_S = 0.003


def missing_right():
    """Why there can be no such hosts here, or None."""
    if network_hosts.REASON is not None:
        return network_hosts.REASON
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "no /dev/net/tun to read and write"
    return None


REASON = missing_right()


def of_test(test, count, seed):
    """A switch that is gone when the test ends."""
    switch = Switch(count, seed)
    test.addCleanup(switch.close)
    return switch


def _open_tun(namespace, name):
    """The descriptor of a new TUN device in another namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    other = os.open("/run/netns/" + namespace, os.O_RDONLY)
    try:
        if libc.setns(other, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns to " + namespace)
        try:
            tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(tun, _TUNSETIFF, struct.pack(
                "16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
        finally:
            if libc.setns(own, _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns back")
    finally:
        os.close(own)
        os.close(other)
    return tun


class Switch:
    """`count` hosts, of which host i has addresses[i]. The choices of faults
    come from `seed`; `faults` may be set at any time. To be closed."""

    def __init__(self, count, seed):
        prefix = "muster-%d-s%d" % (os.getpid(), next(_NUMBERS))
        self.names = ["%s-%d" % (prefix, i) for i in range(count)]
        self.addresses = ["10.232.%d.%d" % (os.getpid() % 250, i + 1)
                          for i in range(count)]
        self.faults = Faults()
        # What came, by what became of it.
        self.packets = collections.Counter()
        self._random = random.Random(seed)
        self._made, self._tuns = [], []
        self._cut_to, self._cut_from = set(), set()
        self._ended = False
        self._late = []
        self._order = itertools.count()
        self._thread = threading.Thread(target=self._forward, daemon=True)
        try:
            for i in range(count):
                self._make_host(i)
        except BaseException:
            self._remove()
            raise
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if not self._ended:
            self._ended = True
            self._thread.join()
            self._remove()

    def on(self, host, command):
        """The command line that runs `command` on this host."""
        return ["ip", "netns", "exec", self.names[host], *command]

    def cut(self, host, direction="both"):
        """`direction`: both, to (the host hears nothing), from (it is not
        heard). Nobody is told: packets vanish."""
        if direction in ("both", "to"):
            self._cut_to.add(host)
        if direction in ("both", "from"):
            self._cut_from.add(host)

    def heal(self, host):
        self._cut_to.discard(host)
        self._cut_from.discard(host)

    def _make_host(self, i):
        name = self.names[i]
        network_hosts.ip("netns", "add", name)
        self._made.append(name)
        self._tuns.append(_open_tun(name, "tun0"))
        network_hosts.ip("-n", name, "address", "add",
                         self.addresses[i] + "/24", "dev", "tun0")
        for device in ("tun0", "lo"):
            network_hosts.ip("-n", name, "link", "set", device, "up")
        network_hosts.ip("-n", name, "link", "set", "tun0", "mtu", str(MTU))

    def _remove(self):
        for tun in self._tuns:
            os.close(tun)
        self._tuns = []
        for name in self._made:
            network_hosts.ip("netns", "delete", name)
        self._made = []

    def _forward(self):
        with selectors.DefaultSelector() as selector:
            for host, tun in enumerate(self._tuns):
                selector.register(tun, selectors.EVENT_READ, host)
            while not self._ended:
                wait = 0.05
                if self._late:
                    wait = min(wait, self._late[0][0] - time.monotonic())
                for key, _ in selector.select(max(wait, 0)):
                    self._take(key.fd, key.data)
                while self._late and self._late[0][0] <= time.monotonic():
                    _, _, host, packet = heapq.heappop(self._late)
                    self._put(host, packet)

    def _take(self, tun, source):
        for _ in range(64):
            try:
                packet = os.read(tun, 65536)
            except BlockingIOError:
                return
            host = packet[19] - 1 if packet[0] >> 4 == 4 else -1
            if 0 <= host < len(self._tuns):
                self._pass_on(source, host, packet)

    def _pass_on(self, source, host, packet):
        if source in self._cut_from or host in self._cut_to:
            self.packets["cut"] += 1
            return
        faults, chance = self.faults, self._random.random
        if chance() < faults.loss:
            self.packets["lost"] += 1
            return
        if chance() < faults.damaged and len(packet) > IP_HEADER_BYTES:
            packet = self._damage(packet)
        if chance() < faults.swapped:
            packet = self._swap(packet)
        delay = faults.delay_s
        if chance() < faults.overtaken:
            self.packets["overtaken"] += 1
            delay += OVERTAKEN_S
        self._send(host, packet, delay)
        if chance() < faults.doubled:
            self.packets["doubled"] += 1
            self._send(host, packet, delay)

    def _damage(self, packet):
        """One bit behind the IP header is another."""
        self.packets["damaged"] += 1
        damaged = bytearray(packet)
        at = self._random.randrange(IP_HEADER_BYTES, len(packet))
        damaged[at] ^= 1 << self._random.randrange(8)
        return bytes(damaged)

    def _swap(self, packet):
        """Two words of 16 bits, which differ, have changed places."""
        tcp = (packet[0] & 15) * 4
        payload = tcp + (packet[tcp + 12] >> 4) * 4
        places = range(payload, len(packet) - 1, 2)
        if packet[9] != _TCP or len(places) < 2:
            return packet
        one, other = sorted(self._random.sample(places, 2))
        swapped = bytearray(packet)
        swapped[one:one + 2], swapped[other:other + 2] = (
            packet[other:other + 2], packet[one:one + 2])
        self.packets["swapped"] += swapped != packet
        return bytes(swapped)

    def _send(self, host, packet, delay):
        if delay == 0:
            return self._put(host, packet)
        heapq.heappush(self._late, (time.monotonic() + delay,
                                    next(self._order), host, packet))

    def _put(self, host, packet):
        # A cut holds for what is on its way, too.
        if host in self._cut_to:
            self.packets["cut"] += 1
            return
        try:
            os.write(self._tuns[host], packet)
            self.packets["delivered"] += 1
        except OSError:
            self.packets["refused"] += 1  # its device is full or going
