"""Networks that fail under a training, each host behind a switch in user space.

    host 0: /job:ps/task:0    host 1: /job:ps/task:1
    host 2: /job:worker/task:0 (chief)    host 3: /job:worker/task:1

In CI one worker is cut off for some seconds, once both ways and once so that it
is heard and hears nothing. MUSTER_SOAK=1 cuts each host in each mode of
replication for 20 s, trains over delay, loss, damage, doubles and packets out of
order, with keys over damage that TCP does not find, and kills tasks whose last
words nobody hears. Each time the parameters are made of the steps that were
counted, of each once, and of no other; but the last step of a worker that is
killed.

A training ends by its number of steps: whether they were counted right does not
depend on the machine's speed. Needs root.
"""

import itertools
import json
import os
import sys
import time
import unittest

from tests.integration import harness
from tests.integration import network_switch
from tests.integration import recovery

sys.path.insert(0, os.path.abspath("scripts"))
from hosts import certs  # noqa: E402

PORT = 2222
SECONDS = 20 if recovery.SOAK else 3
# The first line about a peer that is silent, from the cut on.
FIRST_LINE_S = 3.0
BACK_S = 5.0
# The same when a ps task was killed, and the chief restores.
RESTORED_S = recovery.limit("ps")
# A call of 10 s, what is left of 5 s of failures, and 5 s to find the way back.
STOPPED_S = 25.0
# The hosts by their tasks.
PS_0, PS_1, CHIEF, WORKER_1 = range(4)
MODES = {
    "async": "",
    "sync": "replication { sync {} }",
    "bounded": "replication { bounded_staleness { bound: 3 } }",
}
FAULTS = [
    network_switch.Faults(delay_s=0.05),
    network_switch.Faults(loss=0.05),
    network_switch.Faults(damaged=0.001),
    network_switch.Faults(doubled=0.05, overtaken=0.05),
]
# About one packet a second and more.
KEYED_FAULTS = [
    network_switch.Faults(damaged=0.001),
    network_switch.Faults(swapped=0.001),
]
TRAINING = harness.softmax_regression(
    recovery.ENDLESS, test_examples=100,
    more="checkpoint { every_steps: 100000 }\n%s")


