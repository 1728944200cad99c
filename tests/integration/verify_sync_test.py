"""scripts/verify_sync.sh: sync equals one process, and a lost gradient shows."""

import os
import re

from tests.integration import harness

VERIFY = os.path.abspath("scripts/verify_sync.sh")
# Where the binaries lie below the runfiles' root.
BIN_DIR = os.path.abspath(".")


class VerifySyncTest(harness.TestCase):

    def verify(self, *flags):
        return self.run_to_end("verify_sync", [
            VERIFY, "--no_build", "--bin_dir=" + BIN_DIR, *flags])

    # Every rule, in half of the steps, to spare the time.
    def test_two_workers_equal_one_process_with_both_batches(self):
        code, output = self.verify("--steps=10")
        self.assertEqual(code, 0, output)
        self.assertEqual(len(re.findall(r" ok  ", output)), 8, output)
        self.assertIn("for each of 8 rules", output)

    def test_all_reduce_equals_one_process_with_both_batches(self):
        code, output = self.verify("--rules=adam", "--ps=0", "--steps=10")
        self.assertEqual(code, 0, output)
        self.assertIn(" on 0 ps", output)

    def test_one_worker_equals_one_process_bit_for_bit(self):
        code, output = self.verify("--rules=adam", "--workers=1", "--steps=5")
        self.assertEqual(code, 0, output)
        self.assertIn("equal bit for bit", output)

    def test_fails_when_a_gradient_is_dropped(self):
        code, output = self.verify("--rules=sgd", "--drop_gradient",
                                   "--steps=5")
        self.assertEqual(code, 1, output)
        self.assertIn("DROPPED ON PURPOSE", output)
        self.assertRegex(output, r"(?m)^sgd .* FAIL ")

    def test_names_a_layer_that_is_excepted(self):
        training = self.write("training.textproto",
                              'model { layer { type: "batch_norm" } }')
        code, output = self.verify("--training=" + training)
        self.assertEqual(code, 2, output)
        self.assertIn("a layer of type 'batch_norm'", output)

    def test_says_what_a_training_died_of(self):
        code, output = self.verify("--rules=sgd",
                                   "--set=optimizer.learning_rat=2")
        self.assertEqual(code, 2, output)
        self.assertIn("did you mean 'learning_rate'?", output)

    def test_knows_every_update_rule(self):
        code, listing = self.run_to_end("list", [harness.musterctl(), "list"])
        self.assertEqual(code, 0, listing)
        section = re.search(r"(?ms)^Optimizers\n(.*?)^\S", listing)[1]
        rules = re.findall(r"(?m)^  (\w+)", section)
        code, output = self.verify("--rules=none")
        self.assertEqual(code, 2, output)
        known = re.search(r"known: (.*)", output)[1].split(", ")
        self.assertEqual(sorted(known), sorted(rules))


if __name__ == "__main__":
    harness.main()
