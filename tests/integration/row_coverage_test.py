"""Each row is trained on as often as stop.epochs says, whoever comes and goes.

Counted in the weights of a one-hot model (row_visits.py) on each of two ps
tasks; what the job says of itself is compared with that.
"""

import itertools
import random
import signal
import threading
import time

from tests.integration import harness
from tests.integration import recovery
from tests.integration import row_visits

SOAK = harness.SOAK
BATCH = 2
SYNC = ("--set=replication=sync",)
# A slowed worker stands still and runs for so long, by turns.
STANDING_S, RUNNING_S = 0.04, 0.01
# With IMPATIENT ps tasks, who is stopped so long is lost.
STOP_S = 3.0 if SOAK else 1.5
IMPATIENT = ("--worker_timeout=1s",)
# What is done to one job, how often: (CI, soak).
DEATHS = {"kill": (2, 20), "stop": (1, 5)}
MOVES = {"drain": (1, 5), "join": (1, 5)}
# Rows of such a job, so many that it lasts; 2 to 5 workers divide them.
MANY_ROWS = 60000 if SOAK else 2400
# Until the end of one in a soak, on a busy machine.
DEADLINE_S = 300.0
# In a soak each test of such jobs goes through seeds for so long.
SOAK_S = 1000.0


class Job(recovery.Job):
    """Two ps tasks and workers that train the one-hot model."""

    def __init__(self, test, workers, epochs, rows=1000, flags=(), ps_flags=(),
                 name="train", open_to_all=False, flags_of=None):
        self._open_to_all = open_to_all
        self._flags_of = flags_of or {}
        super().__init__(test, 2, workers, flags, ps_flags, name, test.write(
            name + ".textproto", row_visits.training(
                test.path(name + ".rows"), rows, BATCH, epochs)))
        if open_to_all:
            self.write_cluster(worker="any", ps=[
                self.address("ps", index) for index in range(2)])

    def start_worker(self, index, *flags):
        # In an open cluster only the chief has a number.
        self.workers[index] = self._test.start_worker(
            self.cluster, "any" if self._open_to_all and index > 0 else index,
            *self.flags, *self._flags_of.get(index, ()), *flags)
        return self.workers[index]

    def wait_for_step(self, step):
        """Whether the job got there, and was not over before."""
        while self.step() < step and self.workers[0].running():
            time.sleep(0.01)
        return self.step() >= step


def start_together(jobs):
    """All workers of each job are there before its first step."""
    for job in jobs:
        for index in range(2):
            job.start_ps(index)
        for index in range(1, len(job.workers)):
            job.start_worker(index)
    for job in jobs:
        for worker in job.workers[1:]:
            worker.wait_for("waiting for /job:worker/task:0 to initialize")
        job.start_worker(0)


def slow_down(process):
    while process.running():
        process.send(signal.SIGSTOP)
        time.sleep(STANDING_S)
        process.send(signal.SIGCONT)
        time.sleep(RUNNING_S)


