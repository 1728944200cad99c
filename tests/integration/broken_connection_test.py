"""Connections between workers and ps tasks are cut in mid-push (T2), change a
message behind TCP's back (T15), or have a proxy between that wants HTTP.

All of them go through a proxy of the test's own, which ends both sides at once
with whatever is on its way: a push may have been applied and its answer lost,
or have come in half.
"""

import re
import time

from tests.integration import cutting_proxy
from tests.integration import harness
from tests.integration import recovery

CUTS = 200 if recovery.SOAK else 20
# Between two of them: long enough for a new connection and some steps.
PAUSE_S = (0.1, 0.2)

DAMAGES = 200 if recovery.SOAK else 20


def no_field(job):
    return b"\x0e" + job[0][1:]


def another_length(header):
    return header[1] + bytes([header[2][0] ^ 0x10])


# The name of a sender's job in each request; the last bytes of a call's number
# and its method in the header of a frame, before a length; the token of an
# offer. Each with what is made of it.
JOB = (rb"\x0a\x06worker", no_field)
HEADER = (rb"(?s)(\0{5}[\x0b-\x0e]\0{3})(.)", another_length)
TOKEN = (rb"[0-9a-f]{32}", lambda token: token[0][::-1])

# Two million parameters, in several parts on each ps task, and little to
# compute: most of a step is transfer.
TRAINING = """
model {
  name: "wide"
  input_shape: [1000]
  layer { name: "hidden" type: "dense" attr { name: "units" i: 1000 } }
  layer { name: "hidden2" type: "dense" attr { name: "units" i: 1000 } }
  layer { name: "logits" type: "dense" attr { name: "units" i: 10 } }
  layer { name: "loss" type: "softmax_cross_entropy" }
}
input {
  type: "synthetic" batch_size: 1 shuffle: false
  synthetic_examples: 100 synthetic_test_examples: 10 synthetic_classes: 10
}
optimizer { name: "sgd" attr { name: "learning_rate" f: 0.0001 } }
checkpoint { every_steps: 0 }
stop { steps: %d }
seed: 7
""" % recovery.ENDLESS


class CutJob(recovery.Job):
    """Each ps listens beside its address in the cluster, behind a proxy."""

    def __init__(self, test, ps, workers, flags):
        super().__init__(test, ps, workers, flags, ())
        self._test = test
        self._behind = harness.free_ports(ps)
        self.proxies = []
        for index, port in enumerate(self._behind):
            proxy = cutting_proxy.CuttingProxy(
                int(self.address("ps", index).rsplit(":", 1)[1]), port)
            test.addCleanup(proxy.close)
            self.proxies.append(proxy)

    def start_ps(self, index):
        self.ps[index] = self._test.start_ps(
            self.cluster, index, "--bind=127.0.0.1:%d" % self._behind[index])
        return self.ps[index]

    def cut(self):
        return sum(proxy.cut() for proxy in self.proxies)


