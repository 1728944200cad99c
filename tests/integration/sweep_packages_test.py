"""The parts of `muster sweep` that use packages: Optuna, picture, hparams."""

import json
import math
import os
import sys
import types
from xml.etree import ElementTree

from scripts.base import python_environment
from tests.integration import harness

sys.path.insert(0, os.path.abspath("scripts"))
# pylint: disable=wrong-import-position
from base.failure import Failure
from sweep import main, sampler, space, trial

FOLDER = os.path.abspath("scripts/sweep")
# python_environment gives up by itself.
INSTALL_S = 300
METRIC = "test_loss"
TEXTS = ["rate=log:1e-6:1", "units=int:1:64:7", "kind=choice:a,b"]
# Prints [{"name", "hparams", "metrics"}] as TensorBoard's page has them.
READ_HPARAMS = """
import json, sys
from tensorboard import context
from tensorboard.backend.event_processing import data_provider
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import (
    api_pb2, backend_context, list_session_groups)
runs = plugin_event_multiplexer.EventMultiplexer()
runs.AddRunsFromDirectory(sys.argv[1])
runs.Reload()
groups = list_session_groups.Handler(
    context.RequestContext(),
    backend_context.Context(base_plugin.TBContext(
        data_provider=data_provider.MultiplexerDataProvider(runs, ""))),
    "", api_pb2.ListSessionGroupsRequest(
        slice_size=100, allowed_statuses=[0, 1, 2, 3],
        include_metrics=True)).run().session_groups
print(json.dumps([{
    "name": one.name,
    "hparams": {key: value.number_value or value.string_value
                for key, value in one.hparams.items()},
    "metrics": {value.name.tag: value.value for value in one.metric_values}}
    for one in groups]))
"""


def made(number, parameters, value, state="DONE"):
    one = trial.Trial("sweep", number, METRIC)
    one.state = state
    one.parameters = parameters
    one.figures = {METRIC: value}
    one.all_evaluations = [[10, {METRIC: value}]]
    return one


class StudyTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        main.add_packages(python_environment.interpreter(
            os.path.join(FOLDER, "requirements.txt")))
        self.parameters = space.parse_all(TEXTS)
        self.values = sampler.create("random", self.parameters, 1)
        self.pruner, self.maximize = "none", False

    def study(self):
        from sweep import study  # pylint: disable=import-outside-toplevel
        return study.Study(types.SimpleNamespace(
            sweep_dir=self.dir, metric=METRIC, maximize=self.maximize, seed=1,
            pruner=self.pruner), self.parameters)

    def trial(self, number):
        one = trial.Trial(self.dir, number, METRIC)
        one.parameters = self.values.suggest(number)
        return one

    def follow(self, study, one, *values):
        """Whether each evaluation left no hope."""
        said = []
        for value in values:
            one.add_evaluation(10 * (1 + len(one.all_evaluations)), {}
                               if math.isnan(value) else {METRIC: value},
                               "test_")
            said.append(study.follow(one))
        return said

    def end(self, study, one, *values, state="DONE"):
        said = self.follow(study, one, *values)
        one.state = state
        if state == "DONE":
            one.figures = {METRIC: values[-1] if values else None}
        study.follow(one)
        return said


class TpeTest(StudyTest):

    def past(self, study):
        """Trials that are the better, the nearer to a rate of 1, and with kind
        b by far."""
        for i in range(30):
            one = self.trial(i)
            worse = -math.log10(float(one.parameters["rate"]))
            self.end(study, one, worse + 9 * (one.parameters["kind"] == "a"))
        study.follow(self.trial(30))
        self.end(study, self.trial(31), state="FAILED")

    def test_goes_where_it_was_good(self):
        study = self.study()
        self.past(study)
        found = [study.suggest(32 + i) for i in range(4)]
        # Each keeps away from those that run, so one may be elsewhere.
        good = [one for one in found
                if one["kind"] == "b" and float(one["rate"]) > 1e-3]
        self.assertGreaterEqual(len(good), 3, found)
        for one in found:
            self.assertIn(one["units"], self.parameters[1].points)
        self.assertEqual(len({one["rate"] for one in found}), 4)

    def test_goes_on_from_the_journal(self):
        study = self.study()
        self.past(study)
        found = study.suggest(32)
        with open(self.path("optuna.journal"), "rb+") as file:
            # Without the trial that was suggested, and half a line more.
            lines = file.read().splitlines(keepends=True)
            file.seek(0)
            file.truncate()
            kept = [line for line in lines if json.loads(line).get("trial_id",
                                                                   0) < 32]
            file.write(b"".join(kept[:-1]) + kept[-1][:9])
        self.assertEqual(self.study().suggest(32), found)

    def test_a_journal_of_something_else_is_named(self):
        self.write("optuna.journal", "nonsense\n" * 2)
        with self.assertRaisesRegex(Failure, "optuna.journal: no journal"):
            self.study()


