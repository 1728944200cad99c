"""Tasks are killed by SIGKILL at random moments; the training recovers.

Rows T3, T4 and T5 of the test matrix, and the death of all tasks at once.
"""

import os
import re
import time

from tests.integration import harness
from tests.integration import recovery

# The longest time without a step of a worker that nothing was done to.
LONGEST_SILENCE_S = 3.0
# Of the accuracy on the test set, against a run without faults (T3).
ACCURACY_TOLERANCE = 0.005


class RecoveryTest(recovery.TestCase):

    def assert_never_stopped(self, workers, since):
        for worker in workers:
            self.assertTrue(worker.running(), worker.output)
            self.expect_within(worker.name + " stands still",
                               worker.longest_silence(r" step=\d", since),
                               LONGEST_SILENCE_S)

    def kill_and_restart_worker(self, job, index):
        """Returns the seconds until it trains again."""
        start = time.monotonic()
        job.workers[index].kill()
        worker = job.start_worker(index)
        return worker.wait_for_line_after(r" step=\d", start) - start

    # ---- A worker

    def test_killed_workers_come_back(self):
        job = self.start_job(ps=2, workers=3)
        seconds = []
        for _ in range(recovery.kills("worker")):
            self.pause()
            victim = self.random.choice((1, 2))
            others = [worker for index, worker in enumerate(job.workers)
                      if index != victim]
            start = time.monotonic()
            seconds.append(self.kill_and_restart_worker(job, victim))
            self.assert_never_stopped(others, start)
        checkpoint = job.drain()
        self.check_sums(job, checkpoint, extra=len(seconds))
        self.assertEqual(len(re.findall("job is RUNNING", job.ps[0].output)), 1)
        self.assertGreaterEqual(self.accuracy(job),
                                self.accuracy_without_faults(
                                    checkpoint.global_step) -
                                ACCURACY_TOLERANCE)
        self.report("worker", seconds)

    def accuracy_without_faults(self, steps):
        folder = self.path("alone")
        code, output = self.run_to_end("alone", [
            harness.worker(), "--standalone", "--train_dir=" + folder,
            "--training=" + self.path("training.textproto"),
            "--compute_threads=1", "--set=checkpoint.every_steps=0",
            "--set=stop.steps=%d" % steps])
        self.assertEqual(code, 0, output)
        return self.result(folder)["test_accuracy"]

    # ---- The chief

    def wait_for_a_write(self, job):
        """Returns in the middle of the writing of a checkpoint."""
        deadline = time.monotonic() + harness.DEADLINE_S
        while time.monotonic() < deadline:
            if any(name.startswith(".tmp-ckpt-")
                   for name in os.listdir(job.train_dir)):
                return
        self.fail("no checkpoint is being written")

    def test_killed_chiefs_come_back_and_attach(self):
        # Saves all the time, so that half of the kills hit a save.
        job = self.start_job(ps=2, workers=3,
                             flags=["--set=checkpoint.every_steps=20"])
        seconds = []
        for kill in range(recovery.kills("chief")):
            self.pause()
            if kill % 2 == 0:
                self.wait_for_a_write(job)
            start = time.monotonic()
            seconds.append(self.kill_and_restart_worker(job, 0))
            self.assert_never_stopped(job.workers[1:], start)
            self.assertNotIn("restored", job.workers[0].output)
            self.assertNotIn("initialized", job.workers[0].output)
        checkpoint = job.drain()
        self.check_sums(job, checkpoint, extra=len(seconds))
        # One epoch: nobody loaded the model anew.
        self.assertEqual(len(re.findall("job is RUNNING", job.ps[0].output)), 1)
        self.assertEqual([name for name in os.listdir(job.train_dir)
                          if name.startswith((".tmp", ".old"))], [])
        self.report("chief", seconds)

    def test_a_lost_chief_costs_no_more_than_the_interval_of_saves(self):
        job = self.start_job(ps=1, workers=2, ps_flags=["--worker_timeout=1s"])
        job.workers[0].kill()
        job.ps[0].wait_for(r"no step is granted until /job:worker/task:0 is "
                           r"back to save the model: \d+ steps since")
        start = time.monotonic()
        job.start_worker(0)
        job.training_again(start)
        self.check_sums(job, job.drain(), extra=1)

    def test_the_end_waits_for_a_lost_chief_to_save(self):
        flags = ["--set=checkpoint.every_steps=0", "--set=stop.steps=6000"]
        ps_flags = ["--worker_timeout=1s"]
        back = recovery.Job(self, 1, 2, flags, ps_flags, name="back").start()
        gone = recovery.Job(self, 1, 2, flags, ps_flags + ["--max_wait=4s"],
                            name="gone").start()
        for job in (back, gone):
            job.all_train()
            job.workers[0].kill()
        for job in (back, gone):
            job.ps[0].wait_for("reached its end; waiting for "
                               "/job:worker/task:0 to come back and save")
        # It comes back, and saves.
        back.start_worker(0)
        for task in back.tasks():
            self.assertEqual(task.wait(), 0, task.output)
        self.assertEqual(back.newest().global_step, 6000)
        self.assertEqual(self.result(back.train_dir)["global_step"], 6000)
        # It does not, and nobody calls that a success.
        for task in (gone.ps[0], gone.workers[1]):
            self.assertEqual(task.wait(), 138, task.output)
            self.assertIn("without its last save", task.output)

    # ---- A ps

    def restored_checkpoint(self, job, since):
        """Waits until the chief has restored one after `since`; returns it."""
        chief = job.workers[0]
        at = chief.wait_for_line_after(r"restored \S+/ckpt-\d+", since)
        folder = re.findall(r"restored (\S+/ckpt-\d+)", chief.output)[-1]
        return at, recovery.Checkpoint(folder)

    def check_sums_since(self, base, checkpoint):
        """What was applied since a restore is what was counted since then."""
        counted = checkpoint.global_step - base.global_step
        before, after = base.updates(), checkpoint.updates()
        for parameter, counts in after.items():
            self.assertEqual(
                [b - a for a, b in zip(before[parameter], counts)],
                [counted] * len(counts), parameter)

    def kill_and_restart_ps(self, job, index, wait_for_reason):
        """Returns (seconds until all train again, the restored checkpoint)."""
        step = job.step()
        whole = job.newest()
        start = time.monotonic()
        job.ps[index].kill()
        if wait_for_reason:
            for worker in job.workers:
                worker.wait_for_line_after(
                    r"waiting for .*/job:ps/task:%d at %s" %
                    (index, job.address("ps", index)), start)
            start = time.monotonic()
        job.start_ps(index)
        restored_at, base = self.restored_checkpoint(job, start)
        seconds = job.training_again(restored_at) - start
        # No more is lost than what was not saved when the ps was killed.
        self.assertGreaterEqual(base.global_step, whole.global_step)
        # ps 0 knows what was acknowledged, and the chief tells it; of a lost
        # ps 0 each worker does.
        if step > base.global_step:
            says = job.workers[:1] if index != 0 else job.workers
            self.assertRegex("\n".join(worker.output for worker in says),
                             r"/job:worker/task:\d lost \d+ acknowledged step")
        return seconds, base

    def test_killed_ps_tasks_come_back_and_all_shards_are_restored(self):
        job = self.start_job(ps=2, workers=3)
        workers = list(job.workers)
        seconds = []
        for kill in range(recovery.kills("ps")):
            self.pause(0.3, 1.0)
            index = self.random.randrange(2)
            one, base = self.kill_and_restart_ps(job, index,
                                                 wait_for_reason=kill == 0)
            seconds.append(one)
        self.assertEqual(job.workers, workers)
        for worker in workers:
            self.assertTrue(worker.running(), worker.output)
        checkpoint = job.drain()
        self.check_sums_since(base, checkpoint)
        self.report("ps", seconds)

    def test_a_ps_that_never_returns_is_named_with_138(self):
        jobs = [recovery.Job(self, 2, 2, ["--max_wait=3s"], ["--max_wait=3s"],
                             name="lost_ps_%d" % lost).start()
                for lost in range(2)]
        for lost, job in enumerate(jobs):
            job.all_train()
            job.ps[lost].kill()
        for lost, job in enumerate(jobs):
            for worker in job.workers:
                self.assertEqual(worker.wait(), 138, worker.output)
                self.assertRegex(
                    worker.output, r"gave up after waiting 3s for "
                    r".*/job:ps/task:%d at %s" %
                    (lost, job.address("ps", lost)))
        # Without ps 0 nobody would tell the other ps of the end.
        self.assertEqual(jobs[0].ps[1].wait(), 138, jobs[0].ps[1].output)
        self.assertIn("/job:ps/task:0", jobs[0].ps[1].output)

    # ---- All

    def test_tasks_that_were_killed_come_back_over_tcp(self):
        job = self.start_job(ps=2, workers=3, flags=["--link=tcp"])
        for _ in range(recovery.kills("each, over TCP")):
            for index in (1, 0):
                self.pause()
                self.kill_and_restart_worker(job, index)
            self.pause()
            _, base = self.kill_and_restart_ps(
                job, self.random.randrange(2), wait_for_reason=False)
        self.check_sums_since(base, job.drain())
        for worker in job.workers:
            harness.check_link(worker.output, "tcp")

    def test_when_all_die_a_relaunch_resumes(self):
        job = self.start_job(ps=2, workers=2)
        job.workers[0].wait_for(r"saved \S+/ckpt-\d*[1-9]\d*$")
        self.pause()
        for task in job.tasks():
            task.kill()
        newest = job.checkpoints()[-1]
        start = time.monotonic()
        job.start()
        _, base = self.restored_checkpoint(job, start)
        self.assertEqual(base.folder, newest)
        job.training_again(start)
        self.check_sums_since(base, job.drain())


if __name__ == "__main__":
    harness.main()
