"""The rules of `muster sweep`: values, samplers, tables; of `muster
ensemble`: what its members are."""

import array
import contextlib
import csv
import errno
import io
import math
import os
import sys
import types
from unittest import mock

from tests.integration import harness
from tests.worker.metric.golden_cases import CASES, NAN, Case
from scripts.base import python_environment

sys.path.insert(0, os.path.abspath("scripts"))
# pylint: disable=wrong-import-position
from base import launcher_flags
from base import local_cores
from ensemble import flags as ensemble_flags
from ensemble import predictions
from sweep import flags as sweep_flags
from sweep import sampler, space, table, trial
from sweep.driver import SweepDriver
from base import folder_lock
from trainings import devices
from trainings.definition import Folder
from base.failure import Failure

METRIC = "test_loss"


def made(number, values, state="DONE"):
    """A trial with an evaluation every 10 steps; the last is its result."""
    one = trial.Trial("sweep", number, METRIC)
    one.state = state
    one.parameters = {"x": str(number)}
    one.all_evaluations = [[10 * (i + 1), {METRIC: value}]
                           for i, value in enumerate(values)]
    if values and state == "DONE":
        one.figures = {METRIC: values[-1]}
    return one


def suggested(name, texts, count, seed=1):
    found = sampler.create(name, space.parse_all(texts), seed)
    return [found.suggest(i) for i in range(count)]


class PathTest(harness.TestCase):
    """As command_line_test.cc has it for the binaries."""

    MISTAKES = ("s3://bucket/run", "hdfs://h:9000/r", "file:///data", "~",
                "~/run", "~user/run", "$HOME", "$HOME/run", "/data/$USER/r",
                "${HOME}/run", "$(pwd)/run", "run_$SLURM_JOB_ID", "a/$RUN.1",
                "`date`", "s3:/b/r", "file:/data", '"r"', "'r'", "r ", " /r",
                "r\r")
    HONEST = ("a~b", "cost$5", "./~/run", "us$A", "a$b", "x/y:/z",
              "'90s", "a b", "10:30/run",
              "x/y://z", "100%h", "")

    def refusal(self, parse, *flags):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            with self.assertRaises(SystemExit) as ended:
                parse(list(flags))
        self.assertEqual(ended.exception.code, 2)
        return said.getvalue()

    def test_a_path_that_means_something_else_is_refused(self):
        for path in self.MISTAKES:
            self.assertIn(path, self.refusal(
                launcher_flags.parse_arguments, "--train_dir=" + path))
        self.assertIn("mount it", self.refusal(
            sweep_flags.parse, "--training=a", "--param=b=int:1:2",
            "--minimize", "--sweep_dir=gs://bucket/sweep"))
        self.assertIn("write the path out", self.refusal(
            ensemble_flags.parse, "--training=$HOME/a", "--ensemble_dir=b"))

    def test_a_path_with_odd_characters_is_taken(self):
        for path in self.HONEST:
            options = launcher_flags.parse_arguments(["--train_dir=" + path])
            self.assertEqual(options.train_dir, path)


class FolderLockTest(harness.TestCase):

    def take(self, error):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), mock.patch(
                "fcntl.flock", side_effect=OSError(error, "no")):
            folder_lock.take_lock(None, 0, "--sweep_dir=run")
        return said.getvalue()

    def test_a_file_system_without_locks_is_said(self):
        for error in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            self.assertIn("--sweep_dir=run: this file system has no locks",
                          self.take(error))

    def test_another_error_is_an_error(self):
        for error in (errno.EIO, errno.EWOULDBLOCK):
            with self.assertRaises(OSError):
                self.take(error)


