"""scripts/train_local.sh with the real binaries: its end, its interrupts."""

import os
import select
import signal

from tests.integration import harness

TRAINING = harness.softmax_regression(steps=100)
# Far more than any test waits for.
ENDLESS = "--steps=1000000000"


class TrainLocalTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        self.train_dir = self.path("train")

    def launch(self, *flags):
        return self.start("train_local.sh", [
            os.path.abspath("scripts/train_local.sh"), "--no_build",
            "--bin_dir=" + os.getcwd(), "--train_dir=" + self.train_dir,
            "--training=" + self.write("training.textproto", TRAINING),
            *flags])

    def children(self, launcher):
        """pidfds of the tasks (train_local.sh becomes the launcher)."""
        path = "/proc/%d/task/%d/children" % (launcher.pid, launcher.pid)
        with open(path, encoding="utf-8") as file:
            pidfds = [os.pidfd_open(int(pid)) for pid in file.read().split()]
        for pidfd in pidfds:
            self.addCleanup(os.close, pidfd)
        return pidfds

    def assert_gone(self, pidfds):
        for pidfd in pidfds:
            readable, _, _ = select.select([pidfd], [], [],
                                           harness.DEADLINE_S)
            self.assertTrue(readable, "a task is still there")

    def test_trains_and_reports(self):
        launcher = self.launch("--ps=2", "--workers=3", "--seed=5")
        self.assertEqual(launcher.wait(), 0)
        result = self.result("train")
        self.assertEqual(result["global_step"], 100)
        self.assertEqual(result["cluster"], {"ps": 2, "worker": 3})
        self.assertEqual(result["seed"], 5)
        self.assertIn("test accuracy %.4f" % result["test_accuracy"],
                      launcher.output)
        for name in ("ps 0", "ps 1", "worker 0", "worker 1", "worker 2"):
            self.assertIn("[%s] " % name, launcher.output)
        self.assertNotIn("\x1b", launcher.output)

    def test_trains_without_ps_tasks(self):
        launcher = self.launch("--ps=0", "--workers=2", "--evaluator")
        self.assertEqual(launcher.wait(), 0)
        result = self.result("train")
        self.assertEqual(result["global_step"], 100)
        self.assertEqual(result["replication"], "all_reduce")
        self.assertEqual(result["cluster"], {"ps": 0, "worker": 2})
        self.assertRegex(launcher.output,
                         r"\[evaluator 0\] .* evaluated .* step=100 ")

    def interrupt(self, launcher, tasks):
        """Ctrl-C, after which nothing runs and there is a new checkpoint."""
        running = self.children(launcher)
        self.assertEqual(len(running), tasks)
        launcher.send(signal.SIGINT)
        self.assertEqual(launcher.wait(), 128 + signal.SIGINT)
        self.assert_gone(running)
        self.assertNotIn("failed first", launcher.output)
        saved = sorted(name for name in os.listdir(self.train_dir)
                       if name.startswith("ckpt-"))
        self.assertGreater(int(saved[-1][len("ckpt-"):]), 0)

    def test_ctrl_c_drains_and_saves_without_ps_tasks(self):
        launcher = self.launch(ENDLESS, "--ps=0")
        launcher.wait_for(r"\[worker 0\].*step=[1-9]")
        self.interrupt(launcher, tasks=2)

    def test_ctrl_c_drains_and_saves(self):
        launcher = self.launch(ENDLESS)
        launcher.wait_for(r"\[worker 0\].*step")
        launcher.wait_for(r"\[worker 1\].*step")
        self.interrupt(launcher, tasks=3)

    def test_restarts_what_is_killed_and_the_training_goes_on(self):
        launcher = self.launch(ENDLESS, "--restart=1",
                               "--set=checkpoint.every_steps=50")
        launcher.wait_for(r"\[worker 0\].* saved \S+/ckpt-\d*[1-9]\d*")
        ps, _, other = self.children(launcher)
        signal.pidfd_send_signal(other, signal.SIGKILL)
        launcher.wait_for(r"\[worker 1\] ended with exit code 137 \(SIGKILL\); "
                          r"restart 1 of 1")
        launcher.wait_for(r"\[worker 1\].* model=softmax_regression")
        signal.pidfd_send_signal(ps, signal.SIGKILL)
        launcher.wait_for(r"\[ps 0\] ended with exit code 137 \(SIGKILL\); "
                          r"restart 1 of 1")
        launcher.wait_for(r"\[worker 0\].* restored \S+/ckpt-")
        launcher.wait_for(r"\[worker 0\].* saved \S+/ckpt-")
        launcher.send(signal.SIGINT)
        self.assertEqual(launcher.wait(), 128 + signal.SIGINT)
        self.assertNotIn("failed first", launcher.output)

    def test_killing_the_launcher_leaves_nothing_behind(self):
        launcher = self.launch(ENDLESS)
        launcher.wait_for(r"\[worker 1\].*step")
        tasks = self.children(launcher)
        self.assertEqual(len(tasks), 3)
        launcher.send(signal.SIGKILL)
        self.assert_gone(tasks)

    def test_bad_override_is_the_root_cause(self):
        launcher = self.launch("--set=optimizer.name=adamm")
        self.assertEqual(launcher.wait(), 2)
        self.assertRegex(launcher.output,
                         r"\[worker \d\] failed first, with exit code 2")
        self.assertIn("'adam'", launcher.output)


if __name__ == "__main__":
    harness.main()
