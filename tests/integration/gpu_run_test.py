"""What run_all.sh of a GPU bundle leaves when its parts, or it itself, end
badly, and what it makes of figures."""

import glob
import json
import os
import shutil
import signal
import sys

from tests.integration import harness

GPU_RUN = os.path.abspath("scripts/gpu_run")
sys.path[:0] = [os.path.abspath("scripts"), GPU_RUN]
# pylint: disable=wrong-import-position
import card
import figures
import rows

HANG = ["sleep", "inf"]
SHORT_S = 0.3
# What each training says of itself.
RESULT = {"workers": [{"steps_per_s": 10.5}, {"steps_per_s": 9.5}],
          "final_loss": 0.5, "rows_per_push": 128, "mode": "standalone"}
WORKER = """#!/bin/sh
for flag; do case "$flag" in
  --version) exec echo muster 1 ;;
  devices) exec echo cpu ;;
  --train_dir=*) dir=${flag#*=} ;;
esac; done
%s
mkdir -p "$dir"; echo '%s' >"$dir/result.json"
"""


class RowsTest(harness.TestCase):
    """One row ends badly, and the next one is made."""

    def setUp(self):
        super().setUp()
        self.made = rows.Rows(self.path("results.json"), 60)
        self.addCleanup(self.made.programs.__exit__)

    def measure(self, command, limit_s=20, read=len, **more):
        """The row, from the file."""
        self.made.measure("row", "", command, limit_s, read, **more)
        return self.read_json("results.json")["rows"][-1]

    def test_what_fails_is_said_with_the_last_lines(self):
        for command, limit_s, read, words in (
                (HANG, SHORT_S, len, "not done after 0 s"),
                ([self.path("none")], 20, len, "FileNotFoundError"),
                (["sh", "-c", "kill -9 $$"], 20, len, "exit code 137"),
                (["true"], 20, json.loads, "no result: JSONDecodeError"),
                (["false"], 20, len, "exit code 1")):
            row = self.measure(command, limit_s, read)
            self.assertIn(words, row["failed"])
            self.assertNotIn("value", row)
        row = self.measure(["sh", "-c", "seq 100; exit 3"])
        self.assertEqual(row["output"][-1], "100")
        self.assertEqual(self.measure(["true"])["value"], 0)

    def test_the_row_says_so_while_its_program_runs(self):
        row = self.measure(["cat", self.path("results.json")], read=lambda text:
                           json.loads(text)["rows"][0]["failed"])
        self.assertEqual(row["value"], rows.UNDER_WAY)
        self.assertNotIn("failed", row)
        with open(self.path("results.log"), encoding="utf-8") as file:
            self.assertIn("=== row\n$ cat ", file.read())

    def test_what_does_not_fit_into_the_time_is_skipped(self):
        row = self.measure(["touch", self.path("begun")], needs_s=100)
        self.assertRegex(row["skipped"], "^no time left of 60 s: it needs 100 ")
        self.assertFalse(os.path.exists(self.path("begun")))
        self.made = rows.Rows(self.path("results.json"), rows.END_S + SHORT_S)
        self.assertRegex(self.measure(HANG, needs_s=0)["skipped"],
                         "^cut off by the time limit")

    def test_a_skipped_test_gives_its_own_reason(self):
        row = self.measure(["printf", "a_test.cc:36: Skipped\\nUNAVAILABLE: no "
                            "card\\n\\n[  SKIPPED ] A.B\\n[  PASSED  ] 0 "
                            "tests.\\n[  SKIPPED ] 1 test, listed below:\\n"],
                           read=card.tests_passed)
        self.assertEqual(row["skipped"], "UNAVAILABLE: no card")
        self.assertEqual(card.tests_passed("[  PASSED  ] 3 tests.\n"), 3)

    def test_a_sanitizer_watches_our_kernels(self):
        os.makedirs(self.path("gpu_tests"))
        for name, text in [("compute-sanitizer",
                            "[ $1 != --help ] || exec echo --kernel-regex\n"
                            "for last; do :; done\nexec $last\n")] + [
                                ("gpu_tests/" + name,
                                 "echo '[  PASSED  ] 3 tests.'")
                                for name in card.SANITIZED]:
            os.chmod(self.write(name, "#!/bin/sh\n" + text), 0o755)
        path, os.environ["PATH"] = os.environ["PATH"], "%s:%s" % (
            self.dir, os.environ["PATH"])
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        card.sanitize(self.made, self.dir, None, None)
        found = self.made.rows
        self.assertEqual([row["value"] for row in found], [3] * 9)
        # Initcheck has to see what other kernels write.
        self.assertEqual([" --kernel-regex kns=muster " in row["command"]
                          for row in found], 3 * [True, True, False])

    def ratio(self, name, *others, wanted=None, **speeds):
        self.made.rows = [dict({"name": one}, **(
            {"examples_per_s": speed} if isinstance(speed, float) else
            {"failed": speed})) for one, speed in speeds.items()]
        return figures.ratio(self.made, name, others, wanted)

    def test_a_ratio_is_over_the_fastest_that_ran(self):
        found = self.ratio("a", "b", "c", "d", wanted=1.5, a=300.0, b=100.0,
                           c=150.0, d="exit code 1")
        self.assertEqual((found["over"], found["ratio"], found["met"]),
                         ("c", 2.0, True))
        self.assertEqual(found["why"], "d: exit code 1")
        self.assertIs(self.ratio("a", "b", wanted=4, a=3.0, b=1.0)["met"],
                      False)

    def test_a_ratio_that_is_not_known_says_why(self):
        for speeds, why in (({"a": 1.0}, "b: it was not run"),
                            ({"a": 1.0, "b": 0.0}, "")):
            found = self.ratio("a", "b", wanted=1, **speeds)
            self.assertFalse(found["ratio"])
            self.assertEqual(found["why"], why)
        self.assertEqual(self.ratio("a", "b", a="exit code 2", b=1.0)["why"],
                         "a: exit code 2")


