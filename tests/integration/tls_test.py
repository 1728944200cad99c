"""A training with keys (--certs_dir), which are renewed in its middle."""

import json
import os
import re
import socket
import struct
import subprocess
import sys

from tests.integration import harness

sys.path.insert(0, os.path.abspath("scripts"))
from hosts import certs  # noqa: E402

ENDLESS = 100000000
# HTTP/2: the preface with empty SETTINGS, and a stream that is opened and given
# up at once.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + struct.pack(
    ">HBBBI", 0, 0, 4, 0, 0)
STREAMS = 100000
MAX_GROWTH_MIB = 20


def given_up_stream(number):
    headers = b"\x83\x86\x84"
    return (struct.pack(">HBBBI", 0, len(headers), 1, 4, number) + headers +
            struct.pack(">HBBBII", 0, 4, 3, 0, number, 8))


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

    def memory_mib(self):
        with open("/proc/%d/status" % self.ps.pid, encoding="ascii") as file:
            return int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) / 1024

    def test_a_stranger_who_gives_up_streams_takes_no_memory(self):
        self.ps = self.start_ps(self.cluster, 0, "--certs_dir=" + self.certs)
        self.ps.wait_for("listening on")
        before = self.memory_mib()
        host, _, port = self.read_json(
            "cluster.json")["cluster"]["ps"][0].rpartition(":")
        with socket.create_connection((host, int(port)), 30) as stranger:
            with self.assertRaises(ConnectionError):
                stranger.sendall(PREFACE)
                for i in range(STREAMS):
                    stranger.sendall(given_up_stream(2 * i + 1))
        self.ps.wait_for("refused a client: it speaks no TLS")
        self.assertLess(self.memory_mib() - before, MAX_GROWTH_MIB)

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
