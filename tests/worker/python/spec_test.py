"""_spec.py: texts of protobuf from Python's values, and what is refused."""

import pathlib
import unittest

import numpy

from muster import ConfigError
from muster import _spec
from muster._spec import Settings
from tests.integration import harness


class SpecTest(unittest.TestCase):

    def assert_refused(self, pattern, call, *arguments):
        with self.assertRaisesRegex(ConfigError, pattern):
            call(*arguments)

    def test_quoted_escapes_what_ends_a_string_or_line(self):
        self.assertEqual(_spec.quoted('a"b\\c\n\0'),
                         '"a\\042b\\134c\\012\\000"')
        self.assertEqual(_spec.quoted("ü1"), '"\\303\\2741"')

    def test_a_whole_program(self):
        text = _spec.program_text(
            Settings(ps=["a:1", "b:2"], train_dir=pathlib.Path("run"), seed=7,
                     task_index=1, max_wait=2, steps=numpy.int64(5)),
            ("adam", {"learning_rate": 1e-3, "nesterov": True, "k": 2}),
            [("w", (3, 2), False), ("mean", (), True)], 10, 4, 1, True,
            "decay=1")
        self.assertEqual(text.decode(), """ps_hosts: "a:1,b:2"
train_dir: "run"
task_index: "1"
max_wait_seconds: 2
training {

stop { steps: 5 }
seed: 7
optimizer { name: "adam" attr { name: "learning_rate" f: 0.001 } """
                         """attr { name: "nesterov" b: true } """
                         """attr { name: "k" i: 2 } }
}
tensor { name: "w" shape: 3 shape: 2 }
tensor { name: "mean" is_state: true }
epoch_rows: 10
step_rows: 4
steps_ahead: 1
in_order: true
settings: "decay=1"
""")

    def test_a_setting_joins_the_message_that_the_text_has(self):
        text = 'stop: { plateau { metric: "stop {" } } # stop {\n'
        self.assertEqual(
            _spec.merged(text, "stop", "steps: 5 "),
            'stop: { steps: 5  plateau { metric: "stop {" } } # stop {\n')

    def test_a_message_within_another_is_not_the_one(self):
        text = "a { stop { } } # stop {"
        self.assertEqual(_spec.merged(text, "stop", "steps: 5 "),
                         text + "\nstop { steps: 5 }")

    def test_replication_by_name_or_with_settings(self):
        for given, wanted in (
                ("sync", "sync { } "),
                ({"sync": {"replicas": 2}},
                 "sync { replicas_to_aggregate: 2 } "),
                ({"sync": {"when_too_few": "EXIT"}},
                 "sync { when_too_few: EXIT } "),
                ({"bounded_staleness": {"bound": 4}},
                 "bounded_staleness { bound: 4 } ")):
            self.assertEqual(_spec.replication_text(given), wanted)

    def test_replication_that_there_is_not_is_refused(self):
        self.assert_refused("'snyc'; did you mean 'sync'",
                            _spec.replication_text, "snyc")
        self.assert_refused("a dict of settings for 'sync'",
                            _spec.replication_text, {"sync": 2})
        self.assert_refused("with settings as", _spec.replication_text, None)
        self.assert_refused("the name of a field", _spec.replication_text,
                            {"sync": {"a b": 1}})

    def test_numbers_that_are_none_are_refused_by_name(self):
        for settings, pattern in (
                (Settings(steps=1.5), "steps: wanted a whole number"),
                (Settings(steps="5"), "steps: wanted a whole number"),
                (Settings(epochs=-1), "epochs: wanted a number of at least 0"),
                (Settings(seconds=float("nan")), "seconds: wanted"),
                (Settings(keep=True), "keep: wanted a whole number"),
                (Settings(max_wait="1m"), "max_wait: wanted a number"),
                (Settings(ps=7), "ps: wanted"),
                (Settings(train_dir=7), "train_dir: wanted a path"),
                (Settings(namespace=7), "namespace: wanted a string"),
                (Settings(training=None), "training: wanted the text")):
            with self.subTest(pattern):
                self.assert_refused(pattern, _spec.program_text, settings,
                                    ("sgd", {}))

    def test_settings_of_a_rule_that_are_none_are_refused_by_name(self):
        self.assert_refused("optimizer.learning_rate: wanted a finite number",
                            _spec.rule_text,
                            ("sgd", {"learning_rate": float("inf")}))
        self.assert_refused("optimizer.beta1: wanted a number",
                            _spec.rule_text, ("sgd", {"beta1": None}))
        self.assert_refused("the name of an update rule", _spec.rule_text,
                            (None, {}))


class EnvironmentTest(unittest.TestCase):

    ENVIRONMENT = {"MUSTER_CLUSTER": "c.json", "MUSTER_TASK_INDEX": "3",
                   "MUSTER_JOB_NAME": "worker", "MUSTER_CERTS_DIR": "",
                   "MUSTER_ALLOW_INSECURE_NETWORK": "1"}

    def test_says_what_the_arguments_do_not(self):
        found = _spec.with_environment(Settings(seed=4), self.ENVIRONMENT)
        self.assertEqual(found, Settings(
            cluster="c.json", task_index="3", job_name="worker", seed=4,
            allow_insecure_network=True))

    def test_may_say_the_same(self):
        found = _spec.with_environment(Settings(
            task_index=3, cluster=pathlib.Path("c.json")), self.ENVIRONMENT)
        self.assertEqual(found.task_index, 3)

    def test_that_contradicts_is_refused_with_both(self):
        with self.assertRaisesRegex(
                ConfigError, r"init\(task_index=4\) contradicts "
                "MUSTER_TASK_INDEX=3 of the environment"):
            _spec.with_environment(Settings(task_index=4), self.ENVIRONMENT)

    def test_that_says_neither_yes_nor_no_is_refused(self):
        with self.assertRaisesRegex(ConfigError, "found 'maybe'"):
            _spec.with_environment(
                Settings(), {"MUSTER_ALLOW_INSECURE_NETWORK": "maybe"})

    def test_ps_alone_is_the_chief_with_a_train_dir_else_any(self):
        def index(environment=None, **given):
            return _spec.with_default_task(
                Settings(**{"ps": "h:1", **given}), environment or {}).task_index

        self.assertEqual(index(train_dir="run1"), 0)
        self.assertEqual(index(train_dir="run1", workers="any"), 0)
        self.assertEqual(index(), "any")
        self.assertEqual(index(job_name="worker"), "any")
        self.assertEqual(index({"WORLD_SIZE": "1"}), "any")
        self.assertEqual(index(task_index=3, train_dir="run1"), 3)
        for given in ({"workers": "h:2"}, {"cluster": "c.json"}, {"ps": None},
                      {"job_name": "chief"},
                      {"environment": {"TF_CONFIG": "{}"}},
                      {"environment": {"WORLD_SIZE": "2"}},
                      {"environment": {"JOB_COMPLETION_INDEX": "0"}}):
            with self.subTest(given):
                self.assertIsNone(index(train_dir="run1", **given))


if __name__ == "__main__":
    harness.main()
