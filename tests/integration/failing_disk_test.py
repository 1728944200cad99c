"""A disk that fails under a save (T9): strace makes the chief's system calls
fail as the kernel would. Needs the right to trace one's own processes."""

import os
import re
import subprocess
import unittest

from tests.integration import harness
from tests.integration import recovery

# Two files, the manifest, the checkpoint's folder, train_dir.
FSYNCS_OF_A_SAVE = 5
SECONDS = 5

# Saves up to sixteen times in its five seconds: five where disk and cores are
# busy, of which the fourth is hit.
TRAINING = recovery.TRAINING.replace(
    "every_steps: %d" % recovery.INTERVAL, "every_seconds: 0.3").replace(
        "steps: %d" % recovery.ENDLESS, "seconds: %d" % SECONDS) + """
summary { every_steps: 0 }
"""
# Every fifth of 200 steps, so slow that a save is over before the next.
STEPS = 200
SLOW_TRAINING = recovery.TRAINING.replace(
    "every_steps: %d" % recovery.INTERVAL, "every_steps: 40").replace(
        "steps: %d" % recovery.ENDLESS, "steps: %d" % STEPS).replace(
            "batch_size: 32", "batch_size: 1000") + """
summary { every_steps: 0 }
"""
# Saves at its beginning and at its end alone, and needs both workers.
SYNC_TRAINING = recovery.TRAINING.replace(
    "every_steps: %d" % recovery.INTERVAL, "every_steps: 0").replace(
        "steps: %d" % recovery.ENDLESS, "steps: %d" % STEPS) + """
replication { sync { min_replicas: 2 } }
summary { every_steps: 0 }
"""
EXIT_RETRY = 138
EXIT_BAD_CONFIG = 2
EXIT_BAD_CHECKPOINT = 3
# Of a save that hangs; the limit is much shorter.
HANG_S = 4
LIMIT_S = 0.2
NO_LOCKS = ["-e", "trace=flock", "-e", "inject=flock:error=EOPNOTSUPP"]


