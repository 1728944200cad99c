"""What codecs do to a training on Fashion-MNIST: real processes."""

import os
import unittest

from tests.integration import harness

TRAINING = "worker/model/zoo/mlp.textproto"
DATA = "/usr/share/datasets/fashion-mnist"
CODECS = ("bf16", "fp16")
STEPS = 300
# Float32 has 0.81 to 0.83 after so many steps, depending on the seed.
LEAST_ACCURACY = 0.78
# As much as another seed makes. Each run is the same whenever it is made.
TOLERANCE = 0.02


@unittest.skipUnless(os.path.isdir(DATA), "there is no %s: install "
                     "dataset-fashion-mnist" % DATA)
class CodecTest(harness.TestCase):

    def flags(self, train_dir, *settings):
        return ["--training=" + harness.binary(TRAINING),
                "--train_dir=" + self.path(train_dir), "--compute_threads=1",
                "--set=checkpoint.every_seconds=0",
                *["--set=" + setting for setting in settings]]

    def train(self, train_dir, steps, *settings):
        self.train_standalone(
            *self.flags(train_dir, "stop.steps=%d" % steps, *settings))
        return self.result(train_dir)

    def settings(self, codec, error_feedback):
        return ["gradient.codec=" + codec,
                "gradient.error_feedback=%s" % str(error_feedback).lower()]

    def test_encoded_gradients_train_as_well(self):
        plain = self.train("float32", STEPS)
        bytes_as_float32 = plain["gradient"]["bytes_as_float32"]
        self.assertEqual(plain["gradient"]["bytes_sent"], bytes_as_float32)
        self.assertGreater(plain["test_accuracy"], LEAST_ACCURACY)
        print("accuracy: float32 %.4f" % plain["test_accuracy"])
        for codec in CODECS:
            for error_feedback in (False, True):
                name = codec + (" error_feedback" if error_feedback else "")
                result = self.train(name, STEPS,
                                    *self.settings(codec, error_feedback))
                print("accuracy: %s %.4f (loss %.4f)" % (
                    name, result["test_accuracy"], result["test_loss"]))
                self.assertAlmostEqual(
                    result["test_accuracy"], plain["test_accuracy"],
                    delta=TOLERANCE, msg=name)
                self.assertNotEqual(self.parameter_bytes(name, STEPS),
                                    self.parameter_bytes("float32", STEPS),
                                    name)
                self.assertEqual(result["gradient"], {
                    "codec": codec, "error_feedback": error_feedback,
                    "bytes_sent": bytes_as_float32 // 2,
                    "bytes_as_float32": bytes_as_float32})

    def test_encoded_parameters_train_as_well(self):
        plain = self.train("float32", STEPS)
        bytes_as_float32 = plain["pull"]["bytes_as_float32"]
        self.assertEqual(plain["pull"], {
            "codec": "", "bytes_received": bytes_as_float32,
            "bytes_as_float32": bytes_as_float32})
        for codec in CODECS:
            for gradient_codec in ("", codec):
                name = "pull %s gradient %s" % (codec, gradient_codec)
                result = self.train(
                    name.replace(" ", "_"), STEPS, "pull.codec=" + codec,
                    "gradient.codec=" + gradient_codec)
                print("accuracy: %s %.4f (loss %.4f)" % (
                    name, result["test_accuracy"], result["test_loss"]))
                self.assertAlmostEqual(
                    result["test_accuracy"], plain["test_accuracy"],
                    delta=TOLERANCE, msg=name)
                self.assertEqual(result["pull"], {
                    "codec": codec, "bytes_received": bytes_as_float32 // 2,
                    "bytes_as_float32": bytes_as_float32})

    def test_over_a_network_it_is_the_same_bit_for_bit(self):
        settings = ["stop.steps=20", "pull.codec=bf16",
                    *self.settings("fp16", True)]
        self.train("alone", 20, *settings)
        for mode in ("async", "sync"):
            cluster = self.write_cluster(ps=1, workers=1)
            tasks = [self.start_ps(cluster, 0), self.start_worker(
                cluster, 0, *self.flags(mode, *settings,
                                        "replication=" + mode))]
            for process in tasks:
                self.assertEqual(process.wait(), 0, process.output)
            self.assertEqual(self.parameter_bytes(mode, 20),
                             self.parameter_bytes("alone", 20), mode)
            self.assertEqual(self.result(mode)["gradient"],
                             self.result("alone")["gradient"])
            # In a round a step pulls; else the push before it brings values.
            pull = self.result(mode)["pull"]
            self.assertEqual(pull["codec"], "bf16")
            self.assertEqual(2 * pull["bytes_received"],
                             pull["bytes_as_float32"])


if __name__ == "__main__":
    harness.main()
