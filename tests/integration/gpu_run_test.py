"""What run_all.sh of a GPU bundle leaves when its parts, or it itself, end
badly."""

import contextlib
import glob
import io
import json
import os
import shutil
import signal
import sys
import tempfile
import unittest.mock

from tests.integration import harness

GPU_RUN = os.path.abspath("scripts/gpu_run")
sys.path.insert(0, GPU_RUN)
import bundled_figures  # pylint: disable=wrong-import-position
import card_samples  # pylint: disable=wrong-import-position
import find_libraries  # pylint: disable=wrong-import-position
import gpu_tests  # pylint: disable=wrong-import-position
import processes  # pylint: disable=wrong-import-position
import report  # pylint: disable=wrong-import-position
import targets  # pylint: disable=wrong-import-position
import timed_runs  # pylint: disable=wrong-import-position
import torch_figures  # pylint: disable=wrong-import-position

HANG = ["sleep", "1000"]
# Of a part that hangs: long enough for it to have begun.
SHORT_S = 0.3
WORKER = """#!/bin/sh
case "$*" in
  --version) echo muster 1 ;;
  devices*) echo cpu ;;
  *) %s ;;
esac
"""


class RunsTestCase(harness.TestCase):
    """Runs whose rows are read back from the file."""

    def setUp(self):
        super().setUp()
        for name, value in (("GRACE_S", SHORT_S), ("KILL_S", SHORT_S),
                            ("LOOK_S", 0.01)):
            self.patch(processes, name, value)
        self.patch(timed_runs, "ROOT", self.dir)
        self.patch(sys, "stderr", io.StringIO())
        self.make_runs(limit_s=60)

    def patch(self, *what):
        patch = unittest.mock.patch.object(*what)
        patch.start()
        self.addCleanup(patch.stop)

    def make_runs(self, limit_s):
        self.report = report.Report(self.path("results.json"))
        self.runs = timed_runs.Runs(
            limit_s, lambda: self.report.write({"rows": self.runs.rows}),
            self.report.log)

    def measure(self, command, limit_s=20, read=len, **more):
        """The row, from the file."""
        self.runs.measure(timed_runs.Part("part", "", command, limit_s, read,
                                          **more))
        return self.read_json("results.json")["rows"][-1]

    def program(self, name, text):
        path = self.write(name, text)
        os.chmod(path, 0o755)
        return path

    def log(self):
        with open(self.path("results.log"), encoding="utf-8") as file:
            return file.read()


