"""Workers that hold the parameters: deaths, signals, bytes and mistakes."""

import signal

from tests.integration import harness
from tests.integration import recovery

STEPS = 500
EVERY = 100
# Its parameters are two halves of the same size: 64 * 64 + 64 values each.
EVEN = """
model {
  name: "even"
  input_shape: [64]
  layer { name: "hidden" type: "dense" attr { name: "units" i: 64 } }
  layer { name: "logits" type: "dense" attr { name: "units" i: 64 } }
  layer { name: "loss" type: "softmax_cross_entropy" }
}
input {
  type: "synthetic" batch_size: 16
  synthetic_examples: 640 synthetic_test_examples: 100 synthetic_classes: 64
}
placement { strategy: "greedy" }
optimizer { name: "sgd" attr { name: "learning_rate" f: 0.1 } }
replication { all_reduce {} }
stop { steps: 20 }
"""


class AllReduceTest(recovery.TestCase):

    def job(self, name, ps, workers, *flags):
        return recovery.Job(
            self, ps, workers,
            ["--set=stop.steps=%d" % STEPS,
             "--set=checkpoint.every_steps=%d" % EVERY,
             *["--set=" + flag for flag in flags]], (), name=name).start()

    def finish(self, job):
        # Not for ps tasks, which stay a second for those that are late.
        for task in job.workers:
            self.assertEqual(task.wait(), 0, task.output)
        return self.result(job.train_dir)

    def next_save(self, job):
        job.workers[0].wait_for(r" saved \S+/ckpt-\d*[1-9]\d*")

    def test_deaths_change_no_bit(self):
        ps_job = self.job("with_ps", 2, 2, "replication.sync.min_replicas=2")
        self.finish(ps_job)

        job = self.job("alone", 0, 2, "replication=all_reduce")
        chief = job.workers[0]
        chief.wait_for("link to /job:ps/task:[01]: shared memory")
        self.next_save(job)
        # Its part of the parameters dies with it.
        job.workers[1].kill()
        chief.wait_for(r"waiting for /job:(ps|worker)/task:1\b")
        job.start_worker(1)
        self.next_save(job)
        # The chief saves before that part goes.
        job.workers[1].send(signal.SIGTERM)
        self.assertEqual(job.workers[1].wait(), 128 + signal.SIGTERM,
                         job.workers[1].output)
        self.assertIn("the chief has saved the model", job.workers[1].output)
        job.start_worker(1)
        self.next_save(job)
        job.workers[0].kill()
        job.start_worker(0)
        result = self.finish(job)
        self.assertEqual(result["replication"], "all_reduce")
        self.assertEqual(result["dropped_steps"], 0)
        self.assertEqual(job.newest().global_step, STEPS)
        for name in ("parameters.safetensors", "slots.safetensors"):
            self.assertEqual(job.newest().tensors(name),
                             ps_job.newest().tensors(name), name)
        self.more_workers_go_on(job)

    def more_workers_go_on(self, old):
        """In the same train_dir, from the checkpoint of fewer workers."""
        job = self.job("alone", 0, 3, "replication=all_reduce",
                       "stop.steps=%d" % (STEPS + EVERY))
        result = self.finish(job)
        self.assertEqual(result["start_step"], STEPS)
        self.assertEqual(result["global_step"], STEPS + EVERY)
        self.assertEqual(job.train_dir, old.train_dir)

    def test_counts_the_bytes_of_a_step(self):
        cluster = self.write_cluster(ps=0, workers=2)
        workers = [self.start_worker(cluster, i, *self.training_flags(
            EVEN, "train")) for i in range(2)]
        for worker in workers:
            self.assertEqual(worker.wait(), 0, worker.output)
        result = self.result("train")
        self.assertEqual(result["model_bytes"], 4 * 2 * (64 * 64 + 64))
        self.assertEqual(len(result["workers"]), 2)
        # 2(N-1)/N of the model, of which one half is sent: N is 2.
        wanted = 20 * result["model_bytes"] / 2
        for counts in result["workers"]:
            self.assertEqual(counts["pushes"], 20)
            for way in ("bytes_sent", "bytes_received"):
                self.assertLess(abs(counts[way] / wanted - 1), 0.03, way)

    def refused(self, command, *wanted):
        code, output = self.run_to_end(command[0], command)
        self.assertEqual(code, 2, output)
        for text in wanted:
            self.assertIn(text, output)

    def test_what_does_not_go_together_is_refused_by_name(self):
        alone = self.write_cluster(ps=0, workers=2, name="alone.json")
        with_ps = self.write_cluster(ps=1, workers=2, name="with_ps.json")
        training = "--training=" + self.write("training.textproto", EVEN)
        worker = [harness.worker(), training]
        self.refused(
            [*worker, "--cluster=" + alone, "--set=replication=sync"],
            "replication is sync, which wants ps tasks", "has none")
        self.refused(
            [*worker, "--cluster=" + with_ps], "replication is all_reduce",
            "the cluster has ps tasks (ps 1, worker 2)")
        self.refused(
            [*worker, "--cluster=" + alone, "--job_name=evaluator",
             "--set=replication=async"], "replication is async")
        self.refused([*worker, "--standalone"],
                     "--standalone has no other worker")
        self.refused([*worker, "--cluster=" + alone, "--ps_hosts=localhost:1"],
                     "--ps_hosts and --worker_hosts and --cluster=",
                     "contradict each other")
        self.refused([harness.ps_server(), "--cluster=" + alone],
                     "the cluster has no ps task: its workers hold")


if __name__ == "__main__":
    harness.main()
