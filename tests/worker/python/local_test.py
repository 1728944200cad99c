"""_local.py over a ps_server that only waits: results, failures, what is left
running."""

import os
import signal
import subprocess
import sys
import time
from unittest import mock

import muster
import numpy
from muster import _local
from tests.integration import harness
from tests.worker.python import fake_library

# Says who it is to whoever reads the pipe, and goes on until it is killed.
PS = """#!/bin/sh
echo $$ $@ > %s
exec sleep 1000
"""
# Prints its processes, the workers' and the ps', for Ctrl-C.
INTERRUPTED = """
import os, sys, time
from unittest import mock
import muster
import numpy
from muster import _local
def wait():
    os.write(1, b"%d\\n" % os.getpid())
    if os.environ["MUSTER_TASK_INDEX"] == "0":
        with open(sys.argv[2], "rb") as ps:
            os.write(1, ps.readline())
    time.sleep(1000)
with mock.patch.object(_local, "path_of", lambda name: sys.argv[1]):
    with muster.local(ps=1, workers=2) as cluster:
        cluster.run(wait)
"""


def is_running(pid):
    """Also of one that nobody has waited for: false."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class LocalTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        os.mkfifo(self.path("ps"))
        self.use_ps(PS % self.path("ps"))

    def use_ps(self, text):
        path = self.write("ps_server", text)
        os.chmod(path, 0o755)
        patch = mock.patch.object(_local, "path_of", lambda name: path)
        patch.start()
        self.addCleanup(patch.stop)

    def assert_nothing_runs(self):
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    def run_local(self, function, *arguments, ps=1, workers=2):
        with muster.local(ps=ps, workers=workers) as cluster:
            return cluster.run(function, *arguments)

    def test_each_worker_has_its_place_and_returns(self):
        def place(factor):
            index = int(os.environ["MUSTER_TASK_INDEX"])
            with open(os.environ["MUSTER_CLUSTER"], encoding="utf-8") as file:
                cluster = file.read()
            if index == 0:
                with open(self.path("ps"), encoding="utf-8") as pipe:
                    cluster += pipe.readline()
            return (factor * index, os.environ["MUSTER_JOB_NAME"], cluster,
                    # Its own: a terminal's Ctrl-C does not come to it.
                    os.getsid(0))

        found = self.run_local(place, 10, ps=1, workers=3)
        self.assertEqual([result[:2] for result in found],
                         [(0, "worker"), (10, "worker"), (20, "worker")])
        self.assertEqual(len({result[3] for result in found}), 3)
        self.assertRegex(found[0][2], r'"ps": \["127.0.0.1:\d+"\], '
                         r'"worker": \[("127.0.0.1:\d+"(, )?){3}\]}'
                         r"\d+ --cluster=.*cluster.json --task_index=0\n")
        self.assert_nothing_runs()
        self.assertNotIn("MUSTER_TASK_INDEX", os.environ)

    def test_several_runs_are_several_jobs(self):
        with muster.local() as cluster:
            self.assertEqual(cluster.run(lambda: 1), [1, 1])
            self.assertEqual(cluster.run(lambda: 2), [2, 2])
        self.assert_nothing_runs()

    def test_a_job_that_is_not_finished_is(self):
        def train():
            library = fake_library.use(fake_library.FakeLibrary(), mock.Mock())
            library.shapes = [(1,)]
            muster.Model({"w": numpy.zeros(1, numpy.float32)}, ps="h:1")
            return library.calls

        self.assertEqual(self.run_local(train, workers=1)[0][-2:],
                         [("stop", 0), ("close",)])

    def test_a_worker_that_came_too_late_has_no_result(self):
        def train():
            steps = 1 if os.environ["MUSTER_TASK_INDEX"] == "0" else 0
            fake_library.use(fake_library.FakeLibrary(steps), mock.Mock())
            muster.Model({"w": numpy.zeros(1, numpy.float32)})
            return steps

        self.assertEqual(self.run_local(train), [1, None])

    def test_an_exception_is_raised_with_its_traceback_and_ends_others(self):
        def fail():
            if os.environ["MUSTER_TASK_INDEX"] == "1":
                raise KeyError("the worker's")
            time.sleep(1000)

        with self.assertRaisesRegex(KeyError, "the worker's") as caught:
            self.run_local(fail)
        self.assertRegex(str(caught.exception.__cause__),
                         r"worker 1: Traceback(.|\n)*in fail\n")
        self.assert_nothing_runs()

    def test_an_exception_that_pickle_cannot_write_is_told(self):
        class Unwritable(Exception):
            pass

        def fail():
            raise Unwritable("why")

        with self.assertRaisesRegex(muster.Error, "worker 0") as caught:
            self.run_local(fail, workers=1)
        self.assertRegex(str(caught.exception.__cause__), "Unwritable: why")

    def test_an_error_of_muster_keeps_its_kind(self):
        def fail():
            raise muster.UnavailableError("no ps")

        with self.assertRaisesRegex(muster.UnavailableError, "no ps"):
            self.run_local(fail)

    def test_an_exit_in_a_worker_is_a_failure(self):
        with self.assertRaisesRegex(muster.Error, "worker 0") as caught:
            self.run_local(sys.exit, 143, workers=1)
        self.assertRegex(str(caught.exception.__cause__), "SystemExit: 143")

    def test_a_worker_that_is_killed_is_told(self):
        with self.assertRaisesRegex(muster.Error, "worker 0 .*exit code -9"):
            self.run_local(lambda: os.kill(os.getpid(), signal.SIGKILL),
                           workers=1)
        self.assert_nothing_runs()

    def test_a_ps_that_fails_is_told_with_its_last_lines(self):
        self.use_ps("#!/bin/sh\necho the port is taken\nexit 2\n")
        with self.assertRaisesRegex(muster.UnavailableError,
                                    "ps 0 .*code 2:\nthe port is taken"):
            self.run_local(time.sleep, 1000)

    def test_a_ps_that_has_ended_with_its_job_is_well(self):
        self.use_ps("#!/bin/sh\nexit 0\n")
        self.assertEqual(self.run_local(time.sleep, 0.1), [None, None])

    def test_what_cannot_be_is_refused(self):
        for arguments in ({"ps": 0}, {"workers": 1.5}):
            with self.assertRaisesRegex(muster.ConfigError, "wanted 1 or more"):
                muster.local(**arguments)
        with self.assertRaisesRegex(muster.ConfigError, "outside `with"):
            muster.local().run(print)

    def test_a_process_with_a_job_is_refused(self):
        fake_library.use(fake_library.FakeLibrary(), self)
        with muster.init(ps="h:1"):
            with self.assertRaisesRegex(muster.ConfigError, "job of its own"):
                self.run_local(print)

    def test_ctrl_c_leaves_nothing_running(self):
        program = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, self.path("ps_server"),
             self.path("ps")],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(program.stdout.close)
        pids = [int(program.stdout.readline().split()[0]) for _ in range(3)]
        program.send_signal(signal.SIGINT)
        self.assertEqual(program.wait(harness.DEADLINE_S), -signal.SIGINT)
        for pid in pids:
            self.assertFalse(is_running(pid))


if __name__ == "__main__":
    harness.main()