class RunAllTest(harness.TestCase):
    """All of run_all.py, with programs that are scripts."""

    def setUp(self):
        super().setUp()
        for path in glob.glob(os.path.join(GPU_RUN, "*.py")):
            shutil.copy(path, self.dir)
        for folder in ("worker", "gpu_tests"):
            os.mkdir(self.path(folder))
        shutil.copytree(os.path.abspath("scripts/base"),
                        self.path("scripts/base"))
        self.write("scripts/launcher.py", "raise SystemExit(3)\n")
        self.program("gpu_tests/card_parity_test", "#!/bin/sh\n")

    def program(self, name, text):
        os.chmod(self.write(name, text), 0o755)

    def start_all(self, training, *flags):
        """`training`: what the worker does, in sh."""
        self.program("worker/worker", WORKER % (training, json.dumps(RESULT)))
        return self.start("run_all", [
            sys.executable, self.path("run_all.py"), "--cpu", "--seconds=0.1",
            "--out=" + self.path("results.json"), *flags])

    def rows(self):
        self.report = self.read_json("results.json")
        return {row["name"]: row for row in self.report["rows"]}

    def test_parts_that_fail_leave_the_others(self):
        shutil.rmtree(self.path("gpu_tests"))
        self.assertEqual(self.start_all("echo a line").wait(), 1)
        rows_ = self.rows()
        self.assertEqual(self.report["end"], "complete")
        self.assertEqual(rows_["list of devices"]["value"], ["cpu"])
        self.assertEqual(rows_[figures.ONE]["value"], 20)
        self.assertEqual(rows_[figures.ONE]["examples_per_s"], 2560)
        self.assertEqual(rows_[figures.FREE]["value"], 40)
        self.assertEqual(rows_["resnet20 to a loss"]["value"], 0.5)
        self.assertEqual(rows_[figures.PAIR]["failed"], "exit code 3")
        self.assertRegex(rows_["tests"]["failed"], "no tests in ")
        self.assertEqual(rows_["PyTorch"]["skipped"], "--cpu")
        found = {(one["name"], one["over"]): one["ratio"]
                 for one in self.report["targets"]}
        self.assertEqual(found[figures.FREE, figures.ONE], 2)

    def test_only_the_parts_that_are_named_are_run(self):
        self.assertEqual(self.start_all("true", "--only=models").wait(), 0)
        names = set(self.rows())
        self.assertIn("mlp to a loss", names)
        self.assertFalse(names & {figures.ONE, figures.FREE, "PyTorch"})

    def hanging(self):
        """Run_all whose first training hangs, and the pid of that and of what
        it has started."""
        os.mkfifo(self.path("fifo"))
        run = self.start_all("sleep inf & echo $$ $! >%s; wait" %
                             self.path("fifo"))
        with open(self.path("fifo"), encoding="utf-8") as file:
            return run, [int(pid) for pid in file.read().split()]

    def test_a_signal_leaves_all_that_was_found(self):
        run, pids = self.hanging()
        run.send(signal.SIGTERM)
        self.assertEqual(run.wait(), 128 + signal.SIGTERM)
        rows_ = self.rows()
        self.assertEqual(self.report["end"], "ended by SIGTERM")
        self.assertEqual(rows_["list of devices"]["value"], ["cpu"])
        self.assertEqual(rows_[figures.ONE]["failed"], "ended, as SIGTERM came")
        self.assertEqual(len(self.report["targets"]), len(figures.TARGETS))
        self.assertRaises(ProcessLookupError, os.kill, pids[0], 0)

    def test_a_kill_leaves_all_that_was_found(self):
        os.mkfifo(self.path("fifo"))
        run = self.start_all("exec sleep inf >%s" % self.path("fifo"))
        with open(self.path("fifo"), encoding="utf-8") as file:
            run.send(signal.SIGKILL)
            self.assertEqual(run.wait(), 128 + signal.SIGKILL)
            # The end: the training is dead, too.
            self.assertEqual(file.read(), "")
        self.assertEqual(self.rows()[figures.ONE]["failed"], rows.UNDER_WAY)
        self.assertEqual(self.report["end"], "under way")


if __name__ == "__main__":
    harness.main()
