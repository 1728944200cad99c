"""The study's script from end to end, with a small model and made-up data."""

import json
import os
import sys

from tests.benchmark.replication import made_up
from tests.benchmark.replication import results_file
from tests.integration import harness

# In both the chief is a part of every update, and prints it.
ROWS = "single,sync4_straggler"
# 23 and 5 updates.
EPOCHS = "0.05"
# Starting a run takes seconds where everything else wants the cores, too; the
# first one installs matplotlib.
DEADLINE_S = 240.0
# Of all figures together.
MOST_BYTES = 300000


class StudyTest(harness.TestCase):

    def study(self, *flags):
        """(exit code, output)."""
        return self.run_to_end("study", [
            sys.executable, "-m", "tests.benchmark.replication.study",
            "--no_build", "--bin_dir=.", "--results=" + self.path("r.jsonl"),
            "--page=" + self.path("README.md"), *flags], DEADLINE_S)

    def small(self, *flags):
        return self.study(
            "--rows=" + ROWS, "--seeds=1", "--epochs=" + EPOCHS,
            "--training=worker/model/zoo/softmax_regression.textproto",
            "--set=input.type=synthetic",
            "--set=input.synthetic_test_examples=500", *flags)

    def page(self):
        with open(self.path("README.md"), encoding="utf-8") as file:
            return file.read()

    def test_trains_what_is_missing_and_makes_the_page(self):
        code, output = self.small()
        self.assertEqual(code, 0, output)
        self.assertIn("0 runs are there, 2 to do", output)
        results = results_file.read(self.path("r.jsonl"))
        self.assertEqual(list(results), [("single", 1), ("sync4_straggler", 1)])
        single, straggler = results.values()
        self.assertEqual(set(single),
                         results_file.FIELDS | results_file.NEWER_FIELDS)
        self.assertEqual((single["steps"], single["examples"]), (23, 23 * 128))
        self.assertEqual([point["step"] for point in single["test_curve"]],
                         [5, 10, 15, 20, 23])
        self.assertEqual(single["test_curve"][-1]["accuracy"],
                         single["accuracy"])
        self.assertEqual((straggler["workers"], straggler["steps"]), (4, 5))
        for result in results.values():
            self.assertGreater(result["examples_per_s"], 0)
        self.assertIn("but a trial of its script", self.page())
        self.assertIn("seed 1: %.2f" % (100 * single["accuracy"]),
                      self.page())
        # Nothing is done twice.
        before = self.page()
        code, output = self.small()
        self.assertEqual(code, 0, output)
        self.assertIn("2 runs are there, 0 to do", output)
        self.assertEqual(self.page(), before)
        # Two recipes are not mixed.
        code, output = self.small("--set=optimizer.learning_rate=0.1")
        self.assertEqual(code, 2, output)
        self.assertIn("row single with seed 1 was trained with other settings "
                      "(optimizer.learning_rate=0.1)", output)

    def test_makes_the_figures_of_a_whole_study(self):
        for line in made_up.whole().values():
            results_file.append(self.path("r.jsonl"), line)
        code, output = self.study("--report_only")
        self.assertEqual(code, 0, output)
        sizes = {}
        for name in os.listdir(self.dir):
            if name.endswith(".svg"):
                self.assertIn("(%s)" % name, self.page())
                sizes[name] = os.path.getsize(self.path(name))
                with open(self.path(name), encoding="utf-8") as file:
                    self.assertIn("test accuracy", file.read())
        self.assertEqual(len(sizes), 5)
        self.assertEqual(self.page().count(".svg)"), 5)
        self.assertLess(sum(sizes.values()), MOST_BYTES, sizes)

    def test_the_page_of_the_original_has_ps_tasks_as_its_rows_say(self):
        code, output = self.small("--original",
                                  "--rows=sync2_ps2,all_reduce2")
        self.assertEqual(code, 0, output)
        results = results_file.read(self.path("r.jsonl"))
        self.assertEqual(
            [result["workers"] for result in results.values()], [2, 2])
        for result in results.values():
            self.assertGreater(result["fullest_shard_bytes"], 0)
        self.assertIn("| synchronous, 2 workers, 2 ps |", self.page())
        self.assertIn("(original.svg)", self.page())
        with open(self.path("original.svg"), encoding="utf-8") as file:
            self.assertIn("all-reduce, 2 workers", file.read())

    def test_a_run_that_fails_is_told_and_not_kept(self):
        code, output = self.small("--set=optimizer.adagrad=nothing",
                                  "--rows=single")
        self.assertEqual(code, 1, output)
        self.assertIn("single seed 1 FAILED: worker ended with exit code 2",
                      output)
        self.assertFalse(os.path.exists(self.path("r.jsonl")))

    def test_mistakes_are_refused(self):
        for flag, wanted in (
                ("--rows=single,sink2", "no row 'sink2'; there are: single, "),
                ("--rows=single,single", "each once"),
                ("--seeds=0", "wanted seeds above 0"),
                ("--seeds=2,7 --rows=async1", "these rows have only seed 1"),
                ("--seeds=1,x", "wanted seeds above 0"),
                ("--epochs=0", "wanted above 0"),
                ("--epochs=nan", "wanted above 0"),
                ("--training=nowhere", "no file "),
                ("--bin_dir=nowhere", "run bazel build"),
                ("--results=nowhere/r.jsonl", "no folder for"),
                ("--report", "unrecognized arguments")):
            code, output = self.study(*flag.split())
            self.assertEqual(code, 2, flag + output)
            self.assertIn(wanted, " ".join(output.split()), flag)

    def test_a_bad_results_file_is_refused(self):
        self.write("r.jsonl", json.dumps({"row": "single"}) + "\n")
        code, output = self.study("--report_only")
        self.assertEqual(code, 2, output)
        self.assertIn("line 1 is no result of a run", output)


if __name__ == "__main__":
    harness.main()