class PartsTest(RunsTestCase):
    """One part ends badly: that is a row, and the next one is run."""

    def check_failed(self, row, reason):
        self.assertRegex(row["failed"], reason)
        self.assertNotIn("value", row)
        self.assertEqual(self.measure(["true"])["value"], 0)

    def test_one_that_hangs(self):
        self.check_failed(self.measure(HANG, SHORT_S), "^not done after 0 s$")

    def test_one_that_ignores_sigterm(self):
        # As its parent does, from the first instant on.
        before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGTERM, before)
        self.check_failed(self.measure(HANG, SHORT_S), "^not done after")

    def test_one_that_cannot_be_killed(self):
        with unittest.mock.patch.object(os, "killpg") as killpg:
            self.check_failed(self.measure(HANG, SHORT_S), "^unkillable: ")
        os.kill(killpg.call_args_list[0][0][0], signal.SIGKILL)

    def test_one_that_is_missing(self):
        self.check_failed(self.measure([self.path("none")]),
                          "^cannot be started: .*No such file")

    def test_one_that_is_no_program(self):
        path = self.write("text", "no program")
        self.check_failed(self.measure([path]), "^cannot be started: .*denied")
        self.check_failed(self.measure([self.program("text", "\0")]),
                          "^cannot be started: .*format")

    def test_one_that_prints_nothing(self):
        self.check_failed(self.measure(
            ["true"], read=timed_runs.last_object), "no line with a JSON")

    def test_one_whose_json_is_no_object(self):
        self.check_failed(self.measure(
            ["echo", "[1]"], read=timed_runs.last_object),
            "no line with a JSON")
        self.check_failed(self.measure(["echo", '{"a": [1]}'], read=lambda text:
                                       timed_runs.last_object(text)["b"]),
                          "^no result: KeyError: 'b'$")

    def test_one_whose_value_is_no_number(self):
        self.check_failed(self.measure(["true"], read=lambda _: float("nan")),
                          "its value is nan")

    def test_one_that_is_killed(self):
        self.check_failed(self.measure(["sh", "-c", "kill -9 $$"]),
                          "^killed by SIGKILL$")

    def test_a_derived_row_whose_source_lacks_something(self):
        self.runs.derive("derived", "", lambda: {}["missing"], "how")
        self.check_failed(self.runs.rows[-1], "KeyError: 'missing'")

    def test_a_group_of_parts(self):
        with self.runs.guarded("the group"):
            raise IndexError("list index out of range")
        self.check_failed(self.runs.rows[-1],
                          "^IndexError: list index out of range$")

    def test_a_folder_that_cannot_be_removed(self):
        with bundled_figures.TrainFolder() as folder:
            shutil.rmtree(folder)

    def test_what_a_part_has_started_ends_with_it(self):
        processes.adopt_orphans()
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        # Many, so that a look too early would find one of them.
        self.measure(["sh", "-c", "for i in $(seq 50); do sleep 1000 >%s & "
                      "done; echo begun >%s" % (fifo, fifo)])
        self.assertEqual(os.read(reader, 100), b"begun\n")
        # The end: nobody has it open any more.
        self.assertEqual(os.read(reader, 100), b"")

    def test_the_row_says_so_while_the_part_runs(self):
        row = self.measure(["cat", self.path("results.json")],
                           read=lambda text:
                           json.loads(text)["rows"][0]["failed"])
        self.assertEqual(row["value"], timed_runs.UNDER_WAY)
        self.assertNotIn("failed", row)

    def test_the_last_object_may_be_followed_by_more(self):
        row = self.measure(["printf", '{"a": 1}\\n{"a": 2}\\nbye\\n'],
                           read=lambda text: timed_runs.last_object(text)["a"])
        self.assertEqual(row["value"], 2)


class TimeTest(RunsTestCase):

    def test_what_the_time_limit_cuts_off_is_skipped(self):
        self.make_runs(limit_s=3 * SHORT_S)
        row = self.measure(HANG, needs_s=0)
        self.assertRegex(row["skipped"],
                         r"^cut off by the time limit of 0\.9 s, after \d s$")
        self.assertNotIn("failed", row)

    def test_what_does_not_fit_is_not_begun(self):
        row = self.measure(["touch", self.path("begun")], needs_s=100)
        self.assertRegex(row["skipped"], "^no time left of 60 s: it needs 100 ")
        self.assertFalse(os.path.exists(self.path("begun")))

    def test_questions_about_the_machine_have_an_end(self):
        self.program("nvidia-smi", "#!/bin/sh\nexec sleep 1000\n")
        self.patch(find_libraries, "ANSWER_S", SHORT_S)
        with unittest.mock.patch.dict(os.environ, PATH=self.dir + ":" +
                                      os.environ["PATH"]):
            self.assertEqual(find_libraries.machine()["gpus"], [])

    def test_pytorch_that_hangs_is_a_row(self):
        os.mkdir(self.path("torch"))
        self.write("torch/__init__.py", "import time\ntime.sleep(1000)\n")
        self.patch(torch_figures, "IMPORT_S", SHORT_S)
        options = unittest.mock.Mock(cpu=False, seconds=1)
        with unittest.mock.patch.dict(os.environ, PYTHONPATH=self.dir):
            torch_figures.torch_figures(
                self.runs, options, torch_figures.WAYS,
                torch_figures.why_no_torch(self.runs, options))
        first, *others = self.runs.rows
        self.assertEqual(first["failed"], "not done after 0 s")
        self.assertEqual({row["skipped"] for row in others}, {
            "no PyTorch with a GPU here: not done after 0 s"})