@unittest.skipIf(network_switch.REASON is not None, network_switch.REASON)
class NetworkCutTest(recovery.TestCase):

    numbers = itertools.count()

    def start_hosts(self, mode, keys=False):
        self.mode = mode
        self.train_dir = "train%d-" % next(self.numbers)
        self.switch = network_switch.of_test(self, 4, self.seed)
        tasks = ["%s:%d" % (address, PORT)
                 for address in self.switch.addresses]
        cluster = self.write("cluster.json", json.dumps(
            {"ps": tasks[:2], "worker": tasks[2:]}))
        common = ["--cluster=" + cluster,
                  self.make_keys(cluster) if keys else
                  "--allow_insecure_network"]
        self.commands = {}
        self.tasks = [
            self.start_on(host, "ps %d" % host, harness.ps_server(), *common,
                          "--task_index=%d" % host, "--worker_timeout=60s")
            for host in (PS_0, PS_1)]
        training = self.write("training.textproto", TRAINING % MODES[mode])
        self.tasks += [
            self.start_on(CHIEF + index, "worker %d" % index, harness.worker(),
                          *common, "--task_index=%d" % index,
                          "--max_wait=120s", "--training=" + training, "--compute_threads=1",
                          "--train_dir=" + self.path(self.train_dir + str(index)),
                          "--progress_every=0.05")
            for index in range(2)]
        self.training_again()
        for worker in self.workers:
            harness.check_link(worker.output, "tcp")

    @property
    def workers(self):
        return self.tasks[CHIEF:]

    def make_keys(self, cluster):
        folder = self.path(self.train_dir + "certs")
        for verb in (["init"], ["issue", "--cluster=" + cluster]):
            self.assertEqual(
                certs.main([*verb, "--certs_dir=" + folder]), 0)
        return "--certs_dir=" + folder

    def start_on(self, host, name, *command):
        self.commands[host] = (name, *command)
        return self.start(name, self.switch.on(host, command))

    def kill_and_restart(self, host):
        self.tasks[host].kill()
        self.tasks[host] = self.start_on(host, *self.commands[host])

    def training_again(self):
        since = time.monotonic()
        return max(worker.wait_for_line_after(r" step=\d", since)
                   for worker in self.workers)

    def train_on(self):
        for _ in range(40):
            self.training_again()

    def step(self):
        """The newest global step that a worker has printed."""
        return max(int((harness.re.findall(r" step=(\d+)", worker.output) or
                        [0])[-1]) for worker in self.workers)

    def check_cut(self, host, direction, seconds):
        """Cuts a host off, heals, and returns (first line, back) in seconds."""
        since = time.monotonic()
        self.switch.cut(host, direction)
        others = [self.tasks[host]] if host >= CHIEF else self.workers
        first = max(task.wait_for_line_after("waiting for", since)
                    for task in others) - since
        time.sleep(max(0, since + seconds - time.monotonic()))
        self.switch.heal(host)
        healed = time.monotonic()
        back = self.training_again() - healed
        self.say("cut=%s direction=%s seconds=%g first_line=%.2f back=%.2f" % (
            self.tasks[host].name, direction, seconds, first, back))
        return first, back

    def end_counted(self, killed=None, most=1):
        """Ends the training; the steps that were applied are those counted, and
        perhaps the last one of a worker that was killed, `most` times."""
        self.workers[0].send(harness.signal.SIGTERM)
        self.assertEqual(self.workers[0].wait(), 128 + harness.signal.SIGTERM)
        for task in self.tasks[:CHIEF] + self.workers[1:]:
            self.assertEqual(task.wait(), 0, task.output)
        for task in self.tasks:
            if killed not in (PS_0, PS_1):
                self.assertNotIn("restored", task.output)
        checkpoint = recovery.Checkpoint(self.newest(self.train_dir + "0"))
        self.check_applied(checkpoint,
                           uncounted=most if killed == WORKER_1 else 0)
        self.say("steps=%d packets=%s" % (checkpoint.global_step,
                                          dict(self.switch.packets)))

    def newest(self, train_dir):
        folder = self.path(train_dir)
        return max(entry.path for entry in harness.os.scandir(folder)
                   if entry.name.startswith("ckpt-"))

    def check_applied(self, checkpoint, uncounted):
        counted = checkpoint.global_step
        # A step that was not reported is in no round.
        most = counted + (uncounted if self.mode != "sync" else 0)
        self.assertGreater(counted, 0)
        # In sync an update is of both workers' steps.
        if self.mode != "sync":
            self.assertEqual(sum(checkpoint.worker_steps.values()), counted)
        for parameter, counts in checkpoint.updates().items():
            self.assertGreaterEqual(min(counts), counted, parameter)
            self.assertLessEqual(max(counts), most, parameter)

    def test_a_worker_that_is_cut_off_says_so_and_comes_back(self):
        self.start_hosts("async")
        for direction in ("both", "to"):
            first, back = self.check_cut(WORKER_1, direction, SECONDS)
            if recovery.SOAK:
                self.assertLess(first, FIRST_LINE_S)
                self.assertLess(back, BACK_S)
        self.end_counted()

    @unittest.skipUnless(recovery.SOAK, "MUSTER_SOAK=1 cuts every host")
    def test_every_host_is_cut_off_in_every_mode(self):
        for mode in MODES:
            self.start_hosts(mode)
            for host in range(len(self.tasks)):
                for direction in ("both", "to", "from"):
                    self.train_on()
                    first, back = self.check_cut(host, direction, SECONDS)
                    self.assertLess(first, FIRST_LINE_S)
                    self.assertLess(back, BACK_S)
            self.end_counted()

    @unittest.skipUnless(recovery.SOAK, "MUSTER_SOAK=1 trains over each fault")
    def test_bad_lines_lose_nothing(self):
        for mode, faults in itertools.product(MODES, FAULTS):
            self.start_hosts(mode)
            self.check_faults(faults)

    @unittest.skipUnless(recovery.SOAK, "MUSTER_SOAK=1 damages bytes with keys")
    def test_keys_find_what_tcp_does_not(self):
        for mode, faults in itertools.product(MODES, KEYED_FAULTS):
            self.start_hosts(mode, keys=True)
            self.check_faults(faults)
            self.assertGreater(
                self.switch.packets["damaged"] + self.switch.packets["swapped"],
                0)

    # Its packets vanish when it dies: its peers hold connections to nobody,
    # while another start of it has the same address.
    @unittest.skipUnless(recovery.SOAK, "MUSTER_SOAK=1 kills tasks unheard")
    def test_a_task_that_dies_unheard_comes_back(self):
        for mode, host in itertools.product(MODES, (WORKER_1, PS_1)):
            self.start_hosts(mode)
            self.train_on()
            self.switch.cut(host, "from")
            self.kill_and_restart(host)
            self.tasks[host].wait_for("/job:")
            self.switch.heal(host)
            healed = time.monotonic()
            back = self.training_again() - healed
            self.say("mode=%s killed=%s back=%.2f" % (
                mode, self.tasks[host].name, back))
            self.assertLess(back, BACK_S if host == WORKER_1 else RESTORED_S)
            self.train_on()
            self.end_counted(killed=host)

    @unittest.skipUnless(recovery.SOAK, "MUSTER_SOAK=1 stops a cut worker")
    def test_a_worker_that_is_cut_off_can_be_stopped(self):
        self.start_hosts("async")
        said = 0
        for _ in range(3):
            self.train_on()
            self.switch.cut(WORKER_1)
            worker = self.workers[1]
            worker.wait_for("waiting for")
            since = time.monotonic()
            worker.send(harness.signal.SIGTERM)
            self.assertEqual(worker.wait(), 128 + harness.signal.SIGTERM)
            seconds = time.monotonic() - since
            lines = harness.re.findall(r"task:1 (step .* counted.*)",
                                       worker.output)
            self.say("stopped=%.2f %s" % (seconds, " ".join(lines)))
            said += len(lines)
            self.assertLess(seconds, STOPPED_S)
            self.switch.heal(WORKER_1)
            self.kill_and_restart(WORKER_1)
            self.training_again()
        self.end_counted(killed=WORKER_1, most=said)

    def check_faults(self, faults):
        start, step = time.monotonic(), self.step()
        self.switch.faults = faults
        time.sleep(SECONDS)
        rate = (self.step() - step) / (time.monotonic() - start)
        self.say("mode=%s steps_per_s=%.1f %s" % (self.mode, rate, faults))
        self.training_again()
        self.switch.faults = network_switch.Faults()
        self.end_counted()


if __name__ == "__main__":
    harness.main()
