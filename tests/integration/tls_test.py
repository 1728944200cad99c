"""A training with keys (--certs_dir), which are renewed in its middle."""

import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading

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


class OtherProgram:
    """Listens where a ps task should: says its words to each caller, after the
    caller's first ones or at once, and hangs up."""

    def __init__(self, words, listens_first=False):
        self._words = words
        self._listens_first = listens_first
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        while True:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                return
            with caller:
                if self._listens_first:
                    caller.recv(4096)
                caller.sendall(self._words)

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


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
        self.workers = [self.start_keyed_worker(0, "grpc"),
                        self.start_keyed_worker(1, "tcp")]
        for one in self.workers:
            one.wait_for(r"\bstep=[1-9]")
        self.assertIn("link to /job:ps/task:0: TCP with TLS 1.3",
                      self.workers[1].output)

    def start_keyed_worker(self, index, link):
        return self.start_worker(
            self.cluster, index, "--certs_dir=" + self.certs, "--link=" + link,
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
        self.workers[1] = self.start_keyed_worker(1, "tcp")
        self.workers[1].wait_for(r"\bstep=")
        tasks[2] = self.workers[1]
        for one in self.workers:
            one.send(2)
        for one in self.workers:
            self.assertEqual(one.wait(), 130, one.output)
        for one in tasks:
            self.assertNotRegex(one.output, "refused( a|:)")

    def test_keys_of_one_side_alone_are_told_over_each_link(self):
        self.training = self.write("training.textproto",
                                   harness.softmax_regression(ENDLESS))
        self.make_certs("issue", "--ps=1", "--workers=1")
        keys = ["--certs_dir=" + self.certs]
        cases = []
        for link in ("grpc", "tcp"):
            for ps_keys, worker_keys, ps_says, worker_says in (
                    (keys, [], "it speaks no TLS", "the peer speaks TLS alone"),
                    ([], keys, "it speaks TLS", "the peer speaks no TLS")):
                cluster = self.write_cluster(name="%d.json" % len(cases))
                ps = self.start_ps(cluster, 0, *ps_keys)
                worker = self.start_worker(
                    cluster, 0, "--link=" + link, "--max_wait=1s",
                    "--training=" + self.training, *worker_keys)
                cases.append((ps, worker, ps_says, worker_says))
        for ps, worker, ps_says, worker_says in cases:
            ps.wait_for("refused a client: " + ps_says)
            self.assertEqual(worker.wait(), 138, worker.output)
            self.assertIn(worker_says, worker.output)

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

    def test_another_program_on_the_port_is_named(self):
        self.make_certs("issue", "--ps=2", "--workers=2")
        self.training = self.write("training.textproto",
                                   harness.softmax_regression(ENDLESS))
        http = OtherProgram(b"HTTP/1.0 404 Not Found\r\n\r\n", True)
        ssh = OtherProgram(b"SSH-2.0-OpenSSH_9.2\x1b[2J\r\n")
        closes = OtherProgram(b"")
        for other in (http, ssh, closes):
            self.addCleanup(other.close)
        answers = {http: "answered 'HTTP/1.0 404 Not Found'",
                   ssh: r"answered 'SSH-2.0-OpenSSH_9.2\x1b[2J'",
                   closes: "answered nothing and closed the connection"}
        keys = "--certs_dir=" + self.certs
        tasks = []
        for number, (other, flags) in enumerate((
                (http, []), (ssh, []), (closes, []), (http, [keys]),
                (closes, [keys]))):
            cluster = self.write("other%d.json" % number, json.dumps({
                "ps": [other.address, "127.0.0.1:1"],
                "worker": ["127.0.0.1:2"]}))
            worker = self.start_worker(
                cluster, 0, "--bind=127.0.0.1:0", "--max_wait=2s",
                "--training=" + self.training, *flags)
            ps = self.start_ps(cluster, 1, "--bind=127.0.0.1:0",
                               "--max_wait=2s", *flags)
            tasks += [(worker, other), (ps, other)]
        for task, other in tasks:
            self.assertEqual(task.wait(), 138, task.output)
            self.assertIn("What listens at %s is no ps task of Muster (it %s" %
                          (other.address, answers[other]), task.output)
            self.assertNotIn("certs_dir", task.output)
        for other in (http, closes):
            code, output = self.run_to_end("musterctl", [
                harness.binary("worker/ctl/musterctl"), "namespace", "ls",
                "--ps_hosts=" + other.address])
            self.assertEqual(code, 138, output)
            self.assertIn("is no ps task of Muster (it " + answers[other],
                          output)

    def test_a_workers_own_port_is_no_ps(self):
        self.training = self.write("training.textproto",
                                   harness.softmax_regression(ENDLESS))
        waiting = self.start_worker(self.cluster, 1,
                                    "--training=" + self.training)
        waiting.wait_for("waiting for /job:ps/task:0")
        address = self.read_json("cluster.json")["cluster"]["worker"][1]
        code, output = self.run_to_end("worker", [
            harness.worker(), "--ps_hosts=" + address,
            "--worker_hosts=127.0.0.1:2", "--bind=127.0.0.1:0",
            "--training=" + self.training])
        self.assertEqual(code, 2, output)
        self.assertIn("no ps task of Muster, but a worker", output)

    def test_an_all_reduce_with_keys_ends(self):
        self.cluster = self.write("cluster.json", json.dumps({
            "worker": ["127.0.0.1:%d" % port for port in harness.free_ports(2)]
        }))
        self.make_certs("issue", "--workers=2", "--ps=0")
        self.training = self.write(
            "training.textproto", harness.softmax_regression(
                20, more="replication { all_reduce {} }"))
        workers = [self.start_keyed_worker(i, "tcp") for i in range(2)]
        for one in workers:
            self.assertEqual(one.wait(), 0, one.output)
            self.assertNotRegex(one.output, "refused( a|:)")


if __name__ == "__main__":
    harness.main()