class OutputTest(RunsTestCase):

    def test_the_log_has_all_and_the_row_what_matters(self):
        lines = "\n".join(["first"] + ["line"] * 100 + [
            "a step cannot be captured as graphs", "0:01 Warning: slow",
            "0:02 Warning: slow", "[ RUN      ] Test.Error",
            "parameters stay on cuda:0"])
        row = self.measure(["echo", lines])
        self.assertEqual(row["notes"], [
            "a step cannot be captured as graphs", "0:01 Warning: slow",
            "parameters stay on cuda:0"])
        self.assertNotIn("output", row)
        self.assertIn("=== part\n", self.log())
        self.assertIn("\nfirst\n", self.log())

    def test_of_long_output_both_ends_are_kept(self):
        script = ("print('begin'); [print('error', 'x' * (i % 50)) "
                  "for i in range(50000)]; print('end')")
        row = self.measure([sys.executable, "-c", script],
                           read=lambda text: text.endswith("end\n"))
        self.assertIs(row["value"], True)
        self.assertEqual(len(row["notes"]), timed_runs.MAX_NOTES)
        self.assertRegex(self.log(), r"begin\nerror \n(.*\n)+\[\.\.\. \d+ "
                         r"bytes are left out")
        self.assertLess(os.path.getsize(self.path("results.log")),
                        3 * processes.END_BYTES)

    def test_the_log_has_an_end(self):
        for _ in range(3):
            self.report.log("long", "x" * (report.LOG_BYTES // 2))
        self.report.log("short", "last")
        self.assertLess(len(self.log()), report.LOG_BYTES)
        self.assertIn("[left out: the log has its", self.log())
        self.assertIn("=== short\nlast\n", self.log())

    def test_a_place_where_nothing_can_be_written(self):
        with unittest.mock.patch.object(tempfile, "tempdir", self.dir):
            opened = report.open_report("/nowhere/other.json")
        self.assertEqual(opened.path, self.path("other.json"))
        self.assertRegex(sys.stderr.getvalue(), "^run_all: cannot write "
                         "'/nowhere/other.json': No such file .*other.json'\n$")
        with unittest.mock.patch.object(tempfile, "tempdir", "/nowhere"):
            with self.assertRaisesRegex(OSError, "nor in TMPDIR: .*--out"):
                report.open_report("/nowhere/other.json")

    def test_who_reads_the_file_has_a_whole_one(self):
        self.report.write({"rows": ["old"]})
        with open(self.path("results.json"), encoding="utf-8") as file:
            self.report.write({"rows": ["new"] * 1000})
            self.assertEqual(json.load(file), {"rows": ["old"]})
        self.assertEqual(sorted(os.listdir(self.dir)),
                         ["results.json", "results.log"])

    def test_that_nobody_listens_ends_nothing(self):
        for error in (BrokenPipeError(), UnicodeEncodeError("ascii", "", 0, 1,
                                                            "no such letter")):
            file = unittest.mock.Mock()
            file.write.side_effect = error
            report.show("text", file)
            file.write.assert_called_once()

    def test_a_file_that_cannot_be_replaced_is_told_once(self):
        os.remove(self.path("results.json"))
        os.mkdir(self.path("results.json"))
        for _ in range(2):
            self.report.write({})
        self.assertFalse(self.report.is_written)
        self.assertEqual(sys.stderr.getvalue().count("cannot write"), 1)


class ReasonsTest(RunsTestCase):

    def test_a_skipped_test_gives_its_own_reason(self):
        row = self.measure(["printf", "a_test.cc:36: Skipped\\nUNAVAILABLE: no "
                            "card\\n\\n[  SKIPPED ] A.B\\n[  PASSED  ] 0 "
                            "tests.\\n[  SKIPPED ] 1 test, listed below:\\n"],
                           read=gpu_tests.tests_passed)
        self.assertEqual(row["skipped"], "UNAVAILABLE: no card")

    def sanitized(self, sanitizer):
        """Rows of tests under a compute-sanitizer that is a script."""
        self.program("compute-sanitizer", sanitizer)
        os.makedirs(self.path("gpu_tests"), exist_ok=True)
        for name in ("a", "card_backend_parity", "card_parity"):
            self.program("gpu_tests/%s_test" % name,
                         "#!/bin/sh\necho '[  PASSED  ] 3 tests.'\n")
        self.patch(find_libraries, "TOOLKITS", ())
        with unittest.mock.patch.dict(os.environ, PATH=self.dir + ":" +
                                      os.environ["PATH"]):
            gpu_tests.GpuTests(self.runs, unittest.mock.Mock(cpu=False),
                               self.dir, None).sanitize()
        return self.runs.rows

    def test_a_sanitizer_watches_our_kernels(self):
        rows = self.sanitized(
            "#!/bin/sh\n[ $1 != --help ] || exec echo '  --kernel-regex arg'\n"
            "for last; do :; done\nexec $last\n")
        self.assertEqual([row["name"] for row in rows], [
            "%s of %s_test" % (tool, test)
            for test in ("card_backend_parity", "a")
            for tool in ("memcheck", "racecheck", "initcheck")])
        for row in rows:
            self.assertEqual(row["value"], 3)
        # Initcheck has to see what other kernels write.
        self.assertEqual([" --kernel-regex kns=muster " in row["command"]
                          for row in rows], 2 * [True, True, False])

    def test_a_gpu_that_no_sanitizer_can_watch_is_no_failure(self):
        for code in (0, 1):
            row = self.sanitized("#!/bin/sh\necho '========= Error: Device not "
                                 "supported'\nexit %d\n" % code)[-1]
            self.assertEqual(row["skipped"], "Error: Device not supported")

    def test_a_python_without_pidfds(self):
        self.assertIsNone(bundled_figures.launcher_cannot())
        with unittest.mock.patch.object(bundled_figures, "os", object()):
            self.assertRegex(bundled_figures.launcher_cannot(),
                             "pidfd_open, of Python 3.9 or newer; this is 3")

    def test_tools_are_also_found_beside_the_driver(self):
        self.program("nvidia-smi", "#!/bin/sh\n")
        self.patch(find_libraries, "DRIVER", (self.dir,))
        with unittest.mock.patch.dict(os.environ, PATH="/nowhere"):
            self.assertEqual(find_libraries.program("nvidia-smi"),
                             self.path("nvidia-smi"))

    def test_samples_are_of_the_card_that_is_used(self):
        for told, card in (("2,3", "2"), ("GPU-7", "GPU-7"), ("", "0")):
            with unittest.mock.patch.dict(os.environ,
                                          CUDA_VISIBLE_DEVICES=told):
                self.assertEqual(card_samples.arguments()[0], "--id=" + card)


class RunAllTest(harness.TestCase):
    """All of run_all.py, with programs that are scripts."""

    def setUp(self):
        super().setUp()
        for path in glob.glob(os.path.join(GPU_RUN, "*.py")):
            shutil.copy(path, self.dir)
        for folder in ("worker", "benchmark", "gpu_tests", "scripts"):
            os.mkdir(self.path(folder))
        self.program("benchmark/data_plane", "#!/bin/sh\n"
                     "echo '{\"median_s\": 0.5, \"bytes_per_s\": 1e9}'\n")
        self.program("gpu_tests/card_parity_test", "#!/bin/sh\n")
        self.write("scripts/launcher.py", "raise SystemExit(3)\n")

    def program(self, name, text):
        os.chmod(self.write(name, text), 0o755)

    def start_all(self, training, *flags):
        """`training`: what the worker does, in sh."""
        self.program("worker/worker", WORKER % training)
        return self.start("run_all", [
            sys.executable, self.path("run_all.py"), "--cpu", "--seconds=1",
            "--out=" + self.path("results.json"), *flags])

    def rows(self):
        self.report = self.read_json("results.json")
        return {row["name"]: row for row in self.report["rows"]}

    def test_parts_that_fail_leave_the_others(self):
        shutil.rmtree(self.path("gpu_tests"))
        run = self.start_all("echo no result")
        self.assertEqual(run.wait(), 1)
        rows = self.rows()
        self.assertEqual(self.report["end"], "complete")
        self.assertEqual(rows["list of devices"]["value"], ["cpu"])
        self.assertEqual(rows[targets.ADAM]["value"], 2)
        self.assertRegex(rows[targets.ONE + " on cpu"]["failed"],
                         "FileNotFoundError: .*result.json")
        self.assertEqual(rows[targets.PAIR + " on cpu"]["failed"],
                         "exit code 3")
        self.assertRegex(rows["tests"]["failed"], "no tests in ")
        self.assertRegex(self.report["targets"][-1]["not_measured"], "GPU")

    def hanging(self):
        """Run_all whose first training hangs, and the pid of that and of what
        it has started."""
        os.mkfifo(self.path("fifo"))
        run = self.start_all("sleep 1000 & echo $$ $! >%s; wait" %
                             self.path("fifo"))
        with open(self.path("fifo"), encoding="utf-8") as file:
            return run, [int(pid) for pid in file.read().split()]

    def test_a_signal_leaves_all_that_was_found(self):
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signum), contextlib.ExitStack() as stack:
                stack.callback(os.remove, self.path("fifo"))
                run, pids = self.hanging()
                run.send(signum)
                self.assertEqual(run.wait(), 128 + signum)
                rows = self.rows()
                self.assertEqual(self.report["end"], "ended by " + signum.name)
                self.assertEqual(rows[targets.ADAM]["value"], 2)
                row = rows[targets.ONE + " on cpu"]
                self.assertEqual(row["failed"],
                                 "ended, as %s came" % signum.name)
                self.assertEqual(len(self.report["targets"]),
                                 len(targets.TARGETS))
                for pid in pids:
                    self.assertRaises(ProcessLookupError, os.kill, pid, 0)

    def test_a_kill_leaves_all_that_was_found(self):
        os.mkfifo(self.path("fifo"))
        run = self.start_all("exec sleep 1000 >%s" % self.path("fifo"))
        with open(self.path("fifo"), encoding="utf-8") as file:
            run.send(signal.SIGKILL)
            self.assertEqual(run.wait(), 128 + signal.SIGKILL)
            # The end: the training is dead, too.
            self.assertEqual(file.read(), "")
        rows = self.rows()
        self.assertEqual(self.report["end"], "under way")
        self.assertEqual(rows[targets.ADAM]["value"], 2)
        self.assertEqual(rows[targets.ONE + " on cpu"]["failed"],
                         timed_runs.UNDER_WAY)

    def test_a_signal_that_was_switched_off_ends_nothing(self):
        os.mkfifo(self.path("fifo"))
        self.program("worker/worker", WORKER % (
            "kill -HUP $PPID; echo told >%s" % self.path("fifo")))
        run = self.start("run_all", [
            "/bin/sh", "-c", "trap '' HUP; exec \"$@\"", "-", sys.executable,
            self.path("run_all.py"), "--cpu", "--seconds=1",
            "--out=" + self.path("results.json")])
        with open(self.path("fifo"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "told\n")
        run.send(signal.SIGKILL)
        run.wait()
        self.assertNotIn("HUP", json.dumps(self.read_json("results.json")))


if __name__ == "__main__":
    harness.main()