class RowCoverageTest(recovery.TestCase):

    def end(self, job):
        for task in job.tasks():
            self.assertEqual(task.wait(DEADLINE_S), 0, task.output)

    def assert_each_row(self, job, times, update_rows=(BATCH,), repeats=0):
        """`update_rows`: the sizes that an update can have; `repeats`: the
        most visits that may be counted as repeated."""
        result = self.result(job.train_dir)
        self.assertEqual(result["stop_reason"], "epochs")
        left = result.get("examples_left", 0)
        self.assertLess(left, max(update_rows))
        repeated = result.get("examples_repeated", 0)
        self.assertLessEqual(repeated, repeats)
        for layer, weights in row_visits.weights(result["checkpoint"]).items():
            visits = row_visits.Visits(weights, update_rows)
            account = ("%s: %s; said: %d left, %d repeated" %
                       (layer, visits, left, repeated))
            self.say("rows: " + account)
            missing = visits.missing(times)
            self.assertLessEqual(missing, left, account)
            # A row that is left may have been in a step that was lost.
            self.assertGreaterEqual(visits.most_missing(times), left - repeated,
                                    account)
            self.assertLessEqual(visits.surplus(times), repeated, account)
        if len(update_rows) == 1:
            self.assertEqual(left, times * len(weights) % update_rows[0])
        chief = job.workers[0].output
        self.assertIn("each of %d examples was trained on %s" % (
            len(weights), "once" if times == 1 else "%d times" % times), chief)
        self.assertEqual("but for %d of the last epoch" % left in chief,
                         left > 0, chief)

    # ---- Nobody dies

    def test_one_process_trains_on_each_row(self):
        job = Job(self, 1, 2)
        job.ps.clear()
        job.workers[0] = self.start(
            "standalone", [harness.worker(), "--standalone", *job.flags])
        self.end(job)
        self.assert_each_row(job, 2)

    def test_workers_share_the_rows(self):
        # Of 2 * 403 rows rounds of 8 leave 6, of 3 * 405 steps of 2 leave 1.
        jobs = {
            "of two": Job(self, 2, 1, name="of_two"),
            "sync": Job(self, 3, 2, 900, SYNC, name="sync"),
            "bounded": Job(self, 3, 1, name="bounded", flags=[
                "--set=replication.bounded_staleness.bound=2"]),
            "rounds leave": Job(self, 4, 2, 403, SYNC, name="rounds_leave"),
            "steps leave": Job(self, 2, 3, 405, name="steps_leave"),
            "one is slow": Job(self, 3, 1, 2000, name="one_is_slow"),
            "one never comes": Job(self, 2, 1, name="one_never_comes"),
            "own steps": Job(self, 2, 2, name="own_steps", flags_of={
                1: ["--set=input.batch_size=%d" % (3 * BATCH)]}),
        }
        # The cluster file goes on naming it.
        jobs["one never comes"].workers.pop()
        start_together(jobs.values())
        slow = jobs["one is slow"]
        threading.Thread(target=slow_down, args=[slow.workers[2]],
                         daemon=True).start()
        for job in jobs.values():
            self.end(job)
        self.assert_each_row(jobs["of two"], 1)
        self.assert_each_row(jobs["sync"], 2, [3 * BATCH])
        self.assert_each_row(jobs["bounded"], 1)
        self.assert_each_row(jobs["rounds leave"], 2, [4 * BATCH])
        self.assert_each_row(jobs["steps leave"], 3)
        self.assert_each_row(jobs["one never comes"], 1)
        self.assert_each_row(jobs["own steps"], 2, [BATCH, 3 * BATCH])
        self.assert_each_row(slow, 1)
        steps = [worker["steps"]
                 for worker in self.result(slow.train_dir)["workers"]]
        # On a busy machine the others may stand still for as long.
        if SOAK:
            self.assertLess(steps[2], max(steps))

    # ---- Tasks come and go

    def test_a_training_goes_on_with_other_numbers_of_workers(self):
        def launch(workers):
            return Job(self, workers, 1, MANY_ROWS).start()
        job = launch(workers=3)
        self.assertTrue(job.wait_for_step(MANY_ROWS // BATCH // 4))
        job.drain()
        job = launch(workers=2)
        self.assertTrue(job.wait_for_step(MANY_ROWS // BATCH // 2))
        for task in job.tasks():
            task.kill()
        job = launch(workers=4)
        self.end(job)
        self.assert_each_row(job, 1, repeats=2 * BATCH)

    def kill(self, job):
        start, index, task = self.random.choice(
            [(job.start_ps, *task) for task in enumerate(job.ps)] +
            [(job.start_worker, *task) for task in enumerate(job.workers)])
        self.say("killed: " + task.name)
        task.kill()
        self.pause()
        start(index)

    def stop(self, job):
        task = self.random.choice(job.tasks())
        self.say("stopped: " + task.name)
        task.send(signal.SIGSTOP)
        time.sleep(STOP_S)
        task.send(signal.SIGCONT)

    def drain(self, job):
        index = self.random.randrange(1, len(job.workers))
        worker = job.workers[index]
        worker.send(signal.SIGTERM)
        code = worker.wait()
        # One that came when the job had ended left before the signal.
        if code == 0 and "the job is at its end" in worker.output:
            return
        self.assertEqual(code, 128 + signal.SIGTERM, worker.output)
        job.start_worker(index)

    def join(self, job):
        job.workers.append(None)
        job.start_worker(len(job.workers) - 1)

    def disturb(self, job, events, steps):
        """Does them in random order at random steps; returns those done."""
        events = [name for name, counts in events.items()
                  for _ in range(counts[1 if SOAK else 0])]
        self.random.shuffle(events)
        done = []
        for step in sorted(self.random.randrange(steps) for _ in events):
            if not job.wait_for_step(step):
                break
            done.append(events[len(done)])
            self.say("step %d: %s" % (job.step(), done[-1]))
            getattr(self, done[-1])(job)
        self.say("%d of %d events" % (len(done), len(events)))
        self.assertGreater(2 * len(done), len(events))
        return done

    def come_and_go(self, sync):
        """In a soak job after job, each of a seed of its own."""
        until = time.monotonic() + (SOAK_S if SOAK else 0)
        for seed in itertools.count(self.seed):
            self.say("rows: MUSTER_SEED=%d" % seed)
            self.random = random.Random(seed)
            workers = self.random.randint(3, 5)
            # Listed workers stay in sync: all updates are of one size then.
            listed = self.random.choice((True, False)) if SOAK else sync
            events = {**DEATHS, **({} if listed else MOVES)}
            # Rounds take longer.
            rows = MANY_ROWS * (1 if sync or SOAK else 3)
            job = Job(self, workers, 2, rows, SYNC if sync else (),
                      () if sync and listed else IMPATIENT,
                      "train-%d" % seed, open_to_all=not listed)
            # Others are numbered when the chief is there.
            job.start(chief_last=listed)
            steps = 2 * rows // BATCH // (workers if sync else 1)
            # The last third is for coming back.
            done = self.disturb(job, events, steps * 2 // 3)
            self.end(job)
            # Of each death a step of each worker may be in some shards.
            deaths = sum(event in DEATHS for event in done)
            sizes = [workers] if listed else range(1, len(job.workers) + 1)
            self.assert_each_row(
                job, 2, [BATCH * size for size in sizes] if sync else [BATCH],
                repeats=0 if sync else deaths * len(job.workers) * BATCH)
            if time.monotonic() >= until:
                return

    def test_who_comes_and_goes_and_deaths_cost_no_row(self):
        self.come_and_go(sync=False)

    def test_deaths_cost_no_row_in_rounds(self):
        self.come_and_go(sync=True)


if __name__ == "__main__":
    harness.main()
