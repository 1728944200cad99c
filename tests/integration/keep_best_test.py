"""checkpoint.keep_best: the best model of a run is kept as it was evaluated."""

import os

from tests.integration import harness

# The rate is so large that the loss goes up and down; saves come often.
TRAINING = harness.softmax_regression(steps=400, learning_rate=5, more="""
    evaluation { every_steps: 5 }
    checkpoint {
      every_steps: 10
      keep: 1
      keep_best { metric: "test_loss" }
    }""")


class KeepBestTest(harness.TestCase):

    def train(self, *flags):
        """Three workers, asynchronously; returns result.json."""
        cluster = self.write_cluster(ps=1, workers=3)
        flags = self.training_flags(TRAINING, "train", *flags)
        tasks = [self.start_ps(cluster, 0)] + [
            self.start_worker(cluster, index, *flags) for index in range(3)]
        for task in tasks:
            self.assertEqual(task.wait(), 0, task.output)
        return self.read_json("train/result.json")

    def use(self, verb, *flags):
        return self.run_to_end(
            verb, [harness.worker(), verb, "--train_dir=" + self.path("train"),
                   *flags])

    def evaluate(self, checkpoint):
        figures = self.path("figures.json")
        code, output = self.use("evaluate", "--checkpoint=" + checkpoint,
                                "--output=" + figures)
        self.assertEqual(code, 0, output)
        return self.read_json("figures.json")

    def test_the_best_is_what_result_json_says_to_the_last_digit(self):
        best = self.train()["best"]
        self.assertEqual(best["metric"], "test_loss")
        self.assertEqual(os.path.basename(best["checkpoint"]),
                         "ckpt-%012d" % best["step"])
        for name in ("best", str(best["step"])):
            self.assertEqual(self.evaluate(name)["test_loss"],
                             best["value"])

        # One process alone saves many times after it; the newest two stay.
        code, output = self.run_to_end("worker", [
            harness.worker(), "--standalone", *self.training_flags(
                TRAINING, "train", "--set=stop.steps=800",
                "--set=optimizer.sgd.learning_rate=1e-12")])
        self.assertEqual(code, 0, output)
        self.assertEqual(self.read_json("train/result.json")["best"], best)
        saved = {name for name in os.listdir(self.path("train"))
                 if name.startswith("ckpt-")}
        self.assertIn(os.path.basename(best["checkpoint"]), saved)
        self.assertEqual(len(saved), 3, saved)
        self.assertEqual(self.evaluate("best")["test_loss"], best["value"])

        code, output = self.use("evaluate", "--checkpoint=1")
        self.assertEqual(code, 3, output)
        self.assertIn("there is no checkpoint of step 1 in", output)
        code, output = self.use("evaluate", "--checkpoint=bets")
        self.assertEqual(code, 2, output)
        self.assertIn("wanted newest, best or a global step", output)
        with open(os.path.join(best["checkpoint"], "parameters.safetensors"),
                  "r+b") as file:
            file.truncate(100)
        for verb in ("evaluate", "predict"):
            code, output = self.use(verb, "--checkpoint=best",
                                    "--output=" + self.path("out.csv"))
            self.assertEqual(code, 3, output)
            self.assertIn("the best one, by test_loss", output)

    def test_what_cannot_be_kept_is_refused(self):
        wrong = {
            "--set=evaluation.every_steps=0": "evaluation.every_steps is 0",
            "--set=checkpoint.keep_best.metric=test_size":
                "no evaluation makes 'test_size'",
            "--train_dir=": "checkpoint.keep_best wants a --train_dir",
        }
        for flag, message in wrong.items():
            code, output = self.run_to_end("worker", [
                harness.worker(), "--standalone",
                *self.training_flags(TRAINING, "wrong", flag)])
            self.assertEqual(code, 2, output)
            self.assertIn(message, output)


if __name__ == "__main__":
    harness.main()