def missing_right():
    """Why calls cannot be made to fail here, or None."""
    try:
        traced = subprocess.run(
            ["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=fsync",
             "true"], check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return "strace is not installed"
    return None if traced.returncode == 0 else "strace: " + traced.stderr


REASON = missing_right()


@unittest.skipIf(REASON is not None, REASON)
class FailingDiskTest(harness.TestCase):

    def start_traced(self, name, training, *strace, workers=1):
        """A ps, and the chief under strace; returns (chief, ps)."""
        cluster = self.write_cluster(ps=1, workers=workers,
                                     name=name + ".json")
        # What makes the folder is not to be hit.
        os.mkdir(self.path(name))
        ps = self.start_ps(cluster, 0)
        chief = self.start_worker(
            cluster, 0, "--compute_threads=1",
            "--train_dir=" + self.path(name),
            "--training=" + self.write(name + ".textproto", training),
            under=["strace", "-f", "--seccomp-bpf", "-qq", "-o",
                   self.path(name + ".strace"), *strace])
        return chief, ps

    def start_standalone(self, name, train_dir, training, *strace):
        """One process under strace."""
        return self.start(name, [
            "strace", "-f", "--seccomp-bpf", "-qq", "-o",
            self.path(name + ".strace"), *strace, harness.worker(),
            "--standalone", "--compute_threads=1",
            "--train_dir=" + self.path(train_dir),
            "--training=" + self.write(name + ".textproto", training)])

    def assert_whole(self, path):
        code, output = self.run_to_end("inspect", [
            harness.musterctl(), "checkpoint", "ls", path])
        self.assertEqual(code, 0, output)

    def check_one_failure(self, name, chief, ps, says):
        """One save fails with one line; the one before stays, the next works.
        """
        first = chief.wait_for(r"saved (\S+)")[1]
        chief.wait_for(r" E .* not saved, training goes on: .*" + says)
        self.assert_whole(first)
        chief.wait_for(r"saved \S+")
        self.assertEqual(chief.wait(), 0, chief.output)
        self.assertEqual(ps.wait(), 0, ps.output)
        self.assertEqual(len(re.findall(r"(?m) E ", chief.output)), 1,
                         chief.output)
        with open(self.path(name + ".strace"), encoding="utf-8") as file:
            self.assertEqual(file.read().count("(INJECTED)"), 1)
        self.assert_whole(self.path(name))
        self.assertEqual([file for file in os.listdir(self.path(name))
                          if file.startswith((".tmp", ".old"))], [])
        self.assertTrue(os.path.exists(
            os.path.join(self.path(name), "result.json")))

    def test_each_fsync_of_a_save_fails_once(self):
        # Counted by thread: all saves but the last are one thread's. That of
        # the last save calls fsync for the probe of the folder, for what says
        # that the run is finished, and for result.json, too; so it is the fourth
        # save that is hit.
        runs = [("fsync%d" % call, 3 * FSYNCS_OF_A_SAVE + call)
                for call in range(1, FSYNCS_OF_A_SAVE + 1)]
        started = [(name, *self.start_traced(
            name, TRAINING, "-e", "trace=fsync", "-e",
            "inject=fsync:error=EIO:when=%d" % when)) for name, when in runs]
        for name, chief, ps in started:
            with self.subTest(name):
                self.check_one_failure(name, chief, ps, "Input/output error")

    def test_a_write_without_room_fails_once(self):
        name = "write"
        files = []
        # Wherever a save but the last begins; the first is at step 0.
        for step in range(1, STEPS):
            files += ["-P", os.path.join(
                self.path(name), ".tmp-ckpt-%012d" % step,
                "parameters.safetensors")]
        chief, ps = self.start_traced(
            name, SLOW_TRAINING, *files, "-e", "trace=write", "-e",
            "inject=write:error=ENOSPC:when=1")
        self.check_one_failure(name, chief, ps, "No space left on device")

    def test_a_save_that_hangs_pauses_the_job_and_no_longer(self):
        name = "hang"
        files = []
        for step in range(1, STEPS):
            files += ["-P", os.path.join(
                self.path(name), ".tmp-ckpt-%012d" % step,
                "parameters.safetensors")]
        # So many that most are still to come when the limit is over.
        steps = 10 * STEPS
        training = SLOW_TRAINING.replace(
            "checkpoint {", "checkpoint { max_save_seconds: %r" % LIMIT_S
        ).replace("steps: %d" % STEPS, "steps: %d" % steps)
        chief, ps = self.start_traced(
            name, training, *files, "-e", "trace=fsync", "-e",
            "inject=fsync:delay_enter=%ds:when=1" % HANG_S)
        ps.wait_for(r"no step is granted until /job:worker/task:0 has ended "
                    r"the save of step \d+, which has taken .*"
                    r"look at the disk")
        ps.wait_for("steps are granted again")
        self.assertEqual(chief.wait(), 0, chief.output)
        self.assertEqual(ps.wait(), 0, ps.output)
        self.assert_whole(os.path.join(self.path(name), "ckpt-%012d" % steps))

    def test_without_locks_the_chief_that_came_first_ends_with_3(self):
        endless = TRAINING.replace("seconds: %d" % SECONDS, "steps: 100000000")
        first = self.start_standalone("first", "run", endless, *NO_LOCKS)
        first.wait_for(r" W .* this file system has no locks")
        first.wait_for(r"saved \S+")
        last = self.start_standalone("last", "run", TRAINING, *NO_LOCKS)
        self.assertEqual(first.wait(), EXIT_BAD_CHECKPOINT, first.output)
        self.assertRegex(first.output, r"another process \(process \d+ on .*\) "
                         "writes into it now")
        self.assertEqual(last.wait(), 0, last.output)
        self.assert_whole(self.path("run"))

    def test_what_cannot_be_saved_is_said_before_the_first_step(self):
        task = self.start_standalone(
            "rename", "run", TRAINING, "-e", "trace=rename", "-e",
            "inject=rename:error=ENOSYS")
        self.assertEqual(task.wait(), EXIT_BAD_CONFIG, task.output)
        self.assertRegex(task.output, "no checkpoint can be saved there: "
                         "rename .*choose a --train_dir on another")
        self.assertNotIn("step=", task.output)
        self.assertEqual([name for name in os.listdir(self.path("run"))
                          if name not in (".lock", "chief")], [])

    def test_an_fsync_of_folders_that_is_missing_is_passed_over(self):
        os.mkdir(self.path("run"))
        task = self.start_standalone(
            "folder", "run", TRAINING, "-P", self.path("run"), "-e",
            "trace=fsync", "-e", "inject=fsync:error=EINVAL")
        self.assertEqual(task.wait(), 0, task.output)
        self.assert_whole(self.path("run"))

    def test_workers_are_there_if_a_ps_dies_before_the_last_save(self):
        name = "stay"
        chief, ps = self.start_traced(
            name, SYNC_TRAINING, "-P", os.path.join(
                self.path(name), ".tmp-ckpt-%012d" % STEPS,
                "parameters.safetensors"), "-e", "trace=write", "-e",
            "inject=write:error=ENOSPC", workers=2)
        cluster = self.path(name + ".json")
        training = "--training=" + self.path(name + ".textproto")
        worker = self.start_worker(cluster, 1, training)
        self.assertEqual(chief.wait(), EXIT_RETRY, chief.output)
        ps.kill()
        ps = self.start_ps(cluster, 0)
        chief = self.start_worker(cluster, 0, training,
                                  "--train_dir=" + self.path(name))
        chief.wait_for(r"restored \S+/ckpt-%012d" % 0)
        for task in (chief, worker, ps):
            self.assertEqual(task.wait(), 0, task.output)
        self.assert_whole(os.path.join(self.path(name), "ckpt-%012d" % STEPS))


if __name__ == "__main__":
    harness.main()