class SpaceTest(harness.TestCase):

    def test_values_stay_within_both_ends(self):
        for text, low, high in (("x=log:1e-5:0.1", 1e-5, 0.1),
                                ("x=uniform:-1.23456789:2", -1.23456789, 2)):
            one = space.parse(text)
            self.assertEqual(float(one.at(0.0)), low)
            self.assertLess(float(one.at(0.5)), high)
            self.assertEqual([float(end) for end in one.ends()], [low, high])

    def test_a_log_scale_is_even_in_powers(self):
        one = space.parse("x=log:1e-4:1:5")
        self.assertEqual([float(point) for point in one.points],
                         [1e-4, 1e-3, 1e-2, 1e-1, 1.0])

    def test_whole_numbers_include_both_ends(self):
        one = space.parse("x=int:3:5")
        self.assertEqual(one.all(), ["3", "4", "5"])
        self.assertEqual([one.at(part) for part in (0.0, 0.34, 0.999)],
                         ["3", "4", "5"])

    def test_a_choice_goes_through_as_it_is(self):
        one = space.parse("x=choice:relu,{a: 1}")
        self.assertEqual([one.at(0.0), one.at(0.5)], ["relu", "{a: 1}"])

    def test_mistakes_are_named(self):
        for text, words in (
                ("x", "wanted FIELD=DISTRIBUTION"),
                ("x=uniforn:0:1", "did you mean 'uniform'?"),
                ("x=log:0:1", "0 < LO < HI"), ("x=int:5:5", "LO < HI"),
                ("x=int:1.5:3", "in numbers"), ("x=uniform:0", "in numbers"),
                ("x=uniform:nan:1", "LO < HI"), ("x=uniform:0:inf", "LO < HI"),
                ("x=uniform:0:1:1", "2 POINTS"),
                ("x=uniform:0:1:2:3", "LO < HI"),
                ("x=choice:a,,b", "choice:A,B,C"),
                ("x=choice:a,a", "each once")):
            with self.subTest(text), self.assertRaises(Failure) as raised:
                space.parse(text)
            self.assertIn(words, str(raised.exception))
            self.assertIn(text, str(raised.exception))
        with self.assertRaisesRegex(Failure, "'x' is given twice"):
            space.parse_all(["x=int:1:2", "x=choice:a"])


class SamplerTest(harness.TestCase):
    TEXTS = ["rate=log:1e-5:0.1", "batch=choice:32,64", "width=int:8:64"]

    def test_the_same_seed_gives_the_same_trials_in_any_order(self):
        found = sampler.create("random", space.parse_all(self.TEXTS), 1)
        forward = suggested("random", self.TEXTS, 20)
        self.assertEqual([found.suggest(i) for i in reversed(range(20))],
                         forward[::-1])
        self.assertNotEqual(suggested("random", self.TEXTS, 20, 2), forward)
        self.assertEqual(len({one["rate"] for one in forward}), 20)

    def test_random_values_fill_the_range(self):
        found = suggested("random", self.TEXTS, 400)
        for low, high in ((1e-5, 1e-4), (1e-2, 1e-1)):
            inside = [one for one in found if low <= float(one["rate"]) < high]
            # A quarter of 400; five deviations of 8.7 are 43.
            self.assertLess(abs(len(inside) - 100), 43)

    def test_a_grid_has_every_point_once(self):
        texts = ["rate=log:1e-2:1:3", "batch=choice:32,64", "width=int:1:3"]
        found = sampler.create("grid", space.parse_all(texts), 1)
        self.assertEqual(found.size, 18)
        points = [tuple(found.suggest(i).values()) for i in range(18)]
        self.assertEqual(len(set(points)), 18)
        self.assertEqual(points[:2], [("0.01", "32", "1"), ("0.01", "32", "2")])

    def test_a_grid_wants_points(self):
        with self.assertRaisesRegex(Failure, r"rate=log:1e-05:0\.1:5"):
            suggested("grid", self.TEXTS, 1)


