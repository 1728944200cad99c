"""The wall clock jumps by an hour, there and back (T19).

libfaketime shows the tasks of one job another wall clock, and lets it jump
while they run; the machine's own clock is left alone. Every timeout is of the
monotonic clock: no jump fires one, and none is held up. (A wait until a point
of the wall clock would now end an hour late, as after a jump back of a real
clock, for the kernel does not know of the hour.)
"""

import glob
import os
import re
import time
import unittest

from tests.integration import harness
from tests.integration import recovery

LIBRARY = "/usr/lib/*/faketime/libfaketimeMT.so.1"
# Less than a jump, more than a loaded machine holds anybody up.
TIMEOUT_S = 10
# What a task waits for another before it ends, and the most that it may take.
SHORT_WAIT_S = 2
LONGEST_WAIT_S = 20.0
# How long the job is watched after a jump.
WATCH_S = 1.5
# The longest time without a step of a worker; a loaded machine included.
LONGEST_SILENCE_S = 3.0
HOUR_S = 3600


@unittest.skipUnless(glob.glob(LIBRARY), "libfaketime is not installed")
class ClockJumpTest(recovery.TestCase):

    def setUp(self):
        # Registered first, so that it runs when the processes have ended.
        self.addCleanup(self.remove_shared_memory)
        super().setUp()
        self.offset = self.path("offset")
        self.jump_to(0)
        self.env = {
            **os.environ, "LD_PRELOAD": glob.glob(LIBRARY)[0],
            "FAKETIME_TIMESTAMP_FILE": self.offset, "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}

    def start(self, name, command, env=None, cwd=None):
        return super().start(name, command, env or self.env, cwd)

    def remove_shared_memory(self):
        """What libfaketime leaves in processes that end without atexit."""
        for process in self._processes:
            for name in ("faketime_shm_%d", "sem.faketime_sem_%d"):
                try:
                    os.remove(os.path.join("/dev/shm", name % process.pid))
                except FileNotFoundError:
                    pass

    def jump_to(self, seconds):
        """Every task's wall clock is so far from the machine's from now on."""
        with open(self.offset + ".new", "w", encoding="utf-8") as file:
            file.write("%+d\n" % seconds)
        os.replace(self.offset + ".new", self.offset)

    def wait_for_jump(self, job, seconds, since):
        """The chief stamps a checkpoint in the other hour."""
        deadline = time.monotonic() + harness.DEADLINE_S
        while time.monotonic() < deadline:
            job.workers[0].wait_for_line_after("saved", since)
            stamp = int(re.search(r"saved_unix_ms: (\d+)",
                                  job.newest().manifest)[1]) / 1000
            if abs(stamp - time.time() - seconds) < HOUR_S / 2:
                return
            since = time.monotonic()
        self.fail("no stamp is %d s away" % seconds)

    def test_only_stamps_change(self):
        timeouts = ["--worker_timeout=%ds" % TIMEOUT_S,
                    "--max_wait=%ds" % TIMEOUT_S]
        job = self.start_job(
            ps=2, workers=2, ps_flags=timeouts,
            flags=["--set=checkpoint.every_steps=0",
                   "--set=checkpoint.every_seconds=0.5", timeouts[1]])
        for seconds in (HOUR_S, -HOUR_S, 0):
            start = time.monotonic()
            self.jump_to(seconds)
            self.wait_for_jump(job, seconds, start)
            job.training_again(start + WATCH_S)
            for worker in job.workers:
                self.expect_within(worker.name + " stands still",
                                   worker.longest_silence(r" step=\d", start),
                                   LONGEST_SILENCE_S)
        checkpoint = job.drain()
        self.check_sums(job, checkpoint, extra=0)
        for task in job.tasks():
            self.assertNotRegex(task.output, r"lost|waiting for .*/job:ps|"
                                r" E |fenced: ")
        self.assertEqual(len(re.findall("job is RUNNING", job.ps[0].output)), 1)

    def test_timeouts_fire_in_time_after_a_jump(self):
        max_wait = "--max_wait=%ds" % SHORT_WAIT_S
        job = self.start_job(
            ps=2, workers=1, ps_flags=[max_wait],
            flags=["--set=checkpoint.every_steps=0",
                   "--set=checkpoint.every_seconds=0.5", max_wait])
        start = time.monotonic()
        self.jump_to(HOUR_S)
        self.wait_for_jump(job, HOUR_S, start)
        job.ps[0].kill()
        start = time.monotonic()
        for task in (job.ps[1], job.workers[0]):
            self.assertEqual(task.wait(), 138, task.output)
            self.assertIn("/job:ps/task:0", task.output)
        self.expect_within("both give up", time.monotonic() - start,
                           LONGEST_WAIT_S)


if __name__ == "__main__":
    harness.main()
