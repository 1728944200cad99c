"""What `muster task` must do in a Slurm job step, whatever `srun` is.

A test case beside this class sets `srun` (the program, as a list) and `env`.
"""

import os
import sys

from tests.integration import harness

MUSTER = os.path.abspath("scripts/muster")
TRAINING = harness.softmax_regression(steps=40)


class Scenarios:
    """Mixed into a harness.TestCase."""

    def step(self, *flags, tasks=3, srun_flags=()):
        """A job step of `tasks` on three nodes."""
        return self.start("srun", [
            *self.srun, "-N3", "-n%d" % tasks, *srun_flags, sys.executable,
            MUSTER, "task", *flags], env=self.env)

    def training_step(self, *flags, **more):
        return self.step(
            "--bin_dir=" + os.path.dirname(os.path.dirname(harness.worker())),
            "--port_base=%d" % self.port_base(),
            *self.training_flags(TRAINING, "train"), *flags, **more)

    def port_base(self):
        """Some free ports in a row, found by looking at the first."""
        return harness.free_ports(1)[0]

    def test_trains_on_three_nodes(self):
        step = self.training_step("--ps=2", tasks=4)
        self.assertEqual(step.wait(), 0, step.output)
        result = self.result("train")
        self.assertEqual(result["global_step"], 40)
        self.assertEqual(result["cluster"], {"ps": 2, "worker": 2})

    def test_the_steps_exit_code_is_that_of_the_task_that_failed(self):
        step = self.training_step("--set=optimiser.sgd={}",
                                  srun_flags=["--kill-on-bad-exit=1"])
        self.assertEqual(step.wait(), 2, step.output)
        self.assertIn("optimiser", step.output)

    def test_no_worker_is_left(self):
        step = self.step("--ps=3")
        self.assertEqual(step.wait(), 2)
        self.assertIn("--ps=3 of SLURM_STEP_NUM_TASKS=3 leave no worker",
                      step.output)