class BrokenConnectionTest(recovery.TestCase):

    # Gradients go where they can be cut off.
    link = "grpc"
    damages = [JOB]

    def test_every_step_is_applied_once(self):
        job = CutJob(self, ps=2, workers=2, flags=[
            "--link=" + self.link,
            "--training=" + self.write("wide.textproto", TRAINING)]).start()
        job.all_train()
        step, cuts, closed = job.step(), 0, 0
        while cuts < CUTS:
            self.pause(*PAUSE_S)
            connections = job.cut()
            cuts += connections > 0
            closed += connections
            self.assertTrue(job.workers[0].running(), "ended after %d cuts" %
                            cuts)
        job.training_again(time.monotonic())
        trained = job.step() - step
        checkpoint = job.drain()
        # Nobody took it for a death.
        for task in job.tasks():
            self.assertNotIn("restored", task.output)
        self.check_applied_once(job, checkpoint)
        self.check_links(job)
        self.say("cuts=%d connections=%d steps_meanwhile=%d %s" % (
            cuts, closed, trained, " ".join(
                "duplicates=%d" % self.account(ps)["duplicates"]
                for ps in job.ps)))
        self.assertGreater(trained, 0)

    def test_what_was_damaged_is_sent_again(self):
        job = CutJob(self, ps=1, workers=2,
                     flags=["--link=" + self.link]).start()
        job.all_train()
        [proxy] = job.proxies
        for i in range(DAMAGES):
            what = self.damages[i % len(self.damages)]
            damaged = proxy.damage(*what, tensors=self.link == "tcp")
            if what == TOKEN:
                proxy.cut()
            self.assertTrue(damaged.wait(harness.DEADLINE_S),
                            "nothing was sent any more")
            job.training_again(time.monotonic())
        checkpoint = job.drain()
        for task in job.tasks():
            self.assertNotIn("restored", task.output)
        self.check_applied_once(job, checkpoint)
        self.check_links(job)

    def check_links(self, job):
        for worker in job.workers:
            harness.check_link(worker.output, self.link)

    def account(self, ps):
        """The numbers of the line that a ps ends with."""
        line = re.search(r"task:\d+ ended: (.*)", ps.output)[1]
        return {name: int(value)
                for name, value in re.findall(r"(\w+)=(\d+)\b", line)}

    def check_applied_once(self, job, checkpoint):
        counted = checkpoint.global_step
        self.assertEqual(sum(checkpoint.worker_steps.values()), counted)
        # Block by block the updates that were ever applied.
        for parameter, counts in checkpoint.updates().items():
            self.assertEqual(counts, [counted] * len(counts), parameter)
        for ps in job.ps:
            account = self.account(ps)
            # A step is the same number of parts, each time.
            self.assertGreaterEqual(account["parts"], counted)
            self.assertEqual(account["parts"] % counted, 0, account)


class BrokenTcpTest(BrokenConnectionTest):

    link = "tcp"
    damages = [JOB, HEADER, TOKEN]


class ProxyBetweenTest(harness.TestCase):
    """A proxy that passes gRPC on, and no connection for tensors."""

    def start_behind(self, tensors):
        """A ps that offers no memory; the proxy does with connections for
        tensors what it is told to. Returns the cluster of its worker."""
        [behind] = harness.free_ports(1)
        cluster = self.write_cluster(name="cluster%d.json" % behind)
        port = int(self.read_json(cluster)["cluster"]["ps"][0].split(":")[1])
        proxy = cutting_proxy.CuttingProxy(port, behind, tensors)
        self.addCleanup(proxy.close)
        self.start_ps(cluster, 0, "--link=tcp", "--bind=127.0.0.1:%d" % behind)
        return cluster

    def start_training(self, cluster, link, *flags):
        return self.start_worker(
            cluster, 0, "--link=" + link, *self.training_flags(
                harness.softmax_regression(20), link, *flags))

    def check_trains_over_grpc(self, cluster, why):
        worker = self.start_training(cluster, "auto")
        self.assertEqual(worker.wait(), 0, worker.output)
        self.assertEqual(
            re.findall("link to /job:ps/task:0: (.*)", worker.output),
            ["no shared memory: the ps offers none", "gRPC; no TCP: " + why])

    def test_one_that_wants_http_is_named(self):
        cluster = self.start_behind(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        why = ("what answers a connection for tensors is no ps task of Muster, "
               "or a proxy between (it answered 'HTTP/1.1 400 Bad Request"
               r"\r\n\r\n')")
        worker = self.start_training(cluster, "tcp")
        self.assertEqual(worker.wait(), 2, worker.output)
        self.assertIn("no TCP: %s; start the worker with --link=auto or grpc" %
                      why, worker.output)
        self.check_trains_over_grpc(cluster, why)

    def test_one_that_is_silent_is_named(self):
        self.check_trains_over_grpc(
            self.start_behind(cutting_proxy.SILENCE),
            "it has accepted a connection for tensors and says nothing")


if __name__ == "__main__":
    harness.main()
