"""Three hosts: a ps and two workers, each in a network namespace of its own.

    /job:ps/task:0      10.231.N.1 --+
    /job:worker/task:0  10.231.N.2 --+-- a bridge in a fourth namespace
    /job:worker/task:1  10.231.N.3 --+

Nothing outside is touched: the bridge is in a namespace too, and no packet can
leave. Needs root (or the right to make network namespaces).
"""

import json
import os
import subprocess
import unittest

from tests.integration import harness

PORT = 2222
TRAINING = harness.softmax_regression(steps=60)


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


@unittest.skipIf(REASON is not None, REASON)
class NetworkTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        self.hub = "muster-%d-hub" % os.getpid()
        self.hosts = ["muster-%d-%d" % (os.getpid(), i) for i in range(3)]
        self.addresses = ["10.231.%d.%d" % (os.getpid() % 250, i + 1)
                          for i in range(3)]
        self.make_namespace(self.hub)
        ip("-n", self.hub, "link", "add", "hub", "type", "bridge")
        ip("-n", self.hub, "link", "set", "hub", "up")
        for i in range(3):
            self.make_host(i)

    def make_namespace(self, name):
        ip("netns", "add", name)
        self.addCleanup(subprocess.run, ["ip", "netns", "delete", name],
                        check=False)

    def make_host(self, i):
        host = self.hosts[i]
        self.make_namespace(host)
        ip("-n", host, "link", "add", "eth0", "type", "veth", "peer", "name",
           "port%d" % i, "netns", self.hub)
        ip("-n", self.hub, "link", "set", "port%d" % i, "master", "hub", "up")
        ip("-n", host, "address", "add", self.addresses[i] + "/24", "dev",
           "eth0")
        ip("-n", host, "link", "set", "eth0", "up")
        ip("-n", host, "link", "set", "lo", "up")

    def write_cluster_of_hosts(self):
        tasks = ["%s:%d" % (address, PORT) for address in self.addresses]
        return self.write("cluster.json", json.dumps(
            {"ps": tasks[:1], "worker": tasks[1:]}))

    def start_on(self, host, name, command):
        return self.start(name, ["ip", "netns", "exec", host, *command])

    def start_worker_on(self, index, cluster, *flags):
        # Each host has a folder of its own: no file is shared.
        return self.start_on(self.hosts[1 + index], "worker %d" % index, [
            harness.worker(), "--cluster=" + cluster,
            "--task_index=%d" % index,
            "--training=" + self.write("training.textproto", TRAINING),
            "--train_dir=" + self.path("train%d" % index), *flags])

    def test_trains_over_three_hosts(self):
        cluster = self.write_cluster_of_hosts()
        ps = self.start_on(self.hosts[0], "ps 0", [
            harness.ps_server(), "--cluster=" + cluster, "--task_index=0",
            "--allow_insecure_network"])
        workers = [self.start_worker_on(i, cluster, "--allow_insecure_network")
                   for i in range(2)]
        for worker in workers:
            self.assertEqual(worker.wait(), 0)
            # Though it is one machine: no socket leads out of a namespace.
            self.assertIn("link to /job:ps/task:0: gRPC; no shared memory: the "
                          "ps is not on this machine", worker.output)
        self.assertEqual(ps.wait(), 0)
        result = self.result("train0")
        self.assertEqual(result["global_step"], 60)
        self.assertEqual(result["cluster"], {"ps": 1, "worker": 2})
        self.assertFalse(os.path.exists(self.path("train1/result.json")))

    def test_foreign_hosts_are_refused_without_the_flag(self):
        cluster = self.write_cluster_of_hosts()
        ps = self.start_on(self.hosts[0], "ps 0", [
            harness.ps_server(), "--cluster=" + cluster, "--task_index=0"])
        self.assertEqual(ps.wait(), 4)
        self.assertIn("--allow_insecure_network", ps.output)


if __name__ == "__main__":
    harness.main()
