"""A training with keys (--certs_dir), which are renewed in its middle."""

import json
import os
import subprocess
import sys

from tests.integration import harness

sys.path.insert(0, os.path.abspath("scripts"))
from hosts import certs  # noqa: E402

ENDLESS = 100000000


class TlsTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        self.cluster = self.write_cluster(ps=1, workers=2)
        self.certs = self.path("certs")
        self.make_certs("init")
        self.make_certs("issue", "--cluster=" + self.cluster)

    def make_certs(self, verb, *flags):
        self.assertEqual(
            certs.main([verb, "--certs_dir=" + self.certs, *flags]), 0)

    def start_job(self):
        self.training = self.write("training.textproto",
                                   harness.softmax_regression(ENDLESS))
        self.ps = self.start_ps(self.cluster, 0, "--certs_dir=" + self.certs)
        self.workers = [self.start_keyed_worker(i) for i in range(2)]
        for one in self.workers:
            one.wait_for(r"\bstep=[1-9]")

    def start_keyed_worker(self, index):
        return self.start_worker(
            self.cluster, index, "--certs_dir=" + self.certs, "--link=grpc",
            "--training=" + self.training, "--train_dir=" + self.path("run"),
            "--compute_threads=1", "--progress_every=200ms")

    def assert_tls13_alone(self):
        address = self.read_json("cluster.json")["cluster"]["ps"][0]
        pair = os.path.join(self.certs, "worker-0")
        done = subprocess.run(
            ["openssl", "s_client", "-connect", address, "-tls1_2", "-cert",
             pair + ".pem", "-key", pair + ".key"], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=30, check=False)
        self.assertIn("Cipher is (NONE)", done.stdout)

    def test_a_training_goes_on_with_renewed_keys(self):
        self.start_job()
        self.assert_tls13_alone()
        self.make_certs("renew")
        tasks = [self.ps, *self.workers]
        for one in tasks:
            one.wait_for("new certificates: CN=.* goes, CN=.* comes")
        for _ in range(2):
            self.workers[1].wait_for(r"\bstep=")
        # A new connection, of new keys alone.
        self.workers[1].kill()
        self.workers[1] = self.start_keyed_worker(1)
        self.workers[1].wait_for(r"\bstep=")
        tasks[2] = self.workers[1]
        for one in self.workers:
            one.send(2)
        for one in self.workers:
            self.assertEqual(one.wait(), 130, one.output)
        for one in tasks:
            self.assertNotRegex(one.output, "refused( a|:)")

    def test_an_all_reduce_with_keys_ends(self):
        self.cluster = self.write("cluster.json", json.dumps({
            "worker": ["127.0.0.1:%d" % port for port in harness.free_ports(2)]
        }))
        self.make_certs("issue", "--workers=2", "--ps=0")
        self.training = self.write(
            "training.textproto", harness.softmax_regression(
                20, more="replication { all_reduce {} }"))
        workers = [self.start_keyed_worker(i) for i in range(2)]
        for one in workers:
            self.assertEqual(one.wait(), 0, one.output)
            self.assertNotRegex(one.output, "refused( a|:)")


if __name__ == "__main__":
    harness.main()
