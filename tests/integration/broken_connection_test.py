"""Connections between workers and ps tasks are cut in mid-push (T2), or change a
message behind TCP's back (T15).

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
# The name of a sender's job in each request, and what is no field.
JOB, NO_FIELD = b"\x0a\x06worker", b"\x0e\x06worker"

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

    def test_every_step_is_applied_once(self):
        # Gradients go where they can be cut off.
        job = CutJob(self, ps=2, workers=2, flags=[
            "--link=grpc",
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
        self.say("cuts=%d connections=%d steps_meanwhile=%d %s" % (
            cuts, closed, trained, " ".join(
                "duplicates=%d" % self.account(ps)["duplicates"]
                for ps in job.ps)))
        self.assertGreater(trained, 0)

    def test_what_was_damaged_is_sent_again(self):
        job = CutJob(self, ps=1, workers=2, flags=["--link=grpc"]).start()
        job.all_train()
        for _ in range(DAMAGES):
            self.assertTrue(job.proxies[0].damage(JOB, NO_FIELD),
                            "nothing was sent any more")
            job.training_again(time.monotonic())
        checkpoint = job.drain()
        for task in job.tasks():
            self.assertNotIn("restored", task.output)
        self.check_applied_once(job, checkpoint)

    def account(self, ps):
        """The numbers of the line that a ps ends with."""
        line = re.search(r"ended: (.*)", ps.output)[1]
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


if __name__ == "__main__":
    harness.main()
