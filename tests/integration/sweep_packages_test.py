"""The parts of `muster sweep` that use packages: tpe, picture, hparams."""

import json
import os
import sys
from xml.etree import ElementTree

from tests.integration import harness
from scripts.base import python_environment

sys.path.insert(0, os.path.abspath("scripts"))
# pylint: disable=wrong-import-position
from sweep import sampler, space, trial

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


class PackagesTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        self.parameters = space.parse_all(TEXTS)
        self.python = python_environment.interpreter(
            os.path.join(FOLDER, "requirements.txt"))

    def suggest(self, number, trials, seed=1):
        return sampler.create("tpe", self.parameters, seed, False,
                              self.python).suggest(number, trials)

    def test_tpe_goes_where_it_was_good(self):
        randomly = sampler.create("random", self.parameters, 1, False, None)
        past = []
        for i in range(30):
            values = randomly.suggest(i, past)
            # The better, the nearer to a rate of 1, and kind b by far.
            worse = -space.math.log10(float(values["rate"]))
            past.append(made(i, values, worse + 9 * (values["kind"] == "a")))
        past.append(made(30, values, None, "RUNNING"))
        past.append(made(31, values, None, "FAILED"))
        found = [self.suggest(32 + i, past) for i in range(4)]
        for one in found:
            self.assertEqual(one["kind"], "b")
            self.assertGreater(float(one["rate"]), 1e-3)
            self.assertIn(one["units"], self.parameters[1].points)
        self.assertEqual(self.suggest(32, past), found[0])
        self.assertNotEqual(found[0]["rate"], found[1]["rate"])

    def run_program(self, name, trials):
        document = json.dumps({
            "sweep_dir": self.dir, "metric": METRIC, "maximize": False,
            "parameters": [vars(one) for one in self.parameters],
            "trials": [dict(vars(one), value=one.value()) for one in trials]})
        self.write("document.json", document)
        code, output = self.run_to_end(name, [
            "bash", "-c", '"$0" "$1" < "$2"', self.python,
            os.path.join(FOLDER, name), self.path("document.json")], INSTALL_S)
        self.assertEqual(code, 0, output)
        return output.strip()

    def trials(self):
        return [made(0, {"rate": "0.1", "units": "1", "kind": "a"}, 0.5),
                made(1, {"rate": "1e-06", "units": "64", "kind": "b"}, 0.25),
                made(2, {"rate": "1.0", "units": "32", "kind": "b"}, 2.0,
                     "PRUNED")]

    def test_picture_names_axes_and_ends(self):
        path = self.run_program("picture.py", self.trials())
        with open(path, encoding="utf-8") as file:
            drawn = file.read()
        ElementTree.fromstring(drawn)
        for words in ("rate", "units", "kind", METRIC, "1e-06", "64", "0.25"):
            self.assertIn(">%s<" % words, drawn)
        self.run_program("picture.py", self.trials()[:1])

    def test_hparams_are_what_tensorboard_reads(self):
        for _ in range(2):
            output = self.run_program("hparams.py", self.trials())
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
