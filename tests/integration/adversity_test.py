"""Peers that belong elsewhere, a full disk, gradients that explode (T24)."""

import json
import math
import os
import struct
import subprocess

from tests.integration import harness
from tests.integration import recovery

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

    def test_a_huge_learning_rate_ends_the_job_by_name(self):
        cluster = self.write_cluster(ps=1, workers=2)
        ps = self.start_ps(cluster, 0)
        workers = [self.start_worker(
            cluster, index, *self.training, "--set=stop.steps=0",
            "--set=stop.epochs=1000", "--set=optimizer.sgd.learning_rate=1e38",
            "--set=checkpoint.every_steps=1") for index in range(2)]
        chief, other = workers
        self.assertEqual(chief.wait(), 1, chief.output)
        self.assertRegex(chief.output, r"step \d+ of /job:worker/task:0 at "
                         r"global step \d+: the gradient of 'logits/")
        # It may have met a NaN of its own, or the end of the job.
        self.assertIn(other.wait(), (0, 1), other.output)
        self.assertEqual(ps.wait(), 0, ps.output)
        # Nothing that is not finite has reached a parameter.
        folders = [name for name in os.listdir(self.path("train"))
                   if name.startswith("ckpt-")]
        for folder in folders:
            checkpoint = recovery.Checkpoint(
                os.path.join(self.path("train"), folder))
            tensors = checkpoint.tensors("parameters.safetensors")
            self.assertEqual(set(tensors), {"logits/weights", "logits/bias"})
            for name, data in tensors.items():
                values = struct.unpack("<%df" % (len(data) // 4), data)
                self.assertTrue(all(map(math.isfinite, values)), name)

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
                         {".lock", "chief", "summaries",
                          "schema.textproto", "training.textproto"},
                         {"ckpt-000000000000", "result.json"})
        # The end of the training could not be saved; there may be room when it
        # is tried again. What was evaluated is kept.
        self.assertEqual(code, 138, output)
        self.assertRegex(output, r"(?m) E /job:worker/task:0 final save: ")
        result = self.result("train")
        self.assertGreater(result["test_accuracy"], 0)
        self.assertTrue(result["checkpoint"].endswith("ckpt-000000000000"))


if __name__ == "__main__":
    harness.main()
