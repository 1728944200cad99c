"""_rows.py over a fake of libmuster: sparse tables of a job and of a model."""

import unittest
import warnings

import muster
import numpy
from muster import _job, _library
from tests.integration import harness
from tests.worker.python import fake_library

F = numpy.float32


class RowsTest(unittest.TestCase):

    def setUp(self):
        self.library = fake_library.use(fake_library.FakeLibrary(), self)
        self.library.shapes = [(2,)]
        self.library.dims = [2, 1]
        self.w = numpy.zeros(2, F)
        self.addCleanup(self.abandon)

    def abandon(self):
        job = _job.current()
        if job is not None:
            job.abandon()

    def start(self, job=None):
        job = job or muster.init(ps="h:1")
        job.start([("w", (2,), False, self.w)], ("sgd", {"learning_rate": 1.0}),
                  tables=[("user", 2), ("item", 1)])
        return job

    def begin(self):
        job = self.start()
        job.await_step()
        return job

    def assert_refused(self, pattern, call, *arguments, **named):
        with self.assertRaisesRegex(muster.ConfigError, pattern):
            call(*arguments, **named)

    def test_tables_and_their_settings_are_told_in_order(self):
        job = muster.init(ps="h:1", training="# one of\n# two")
        job.table("user|item", "adam", learning_rate=0.5, beta1=0.8,
                  initial="zeros", max_rows=7)
        job.table(".*", scale=0.25)
        self.assertEqual(job.tables, {})
        self.start(job)
        self.assertEqual(job.tables, {"user": 2, "item": 1})
        spec = self.library.spec
        self.assertIn(
            'table { pattern: "user|item" optimizer { name: "adam" attr { name: '
            '"learning_rate" f: 0.5 } attr { name: "beta1" f: 0.8 } } '
            "initial: ZEROS scale: 0.05 max_rows: 7 }\n"
            'table { pattern: ".*" initial: UNIFORM scale: 0.25 max_rows: 0 }\n',
            spec)
        self.assertIn('}\ntensor { name: "w" shape: 2 }\ntable { name: "user" '
                      'dim: 2 }\ntable { name: "item" dim: 1 }\n', spec)

    def test_settings_that_cannot_be_are_refused(self):
        job = muster.init(ps="h:1")
        self.assert_refused("wanted a pattern of names", job.table, "")
        self.assert_refused("learning_rate: of which rule", job.table, "user",
                            learning_rate=1)
        self.assert_refused("initial: wanted one of uniform, zeros",
                            job.table, "user", initial="zero")
        self.assert_refused("scale: wanted a number of at least 0", job.table,
                            "user", scale=-1)
        self.assert_refused("max_rows: wanted a whole", job.table, "user",
                            max_rows=1.5)
        self.start(job)
        self.assert_refused("the job has started", job.table, "user")

    def test_tables_that_cannot_be_are_refused(self):
        for tables, pattern in (([("a", 1), ("a", 2)], "two tables .* 'a'"),
                                ([("a", 0)], "table 'a': dim: .* least 1"),
                                ([("a", 1.5)], "table 'a': dim: .* whole")):
            job = muster.init(ps="h:1")
            self.assert_refused(pattern, job.start, [
                ("w", (2,), False, self.w)], ("sgd", {}), tables=tables)
            job.abandon()

    def test_rows_have_the_shape_of_the_ids(self):
        job = self.begin()
        values = job.pull_rows("user", [[3, 4], [3, -5]])
        self.assertEqual(values.dtype, F)
        self.assertEqual(values[..., 1].tolist(), [[3, 4], [3, -5]])
        self.assertEqual(job.pull_rows("item", 2 ** 40).shape, (1,))
        self.assertEqual(job.pull_rows("user", []).shape, (0, 2))
        self.assertEqual(self.library.pulls, [(0, [3, 4, 3, -5]),
                                              (1, [2 ** 40])])

    def test_gradients_leave_with_the_push_and_change_their_rows_alone(self):
        job = self.begin()
        job.push_rows("user", [3], numpy.array([[1, 2]], F))
        self.assertEqual(self.library.given_rows, [])
        job.push([None])
        job.await_step()
        self.assertEqual(job.pull_rows("user", [3, 4]).tolist(),
                         [[2, 1], [4, 4]])

    def test_gradients_of_equal_ids_are_summed_in_their_order(self):
        job = self.begin()
        # In another order they would be 0 or 1.
        parts = [F(1e8), F(1), F(-1e8)]
        job.push_rows("item", [7, 7], numpy.array([[parts[0]], [parts[1]]]))
        job.push_rows("item", [[8, 7]], numpy.array([[[5], [parts[2]]]], F))
        job.push([None])
        self.assertEqual(float(self.library.row(1, 7)[0]),
                         7 - float(F(F(parts[0] + parts[1]) + parts[2])))
        self.assertEqual(float(self.library.row(1, 8)[0]), 3)

    def test_a_pull_waits_over_its_timeouts(self):
        job = self.begin()
        self.library.failures["pull_rows"] = _library.NOT_YET
        self.assertEqual(job.pull_rows("item", [3]).tolist(), [[3]])

    def test_rows_of_a_job_that_ends_meanwhile_are_none(self):
        job = self.begin()
        self.library.stopped_by = 0
        self.library.failures["pull_rows"] = _library.JOB_OVER
        self.assertIsNone(job.pull_rows("item", [3]))
        self.assertTrue(job.done)
        self.assertIsNone(job.pull_rows("item", [3]))
        job.push_rows("item", [3], numpy.zeros((1, 1), F))
        job.push([None])
        self.assertEqual(self.library.given_rows, [])

    def test_a_job_over_that_offers_a_step_again_is_asked_again(self):
        job = self.begin()
        self.library.failures["pull_rows"] = _library.JOB_OVER
        self.assertEqual(job.pull_rows("item", [3]).tolist(), [[3]])

    def test_what_has_ended_the_job_is_raised(self):
        job = self.begin()
        self.library.stopped_by, self.library.exit_code = 0, 3
        self.library.words = "disk"
        self.library.failures["pull_rows"] = _library.JOB_OVER
        with self.assertRaisesRegex(muster.CheckpointError, "disk"):
            job.pull_rows("item", [3])

    def test_an_error_of_rows_is_that_of_the_call(self):
        job = self.begin()
        self.library.words = "not finite"
        self.library.failures["push_rows"] = 1
        job.push_rows("item", [3], numpy.zeros((1, 1), F))
        self.assert_refused("not finite", job.push, [None])
        self.library.failures["pull_rows"] = 1
        self.assert_refused("not finite", job.pull_rows, "item", [3])

    def test_rows_that_are_refused_since_the_job_is_over_are_no_error(self):
        job = self.begin()
        self.library.failures["push_rows"] = 1
        self.library.stopped_by = 0
        job.push_rows("item", [3], numpy.zeros((1, 1), F))
        job.push([None])
        self.assertTrue(job.done)

    def test_calls_that_cannot_be_are_refused(self):
        job = muster.init(ps="h:1")
        self.assert_refused("no parameters yet", job.pull_rows, "user", [1])
        self.start(job)
        self.assert_refused("no step is wanted", job.pull_rows, "user", [1])
        job.await_step()
        self.assert_refused("wanted one of user, item, found 'users'; did you",
                            job.pull_rows, "users", [1])
        self.assert_refused("whole numbers .*found float64", job.pull_rows,
                            "user", [1.5])
        self.assert_refused(r"push_rows\('user'\): gradients: wanted the shape "
                            r"\[2, 2\], found \[2, 1\]", job.push_rows, "user",
                            [1, 2], numpy.zeros((2, 1), F))
        self.assert_refused("found float64", job.push_rows, "user", [1],
                            numpy.zeros((1, 2)))

    def test_first_rows_are_those_of_the_settings(self):
        job = muster.init(ps="h:1", seed=-1)
        job.table("u.*", initial="zeros")
        ids = numpy.array([[4], [-1]])
        self.assertEqual(job.first_rows("user", 2, ids).tolist(),
                         [[[8, 8]], [[-2, -2]]])
        self.assertEqual(self.library.spec, 'name: "user" dim: 2 initial: ZEROS '
                         "scale: 0.05 seed: %d" % (2 ** 64 - 1))
        job.first_rows("item", 1, ids)
        self.assertIn("initial: UNIFORM scale: 0.05 ", self.library.spec)

    def test_a_model_has_tables(self):
        with muster.Model({"w": self.w}, ps="h:1", steps=3, tables={
                "user": {"dim": 2, "optimizer": "adagrad", "initial": "zeros"},
                "item": 1}) as model:
            self.assertIn('pattern: "user" optimizer { name: "adagrad" } '
                          "initial: ZEROS", self.library.spec)
            self.assertEqual(self.library.spec.count("pattern"), 1)
            while not model.done:
                item = model.pull_rows("item", [9])
                model.push_rows("item", [9], item / 3)
                model.push_pull({"w": None})
            self.assertEqual(model.pull_rows("item", [9]).tolist(), [[0]])
        self.assertAlmostEqual(float(self.library.row(1, 9)[0]), 9 * 8 / 27,
                               places=5)

    def test_a_living_jobs_tables_are_not_read_and_named(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(muster.load(ps="h:1").tables, {})
        self.library.tables = [b"user", b"item"]
        with self.assertWarnsRegex(UserWarning, r"\('user', 'item'\): load\(tr"):
            found = muster.load(ps="h:1")
        self.assertEqual((found["w"].tolist(), found.tables), ([5, 6], {}))


if __name__ == "__main__":
    harness.main()
