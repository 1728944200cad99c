"""Synchronous replication and bounded staleness with real processes.

How the steps of several workers meet: their mean is one large batch's step,
backup workers, a bound on the clock lag, and what happens when a worker stops,
dies or is too slow, and when the chief or a ps dies.
"""

import os
import re
import signal
import struct
import time

from tests.integration import harness
from tests.integration import recovery

# Workers' float32 means of 150 steps against one process' sums: 1e-7 a step
# for weights below 1, and no more than a few of them add up.
SYNC_TOLERANCE = 1e-5
# How soon ps task 0 gives a silent worker up in these tests.
WORKER_TIMEOUT_S = 2.0
# The longest time that the others may stand still for it: the rest is a loaded
# machine with two cores.
LONGEST_SILENCE_S = WORKER_TIMEOUT_S + 3.0
# A silence that is longer than this is no slow step.
STANDS_STILL_S = 1.0


def all_of(workers):
    """A synchronous job whose first step waits for all its workers."""
    return ["replication.sync.min_replicas=%d" % workers]


def floats(data):
    return struct.unpack("<%df" % (len(data) // 4), data)


class ReplicationTestCase(recovery.TestCase):

    def job(self, ps, workers, flags, name="train", ps_flags=(),
            chief_last=False):
        return recovery.Job(self, ps, workers, ["--set=" + flag
                                                for flag in flags],
                            ps_flags, name=name).start(chief_last)

    def finish(self, job, deadline_s=harness.DEADLINE_S):
        """Waits for the end by a stop condition; returns result.json."""
        for task in job.workers + job.ps:
            self.assertEqual(task.wait(deadline_s), 0, task.output)
        return self.result(job.train_dir)

    def standalone(self, name, *flags):
        """Trains in one process; returns its last checkpoint."""
        folder = self.path(name)
        code, output = self.run_to_end(name, [
            harness.worker(), "--standalone", "--train_dir=" + folder,
            "--training=" + self.write("training.textproto",
                                       recovery.TRAINING),
            "--compute_threads=1", "--set=checkpoint.every_steps=0",
            *["--set=" + flag for flag in flags]])
        self.assertEqual(code, 0, output)
        folders = sorted(entry for entry in os.listdir(folder)
                         if entry.startswith("ckpt-"))
        return recovery.Checkpoint(os.path.join(folder, folders[-1]))

    def worker_result(self, result, index):
        return next(worker for worker in result["workers"]
                    if worker["task"] == "/job:worker/task:%d" % index)

    def largest_difference(self, one, other):
        ours = one.tensors("parameters.safetensors")
        theirs = other.tensors("parameters.safetensors")
        self.assertEqual(set(ours), set(theirs))
        return max(abs(a - b) for name in ours
                   for a, b in zip(floats(ours[name]), floats(theirs[name])))


class SyncTest(ReplicationTestCase):

    def test_two_workers_equal_one_process_with_both_batches(self):
        steps = "stop.steps=150"
        alone = self.standalone("alone", steps, "input.batch_size=32")
        for ps in (1, 2):
            job = self.job(ps, 2, all_of(2) + [steps, "input.batch_size=16"],
                           name="sync_%d_ps" % ps)
            result = self.finish(job)
            self.assertEqual(result["replication"], "sync")
            self.assertEqual(result["replicas_to_aggregate"], 2)
            self.assertEqual(result["dropped_steps"], 0)
            self.assertEqual(result["examples"], 150 * 32)
            self.assertEqual(job.newest().updates(), alone.updates())
            difference = self.largest_difference(alone, job.newest())
            self.say("sync: ps=%d workers=2 largest difference from one "
                     "process: %.3g" % (ps, difference))
            self.assertLess(difference, SYNC_TOLERANCE)

    def test_one_worker_has_the_same_bits_in_every_mode(self):
        modes = {mode: self.standalone(mode, "stop.steps=50",
                                       "replication=" + mode)
                 for mode in ("async", "sync", "bounded_staleness")}
        expected = modes["async"].tensors("parameters.safetensors")
        for mode, checkpoint in modes.items():
            self.assertEqual(checkpoint.tensors("parameters.safetensors"),
                             expected, mode)

    def test_a_restart_from_a_checkpoint_has_the_same_bits(self):
        """Promise P10, on another number of ps tasks, too."""
        sync = all_of(3) + ["checkpoint.every_steps=0"]
        whole = self.job(1, 3, sync + ["stop.steps=60"], name="whole")
        self.finish(whole)
        first = self.job(2, 3, sync + ["stop.steps=30"], name="cut")
        self.finish(first)
        self.assertEqual(first.newest().global_step, 30)
        second = self.job(1, 3, sync + ["stop.steps=60"], name="cut")
        self.finish(second)
        for name in ("parameters.safetensors", "slots.safetensors"):
            self.assertEqual(second.newest().tensors(name),
                             whole.newest().tensors(name), name)

    def test_a_cut_while_it_trains_is_of_one_step_on_every_shard(self):
        job = self.job(2, 3, all_of(3) + ["stop.steps=120",
                                          "checkpoint.every_steps=7"])
        self.finish(job)
        self.assertGreater(len(job.checkpoints()), 5)
        for folder in job.checkpoints():
            checkpoint = recovery.Checkpoint(folder)
            for parameter, counts in checkpoint.updates().items():
                self.assertEqual(set(counts), {checkpoint.global_step},
                                 "%s of %s" % (parameter, folder))
            # Each worker is in each step, and has passed that many rows on.
            self.assertEqual(set(checkpoint.worker_steps.values()),
                             {checkpoint.global_step}, folder)

    def test_a_backup_worker_is_not_waited_for(self):
        job = self.job(1, 3, ["replication.sync.replicas_to_aggregate=2",
                              "stop.seconds=6"])
        job.all_train()
        slow = job.workers[2]
        slow.send(signal.SIGSTOP)
        stopped = time.monotonic()
        step = job.step()
        while job.step() < step + 50:
            job.workers[0].wait_for_line_after(r" step=", time.monotonic())
        for other in job.workers[:2]:
            self.expect_within(other.name + " stands still",
                               other.longest_silence(r" step=\d", stopped),
                               STANDS_STILL_S)
            self.assertFalse(other.has_said("waiting for", since=stopped))
        resumed = time.monotonic()
        slow.send(signal.SIGCONT)
        slow.wait_for_line_after(r" step=\d.* dropped_steps=\d", resumed)
        result = self.finish(job)
        self.assertRegex(job.workers[0].output,
                         r"gradients in updates \(dropped\): /job:worker/"
                         r"task:0 \d+ \(\d+\), ")
        self.assertRegex(slow.output, r"steps? of this worker dropped")
        workers = result["workers"]
        # Two gradients make a step; the third of each is counted.
        self.assertEqual(sum(worker["steps"] for worker in workers),
                         2 * result["global_step"])
        self.assertEqual(sum(worker["dropped_steps"] for worker in workers),
                         result["dropped_steps"])
        self.assertGreater(self.worker_result(result, 2)["dropped_steps"], 0)
        # The rows of a gradient that was dropped are trained on after all.
        ledger = re.search(r"(?ms)^ledger \{(.*?)^\}",
                           job.newest().manifest).group(1)
        undone = [int(rows) for rows in re.findall(r" rows: (\d+)", ledger)]
        self.assertEqual(recovery.field("front", ledger) - sum(undone),
                         result["examples"])

    def test_a_killed_worker_is_given_up_and_comes_back(self):
        job = self.job(2, 2, ["replication=sync"], ps_flags=[
            "--worker_timeout=%gs" % WORKER_TIMEOUT_S])
        job.all_train()
        killed = time.monotonic()
        job.workers[1].kill()
        chief = job.workers[0]
        chief.wait_for_line_after(
            r"waiting for /job:worker/task:1 to push its gradient of step \d+",
            killed)
        chief.wait_for_line_after("no longer waiting", killed)
        job.ps[0].wait_for("lost /job:worker/task:1: not heard of for ")
        job.ps[0].wait_for(
            r"the training goes on: an update has \d+ rows, of 1 of 2 workers")
        step = job.step()
        while job.step() < step + 50:
            chief.wait_for_line_after(r" step=", time.monotonic())
        silence = chief.longest_silence(r" step=\d", killed)
        self.expect_within("a killed worker of two stops the other "
                           "(--worker_timeout=%gs)" % WORKER_TIMEOUT_S,
                           silence, LONGEST_SILENCE_S)
        restarted = time.monotonic()
        job.start_worker(1)
        rejoined = job.training_again(restarted) - restarted
        self.expect_within("it is back in the quorum", rejoined,
                           recovery.limit("worker"))
        checkpoint = job.drain()
        for parameter, counts in checkpoint.updates().items():
            self.assertEqual(set(counts), {checkpoint.global_step}, parameter)

    def test_killed_chief_and_killed_ps_come_back(self):
        job = self.job(2, 3, ["replication=sync",
                              "checkpoint.every_steps=50"])
        job.all_train()
        for role, kill in (("chief", self.restart_chief),
                           ("ps", self.restart_ps)):
            start = time.monotonic()
            kill(job)
            seconds = job.training_again(start) - start
            self.expect_within("all train again after the %s's death" % role,
                               seconds, recovery.limit(role))
        checkpoint = job.drain()
        for parameter, counts in checkpoint.updates().items():
            self.assertEqual(set(counts), {checkpoint.global_step}, parameter)

    def restart_chief(self, job):
        job.workers[0].kill()
        job.start_worker(0)

    def restart_ps(self, job):
        index = self.random.randrange(2)
        job.ps[index].kill()
        job.start_ps(index)
        job.workers[0].wait_for(r"restored \S+/ckpt-\d+")

    def test_a_ps_that_is_asked_to_stop_loses_no_step(self):
        job = self.job(2, 2, ["replication=sync", "checkpoint.every_steps=0"])
        job.all_train()
        start = time.monotonic()
        job.ps[1].send(signal.SIGTERM)
        self.assertEqual(job.ps[1].wait(), 128 + signal.SIGTERM)
        saved = job.newest()
        for parameter, counts in saved.updates().items():
            self.assertEqual(set(counts), {saved.global_step}, parameter)
        job.start_ps(1)
        job.workers[0].wait_for(
            r"restored \S+/ckpt-0*%d\b" % saved.global_step)
        self.assertNotIn("acknowledged steps with a ps",
                         job.workers[0].output)
        job.training_again(start)
        job.drain()

    def test_too_few_replicas_end_the_job_with_138(self):
        job = self.job(1, 2, ["replication.sync.min_replicas=2",
                              "replication.sync.when_too_few=EXIT"],
                       ps_flags=["--worker_timeout=1s"])
        job.all_train()
        job.workers[1].kill()
        chief = job.workers[0]
        self.assertEqual(chief.wait(), 138, chief.output)
        self.assertIn("too few replicas to go on", chief.output)
        self.assertEqual(job.ps[0].wait(), 0, job.ps[0].output)
        # Nothing is lost: what the last step made is saved.
        checkpoint = job.newest()
        for parameter, counts in checkpoint.updates().items():
            self.assertEqual(set(counts), {checkpoint.global_step}, parameter)

    def test_too_few_replicas_wait_for_more(self):
        job = self.job(1, 2, ["replication.sync.min_replicas=2"],
                       ps_flags=["--worker_timeout=1s"])
        job.all_train()
        killed = time.monotonic()
        job.workers[1].kill()
        job.workers[0].wait_for_line_after(
            r"waiting for .*min_replicas is 2", killed)
        restarted = time.monotonic()
        job.start_worker(1)
        job.training_again(restarted)
        job.drain()


class BoundedStalenessTest(ReplicationTestCase):

    def lag_of_a_stopped_worker(self, bound):
        """How many steps the chief has finished more than worker 1, which
        stands still, when it stops itself."""
        job = self.job(1, 2, ["replication.bounded_staleness.bound=%d" % bound],
                       name="bound_%d" % bound, chief_last=True)
        job.all_train()
        stopped = time.monotonic()
        job.workers[1].send(signal.SIGSTOP)
        job.workers[0].wait_for_line_after(
            r"waiting for /job:worker/task:1 to ", stopped)
        # The chief gives the stopped worker 5 s to finish, then saves.
        job.workers[0].send(signal.SIGTERM)
        self.assertEqual(job.workers[0].wait(), 128 + signal.SIGTERM)
        steps = job.newest().worker_steps
        job.workers[1].kill()
        return steps[0] - steps[1]

    def test_the_fast_worker_stops_at_the_bound(self):
        for bound in (0, 2):
            # The fast one starts no step when it is more than `bound` ahead:
            # its last one makes it one more. The slow one may have pushed a
            # step that it was stopped before reporting: the checkpoint has it.
            self.assertIn(self.lag_of_a_stopped_worker(bound),
                          (bound, bound + 1))

    def test_it_goes_on_when_the_slow_one_does(self):
        job = self.job(2, 2, ["replication.bounded_staleness.bound=1",
                              "stop.steps=2000"], chief_last=True)
        job.all_train()
        job.workers[1].send(signal.SIGSTOP)
        job.workers[0].wait_for(r"waiting for /job:worker/task:1 to ")
        job.workers[1].send(signal.SIGCONT)
        job.workers[0].wait_for("no longer waiting")
        result = self.finish(job)
        self.assertEqual(result["replication"], "bounded_staleness")
        self.assertEqual(result["bound"], 1)
        steps = [worker["steps"] for worker in result["workers"]]
        self.assertEqual(sum(steps), 2000)
        self.assertLessEqual(abs(steps[0] - steps[1]), 2)

    def test_a_killed_worker_leaves_the_clocks(self):
        job = self.job(1, 2, ["replication.bounded_staleness.bound=0"],
                       ps_flags=["--worker_timeout=%gs" % WORKER_TIMEOUT_S])
        job.all_train()
        killed = time.monotonic()
        job.workers[1].kill()
        job.workers[0].wait_for_line_after("no longer waiting", killed)
        restarted = time.monotonic()
        job.start_worker(1)
        job.training_again(restarted)
        job.drain()


class SettingsTest(ReplicationTestCase):

    def test_bad_settings_are_refused_by_name(self):
        cluster = self.write_cluster(ps=1, workers=2)
        training = self.write("training.textproto", recovery.TRAINING)
        for setting, wanted in (
                ("bounded_staleness.bound=-1",
                 "replication.bounded_staleness.bound must be 0 or more, "
                 "found -1"),
                ("sync.replicas_to_aggregate=3",
                 "replicas_to_aggregate must be at most "
                 "replication.sync.total_replicas, which is 2, found 3"),
                ("sync.total_replicas=3",
                 "total_replicas is 3, but the cluster has 2 tasks that "
                 "train"),
                ("sync.min_replicas=3",
                 "min_replicas must be at most")):
            code, output = self.run_to_end("worker", [
                harness.worker(), "--cluster=" + cluster, "--task_index=0",
                "--training=" + training, "--set=replication." + setting])
            self.assertEqual(code, 2, output)
            self.assertIn(wanted, output)


if __name__ == "__main__":
    harness.main()
