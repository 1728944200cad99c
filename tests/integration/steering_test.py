"""An operator's verbs on a running job: status, save, drain, stop."""

import os
import re
import time

from tests.integration import harness
from tests.integration import recovery

ENDLESS = 100000000
BATCH = 32
TRAINING = harness.softmax_regression(
    ENDLESS, batch_size=BATCH, more="checkpoint { every_steps: 100000000 keep: 3 }")


class SteeringTest(recovery.TestCase):

    def setUp(self):
        super().setUp()
        self.cluster = self.write_cluster(ps=2, workers=3)
        self.training = self.write("t.textproto", TRAINING)

    def start_task(self, index):
        return self.start_worker(
            self.cluster, index, "--training=" + self.training,
            "--train_dir=" + self.path("run"), "--compute_threads=1",
            "--progress_every=200ms")

    def ctl(self, *args):
        """Returns (exit code, output)."""
        return self.run_to_end("musterctl", [
            harness.musterctl(), *args, "--cluster=" + self.cluster])

    def done(self, *args):
        code, output = self.ctl(*args)
        self.assertEqual(code, 0, output)
        return output

    def test_a_job_is_seen_saved_drained_and_stopped_exactly(self):
        servers = [self.start_ps(self.cluster, i) for i in range(2)]
        tasks = [self.start_task(i) for i in range(3)]
        for task in tasks:
            task.wait_for(r"\bstep=[1-9]")
        self.assertRegex(self.done("status"), r"RUNNING at step [1-9]")
        saved = re.search(r"saved: step (\d+)", self.done("save"))
        self.assertTrue(
            os.path.exists(self.path("run/ckpt-%012d/manifest.textproto" %
                                     int(saved.group(1)))))
        self.assertIn("/job:worker/task:2 has left",
                      self.done("drain", "/job:worker/task:2"))
        self.assertEqual(tasks[2].wait(), 0, tasks[2].output)
        self.assertRegex(self.done("status"),
                         r"/job:worker/task:2 +finished .*\n")
        since = time.monotonic()
        servers[0].kill()
        servers[0] = self.start_ps(self.cluster, 0)
        tasks[0].wait_for_line_after("restored ", since)
        self.done("stop")
        for process in tasks[:2] + servers:
            self.assertEqual(process.wait(), 0, process.output)
        self.assertEqual(self.result("run")["stop_reason"], "operator")
        self.check_exact()

    def check_exact(self):
        """Each block has had as many updates as are counted.

        A restored cut may have steps on one ps task alone: they are dealt
        again, and counted as repeated.
        """
        newest = max(name for name in os.listdir(self.path("run"))
                     if name.startswith("ckpt-"))
        checkpoint = recovery.Checkpoint(
            os.path.join(self.path("run"), newest))
        repeated = self.result("run")["examples_repeated"] // BATCH
        for parameter, counts in checkpoint.updates().items():
            for count in counts:
                self.assertIn(count - checkpoint.global_step,
                              range(repeated + 1), parameter)

    def test_a_stop_without_a_save_keeps_the_newest_checkpoint(self):
        servers = [self.start_ps(self.cluster, i) for i in range(2)]
        tasks = [self.start_task(i) for i in range(3)]
        for task in tasks:
            task.wait_for(r"\bstep=[1-9]")
        saved = re.search(r"saved: step (\d+)", self.done("save")).group(1)
        tasks[0].wait_for_line_after(r"\bstep=\d", time.monotonic())
        self.assertIn("its newest checkpoint is of step " + saved,
                      self.done("stop", "--no_save"))
        for process in tasks + servers:
            self.assertEqual(process.wait(), 0, process.output)
        newest = max(name for name in os.listdir(self.path("run"))
                     if name.startswith("ckpt-"))
        self.assertEqual(newest, "ckpt-%012d" % int(saved))
        self.assertGreater(self.result("run")["global_step"], int(saved))

    def test_verbs_without_a_job_say_why(self):
        servers = [self.start_ps(self.cluster, i) for i in range(2)]
        for server in servers:
            server.wait_for("listening on")
        for verb, why in (("save", "the job is INITIAL"),
                          ("stop", "no model is committed")):
            code, output = self.ctl(verb)
            self.assertEqual(code, 2, output)
            self.assertIn(why, output)


if __name__ == "__main__":
    harness.main()
