"""A ps task looked at by HTTP: metrics, status, page, and who may look."""

import base64
import hashlib
import json
import re
import socket
import time
import urllib.error
import urllib.request

from tests.integration import exposition
from tests.integration import harness

ENDLESS = 100000000
TRAINING = harness.softmax_regression(
    ENDLESS, more="checkpoint { every_steps: 200 keep: 3 }")


def get(port, path):
    """(status, headers, text)."""
    try:
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path),
                                    timeout=harness.DEADLINE_S) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def scrape(port):
    """The families of a scrape; None while none can be had."""
    try:
        status, headers, text = get(port, "/metrics")
    except OSError:
        return None
    if status == 503:
        return None
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return exposition.parse(text)


def is_left(connection):
    """Whether the peer ends it, with nothing said."""
    connection.settimeout(harness.DEADLINE_S)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


class ScrapeTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        self.cluster = self.write_cluster(ps=2, workers=3)
        self.ports = harness.free_ports(2)

    def start_server(self, index):
        return self.start_ps(self.cluster, index, "--http_address=127.0.0.1:%d"
                             % self.ports[index])

    def start_task(self, index):
        return self.start_worker(
            self.cluster, index, *self.training_flags(
                TRAINING, "run", "--progress_every=200ms"))

    def await_scrape(self, holds):
        """The first scrape of ps task 0 of which it is so."""
        deadline = time.monotonic() + harness.DEADLINE_S
        while time.monotonic() < deadline:
            families = scrape(self.ports[0])
            if families and holds(families):
                return families
        raise AssertionError("no such scrape: %s" % families)

    def steps(self, families, task):
        return exposition.value(families, "muster_steps_total", role="worker",
                                task=str(task)) or 0

    def status(self):
        return json.loads(get(self.ports[0], "/status.json")[2])

    def test_a_job_is_told_while_it_trains_and_a_ps_is_killed(self):
        servers = [self.start_server(i) for i in range(2)]
        for server in servers:
            server.wait_for("a page at http")
        tasks = [self.start_task(i) for i in range(3)]
        families = self.await_scrape(lambda found: all(
            self.steps(found, i) > 0 for i in range(3)) and exposition.value(
                found, "muster_checkpoint_last_success_step"))
        self.check_training(families)
        self.check_status(self.status())
        before = [self.steps(families, i) for i in range(3)]
        since = time.monotonic()
        servers[1].kill()
        servers[1] = self.start_server(1)
        tasks[0].wait_for_line_after("restored ", since)
        # What is counted goes on, though the model has lost steps.
        after = self.await_scrape(lambda found: exposition.value(
            found, "muster_model_epoch") == 2)
        for i in range(3):
            self.assertGreaterEqual(self.steps(after, i), before[i])
        self.check_ps_1()

    def check_training(self, families):
        value = lambda name, **labels: exposition.value(
            families, name, **labels)
        self.assertEqual(value("muster_job_phase", phase="RUNNING"), 1)
        self.assertEqual(value("muster_workers", state="trains"), 3)
        self.assertEqual(value("muster_shard_ready"), 1)
        self.assertGreater(value("muster_push_parts_total", outcome="applied"),
                           0)
        self.assertEqual(value("muster_push_parts_total", outcome="refused"), 0)
        for name in ("muster_checkpoint_last_success_timestamp_seconds",
                     "process_start_time_seconds"):
            self.assertLess(abs(time.time() - value(name)), 2 *
                            harness.DEADLINE_S, name)
        for i in range(3):
            task = dict(role="worker", task=str(i))
            self.assertEqual(value("muster_examples_total", **task),
                             32 * self.steps(families, i))
            self.assertGreater(value("muster_loss", **task), 0)
            self.assertLess(abs(time.time() - value(
                "muster_last_step_timestamp_seconds", **task)),
                            harness.DEADLINE_S)
        self.assertEqual(
            families["muster_staleness_steps"].samples[
                "muster_staleness_steps_count",
                frozenset({("namespace", "")})],
            sum(self.steps(families, i) for i in range(3)))

    def check_status(self, status):
        space, = status["namespaces"]
        self.assertEqual(space["job"]["phase"], "RUNNING")
        self.assertEqual([worker["task"] for worker in space["job"]["workers"]],
                         ["/job:worker/task:%d" % i for i in range(3)])
        self.assertEqual([one["has_answered"] for one in status["ps"]],
                         [True, True])
        self.assertEqual([shard["phase"] for shard in space["shards"]],
                         ["READY", "READY"])
        self.assertNotIn(self.dir, json.dumps(status))

    def check_ps_1(self):
        families = scrape(self.ports[1])
        self.assertEqual(exposition.value(families, "muster_shard_ready",
                                          role="ps", task="1"), 1)
        self.assertNotIn("muster_job_phase", families)

    def test_the_page_is_whole_and_takes_nothing_from_elsewhere(self):
        self.start_server(0).wait_for("a page at http")
        status, headers, page = get(self.ports[0], "/")
        self.assertEqual(status, 200)
        policy = headers["Content-Security-Policy"]
        self.assertTrue(policy.startswith("default-src 'self'; "), policy)
        for tag, text in re.findall(r"<(script|style)>(.*?)</\1>", page, re.S):
            digest = base64.b64encode(
                hashlib.sha256(text.encode()).digest()).decode()
            self.assertIn("%s-src 'sha256-%s'" % (tag, digest), policy)
        self.assertEqual(len(re.findall(r"<(script|style)\b", page)), 2)
        for forbidden in ("//[a-z]+\\.", "innerHTML", "outerHTML",
                          "insertAdjacent", "document.write", "eval\\(",
                          " on[a-z]+=", "style=", "src=", "href="):
            self.assertNotRegex(page, forbidden)
        # What the page reads is there.
        read = set(re.findall(r"\b(?:job|worker|shard|look|space)\.([a-z_]+)\b",
                              page))
        known = self.keys(self.status()) | self.keys_of_workers
        self.assertLessEqual(read - known, {"slice", "length", "find"})

    # Of a job with workers, and of a shard.
    keys_of_workers = {"task", "state", "steps", "loss", "staleness",
                       "dropped_steps", "silent_s", "waits_for"}

    def keys(self, value):
        if isinstance(value, list):
            return set().union(*(self.keys(one) for one in value))
        if not isinstance(value, dict):
            return set()
        return set(value).union(*(self.keys(one) for one in value.values()))

    def test_bad_peers_stop_neither_the_job_nor_a_scrape(self):
        for i in range(2):
            self.start_server(i).wait_for("a page at http")
        tasks = [self.start_task(i) for i in range(3)]
        families = self.await_scrape(lambda found: self.steps(found, 0) > 0)
        address = ("127.0.0.1", self.ports[0])
        slow = [socket.create_connection(address) for _ in range(100)]
        try:
            for one in slow:
                one.sendall(b"GET /metrics HTTP/1.1\r\nHost: local")
            began = self.steps(families, 0)
            self.await_scrape(lambda found: self.steps(found, 0) > began)
            for one in slow:
                self.assertTrue(is_left(one))
        finally:
            for one in slow:
                one.close()
        with socket.create_connection(address) as other:
            other.sendall(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            self.assertEqual(other.recv(12), b"HTTP/1.1 421")
        for task in tasks:
            self.assertTrue(task.running())

    def test_wrong_flags_are_said(self):
        for flag, code, why in (
                ("9180", 2, "--http_address: listen on '9180'"),
                ("no.such.host.invalid:9180", 4, "refusing to listen"),
                ("0.0.0.0:9180", 4, "refusing to listen on 0.0.0.0:9180"),
                ("127.0.0.1:%d" % self.ports[1], 2, "Address already in use")):
            with socket.create_server(("127.0.0.1", self.ports[1])):
                server = self.start_ps(self.cluster, 0, "--http_address=" + flag)
                self.assertEqual(server.wait(), code, server.output)
            self.assertIn(why, server.output)


if __name__ == "__main__":
    harness.main()
