"""Peers that are absent or belong elsewhere, and a disk that fills up."""

import json
import os
import subprocess

from tests.integration import harness

# 7,850 parameters: 31 KB a checkpoint.
TRAINING = """
model {
  name: "tiny"
  input_shape: [784]
  layer { name: "logits" type: "dense" attr { name: "units" i: 10 } }
  layer { name: "loss" type: "softmax_cross_entropy" }
}
input {
  type: "synthetic" batch_size: 8
  synthetic_examples: 256 synthetic_test_examples: 64 synthetic_classes: 10
}
optimizer { name: "sgd" attr { name: "learning_rate" f: 0.1 } }
stop { steps: 40 }
seed: 1
"""


class AdversityTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        self.training = [
            "--training=" + self.write("training.textproto", TRAINING),
            "--train_dir=" + self.path("train")]

    def test_start_order_is_free(self):
        cluster = self.write_cluster(ps=1, workers=1)
        worker = self.start_worker(cluster, 0, *self.training)
        # It has read its files and goes for the ps, which is not there.
        worker.wait_for("model=tiny")
        ps = self.start_ps(cluster, 0)
        self.assertEqual(worker.wait(), 0)
        self.assertEqual(ps.wait(), 0)

    def test_a_ps_of_another_cluster_is_refused_by_name(self):
        cluster = self.write_cluster(ps=1, workers=1)
        ps = self.start_ps(cluster, 0)
        ps.wait_for("listening on")
        with open(cluster, encoding="utf-8") as file:
            spec = json.load(file)["cluster"]
        spec["ps"].append("127.0.0.1:9")
        other = self.write("other.json", json.dumps(spec))
        worker = self.start_worker(other, 0, *self.training)
        self.assertEqual(worker.wait(), 2)
        self.assertIn("/job:ps/task:", worker.output)
        self.assertIn("127.0.0.1:9", worker.output)
        self.assertTrue(ps.running())

    def test_a_full_disk_does_not_stop_training(self):
        os.makedirs(self.path("train"))
        # Room for one checkpoint and a half.
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs",
             self.path("train")], check=False, capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest("no right to mount: " + mounted.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", self.path("train")],
                        check=False)
        code, output = self.run_to_end("worker", [
            harness.worker(), "--standalone", *self.training,
            "--set=checkpoint.every_steps=10"])
        # Each save that failed said so once, and training went on.
        for step in (10, 20, 30, 40):
            self.assertLessEqual(
                output.count("at step %d not saved" % step), 1, output)
        self.assertIn("at step 10 not saved, training goes on", output)
        self.assertIn("No space left on device", output)
        # Step 0 is still whole, nothing half-written is left.
        self.assertEqual(set(os.listdir(self.path("train"))) -
                         {".lock", "summaries"},
                         {"ckpt-000000000000", "result.json"})
        # The end of the training could not be saved: that is a failure. What
        # was evaluated is kept.
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"(?m) E /job:worker/task:0 final save: ")
        with open(self.path("train/result.json"), encoding="utf-8") as file:
            result = json.load(file)
        self.assertGreater(result["test_accuracy"], 0)
        self.assertTrue(result["checkpoint"].endswith("ckpt-000000000000"))


if __name__ == "__main__":
    harness.main()
