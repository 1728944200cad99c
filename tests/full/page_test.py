"""A job seen by a real Prometheus and in a real Chromium.

MUSTER_PICTURE=FILE keeps the picture of the page.
"""

import json
import os
import re
import subprocess
import time
import urllib.parse
import urllib.request

from tests.full import devtools
from tests.integration import harness

FOLDER = "cluster_configs/prometheus"
# Of the picture's graphs.
WATCHED_S = 40
TRAINING = harness.softmax_regression(
    1000000, batch_size=512, learning_rate=0.002,
    more="checkpoint { every_steps: 1000 keep: 3 }")


class PageTest(harness.TestCase):

    def start_job(self, ps=2, workers=3, flags=()):
        """The ports of HTTP."""
        cluster = self.write_cluster(ps=ps, workers=workers)
        ports = harness.free_ports(ps)
        for i, port in enumerate(ports):
            self.start_ps(cluster, i, "--http_address=127.0.0.1:%d" % port)
        tasks = [self.start_worker(cluster, i, *self.training_flags(
            TRAINING, "run", "--progress_every=1s", *flags))
                 for i in range(workers)]
        for task in tasks:
            task.wait_for(r"\bstep=[1-9]")
        return ports

    def promtool(self, *args, text=None):
        done = subprocess.run(["promtool", *args], input=text, text=True,
                              stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.STDOUT,
                              timeout=harness.DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_files_are_what_promtool_takes(self):
        self.promtool("check", "config", FOLDER + "/prometheus.yml")
        self.promtool("check", "rules", FOLDER + "/alerts.yml")
        self.promtool("test", "rules", FOLDER + "/alerts_test.yml")

    def test_a_prometheus_reads_a_job(self):
        ports = self.start_job()
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" %
                                    ports[0]) as answer:
            self.promtool("check", "metrics", text=answer.read().decode())
        prometheus = self.start_prometheus(ports)
        for query, wanted in (
                ('count(up{job="muster"} == 1)', 2),
                ('count(rate(muster_steps_total[10s]) > 0)', 3),
                ('count(muster_shard_ready == 1)', 2),
                ('count(muster_job_phase == 1)', 1),
                ('count(histogram_quantile(0.9, '
                 'rate(muster_staleness_steps_bucket[10s])))', 1)):
            self.await_result(prometheus, query, wanted)
        # The rules are evaluated, and nothing is wrong.
        self.assertEqual(self.result_of(prometheus, "ALERTS"), [])

    def start_prometheus(self, ports):
        with open(FOLDER + "/prometheus.yml", encoding="utf-8") as file:
            text = file.read()
        with open(FOLDER + "/alerts.yml", encoding="utf-8") as file:
            self.write("alerts.yml", file.read())
        text = text.replace("scrape_interval: 15s",
                            "scrape_interval: 1s\n  evaluation_interval: 1s")
        text = text.replace("          - 127.0.0.1:9180\n", "".join(
            "          - 127.0.0.1:%d\n" % port for port in ports))
        address = "127.0.0.1:%d" % harness.free_ports(1)[0]
        self.start("prometheus", [
            "prometheus", "--config.file=" + self.write("prometheus.yml", text),
            "--storage.tsdb.path=" + self.path("tsdb"),
            "--web.listen-address=" + address]).wait_for(
                "Server is ready to receive web requests")
        return address

    def result_of(self, prometheus, query):
        with urllib.request.urlopen("http://%s/api/v1/query?%s" % (
                prometheus, urllib.parse.urlencode({"query": query}))) as reply:
            return json.load(reply)["data"]["result"]

    def await_result(self, prometheus, query, wanted):
        deadline = time.monotonic() + harness.DEADLINE_S
        while time.monotonic() < deadline:
            found = self.result_of(prometheus, query)
            if found and float(found[0]["value"][1]) == wanted:
                return
            time.sleep(0.5)  # Between two scrapes.
        self.fail("%s: wanted %s, found %s" % (query, wanted, found))

    def test_the_page_is_read_in_a_browser(self):
        ports = self.start_job(flags=["--set=replication.sync.min_replicas=3"])
        address = "http://127.0.0.1:%d/" % ports[0]
        with devtools.Chromium(self.path("browser")) as browser:
            page = browser.open(address)
            text = "document.getElementById('%s')?.innerText"
            page.await_true(text % "figures" + "?.includes('RUNNING')")
            page.await_true("document.getElementById('rates').getAttribute("
                            "'points').split(' ').length > %d" % (
                                WATCHED_S if "MUSTER_PICTURE" in os.environ
                                else 3))
            workers = page.evaluate(text % "workers")
            self.assertEqual(len(re.findall(r"^/job:worker/task:\d",
                                            workers, re.M)), 3, workers)
            tasks = page.evaluate(text % "ps")
            self.assertEqual(tasks.count("READY"), 2, tasks)
            self.assertEqual(page.evaluate(text % "trouble"), "")
            picture = page.picture()
            # Nothing is asked for elsewhere, and nothing was refused.
            for asked in page.requested():
                self.assertTrue(asked.startswith(address), asked)
            self.assertEqual([one for one in page.complaints()
                              if "favicon" not in json.dumps(one)], [])
        self.assertEqual(picture[:4], b"\x89PNG")
        if "MUSTER_PICTURE" in os.environ:
            with open(os.environ["MUSTER_PICTURE"], "wb") as file:
                file.write(picture)


if __name__ == "__main__":
    harness.main()
