"""Trainings that end at a plateau, with real processes.

Each watched evaluation counts once, whoever dies: runs of one seed end at the
same step with the same model.
"""

from tests.integration import harness
from tests.integration import recovery

# No evaluation is better than the first by so much: the fourth one is the third
# bad one.
PLATEAU = ("stop.plateau={metric: 'test_accuracy' patience: 3 "
           "min_change: 1}")
EVERY = 500
END = 4 * EVERY
# It changes the learning rate of updates 1502 and later.
SCHEDULE = ("optimizer.schedule={name: 'on_plateau' metric: 'test_loss' "
            "factor: 0.5 patience: 1 min_change: 100}")
BEST = r"test_accuracy .* of step %d is the best one so far" % EVERY


class PlateauTest(recovery.TestCase):

    def job(self, name, *flags):
        settings = [PLATEAU, SCHEDULE, "evaluation.every_steps=%d" % EVERY,
                    "checkpoint.every_steps=%d" % (EVERY // 3), *flags]
        return recovery.Job(self, 1, 3, ["--set=" + flag for flag in settings],
                            [], name=name).start()

    def expect_plateau(self, job):
        for task in job.workers + job.ps:
            self.assertEqual(task.wait(), 0, task.output)
        result = self.result(job.train_dir)
        self.assertEqual(result["stop_reason"], "plateau")
        return result

    def test_sync_runs_with_kills_end_at_the_same_step_with_the_same_model(self):
        models = {}
        for name in ("alone", "chief", "ps"):
            job = self.job(name, "replication.sync.min_replicas=3")
            chief = job.workers[0]
            if name != "alone":
                chief.wait_for(BEST)
            if name == "chief":
                chief.kill()
                chief = job.start_worker(0)
            elif name == "ps":
                job.ps[0].kill()
                job.start_ps(0)
            result = self.expect_plateau(job)
            self.assertEqual(result["global_step"], END, name)
            self.assertRegex(chief.output, "of step %d for 3 evaluations: the "
                                           "training ends" % EVERY)
            self.assertRegex(chief.output, "learning rate times 0.5 from "
                                           "update %d on" % (3 * EVERY + 2))
            models[name] = job.newest().tensors("parameters.safetensors")
        self.assertEqual(models["chief"], models["alone"])
        self.assertEqual(models["ps"], models["alone"])

    def test_the_other_modes_end_at_a_plateau(self):
        for mode in ("async", "bounded_staleness"):
            result = self.expect_plateau(
                self.job(mode, "replication.%s={}" % mode))
            self.assertGreaterEqual(result["global_step"], END, mode)

    def test_a_chief_that_comes_back_with_fewer_steps_ends_the_job(self):
        job = recovery.Job(self, 1, 2, [], [], name="fewer").start()
        chief = job.workers[0]
        chief.wait_for(r"step=[1-9]\d")
        chief.kill()
        chief = job.start_worker(0, "--set=stop.steps=5")
        for task in job.workers + job.ps:
            self.assertEqual(task.wait(), 0, task.output)
        result = self.result(job.train_dir)
        self.assertEqual(result["stop_reason"], "steps")
        self.assertGreater(result["global_step"], 5)


if __name__ == "__main__":
    harness.main()