class TrialTest(harness.TestCase):

    def test_reads_an_evaluation_of_a_workers_line(self):
        stamp = "2026-11-24 12:12:39.053 I /job:worker/task:0 "
        self.assertEqual(
            trial.read_evaluation(
                stamp + "step=20 test_accuracy=0.5000 test_loss=-nan"),
            (20, {"test_accuracy": 0.5}, "test_"))
        self.assertEqual(
            trial.read_evaluation(stamp + "step=20 validation_loss=0.25"),
            (20, {"validation_loss": 0.25}, "validation_"))
        for line in ("step=60 loss=0.77 left=0s", "saved ckpt-0", ""):
            self.assertIsNone(trial.read_evaluation(stamp + line))

    def test_a_metric_that_is_nan_is_no_missing_one(self):
        options = types.SimpleNamespace(bin_dir=None, metric="test_loss",
                                        maximize=False, pruner="none")
        sweep = SweepDriver(options, None, [], [])
        line = ("2026-11-24 12:12:39.053+00:00 I /job:worker/task:0 step=20 "
                "test_accuracy=0.5000 %s=nan")
        one = trial.Trial(self.dir, 0, "test_loss")
        sweep.on_line(None, one, line % "test_loss")
        self.assertIsNone(sweep.failure)
        self.assertEqual(one.evaluations(), [])
        self.assertEqual(str(one.reported()), "[nan]")
        sweep.on_line(None, one, line % "test_los")
        self.assertIn("has no 'test_loss'", str(sweep.failure))

    def test_beside_a_validation_half_the_test_half_comes_at_the_end(self):
        stamp = "2026-11-24 12:12:39.053 I /job:worker/task:0 "
        for metric, pruner, at_first in (
                ("test_loss", "none", None), ("validation_loss", "asha", None),
                ("test_loss", "asha", "has no 'test_loss'"),
                ("validation_los", "none", "mean 'validation_loss'")):
            options = types.SimpleNamespace(bin_dir=None, metric=metric,
                                            maximize=False, pruner=pruner)
            sweep = SweepDriver(options, None, [], [])
            one = trial.Trial(self.dir, 0, metric)
            sweep.on_line(None, one, stamp + "step=20 validation_loss=0.25")
            if at_first is not None:
                self.assertIn(at_first, str(sweep.failure))
                continue
            sweep.on_line(None, one, stamp + "step=20 test_loss=0.5")
            self.assertIsNone(sweep.failure)
            self.assertEqual(one.evaluations(), [
                (20, 0.5 if metric == "test_loss" else 0.25)])

    def test_a_trial_that_went_back_evaluates_again(self):
        one = made(0, [3, 2, 1], "RUNNING")
        one.add_evaluation(20, {METRIC: 7}, "test_")
        self.assertEqual(one.evaluations(), [(10, 3), (20, 7)])

    def test_comes_back_from_its_folder(self):
        one = made(12, [2, 1])
        one.folder = self.path("trial-0012")
        one.save()
        os.makedirs(self.path("trial-0013"))
        found, = trial.Trial.load_all(self.dir, METRIC)
        self.assertEqual(dict(vars(found), folder=""),
                         dict(vars(one), folder=""))


    def test_a_record_that_is_cut_short_is_named(self):
        whole = trial.Trial(self.dir, 7, "test_loss")
        whole.save()
        path = os.path.join(whole.folder, "trial.json")
        for text in ("", '{"state": "DONE"', "[]"):
            self.write(path, text)
            with self.assertRaises(ValueError, msg=text) as caught:
                trial.Trial.load_all(self.dir, "test_loss")
            self.assertIn(path + ": ", str(caught.exception))
            self.assertIn("without the folder %s it is trained again" %
                          whole.folder, str(caught.exception))


class TableTest(harness.TestCase):

    def test_the_best_is_the_first_of_the_best(self):
        trials = [made(0, [2]), made(1, [1]), made(2, [1]),
                  made(3, [0], "PRUNED"), made(4, [], "FAILED")]
        self.assertEqual(table.best(trials, False).number, 1)
        self.assertEqual(table.best(trials, True).number, 0)
        self.assertIsNone(table.best(trials[3:], False))

    def test_what_was_not_measured_is_never_the_best(self):
        trials = [made(0, [2]), made(1, [1])]
        trials[1].figures = {METRIC: None}
        for maximize in (False, True):
            self.assertEqual(table.best(trials, maximize).number, 0)
        table.write_csv(self.dir, trials, ["x"], METRIC)
        with open(self.path("sweep.csv"), encoding="utf-8") as file:
            self.assertEqual(list(csv.reader(file))[2][3], "")

    def test_csv_has_a_row_for_each_trial(self):
        trials = [made(0, [2]), made(1, [5], "PRUNED"), made(2, [], "FAILED")]
        trials[0].figures["test_accuracy"] = 0.5
        trials[2].error = "exit code 1: \"bad\", it said"
        table.write_csv(self.dir, trials, ["x"], METRIC)
        with open(self.path("sweep.csv"), encoding="utf-8") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows, [
            ["trial", "state", "x", METRIC, "test_accuracy", "seconds",
             "error"],
            ["0", "DONE", "0", "2", "0.5", "0.0", ""],
            ["1", "PRUNED", "1", "5", "", "0.0", ""],
            ["2", "FAILED", "2", "", "", "0.0", trials[2].error]])

    def test_table_is_of_the_best_in_order(self):
        trials = [made(0, [2]), made(1, [1]), made(2, [9], "PRUNED")]
        lines = table.text_table(trials, ["x"], METRIC, False).splitlines()
        self.assertEqual(lines[0], "| trial | test_loss | x | seconds |")
        self.assertEqual(lines[2:], [
            "| 1 | 1 | 1 | 0 |", "| 0 | 2 | 0 | 0 |",
            "2 done, 1 pruned, 0 failed"])


