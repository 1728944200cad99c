"""Signals: a drain on SIGTERM, SIGINT and the notices of batch systems (T18), a
stop of a while (T17)."""

import glob
import os
import signal
import struct
import time

from tests.integration import harness
from tests.integration import recovery

# From the first signal to the exit, and from the second (T18).
DRAIN_S = 10.0
SECOND_SIGNAL_S = 1.0
# A worker is lost after so long; what is stopped is stopped for twice as long.
TIMEOUT_S = 2.0
PS_FLAGS = ["--worker_timeout=%ds" % TIMEOUT_S]


class RecoverySignalTest(recovery.TestCase):

    def signal_and_wait(self, task, signum):
        """It ends by the signal, in time."""
        start = time.monotonic()
        task.send(signum)
        self.assertEqual(task.wait(), 130 if signum == signal.SIGINT else 143,
                         task.output)
        self.expect_within("%s drains" % task.name, time.monotonic() - start,
                           DRAIN_S)

    def check_files(self, job):
        """Nothing is half-written."""
        for folder in job.checkpoints():
            checkpoint = recovery.Checkpoint(folder)
            checkpoint.tensors("parameters.safetensors")
            checkpoint.updates()
        self.assertEqual([name for name in os.listdir(job.train_dir)
                          if name.startswith((".tmp", ".old"))], [])
        for path in glob.glob(os.path.join(job.train_dir, "**/events.out.*"),
                              recursive=True):
            self.check_event_file(path)

    def check_event_file(self, path):
        """Records of length, its CRC, data, its CRC, to the last byte."""
        with open(path, "rb") as file:
            data = file.read()
        at = 0
        while at < len(data):
            self.assertGreaterEqual(len(data) - at, 16, path)
            (length,) = struct.unpack_from("<Q", data, at)
            at += 8 + 4 + length + 4
        self.assertEqual(at, len(data), path)

    # ---- A ps

    def test_a_ps_that_gets_a_signal_loses_nothing(self):
        job = self.start_job(ps=2, workers=2)
        for index, signum in ((1, signal.SIGTERM), (0, signal.SIGINT),
                              (1, signal.SIGUSR2)):
            with self.subTest(ps=index, signum=signum.name):
                self.pause()
                ps = job.ps[index]
                self.signal_and_wait(ps, signum)
                self.assertIn("the chief has saved the model", ps.output)
                start = time.monotonic()
                job.start_ps(index)
                job.workers[0].wait_for_line_after("restored", start)
                job.training_again(start)
        checkpoint = job.drain()
        self.assertNotIn("acknowledged steps with a ps", job.workers[0].output)
        # Every step that was ever acknowledged is applied exactly once.
        self.check_sums(job, checkpoint, extra=0)
        self.check_files(job)

    def test_a_ps_does_not_wait_long_for_a_chief_that_is_gone(self):
        job = self.start_job(ps=1, workers=2)
        job.workers[0].kill()
        self.pause(0.0, 0.1)
        self.signal_and_wait(job.ps[0], signal.SIGTERM)
        self.assertIn("ending without a new checkpoint", job.ps[0].output)

    # ---- Workers

    def test_a_worker_that_gets_a_signal_leaves_the_others_alone(self):
        job = self.start_job(ps=1, workers=2)
        for signum in (signal.SIGTERM, signal.SIGINT):
            self.pause()
            self.signal_and_wait(job.workers[1], signum)
            start = time.monotonic()
            job.workers[0].wait_for_line_after(r" step=\d", start)
            job.start_worker(1)
            job.training_again(start)
        self.check_sums(job, job.drain(), extra=0)

    def test_the_chief_ends_the_job_and_saves_all_of_it(self):
        for signum in (signal.SIGUSR1, signal.SIGINT):
            with self.subTest(signum=signum.name):
                job = self.start_job(ps=2, workers=3)
                self.pause()
                self.signal_and_wait(job.workers[0], signum)
                for task in job.workers[1:] + job.ps:
                    self.assertEqual(task.wait(), 0, task.output)
                self.check_sums(job, job.newest(), extra=0)
                self.check_files(job)

    def start_long_evaluation(self):
        """A job whose chief is in an evaluation that would take minutes."""
        job = self.start_job(ps=2, workers=2, flags=[
            "--set=evaluation.every_steps=1500",
            "--set=input.synthetic_test_examples=2000000000"])
        # The chief has made a step of its own meanwhile.
        job.workers[1].wait_for(r" step=(1[7-9]\d\d|[2-9]\d{3}|\d{5})")
        return job

    def test_saving_goes_before_an_evaluation(self):
        job = self.start_long_evaluation()
        self.signal_and_wait(job.workers[0], signal.SIGTERM)
        self.assertIn("no evaluation at step", job.workers[0].output)
        for task in job.workers[1:] + job.ps:
            self.assertEqual(task.wait(), 0, task.output)
        self.check_sums(job, job.newest(), extra=0)
        job = self.start_long_evaluation()
        self.signal_and_wait(job.ps[1], signal.SIGTERM)
        self.assertIn("the chief has saved the model", job.ps[1].output)

    def test_a_signal_to_all_saves_all(self):
        job = self.start_job(ps=2, workers=2)
        self.pause()
        start = time.monotonic()
        for task in job.tasks():
            task.send(signal.SIGTERM)
        for task in job.tasks():
            self.assertIn(task.wait(), (0, 128 + signal.SIGTERM), task.output)
        self.expect_within("all drain", time.monotonic() - start, DRAIN_S)
        self.check_sums(job, job.newest(), extra=0)
        self.check_files(job)

    # ---- A second signal

    def test_a_term_twice_as_timeout_sends_it_is_one(self):
        job = self.start_job(ps=1, workers=2)
        self.pause()
        job.workers[0].send(signal.SIGTERM)
        self.signal_and_wait(job.workers[0], signal.SIGTERM)
        for task in job.workers[1:] + job.ps:
            self.assertEqual(task.wait(), 0, task.output)
        self.check_sums(job, job.newest(), extra=0)

    def test_a_second_signal_ends_each_role_at_once(self):
        for name in ("ps 1", "worker 1", "worker 0"):
            with self.subTest(task=name):
                job = self.start_job(ps=2, workers=2)
                task = {task.name: task for task in job.tasks()}[name]
                # What the drain needs does not answer.
                stuck = job.workers[0] if name == "ps 1" else job.ps[0]
                stuck.send(signal.SIGSTOP)
                self.pause(0.1, 0.3)
                task.send(signal.SIGTERM)
                # One that comes sooner is the same wish.
                self.pause(1.1, 1.3)
                self.assertTrue(task.running(), task.output)
                start = time.monotonic()
                task.send(signal.SIGTERM)
                self.assertEqual(task.wait(), 128 + signal.SIGTERM)
                # The lines that end a drain.
                self.assertNotRegex(task.output, "ended: |stopped by signal")
                self.expect_within("%s ends by a second signal" % name,
                                   time.monotonic() - start, SECOND_SIGNAL_S)
                for other in job.tasks():
                    other.kill()

    # ---- SIGSTOP and SIGCONT

    def stop_for_a_while(self, task, others=()):
        """SIGSTOP for twice the timeout; returns when it was continued.

        The others go on when the timeout is over.
        """
        stopped = time.monotonic()
        task.send(signal.SIGSTOP)
        time.sleep(2 * TIMEOUT_S)
        for other in others:
            other.wait_for_line_after(r" step=\d", stopped + TIMEOUT_S)
        task.send(signal.SIGCONT)
        return time.monotonic()

    def test_a_stopped_worker_is_not_waited_for_and_comes_back(self):
        job = self.start_job(ps=2, workers=3, ps_flags=PS_FLAGS)
        start = time.monotonic()
        others = (job.workers[0], job.workers[2])
        continued = self.stop_for_a_while(job.workers[1], others)
        for worker in others:
            self.expect_within(worker.name + " stands still",
                               worker.longest_silence(r" step=\d", start),
                               TIMEOUT_S)
        seconds = job.training_again(continued) - continued
        self.expect_within("a stopped worker is back", seconds,
                           recovery.limit("worker"))
        # It may have given up a step that was applied.
        self.check_sums(job, job.drain(), extra=1)

    def test_a_worker_that_is_stopped_over_the_end_learns_of_it(self):
        job = self.start_job(ps=2, workers=2, ps_flags=["--worker_timeout=6s"])
        stopped = job.workers[1]
        stopped.send(signal.SIGSTOP)
        job.workers[0].send(signal.SIGTERM)
        self.assertEqual(job.workers[0].wait(), 128 + signal.SIGTERM)
        job.ps[0].wait_for("staying at most 6s for /job:worker/task:1")
        stopped.send(signal.SIGCONT)
        for task in (stopped, *job.ps):
            self.assertEqual(task.wait(), 0, task.output)

    def test_a_stopped_ps_is_waited_for_and_nothing_is_lost(self):
        job = self.start_job(ps=2, workers=2, ps_flags=PS_FLAGS)
        for index in (0, 1):
            with self.subTest(ps=index):
                continued = self.stop_for_a_while(job.ps[index])
                seconds = job.training_again(continued) - continued
                self.expect_within("a stopped ps is back", seconds,
                                   recovery.limit("ps"))
        # It has read what came meanwhile.
        self.assertNotIn("lost /job:worker", job.ps[0].output)
        # The same incarnation with its memory: no new epoch.
        self.assertNotIn("restored", job.workers[0].output)
        self.assertEqual(job.ps[0].output.count("job is RUNNING"), 1)
        # Each worker may have given up a step a stop.
        self.check_sums(job, job.drain(), extra=4)


if __name__ == "__main__":
    harness.main()
