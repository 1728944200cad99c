"""musterctl on what a training has left."""

import os

from tests.integration import checkpoint_test
from tests.integration import harness


class MusterctlTest(checkpoint_test.TestCase):

    def ctl(self, *args):
        return self.run_to_end("musterctl", [
            harness.musterctl(), *args])

    def test_help_names_every_verb(self):
        code, output = self.ctl("--help")
        self.assertEqual(code, 0, output)
        for verb in ("checkpoint ls", "checkpoint verify", "checkpoint diff",
                     "checkpoint export", "list", "placement"):
            self.assertRegex(output, r"(?m)^  musterctl %s( |$)" % verb)
        code, output = self.ctl("checkpiont", "ls")
        self.assertEqual(code, 2, output)
        self.assertIn("did you mean 'checkpoint ls'?", output)

    def test_list_names_everything_registered(self):
        code, output = self.ctl("list")
        self.assertEqual(code, 0)
        for name in ("conv2d", "dense", "relu", "sigmoid", "tanh", "max_pool",
                     "average_pool", "global_max_pool", "global_average_pool",
                     "flatten", "dropout", "batch_norm", "add", "concat",
                     "softmax_cross_entropy", "sgd", "momentum", "adagrad",
                     "rmsprop", "adam", "adamw", "ftrl", "round_robin",
                     "greedy", "pinned", "bf16", "fp16"):
            self.assertRegex(output, r"\b%s\b" % name)

    def test_placement_prints_the_table(self):
        code, output = self.ctl(
            "placement", "--num_ps=2",
            "--training=" + self.write("training.textproto",
                                       checkpoint_test.TRAINING))
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"hidden/weights.*/job:ps/task:0")
        self.assertRegex(output, r"hidden/bias.*/job:ps/task:1")

    def test_looks_at_checkpoints(self):
        self.assert_trains()
        newest = os.path.dirname(self.file(20))
        code, output = self.ctl("checkpoint", "ls", newest)
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"hidden/weights +float32 +1792 bytes ")
        code, output = self.ctl("checkpoint", "diff", newest,
                                self.path("train"))
        self.assertEqual(code, 0, output)
        exported = self.path("w.safetensors")
        code, output = self.ctl("checkpoint", "export", newest, exported)
        self.assertEqual(code, 0, output)
        with open(exported, "rb") as file:
            self.assertEqual(file.read(), self.read(20))
        damaged = bytearray(self.read(20))
        damaged[-1] ^= 1
        self.replace(20, "parameters.safetensors", damaged)
        code, output = self.ctl("checkpoint", "verify", self.path("train"))
        self.assertEqual(code, 3, output)
        self.assertRegex(output, r"ckpt-0{10}20  NOT USABLE .*is damaged")


if __name__ == "__main__":
    harness.main()
