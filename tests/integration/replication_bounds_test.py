"""What the modes of replication promise in numbers, with real processes.

Backup workers: how many gradients are dropped. Bounded staleness: the clock lag
and the staleness over thousands of steps. Speeds are in replication_speed_test.
"""

import re
import signal
import time

from tests.integration import harness
from tests.integration import recovery

# Nobody is given up in these tests: a job that waits for a stopped worker
# stands still until the test fails.
PATIENT_PS = ("--worker_timeout=300s",)
# One line a step.
STEP_LINE = re.compile(r"^\S+ \S+ I \S+ step=(\d+) loss=")
# How long the worker stands still whose gradient is then dropped.
STOP_S = 0.2

BOUND = 2
WORKERS = 3
BOUNDED_STEPS = 6000
# A cut is an exact look at all clocks; the chief, which saves, falls behind
# with each, so that the others come to the bound.
CUT_EVERY_STEPS = 5
# Between a worker's pull and its push each other finishes at most so many
# steps (ps_server/coordinator/worker_clocks.h).
MOST_STALENESS = (WORKERS - 1) * (2 * BOUND + 1)


class BoundsTestCase(recovery.TestCase):

    def job(self, name, workers, *flags):
        return recovery.Job(self, 1, workers, flags, PATIENT_PS, name=name)

    def start_chief_last(self, job):
        """All are registered before step 1, and take part in it."""
        job.start_ps(0)
        for index in range(1, len(job.workers)):
            job.start_worker(index)
        for worker in job.workers[1:]:
            worker.wait_for(r"waiting for /job:worker/task:0 ")
        job.start_worker(0)


class BackupWorkerTest(BoundsTestCase):

    def test_every_step_is_in_an_update_or_counted_as_dropped(self):
        job = self.job("dropped", 3, "--progress_every=0",
                       "--set=replication.sync.replicas_to_aggregate=2",
                       "--set=stop.steps=3000")
        self.start_chief_last(job)
        job.all_train()
        job.workers[2].send(signal.SIGSTOP)
        job.workers[0].wait_for_line_after(r" step=\d",
                                           time.monotonic() + STOP_S)
        job.workers[2].send(signal.SIGCONT)
        for task in job.tasks():
            self.assertEqual(task.wait(), 0, task.output)
        result = self.result(job.train_dir)
        # One line a step, whether it was used or not.
        lines = [sum(1 for line in worker.output.splitlines()
                     if STEP_LINE.match(line)) for worker in job.workers]
        used = 2 * result["global_step"]
        self.say("backup: %s steps of three workers, %d in %d updates, %d "
                 "dropped" % (lines, used, result["global_step"],
                              result["dropped_steps"]))
        self.assertGreater(result["dropped_steps"], 0)
        self.assertEqual(result["dropped_steps"], sum(lines) - used)
        for count, worker in zip(lines, result["workers"]):
            self.assertEqual(worker["steps"] + worker["dropped_steps"], count,
                             worker["task"])


class BoundedStalenessTest(BoundsTestCase):

    def test_lag_and_staleness_stay_below_their_bounds(self):
        job = self.job("bounded", WORKERS,
                       "--set=replication.bounded_staleness.bound=%d" % BOUND,
                       "--set=checkpoint.every_steps=%d" % CUT_EVERY_STEPS,
                       "--set=stop.steps=%d" % BOUNDED_STEPS)
        self.start_chief_last(job)
        for task in job.workers:
            self.assertEqual(task.wait(), 0, task.output)
        self.assertEqual(job.ps[0].wait(), 0, job.ps[0].output)
        differences = [self.difference(folder) for folder in job.checkpoints()]
        account = re.search(r"ended: steps=(\d+) .*staleness_max=(\d+)",
                            job.ps[0].output)
        staleness = int(account[2])
        self.say("bounded_staleness: bound=%d workers=%d steps=%s: in %d cuts "
                 "clocks at most %d apart, staleness at most %d of %d" % (
                     BOUND, WORKERS, account[1], len(differences),
                     max(differences), staleness, MOST_STALENESS))
        self.assertEqual(int(account[1]), BOUNDED_STEPS)
        self.assertGreater(len(differences), 100)
        # A worker whose clock lag is BOUND begins one more step, and no other:
        # then it has finished BOUND + 1 more than the slowest.
        self.assertLessEqual(max(differences), BOUND + 1)
        # Else the bound was never near.
        self.assertGreaterEqual(max(differences), BOUND)
        self.assertGreater(staleness, 0)
        self.assertLessEqual(staleness, MOST_STALENESS)

    def difference(self, folder):
        """Between the clocks of the fastest and the slowest, at the cut."""
        steps = recovery.Checkpoint(folder).worker_steps
        return max(steps.values()) - min(steps.values())


if __name__ == "__main__":
    harness.main()
