"""Three hosts: a ps and two workers, each in a network namespace of its own.

    /job:ps/task:0      10.231.N.1 --+
    /job:worker/task:0  10.231.N.2 --+-- a bridge in a fourth namespace
    /job:worker/task:1  10.231.N.3 --+

Needs root (or the right to make network namespaces).
"""

import json
import os
import unittest

from tests.integration import harness
from tests.integration import network_hosts

PORT = 2222
TRAINING = harness.softmax_regression(steps=60)


@unittest.skipIf(network_hosts.REASON is not None, network_hosts.REASON)
class NetworkTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        self.hosts = network_hosts.of_test(self, 3)

    def write_cluster_of_hosts(self):
        tasks = ["%s:%d" % (address, PORT) for address in self.hosts.addresses]
        return self.write("cluster.json", json.dumps(
            {"ps": tasks[:1], "worker": tasks[1:]}))

    def start_on(self, host, name, command):
        return self.start(name, self.hosts.on(host, command))

    def start_worker_on(self, index, cluster, *flags):
        # Each host has a folder of its own: no file is shared.
        return self.start_on(1 + index, "worker %d" % index, [
            harness.worker(), "--cluster=" + cluster,
            "--task_index=%d" % index,
            "--training=" + self.write("training.textproto", TRAINING),
            "--train_dir=" + self.path("train%d" % index), *flags])

    def test_trains_over_three_hosts(self):
        cluster = self.write_cluster_of_hosts()
        ps = self.start_on(0, "ps 0", [
            harness.ps_server(), "--cluster=" + cluster, "--task_index=0",
            "--allow_insecure_network"])
        workers = [self.start_worker_on(i, cluster, "--allow_insecure_network")
                   for i in range(2)]
        for worker in workers:
            self.assertEqual(worker.wait(), 0)
            # Though it is one machine: no socket leads out of a namespace.
            self.assertIn("link to /job:ps/task:0: no shared memory: the ps is "
                          "not on this machine", worker.output)
            harness.check_link(worker.output, "tcp")
        self.assertEqual(ps.wait(), 0)
        result = self.result("train0")
        self.assertEqual(result["global_step"], 60)
        self.assertEqual(result["cluster"], {"ps": 1, "worker": 2})
        self.assertFalse(os.path.exists(self.path("train1/result.json")))

    def test_foreign_hosts_are_refused_without_the_flag(self):
        cluster = self.write_cluster_of_hosts()
        ps = self.start_on(0, "ps 0", [
            harness.ps_server(), "--cluster=" + cluster, "--task_index=0"])
        self.assertEqual(ps.wait(), 4)
        self.assertIn("--allow_insecure_network", ps.output)


if __name__ == "__main__":
    harness.main()
