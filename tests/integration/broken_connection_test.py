"""Connections between workers and ps tasks are cut in mid-push (T2).

`ss -K` closes both ends of a connection at once, with whatever is on its way: a
push may have been applied and its answer lost, or have come in half. Only the
ports of this test's own ps tasks are named. Needs the right to close sockets of
others (CAP_NET_ADMIN).
"""

import re
import socket
import subprocess
import time
import unittest

from tests.integration import harness
from tests.integration import recovery

CUTS = 200 if recovery.SOAK else 20
# Between two of them: long enough for a new connection and some steps.
PAUSE_S = (0.1, 0.2)
# The job ends by its time. The cuts take half of it on an idle machine.
JOB_S = 80 if recovery.SOAK else 9

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
stop { seconds: %d }
seed: 7
""" % JOB_S


def cut(ports):
    """Closes the connections to these ports; returns how many."""
    where = " or ".join("dport = :%d" % port for port in ports)
    closed = subprocess.run(
        ["ss", "-K", "-tnH", "state", "established", "( %s )" % where],
        check=False, capture_output=True, text=True)
    return len(closed.stdout.splitlines())


def missing_right():
    """Why connections cannot be cut here, or None."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            peer, _ = server.accept()
            with peer:
                try:
                    cut([port])
                except FileNotFoundError:
                    return "iproute2 is not installed"
                peer.settimeout(0.5)
                try:
                    client.sendall(b"x")
                    peer.recv(1)
                except OSError:
                    return None
    return "no right to close sockets (ss -K)"


REASON = missing_right()


@unittest.skipIf(REASON is not None, REASON)
class BrokenConnectionTest(recovery.TestCase):

    def test_every_step_is_applied_once(self):
        # Gradients go where they can be cut off.
        job = self.start_job(ps=2, workers=2, flags=[
            "--link=grpc",
            "--training=" + self.write("wide.textproto", TRAINING)])
        ports = [int(job.address("ps", index).rsplit(":", 1)[1])
                 for index in range(2)]
        step, cuts, closed = job.step(), 0, 0
        while cuts < CUTS:
            self.pause(*PAUSE_S)
            connections = cut(ports)
            cuts += connections > 0
            closed += connections
            self.assertTrue(job.workers[0].running(), "ended after %d cuts" %
                            cuts)
        start = time.monotonic()
        job.training_again(start)
        trained = job.step() - step
        for task in job.workers + job.ps:
            self.assertEqual(task.wait(), 0, task.output)
            # Nobody took it for a death.
            self.assertNotIn("restored", task.output)
        self.check_applied_once(job)
        self.say("cuts=%d connections=%d steps_meanwhile=%d %s" % (
            cuts, closed, trained, " ".join(
                "duplicates=%d" % self.account(ps)["duplicates"]
                for ps in job.ps)))
        self.assertGreater(trained, 0)

    def account(self, ps):
        """The numbers of the line that a ps ends with."""
        line = re.search(r"ended: (.*)", ps.output)[1]
        return {name: int(value)
                for name, value in re.findall(r"(\w+)=(\d+)\b", line)}

    def check_applied_once(self, job):
        counted = self.result(job.train_dir)["global_step"]
        checkpoint = job.newest()
        self.assertEqual(checkpoint.global_step, counted)
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
