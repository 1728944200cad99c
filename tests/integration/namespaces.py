"""Hosts for a test: network namespaces on a bridge in one more namespace.

Nothing outside is touched, and no packet can leave. Needs root (or the right to
make network namespaces).
"""

import os
import subprocess


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


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


class Hosts:
    """`count` hosts; host i has addresses[i]. Gone when the test ends."""

    def __init__(self, test, count):
        self._test = test
        self._hub = "muster-%d-hub" % os.getpid()
        self.names = ["muster-%d-%d" % (os.getpid(), i) for i in range(count)]
        self.addresses = ["10.231.%d.%d" % (os.getpid() % 250, i + 1)
                          for i in range(count)]
        self._make_namespace(self._hub)
        ip("-n", self._hub, "link", "add", "hub", "type", "bridge")
        ip("-n", self._hub, "link", "set", "hub", "up")
        for i in range(count):
            self._make_host(i)

    def _make_namespace(self, name):
        ip("netns", "add", name)
        self._test.addCleanup(subprocess.run, ["ip", "netns", "delete", name],
                              check=False)

    def _make_host(self, i):
        host = self.names[i]
        self._make_namespace(host)
        ip("-n", host, "link", "add", "eth0", "type", "veth", "peer", "name",
           "port%d" % i, "netns", self._hub)
        ip("-n", self._hub, "link", "set", "port%d" % i, "master", "hub", "up")
        ip("-n", host, "address", "add", self.addresses[i] + "/24", "dev",
           "eth0")
        ip("-n", host, "link", "set", "eth0", "up")
        ip("-n", host, "link", "set", "lo", "up")

    def on(self, i, command):
        """The command line that runs `command` on host i."""
        return ["ip", "netns", "exec", self.names[i], *command]
