"""What a gradient goes through on its way into a parameter: real processes."""

import math
import os
import re
import struct

from tests.integration import harness, safetensors_file

# A learning rate of 1: a step is the gradient that was pushed.
TRAINING = """
model {
  name: "softmax_regression"
  input_shape: [64]
  layer { name: "hidden" type: "dense" attr { name: "units" i: 8 } }
  layer { name: "logits" type: "dense" attr { name: "units" i: 10 } }
  layer { name: "loss" type: "softmax_cross_entropy" }
}
input {
  type: "synthetic" batch_size: 32
  synthetic_examples: 2000 synthetic_test_examples: 100 synthetic_classes: 10
}
optimizer { name: "sgd" attr { name: "learning_rate" f: 1 } }
stop { steps: 1 }
seed: 7
"""

# Parameters are below 1, where a float's last bit is 6e-8 and the difference
# of two is off by as much; a norm is one of a thousand of them.
ELEMENT_TOLERANCE = 1.2e-7
NORM_TOLERANCE = 2e-6


class GradientTest(harness.TestCase):

    def flags(self, train_dir, *settings):
        return self.training_flags(
            TRAINING, train_dir, *["--set=" + setting for setting in settings])

    def train(self, train_dir, *settings):
        return self.train_standalone(*self.flags(train_dir, *settings))

    def train_on_cluster(self, train_dir, *settings):
        """Trains with two workers; returns the outputs."""
        cluster = self.write_cluster(ps=1, workers=2)
        server = self.start_ps(cluster, 0)
        workers = [self.start_worker(cluster, i, *self.flags(
            train_dir, *settings)) for i in range(2)]
        for process in workers + [server]:
            self.assertEqual(process.wait(), 0, process.output)
        return [process.output for process in workers]

    def checkpoint(self, train_dir, step):
        return os.path.join(self.path(train_dir), "ckpt-%012d" % step)

    def parameters(self, train_dir, step):
        tensors = safetensors_file.read(os.path.join(
            self.checkpoint(train_dir, step), "parameters.safetensors"))
        return {name: struct.unpack("<%df" % (len(data) // 4), data)
                for name, (_, _, data) in tensors.items()}

    def step_of(self, *settings):
        """How far one step with these settings moves each parameter."""
        self.train("train", *settings)
        before = self.parameters("train", 0)
        after = self.parameters("train", 1)
        for step in (0, 1):
            os.rename(self.checkpoint("train", step), self.path(
                "%s-%d" % ("-".join(settings) or "plain", step)))
        return {name: [x - y for x, y in zip(before[name], after[name])]
                for name in before}

    def norm(self, *tensors):
        return math.sqrt(sum(x * x for tensor in tensors for x in tensor))

    # ---- Clipping

    def test_each_way_of_clipping_keeps_its_limit(self):
        plain = self.step_of()
        self.assertGreater(self.norm(*plain.values()), 0.2)
        together = self.step_of("gradient.clip.by_global_norm=0.1")
        self.assertAlmostEqual(self.norm(*together.values()), 0.1,
                               delta=NORM_TOLERANCE)
        shrinkage = 0.1 / self.norm(*plain.values())
        each = self.step_of("gradient.clip.by_norm=0.1")
        by_value = self.step_of("gradient.clip.by_value=0.01")
        for name, gradient in plain.items():
            norm = self.norm(gradient)
            self.assertAlmostEqual(self.norm(each[name]), min(norm, 0.1),
                                   delta=NORM_TOLERANCE)
            for i, value in enumerate(gradient):
                self.assertAlmostEqual(together[name][i], value * shrinkage,
                                       delta=2 * ELEMENT_TOLERANCE)
                self.assertAlmostEqual(
                    by_value[name][i], max(-0.01, min(value, 0.01)),
                    delta=2 * ELEMENT_TOLERANCE)

    def test_a_limit_that_is_not_reached_changes_no_bit(self):
        gentle = ("stop.steps=20", "optimizer.learning_rate=0.05")
        self.train("plain", *gentle)
        for limit in ("by_value", "by_norm", "by_global_norm"):
            self.train(limit, *gentle, "gradient.clip.%s=1e6" % limit)
            self.assertEqual(self.parameters("plain", 20),
                             self.parameters(limit, 20), limit)

    # ---- The learning rate

    def test_a_warm_up_begins_with_a_part_of_the_rate(self):
        plain = self.step_of()
        warm = self.step_of("optimizer.schedule.warmup_steps=4")
        for name, gradient in plain.items():
            for x, y in zip(gradient, warm[name]):
                self.assertAlmostEqual(x / 4, y, delta=2 * ELEMENT_TOLERANCE)

    def test_the_list_names_every_schedule_with_its_fields(self):
        code, output = self.run_to_end("list", [harness.musterctl(), "list"])
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"(?m)^Schedules\n(  .*\n)*"
                         r"  polynomial: decay_steps, power, end_learning_rate, "
                         r"warmup_steps$")

    def manifest_rate(self, train_dir, step):
        with open(os.path.join(self.checkpoint(train_dir, step),
                               "manifest.textproto"), encoding="utf-8") as file:
            text = file.read()
        return float(re.search(
            r'name: "learning_rate"\s+f: (\S+)', text)[1])

    def test_a_rate_fits_the_rows_of_an_update(self):
        scaling = ("optimizer.learning_rate_scaling=LINEAR",
                   "optimizer.reference_batch_size=16",
                   "optimizer.learning_rate=0.05")
        line = "learning rate %s = 0.05 x %d (LINEAR: %d rows of an update / 16)"
        self.assertIn(line % ("0.1", 2, 32), self.train("alone", *scaling))
        self.assertAlmostEqual(self.manifest_rate("alone", 1), 0.1)
        outputs = self.train_on_cluster("sync", *scaling, "replication=sync")
        self.assertIn(line % ("0.2", 4, 64), outputs[0])
        self.assertAlmostEqual(self.manifest_rate("sync", 1), 0.2)

    def test_half_of_a_scaling_is_refused_by_name(self):
        code, output = self.run_to_end(
            "standalone",
            [harness.worker(), "--standalone", *self.flags(
                "train", "optimizer.learning_rate_scaling=LINEAR")])
        self.assertEqual(code, 2, output)
        self.assertIn("optimizer.reference_batch_size is not set", output)

    # That the rate is really divided is shown at the shard, where staleness is
    # what the test says.
    def test_staleness_may_scale_the_rate(self):
        self.train_on_cluster(
            "train", "stop.steps=50", "optimizer.learning_rate=0.1",
            "replication.async.staleness_scaled_learning_rate=true")
        self.parameters("train", 50)


if __name__ == "__main__":
    harness.main()