class FolderTest(harness.TestCase):

    def claim(self, training="a", path="sweep", **wanted):
        return Folder("sweep", self.path(path)).claim(
            self.write("given", training), dict({"seed": 1}, **wanted)).close()

    def test_is_of_one_definition(self):
        self.claim()
        self.claim()
        for flags, words in (
                ({"seed": 2}, "is of another sweep: it has --seed=1, wanted 2"),
                ({"training": "b"}, "is of another sweep: its --training is"),
                ({"path": "."}, "wanted a new folder or that of the same")):
            with self.assertRaisesRegex(Failure, words):
                self.claim(**flags)

    def test_a_definition_that_is_cut_short_is_named(self):
        training = self.write("t", "text")
        folder = Folder("sweep", self.path("s"))
        folder.claim(training, {"metric": "a"}).close()
        self.write("s/sweep.json", '{"metric"')
        with self.assertRaisesRegex(ValueError, "/s/sweep.json: no JSON"):
            folder.claim(training, {"metric": "a"})

    def test_has_one_user(self):
        folder = Folder("sweep", self.path("sweep"))
        with folder.claim(self.write("given", ""), {}):
            with self.assertRaisesRegex(Failure, "another sweep runs there"):
                folder.claim(self.path("given"), {})


class PackagesTest(harness.TestCase):

    def test_the_first_time_says_what_it_installs_before_it_does(self):
        said = io.StringIO()
        requirements = self.write("packages", "# Of a picture.\na==1\nb==2\n")

        def make(folder, *_):
            self.assertIn("up to 7 s: a, b (%s)" % requirements,
                          said.getvalue())
            os.makedirs(folder)

        with mock.patch.dict(os.environ, XDG_CACHE_HOME=self.dir), \
                mock.patch.object(python_environment, "_make", make), \
                contextlib.redirect_stderr(said):
            python_environment.interpreter(requirements, 7)
            python_environment.interpreter(requirements, 7)
        self.assertEqual(said.getvalue().count("\n"), 1)


class LocalCoresTest(harness.TestCase):

    def threads(self, tasks, **environment):
        with mock.patch.dict(os.environ, {
                "OMP_NUM_THREADS": "", "SLURM_CPUS_PER_TASK": "",
                **environment}), mock.patch.object(
                    os, "sched_getaffinity", lambda _: set(range(8))):
            return local_cores.threads(tasks, self.dir + "/")

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        return super().write(name, text)

    def test_the_least_of_cores_and_quotas_is_shared(self):
        self.assertEqual(self.threads(3), 2)
        self.write("proc/self/cgroup", "4:cpu,cpuacct:/a\n0::/pods/one\n")
        self.write("sys/fs/cgroup/pods/one/cpu.max", "max 100000")
        self.write("sys/fs/cgroup/pods/cpu.max", "350000 100000")
        self.assertEqual(self.threads(2), 2)
        self.write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1")
        self.write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000")
        self.assertEqual(self.threads(1), 4)
        self.write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "200000")
        self.assertEqual(self.threads(1), 2)
        self.assertEqual(self.threads(9), 1)

    def test_variables_are_of_one_task(self):
        self.assertEqual(self.threads(2, OMP_NUM_THREADS="3,2"), 3)
        self.assertEqual(self.threads(2, SLURM_CPUS_PER_TASK="1"), 1)
        for text in ("0", "-1", "many", " "):
            self.assertEqual(self.threads(2, OMP_NUM_THREADS=text), 4)


