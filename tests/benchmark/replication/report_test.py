"""The study's page, made from results that nobody measured."""

import json
import os
import re

from tests.benchmark.replication import made_up
from tests.benchmark.replication import original
from tests.benchmark.replication import page
from tests.benchmark.replication import read_log
from tests.benchmark.replication import results_file
from tests.benchmark.replication import rows
from tests.benchmark.replication import verdicts
from tests.integration import harness


def table_line(text, title):
    """The cells of the first line of a table that begins with the title."""
    line = next(line for line in text.splitlines()
                if line.startswith("| %s |" % title))
    return [cell.strip() for cell in line.strip("|").split("|")]


class VerdictTest(harness.TestCase):

    def line_of(self, name, *lines):
        text = page.render(made_up.results(*made_up.row("single", 0), *lines))
        return text, table_line(text, rows.BY_NAME[name].title)

    def test_a_row_within_its_limit_meets_it(self):
        text, line = self.line_of("sync2", *made_up.row("sync2", 0.49))
        self.assertEqual(line[1:], ["88.01", "-0.49", "0.5", "met"])
        self.assertIn("1 met, 0 missed, 0 open.", text)

    def test_a_row_beyond_its_limit_is_shown_as_missed(self):
        text, line = self.line_of("sync2", *made_up.row("sync2", 0.51))
        self.assertEqual(line[1:], ["87.99", "-0.51", "0.5", "**MISSED**"])
        self.assertIn("0 met, 1 missed, 0 open.", text)

    def test_stale_gradients_have_the_wider_limit(self):
        for name in ("async2", "async4", "ssp3_2", "ssp10_2"):
            for lost, wanted in ((1.49, "met"), (1.51, "**MISSED**")):
                _, line = self.line_of(name, *made_up.row(name, lost))
                self.assertEqual(line[3:], ["1.5", wanted], name)

    def test_equal_updates_have_the_strict_one(self):
        strict = [row.name for row in rows.ROWS if row.limit == rows.STRICT]
        self.assertEqual(strict, ["towers", "sync2", "ssp0_2", "sync4",
                                  "hybrid", "hybrid_ssp0_2", "backup"])

    def test_a_better_row_meets_its_limit(self):
        _, line = self.line_of("towers", *made_up.row("towers", -2))
        self.assertEqual(line[2:], ["+2.00", "0.5", "met"])

    def test_two_seeds_are_no_verdict(self):
        text, line = self.line_of("sync2", *made_up.row("sync2", 9)[:2])
        self.assertEqual(line[4], "open: 2 of 3 seeds")
        self.assertIn("0 met, 0 missed, 1 open.", text)

    def test_other_examples_are_no_verdict(self):
        lines = made_up.row("sync2", 0)
        lines[1]["examples"] += 128
        _, line = self.line_of("sync2", *lines)
        self.assertEqual(line[4], "open: not the same number of examples")


