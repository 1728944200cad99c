"""_model.py over a fake of libmuster: parameters by name, in place."""

import math
import unittest

import muster
import numpy
from muster import _job
from tests.integration import harness
from tests.worker.python import fake_library


class ModelTest(unittest.TestCase):

    def setUp(self):
        self.library = fake_library.use(fake_library.FakeLibrary(), self)
        self.library.shapes = [(2,), ()]
        self.w = numpy.array([5, 6], numpy.float32)
        self.b = numpy.array(1, numpy.float32)
        self.addCleanup(self.abandon)

    def abandon(self):
        job = _job.current()
        if job is not None:
            job.abandon()

    def model(self, *arguments, **named):
        return muster.Model({"w": self.w, "b": self.b}, *arguments, ps="h:1",
                            **named)

    def assert_refused(self, pattern, call, *arguments, **named):
        with self.assertRaisesRegex(muster.ConfigError, pattern):
            call(*arguments, **named)

    def test_trains_in_place_until_the_job_is_over(self):
        gradients = {"b": numpy.array(0.5, numpy.float32),
                     "w": numpy.ones(2, numpy.float32)}
        with self.model("adam", 0.25, steps=3) as model:
            self.assertEqual((model.step, model.global_step), (1, 10))
            while not model.done:
                model.push_pull(gradients, loss=2.0)
                self.assertEqual(model.staleness, 0.5)
            model.push_pull(gradients)
        self.assertEqual((self.w.tolist(), float(self.b)), ([2, 3], -0.5))
        self.assertEqual(self.library.reports, [(2.0, -1, -1, 1.0)] * 3)
        self.assertIn('optimizer { name: "adam" attr { name: "learning_rate" '
                      "f: 0.25 } }", self.library.spec)

    def test_counts_the_examples_of_rows_that_nobody_deals(self):
        model = self.model(steps=3)
        model.push_pull({"w": None, "b": None}, examples=64)
        self.assertEqual(self.library.reports[0][1], 64)

    def test_has_the_rows_of_its_step(self):
        self.library.rows = [[4, 2, 7], [1], [0]]
        model = self.model(rows=8, batch_size=3, epochs=1)
        self.assertIn("epoch_rows: 8\nstep_rows: 3\n", self.library.spec)
        self.assertEqual((model.rows().tolist(), model.epoch), ([4, 2, 7], 2))
        model.push_pull({"w": None, "b": None}, examples=2, correct=1)
        self.assertEqual(model.rows().tolist(), [1])
        model.push_pull({"w": None, "b": None})
        model.push_pull({"w": None, "b": None})
        self.assertEqual(model.rows().tolist(), [])
        self.assertEqual([report[1] for report in self.library.reports],
                         [2, 1, 1])

    def test_state_and_settings_of_the_rule_are_told(self):
        self.model(("momentum", {"momentum": 0.5}), 0.1, state=["b"])
        self.assertIn('tensor { name: "b" is_state: true }', self.library.spec)
        self.assertIn('attr { name: "momentum" f: 0.5 }', self.library.spec)

    def test_gradients_of_other_names_are_refused(self):
        model = self.model()
        self.assert_refused("wanted gradients of 'b', 'w', found those of 'w'",
                            model.push_pull, {"w": None})
        self.assert_refused("found those of none", model.push_pull, {})

    def test_gradients_of_other_shapes_are_refused(self):
        self.assert_refused(
            r"gradient of 'w': wanted the shape \[2\], found \[2, 1\]",
            self.model().push_pull,
            {"b": None, "w": numpy.zeros((2, 1), numpy.float32)})

    def test_settings_that_do_not_fit_are_refused(self):
        self.assert_refused("rows=8 and batch_size=0 belong together",
                            self.model, rows=8)
        self.assert_refused("did you mean 'epochs'", self.model, epoch=2)
        self.assert_refused("state: wanted one of w, b, found 'c'", self.model,
                            state=["c"])
        for rate in (-0.1, 0, numpy.float32(-1), float("nan")):
            self.assert_refused("learning_rate: wanted more than 0",
                                self.model, "adam", rate)
        self.assert_refused("learning_rate: wanted more than 0, found -1",
                            self.model, ("adam", {"learning_rate": -1}))
        model = self.model()
        self.assert_refused("nobody deals rows", model.rows)

    def test_one_that_cannot_start_leaves_room_for_another(self):
        self.library.failures["start"] = 1
        self.assert_refused("", self.model)
        self.w = self.w.astype(float)
        self.assert_refused("float32, found float64", self.model)
        self.w = self.w.astype(numpy.float32)
        self.model()

    def test_one_that_never_had_values_is_not_made(self):
        self.library.steps = 0
        with self.assertRaisesRegex(muster.JobOver, "initial ones"):
            self.model()
        fake_library.use(fake_library.FakeLibrary(), self)
        self.model()

    def test_a_loss_is_optional(self):
        self.model().push_pull({"w": None, "b": None})
        self.assertTrue(math.isnan(self.library.reports[0][0]))
        self.assertEqual(self.library.reports[0][1:], (-1, -1, 1.0))

    def test_use_after_finish_is_refused(self):
        model = self.model()
        model.finish()
        self.assert_refused(r"after finish\(\)", model.push_pull,
                            {"w": None, "b": None})


if __name__ == "__main__":
    harness.main()
