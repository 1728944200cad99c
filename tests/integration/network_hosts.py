"""Hosts on one machine: each a network namespace of its own, with a link to a
bridge in one more namespace.

    host 0   10.231.N.1 --+
    host 1   10.231.N.2 --+-- a bridge
    ...                 --+

Nothing outside is touched: the bridge is in a namespace too, and no packet can
leave. Needs root (or the right to make network namespaces). Python 3 standard
library only.
"""

import itertools
import os
import subprocess

_NUMBERS = itertools.count()
# Not on everybody's path.
_TC = "/usr/sbin/tc"


def ip(*arguments):
    _run("ip", *arguments)


def _run(*command):
    subprocess.run(command, check=True, capture_output=True)


def missing_right():
    """Why namespaces cannot be made here, or None."""
    name = "muster-probe-%d" % os.getpid()
    try:
        ip("netns", "add", name)
        ip("netns", "delete", name)
    except FileNotFoundError:
        return "iproute2 is not installed"
    except subprocess.CalledProcessError as error:
        return "no network namespaces: " + error.stderr.decode().strip()
    return None


REASON = missing_right()


def of_test(test, count):
    """Hosts that are gone when the test ends."""
    hosts = Hosts(count)
    test.addCleanup(hosts.close)
    return hosts


class Hosts:
    """`count` hosts, of which host i has addresses[i]; with a `rate` ("1gbit")
    each link carries no more, in either direction. To be closed, or used in a
    `with`."""

    def __init__(self, count, rate=None):
        prefix = "muster-%d-%d" % (os.getpid(), next(_NUMBERS))
        self._hub = prefix + "-hub"
        self.names = ["%s-%d" % (prefix, i) for i in range(count)]
        self._made = []
        self.addresses = ["10.231.%d.%d" % (os.getpid() % 250, i + 1)
                          for i in range(count)]
        try:
            self._make(self._hub)
            ip("-n", self._hub, "link", "add", "hub", "type", "bridge")
            ip("-n", self._hub, "link", "set", "hub", "up")
            for i in range(count):
                self._make_host(i, rate)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for name in self._made:
            subprocess.run(["ip", "netns", "delete", name], check=False)
        self._made = []

    def on(self, host, command):
        """The command line that runs `command` on this host."""
        return ["ip", "netns", "exec", self.names[host], *command]

    def _make(self, name):
        ip("netns", "add", name)
        self._made.append(name)

    def _make_host(self, i, rate):
        host, port = self.names[i], "port%d" % i
        self._make(host)
        ip("-n", host, "link", "add", "eth0", "type", "veth", "peer",
             "name", port, "netns", self._hub)
        ip("-n", self._hub, "link", "set", port, "master", "hub", "up")
        ip("-n", host, "address", "add", self.addresses[i] + "/24",
             "dev", "eth0")
        ip("-n", host, "link", "set", "eth0", "up")
        ip("-n", host, "link", "set", "lo", "up")
        if rate is None:
            return
        for namespace, device in ((host, "eth0"), (self._hub, port)):
            _run(_TC, "-n", namespace, "qdisc", "add", "dev", device, "root",
                 "tbf", "rate", rate, "burst", "256kb", "latency", "50ms")