class PageTest(harness.TestCase):

    def test_a_whole_study_has_ten_pieces_of_advice(self):
        text = page.render(made_up.whole())
        self.assertEqual(re.findall(r"(?m)^(\d+)\. \*\*", text),
                         [str(number) for number in range(1, 11)])
        self.assertNotIn("Not run", text)
        self.assertNotIn("trial", text)

    def test_words_and_numbers_follow_the_results(self):
        results = made_up.whole()
        results["async2", 1]["examples_per_s"] = 600.0
        for seed in rows.SEEDS:
            results["sync2", seed]["examples_per_s"] = 900.0
            results["async2", seed]["examples_per_s"] = 600.0
        self.assertIn("`sync` was 50 % faster than `async` with 2 workers",
                      " ".join(page.render(results).split()))
        for seed in rows.SEEDS:
            results["sync2", seed]["examples_per_s"] = 300.0
        self.assertIn("`sync` was 50 % slower than `async` with 2 workers",
                      " ".join(page.render(results).split()))

    def test_a_missed_limit_is_in_the_advice(self):
        results = made_up.whole()
        results.update(made_up.results(*made_up.row("async4", 5.9)))
        self.assertIn("with 4 it lost 5.90 points (limit 1.5: MISSED)",
                      " ".join(page.render(results).split()))

    def test_the_time_to_the_target_lies_between_two_looks(self):
        run = made_up.result("single", 1, accuracy=0.885)
        # 0.87, 0.875, 0.88 and 0.885.
        reached = verdicts.reach(run, 0.8775)
        self.assertAlmostEqual(reached.wall_s, 2.5 / 4 * 51.0, places=1)
        self.assertAlmostEqual(reached.examples, 2.5 / 4 * 59904, delta=1)
        self.assertIsNone(verdicts.reach(run, 0.89))
        text = page.render(made_up.results(
            made_up.result("single", 1, accuracy=0.8)))
        self.assertIn("not reached", text.split("## Time to test")[1])

    def test_what_makes_it_doubtful_is_said(self):
        for change, wanted in (
                ({"foreign_cores": 0.5}, "sync2 seed 1 (0.50 cores)"),
                ({"commit": "fedcba9876543210"}, "of several commits"),
                ({"training": "other.textproto"}, "but a trial")):
            text = page.render(made_up.results(
                made_up.result("single", 1),
                made_up.result("sync2", 1, **change)))
            self.assertIn(wanted, " ".join(text.split()))
            self.assertRegex(text, "Not run: towers, async2, ssp0_2")

    def test_the_recipe_is_that_of_the_runs(self):
        run = made_up.result("single", 1)
        run["settings"].append("optimizer.learning_rate=0.25")
        self.assertIn("The learning rate is 0.25, falls", " ".join(
            page.render(made_up.results(run)).split()))

    def test_nothing_run_is_a_page_too(self):
        self.assertIn("Nothing has been run yet", page.render({}))

    def test_each_figure_has_the_rows_that_were_run(self):
        figures = page.figures(verdicts.Study(made_up.results(
            made_up.result("single", 1), made_up.result("async2", 1))))
        self.assertEqual(
            [curve["label"] for curve in figures["two_workers"]["curves"]],
            ["one process", "async, 2 workers"])
        self.assertNotIn("stragglers", figures)


class OriginalTest(harness.TestCase):

    def results(self, **changes):
        return made_up.results(*[
            made_up.result(row.name, seed, **changes.get(row.name, {}))
            for row in rows.ORIGINAL for seed in (1, 2)])

    def test_each_system_stands_beside_one_thread(self):
        text = original.render(self.results(
            one_thread={"examples_per_s": 600.0},
            async2_ps2={"examples_per_s": 900.0, "fullest_shard_bytes": 6500000}))
        self.assertIn("| one device, 1 thread | 600 | 1.00 | 4.7 | 88.25 | ",
                      text)
        line = [line for line in text.splitlines()
                if line.startswith("| asynchronous, 2 workers, 2 ps |")]
        self.assertRegex(line[0], r"\| 900 \| 1\.50 \| 14\.1 \|.*\| 6\.50 \|")
        self.assertIn("| all-reduce, 4 workers |", text)
        self.assertNotIn("Not run", text)

    def test_a_second_ps_halves_the_bytes(self):
        text = original.render(self.results(
            sync2_ps1={"fullest_shard_bytes": 13000000},
            sync2_ps2={"fullest_shard_bytes": 6500000}))
        self.assertIn("holds 0.50 of what the only one held",
                      " ".join(text.split()))

    def test_nothing_run_is_a_page_too(self):
        self.assertIn("Nothing has been run yet", original.render({}))

    def test_what_was_not_run_is_said(self):
        text = original.render(made_up.results(
            made_up.result("one_thread", 1)))
        self.assertIn("Not run: two_threads, two_towers", text)


