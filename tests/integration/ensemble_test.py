"""scripts/muster ensemble, and a worker that uses several models as one."""

import math
import os
import struct

from tests.integration import harness

MUSTER = os.path.abspath("scripts/muster")
ROWS = 50
CLASSES = 10
# The worker of the last member, which is killed after its first half.
KILLED_ONCE = """#!/bin/sh
case "$*" in *member-02*)
  if mkdir '%(marker)s' 2>/dev/null; then
    '%(worker)s' "$@" --set=stop.steps=100
    kill -9 $$
  fi ;;
esac
exec '%(worker)s' "$@"
"""


class EnsembleTest(harness.TestCase):

    def ensemble(self, *flags):
        """Returns (exit code, output)."""
        training = self.write("training.textproto", harness.softmax_regression(
            200, test_examples=ROWS))
        return self.run_to_end("ensemble", [
            MUSTER, "ensemble", "--training=" + training, "--no_build",
            "--bin_dir=" + os.getcwd(), "--parallel=2",
            "--ensemble_dir=" + self.path("ens"), *flags])

    def kill_the_last_once(self):
        """The --bin_dir in which that happens."""
        os.makedirs(self.path("bin/worker/ctl"))
        os.symlink(harness.binary("worker/ctl/musterctl"),
                   self.path("bin/worker/ctl/musterctl"))
        path = self.write("bin/worker/worker", KILLED_ONCE % {
            "worker": harness.worker(), "marker": self.path("marker")})
        os.chmod(path, 0o755)
        return "--bin_dir=" + self.path("bin")

    def floats(self, path):
        """The float32 of a file of predictions."""
        with open(self.path(path), "rb") as file:
            return struct.unpack("<%df" % (ROWS * CLASSES),
                                 file.read()[-4 * ROWS * CLASSES:])

    def test_a_killed_member_goes_on_and_all_answer_as_one(self):
        flags = ["--members=3", self.kill_the_last_once()]
        code, output = self.ensemble(*flags)
        self.assertEqual(code, 1, output)
        self.assertRegex(output, "member 2 FAILED in .*exit code 137")
        self.assertIn("1 of 3 members failed", output)
        self.assertEqual(len(self.result("ens")["members"]), 2)
        code, output = self.ensemble(*flags)
        self.assertEqual(code, 0, output)
        self.assertEqual(output.count(" DONE in "), 1, output)
        self.assertEqual(self.result("ens/member-02/run")["start_step"], 100)

        runs = [self.path("ens/member-%02d/run" % i) for i in range(3)]
        result = self.result("ens")
        self.assertEqual([one["name"] for one in result["members"]], runs)
        accuracies = [one["test_accuracy"] for one in result["members"]]
        self.assertAlmostEqual(result["mean"]["test_accuracy"],
                               sum(accuracies) / 3, 6)
        self.assertIn("| ensemble | %.4f |" %
                      result["ensemble"]["test_accuracy"], output)

        together = self.floats("ens/predictions.npy")
        alone = [self.floats("ens/member-%02d/predictions.npy" % i)
                 for i in range(3)]
        for values in zip(together, *alone):
            self.assertAlmostEqual(values[0], sum(values[1:]) / 3, 6)
        code, output = self.run_to_end("mean", [
            MUSTER, "mean", "--output=" + self.path("mean.npy"),
            *(self.path("ens/member-%02d/predictions.npy" % i)
              for i in range(3))])
        self.assertEqual(code, 0, output)
        self.assertEqual(self.floats("mean.npy"), together)
        self.check_figures(together, result["ensemble"])

    def check_figures(self, probabilities, found):
        """That these are the figures of the rows' mean."""
        with open(self.path("ens/labels.npy"), "rb") as file:
            labels = struct.unpack("<%dq" % ROWS, file.read()[-8 * ROWS:])
        rows = [probabilities[i * CLASSES:(i + 1) * CLASSES]
                for i in range(ROWS)]
        right = [row.index(max(row)) == label
                 for row, label in zip(rows, labels)]
        self.assertEqual(found["test_accuracy"], sum(right) / ROWS)
        self.assertAlmostEqual(
            found["test_loss"],
            -sum(math.log(row[label]) for row, label in zip(rows, labels)) /
            ROWS, 6)

    def test_an_ensemble_of_one_has_its_figures(self):
        code, output = self.ensemble("--members=1", "--set=stop.steps=50")
        self.assertEqual(code, 0, output)
        result = self.result("ens")
        for name in ("test_accuracy", "test_loss"):
            self.assertAlmostEqual(result["ensemble"][name],
                                   result["members"][0][name], 5)

    def test_a_mean_of_weighted_rows_has_no_loss(self):
        code, output = self.ensemble(
            "--members=1", "--set=stop.steps=20",
            '--set=class_weight={class: "1" weight: 5}')
        self.assertEqual(code, 0, output)
        self.assertIn("no test_loss", output)
        result = self.result("ens")
        self.assertIsNone(result["ensemble"]["test_loss"])
        self.assertGreater(result["members"][0]["test_loss"], 0)
        self.assertEqual(result["ensemble"]["test_accuracy"],
                         result["members"][0]["test_accuracy"])

    def test_mistakes_are_named_before_anything_is_trained(self):
        lines = self.write("lines", "seed=1 # the first\n\nseed=2 'a b'\n")
        os.makedirs(self.path("other"))
        self.write("other/file", "")
        for flags, words in (
                (["--cluster=c.json"], "--cluster=c.json: "),
                (["--keep_namespaces"], "--keep_namespaces wants --cluster"),
                (["--set_each=" + lines], "line 3: wanted FIELD=VALUE"),
                (["--vary=rate"], "invalid choice: 'rate'"),
                (["--set=optimizer.sgd.learning_rat=1"],
                 "member 0: --set optimizer.sgd.learning_rat=1: "),
                (["--ensemble_dir=" + self.path("other")],
                 "wanted a new folder or that of the same ensemble")):
            code, output = self.ensemble(*flags)
            self.assertEqual((code, words in output), (2, True), output)
            self.assertFalse(os.path.exists(self.path("ens")))

    def test_files_that_have_no_mean_are_named(self):
        for name, content in (("text.npy", "no array"), ("empty.npy", "")):
            path = self.write(name, content)
            code, output = self.run_to_end("mean", [
                MUSTER, "mean", "--output=" + self.path("mean.npy"), path])
            self.assertEqual((code, path in output), (2, True), output)
            self.assertFalse(os.path.exists(self.path("mean.npy")))

    def test_classes_have_no_mean(self):
        code, output = self.ensemble("--members=1", "--set=stop.steps=2")
        self.assertEqual(code, 0, output)
        classes = self.path("classes.npy")
        code, output = self.run_to_end("predict", [
            harness.worker(), "predict", "--values=class",
            "--train_dir=" + self.path("ens/member-00/run"),
            "--output=" + classes])
        self.assertEqual(code, 0, output)
        code, output = self.run_to_end("mean", [
            MUSTER, "mean", "--output=" + self.path("mean.npy"), classes])
        self.assertEqual((code, "classes, which have no mean" in output),
                         (2, True), output)

    def test_members_of_other_rows_are_refused(self):
        # Synthetic rows are made of the seed.
        lines = self.write("lines", "stop.steps=2\nstop.steps=2 seed=8\n")
        code, output = self.ensemble("--set_each=" + lines)
        self.assertEqual((code, "have other labels in the test half" in output),
                         (2, True), output)
        self.assertFalse(os.path.exists(self.path("ens/result.json")))

    def test_a_folder_is_of_one_ensemble(self):
        code, output = self.ensemble("--members=1", "--set=stop.steps=2")
        self.assertEqual(code, 0, output)
        for flags, words in ((["--members=1"], "it has --set="),
                             (["--set=stop.steps=2", "--seed=5"],
                              "member-00 was trained with 'seed=1'")):
            code, output = self.ensemble(*flags)
            self.assertEqual((code, words in output), (2, True), output)


if __name__ == "__main__":
    harness.main()