class SharesTest(harness.TestCase):

    def test_mistakes_are_named(self):
        for names, parallel, words in (
                (["gpu:99"], None, "wanted 'gpu:99', found"),
                (["cpu:0"], 2, "wanted a device for each"),
                (["tpu:0"], None, "found 'tpu:0'")):
            with self.assertRaisesRegex(Failure, words):
                devices.shares(names, parallel)


class MembersTest(harness.TestCase):

    def overrides(self, *flags, lines=None):
        if lines is not None:
            flags += ("--set_each=" + self.write("lines", lines),)
        return ensemble_flags.overrides(ensemble_flags.parse(
            ["--training=t", "--ensemble_dir=d", *flags]))

    def test_differ_by_their_seed(self):
        self.assertEqual([one["seed"] for one in self.overrides()],
                         ["1", "2", "3", "4"])
        self.assertEqual(self.overrides("--members=2", "--seed=7"),
                         [{"seed": "7"}, {"seed": "8"}])

    def test_differ_by_lines_of_a_file(self):
        self.assertEqual(
            self.overrides(lines="# all\na=1 'b.c=x y'  # one\n\na=2\n"),
            [{"a": "1", "b.c": "x y"}, {"a": "2"}])

    def test_mistakes_are_named(self):
        for flags, lines, words in (
                ([], "a=1\nb\n", "line 2: .* found 'b'"),
                ([], "a=1 a=2\n", "line 1: .* each field once, found 'a=2'"),
                ([], "a='1\n", "line 1: No closing quotation"),
                ([], "# none\n", "wanted a line a member, found 0"),
                (["--members=3"], "a=1\na=2\n", "3 by --members, found 2"),
                (["--set-each=/nowhere"], None, "/nowhere: .*No such file")):
            with self.subTest(words), self.assertRaisesRegex(Failure, words):
                self.overrides(*flags, lines=lines)


def probabilities(kind, row):
    """Of a row's outputs, as `worker predict` writes them."""
    if any(x != x for x in row):
        return [NAN] * len(row)
    if kind == "numbers":
        return row
    if kind != "classes":
        return [1 / (1 + math.exp(-x)) for x in row]
    powers = [math.exp(x - max(row)) for x in row]
    # The same sum in any order: equal rows stay equal.
    return [power / math.fsum(powers) for power in powers]


class MeansFiguresTest(harness.TestCase):

    def rows(self, kind, rows):
        return predictions.Rows(array.array(
            kind, [x for row in rows for x in row]), len(rows[0]))

    def figures(self, case, names):
        return predictions.figures(
            self.rows("d", [probabilities(case.kind, row) for row in case.x]),
            self.rows("q" if case.kind == "classes" else "d", case.y),
            case.kind.startswith("probabilit"), names)

    def test_are_those_of_scikit_learn(self):
        with open("tests/worker/metric/golden.txt", encoding="utf-8") as file:
            lines = [line for line in file if not line.startswith("#")]
        self.assertEqual(len(lines), CASES)
        for number, line in enumerate(lines):
            case = Case(number)
            names = ["test_r2"] if case.kind == "numbers" else [
                "test_precision", "test_recall", "test_f1", "test_auc",
                "test_log_loss"]
            found = self.figures(case, names)
            for name, wanted in zip(names, map(float, line.split())):
                with self.subTest(number=number, name=name):
                    if math.isnan(wanted):
                        self.assertIsNone(found[name])
                    else:
                        self.assertAlmostEqual(found[name], wanted, 9)

    def test_of_the_likeliest_count_equal_ones_before(self):
        case = Case(0)
        case.x, case.y = [[3, 2, 1], [1, 1, 1], [1, 1, 1], [NAN, 1, 1]], [
            [1], [1], [2], [0]]
        found = self.figures(case, ["test_top_2_accuracy", "test_by_class"])
        self.assertEqual(found["test_top_2_accuracy"], 0.5)
        self.assertNotIn("test_by_class", found)


if __name__ == "__main__":
    harness.main()