class PrunerTest(StudyTest):

    def test_median_prunes_what_is_worse_at_the_same_evaluation(self):
        for maximize, hopeless in ((False, [False, False, True]),
                                   (True, [True, False, False])):
            self.pruner, self.maximize = "median", maximize
            study = self.study()
            for i, value in enumerate((1, 2, 3)):
                self.assertEqual(
                    self.end(study, self.trial(i), value, 0.0), [False] * 2)
            self.assertEqual(
                [self.follow(study, self.trial(3 + i), value)[0]
                 for i, value in enumerate((1.5, 2, 2.5))], hopeless)

    def test_median_waits_for_three_trials_that_are_done(self):
        self.pruner = "median"
        study = self.study()
        for i, state in enumerate(("DONE", "DONE", "PRUNED", "FAILED")):
            self.end(study, self.trial(i), 1, state=state)
        self.assertEqual(self.follow(study, self.trial(4), 9), [False])
        self.end(study, self.trial(5), 1)
        self.assertEqual(self.follow(study, self.trial(6), 9), [True])

    def test_asha_lets_a_third_pass_each_of_evaluations_1_3_9(self):
        self.pruner = "asha"
        study = self.study()
        for i in range(6):
            self.end(study, self.trial(i), *[i] * 9, state="PRUNED")
        self.assertEqual(self.follow(study, self.trial(6), *[9] * 3),
                         [True, False, True])
        self.assertEqual(self.follow(study, self.trial(7), *[1] * 3),
                         [False, False, False])
        self.assertEqual(self.follow(study, self.trial(8), -1, -1, 9),
                         [False, False, True])

    def test_a_trial_that_diverged_prunes_no_good_one(self):
        self.pruner = "asha"
        study = self.study()
        # The best of all, before it failed; and one that goes on with NaN.
        self.end(study, self.trial(0), 0.1, state="FAILED")
        self.assertEqual(self.follow(study, self.trial(1), math.nan), [True])
        self.assertEqual(self.follow(study, self.trial(2), 0.5, 0.4, 0.3),
                         [False] * 3)
        self.assertEqual(self.follow(study, self.trial(3), 0.6), [True])

    def test_a_study_goes_on_with_what_was_on_the_rungs(self):
        self.pruner = "asha"
        one = self.trial(0)
        self.follow(self.study(), one, 1.0)
        study = self.study()
        study.follow(one)
        study.drop_others([one])
        self.assertEqual(self.follow(study, self.trial(1), 2.0), [True])
        # What another metric, or a journal that is gone, has not seen.
        os.remove(self.path("optuna.journal"))
        study = self.study()
        self.assertFalse(study.follow(one))
        self.assertEqual(self.follow(study, self.trial(1), 2.0), [True])

    def test_a_trial_whose_folder_is_gone_is_none_of_the_sweep(self):
        self.pruner = "asha"
        self.follow(self.study(), self.trial(0), 1.0)
        study = self.study()
        study.drop_others([])
        self.assertEqual(self.follow(study, self.trial(1), 2.0), [False])

    def test_one_that_failed_and_goes_on_is_compared_again(self):
        self.pruner = "asha"
        study = self.study()
        one = self.trial(0)
        self.end(study, one, 1.0, state="FAILED")
        one.state = "RUNNING"
        self.assertEqual(self.follow(study, one, 1.0), [False])
        self.assertEqual(self.follow(study, self.trial(1), 2.0), [True])

    def test_none_prunes_nothing(self):
        study = self.study()
        for i in range(9):
            self.end(study, self.trial(i), 1)
        self.assertEqual(self.follow(study, self.trial(9), 9), [False])


class PackagesTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        self.parameters = space.parse_all(TEXTS)
        self.python = python_environment.interpreter(
            os.path.join(FOLDER, "requirements.txt"))
        main.add_packages(self.python)

    def write_by(self, module, trials):
        return module.write(types.SimpleNamespace(
            sweep_dir=self.dir, metric=METRIC, maximize=False), trials,
            self.parameters)

    def trials(self):
        return [made(0, {"rate": "0.1", "units": "1", "kind": "a"}, 0.5),
                made(1, {"rate": "1e-06", "units": "64", "kind": "b"}, 0.25),
                made(2, {"rate": "1.0", "units": "32", "kind": "b"}, 2.0,
                     "PRUNED")]

    def test_picture_names_axes_and_ends(self):
        from sweep import picture  # pylint: disable=import-outside-toplevel
        path = self.write_by(picture, self.trials())
        with open(path, encoding="utf-8") as file:
            drawn = file.read()
        ElementTree.fromstring(drawn)
        for words in ("rate", "units", "kind", METRIC, "1e-06", "64", "0.25"):
            self.assertIn(">%s<" % words, drawn)
        self.write_by(picture, self.trials()[:1])

    def test_hparams_are_what_tensorboard_reads(self):
        from sweep import hparams  # pylint: disable=import-outside-toplevel
        for _ in range(2):
            output = self.write_by(hparams, self.trials())
        logdir = output.split("--logdir=")[1]
        code, output = self.run_to_end(
            "reader", [self.python, "-c", READ_HPARAMS, logdir], INSTALL_S)
        self.assertEqual(code, 0, output)
        groups = sorted(json.loads(output.splitlines()[-1]),
                        key=lambda one: one["name"])
        self.assertEqual([one["name"] for one in groups], ["0", "1", "2"])
        self.assertEqual(groups[0]["hparams"],
                         {"rate": 0.1, "units": 1.0, "kind": "a"})
        self.assertEqual([one["metrics"] for one in groups],
                         [{METRIC: 0.5}, {METRIC: 0.25}, {METRIC: 2.0}])


if __name__ == "__main__":
    harness.main()
