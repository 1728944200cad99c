"""musterctl, and the worker's flags that are its verbs now."""

import os

from tests.integration import checkpoint_test
from tests.integration import harness


class MusterctlTest(checkpoint_test.TestCase):

    def ctl(self, *args):
        return self.run_to_end("musterctl", [
            harness.binary("worker/ctl/musterctl"), *args])

    def test_help_names_every_verb(self):
        code, output = self.ctl("--help")
        self.assertEqual(code, 0, output)
        for verb in ("checkpoint ls", "checkpoint verify", "checkpoint diff",
                     "checkpoint export", "list", "placement"):
            self.assertRegex(output, r"(?m)^  musterctl %s( |$)" % verb)
        code, output = self.ctl("checkpiont", "ls")
        self.assertEqual(code, 2, output)
        self.assertIn("did you mean 'checkpoint ls'?", output)

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

    def test_the_workers_flags_name_the_verbs_that_do_the_same(self):
        self.assert_trains()
        path = self.path("train")
        for flags, verb in (
                (["--list"], ["list"]),
                (["--inspect_checkpoint=" + path], ["checkpoint", "ls", path])):
            code, output = self.ctl(*verb)
            self.assertEqual(code, 0, output)
            _, by_flag = self.run_to_end("worker", [harness.worker(), *flags])
            note = "; musterctl %s does the same\n" % " ".join(verb)
            self.assertIn(note, by_flag)
            for line in output.splitlines():
                self.assertIn(line, by_flag)


if __name__ == "__main__":
    harness.main()
