"""Workers that come and go while a training runs: each row is trained on once
an epoch, nobody is waited for, and no one is started anew."""

import json
import re
import shutil
import signal

from tests.integration import harness

ROWS = 60000


class ElasticTest(harness.TestCase):

    def begin(self, replication, epochs):
        """A ps, the chief and one more worker, which train."""
        self.rows = ROWS * epochs
        port, = harness.free_ports(1)
        self.cluster = self.write("cluster.json", json.dumps(
            {"ps": ["127.0.0.1:%d" % port], "worker": "any"}))
        training = harness.softmax_regression(
            0, batch_size=8, examples=ROWS, more=replication).replace(
                "stop { steps: 0 }", "stop { epochs: %d }" % epochs)
        self.flags = self.training_flags(training, "train",
                                         "--progress_every=0.05")
        self.ps = self.start_ps(self.cluster, 0, "--worker_timeout=2s")
        self.chief = self.start_worker(self.cluster, 0, *self.flags)
        self.first = self.come()
        self.assertEqual(self.number_of(self.first), 1)
        self.await_steps(self.first)

    def come(self):
        return self.start_worker(self.cluster, "any", *self.flags)

    def number_of(self, worker):
        return int(worker.wait_for(r"this worker is /job:worker/task:(\d+), as "
                                   "/job:ps/task:0 says").group(1))

    def await_steps(self, worker):
        worker.wait_for(r"\bstep=[1-9]")

    def end(self):
        """Of the chief, whose line it returns; of the ps and of who is left."""
        self.assertEqual(self.chief.wait(), 0, self.chief.output)
        self.assertEqual(self.ps.wait(), 0)
        line = re.search("each of %d examples was trained on %d times.*" % (
            ROWS, self.rows // ROWS), self.chief.output)
        self.assertTrue(line, self.chief.output)
        return line.group()

    def test_sync_has_the_workers_that_are_there(self):
        self.begin("replication { sync { min_replicas: 2 } }", epochs=2)
        # Rounds wait for the chief meanwhile.
        self.chief.send(signal.SIGSTOP)
        others = [self.come() for _ in range(2)]
        numbers = [self.number_of(other) for other in others]
        self.chief.send(signal.SIGCONT)
        self.assertEqual(sorted(numbers), [2, 3])
        self.chief.wait_for("an update has 32 rows, of 4 workers")
        others[0].send(signal.SIGTERM)
        self.assertEqual(others[0].wait(), 143)
        self.chief.wait_for("an update has 24 rows, of 3 workers")
        others[1].kill()
        self.chief.wait_for("an update has 16 rows, of 2 workers")
        line = self.end()
        self.assertEqual(self.first.wait(), 0)
        self.assertNotIn("once more", line)
        self.assertNotIn("in steps that were passed over", line)
        result = self.result("train")
        self.assertEqual(result["examples_repeated"], 0)
        self.assertEqual(result["examples"] + result["examples_left"],
                         self.rows)
        self.assertLess(result["examples_left"], 16)

    def test_async_deals_on_what_one_that_leaves_gives_back(self):
        # Long enough for three to come.
        self.begin("replication { async {} }", epochs=4)
        drained, killed, new = others = [self.come() for _ in range(3)]
        for other in others:
            self.await_steps(other)
        drained.send(signal.SIGTERM)
        self.assertEqual(drained.wait(), 143)
        killed.kill()
        line = self.end()
        for worker in (self.first, new):
            self.assertEqual(worker.wait(), 0)
        # At most the step in which it was killed.
        result = self.result("train")
        self.assertLessEqual(result["examples_repeated"], 8)
        self.assertEqual("once more" in line, result["examples_repeated"] > 0)
        self.assertEqual(result["examples"] + result["examples_left"],
                         self.rows)

    def stop_once_numbered(self):
        """A worker that stands still with its number, in its data or later."""
        worker = self.come()
        number = self.number_of(worker)
        worker.send(signal.SIGSTOP)
        return worker, number

    def restart(self, *tasks):
        """The ps, and those tasks, without a warning."""
        for task in (self.ps, *tasks):
            task.kill()
        self.ps = self.start_ps(self.cluster, 0, "--worker_timeout=2s")

    def test_a_number_outlives_the_ps_that_gave_it(self):
        self.begin("replication { async {} }", epochs=8)
        slow, number = self.stop_once_numbered()
        self.assertEqual(number, 2)
        # Longer than the chief takes to hear of it.
        self.await_steps(self.chief)
        self.restart()
        other = self.come()
        self.assertEqual(self.number_of(other), 3)
        slow.send(signal.SIGCONT)
        self.await_steps(slow)
        self.end()
        for worker in (self.first, slow, other):
            self.assertEqual(worker.wait(), 0, worker.output)

    def test_a_number_that_was_given_twice_ends_nobody(self):
        self.begin("replication { async {} }", epochs=8)
        slow, number = self.stop_once_numbered()
        # Nobody is left who has heard of it.
        self.restart(self.chief, self.first)
        shutil.rmtree(self.path("train"))
        self.chief = self.start_worker(self.cluster, 0, *self.flags)
        others = [self.come() for _ in range(2)]
        self.assertEqual(sorted(map(self.number_of, others)), [1, number])
        for other in others:
            self.await_steps(other)
        slow.send(signal.SIGCONT)
        slow.wait_for("another worker has the number of this one: asking for "
                      "another number")
        self.await_steps(slow)
        self.end()
        for worker in (slow, *others):
            self.assertEqual(worker.wait(), 0, worker.output)

    def test_a_task_that_has_no_number_wants_a_cluster_that_takes_any(self):
        code, output = self.run_to_end("worker", [
            harness.worker(), "--cluster=" + self.write_cluster(),
            "--task_index=any", *self.training_flags(
                harness.softmax_regression(1), "train")])
        self.assertEqual(code, 2)
        self.assertIn("lists its workers (ps 1, worker 1)", output)


if __name__ == "__main__":
    harness.main()