class RowsTest(harness.TestCase):

    def test_all_reduce_has_no_ps_task(self):
        row = rows.BY_NAME["all_reduce2"]
        self.assertIn("replication=all_reduce", row.settings(1, 1))
        self.assertEqual((row.ps, row.rows_per_step()), (0, rows.BATCH))

    def test_rows_with_a_limit_use_equal_examples(self):
        for row in rows.ROWS:
            if row.limit is not None:
                self.assertEqual(row.steps(1) * row.rows_per_step(), 59904,
                                 row.name)

    def test_a_grown_batch_has_128_rows_of_each_worker(self):
        self.assertEqual(rows.BY_NAME["sync4_grown"].rows_per_step(), 512)
        self.assertEqual(rows.BY_NAME["async4_grown"].rows_per_step(), 128)
        self.assertEqual(rows.BY_NAME["async4"].rows_per_step(), 32)

    def test_what_only_shows_time_has_one_seed(self):
        for name, wanted in (("sync2_straggler", [1]), ("ssp3_4", [1]),
                             ("single", [1, 2, 3]), ("ssp0_2", [1, 2, 3])):
            row = rows.BY_NAME[name]
            self.assertEqual([seed for seed in rows.SEEDS
                              if row.has_seed(seed)], wanted, name)


class ResultsFileTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        self.file = self.path("results.jsonl")
        self.lines = [made_up.result("single", 1), made_up.result("sync2", 1)]
        for line in self.lines:
            results_file.append(self.file, line)

    def test_reads_what_was_appended(self):
        self.assertEqual(results_file.read(self.file),
                         made_up.results(*self.lines))

    def test_a_line_that_was_cut_off_is_replaced(self):
        size = os.path.getsize(self.file)
        os.truncate(self.file, size - 10)
        self.assertEqual(list(results_file.read(self.file)), [("single", 1)])
        results_file.append(self.file, self.lines[1])
        self.assertEqual(os.path.getsize(self.file), size)
        self.assertEqual(results_file.read(self.file),
                         made_up.results(*self.lines))

    def test_what_is_no_result_is_refused_with_its_line(self):
        for line, wanted in (("{", "line 3 is no result"),
                             ("[]", "it has no accuracy"),
                             ('{"row": "single"}', "it has no accuracy"),
                             (json.dumps(self.lines[0]), "is there twice")):
            with open(self.file, "r+", encoding="utf-8") as file:
                whole = file.read()
                file.write(line + "\n")
            with self.assertRaisesRegex(results_file.BadResults, wanted):
                results_file.read(self.file)
            with open(self.file, "w", encoding="utf-8") as file:
                file.write(whole)


class LogTest(harness.TestCase):

    LOG = """\
2026-11-22 10:00:01.000 I /job:worker/task:0 initialized 8 parameters
2026-11-22 10:00:02.000 I /job:worker/task:0 step=2 loss=2 steps_per_s=1 a=1
2026-11-22 10:00:03.000 I /job:worker/task:0 step=4 loss=1 steps_per_s=1 a=1
2026-11-22 10:00:08.000 I /job:worker/task:0 step=4 test_accuracy=0.5 test_loss=1.5
2026-11-22 10:00:09.000 I /job:worker/task:0 step=9 loss=0.5 steps_per_s=1 a=1
2026-11-22 10:00:10.000 I /job:worker/task:0 step=11 loss=0.25 steps_per_s=1 a=1
2026-11-22 10:00:12.000 I /job:worker/task:0 step=11 test_accuracy=0.75 test_loss=1
2026-11-22 10:00:14.000 I /job:worker/task:0 step=11 test_accuracy=0.75 test_loss=1
"""

    def test_speed_leaves_the_evaluations_out(self):
        start_s = read_log.time_s("2026-11-22 10:00:00.000")
        log = read_log.ChiefLog(self.LOG, start_s)
        self.assertEqual(log.steps_per_s(), 2.0)
        self.assertEqual(log.evaluation_s, 5 + 4)
        self.assertEqual(
            log.test_curve(64),
            [{"step": 4, "wall_s": 8.0, "examples": 256, "accuracy": 0.5,
              "loss": 1.5},
             {"step": 11, "wall_s": 12.0, "examples": 704, "accuracy": 0.75,
              "loss": 1.0}])
        self.assertEqual([point["loss"] for point in log.loss_curve(64)],
                         [2, 1, 0.5, 0.25])

    def test_no_steps_are_an_error(self):
        with self.assertRaises(read_log.NoSteps):
            read_log.ChiefLog("", 0.0)


if __name__ == "__main__":
    harness.main()
