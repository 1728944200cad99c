"""What run_all.sh of a GPU bundle makes of its figures."""

import os
import sys

from tests.integration import harness

sys.path.insert(0, os.path.abspath("scripts/gpu_run"))
import card_samples  # pylint: disable=wrong-import-position
import find_libraries  # pylint: disable=wrong-import-position
import targets  # pylint: disable=wrong-import-position

# As dmon prints it; a card of a container does not tell all.
DMON = """#!/bin/sh
cat <<END
# gpu     sm    mem    enc    dec    jpg    ofa  rxpci  txpci
# Idx      %      %      %      %      %      %   MB/s   MB/s
    0      0      0      0      0      0      0      1      2
    0     90     10      0      0      -      -   5000   4000
    0     80     10      0      0      -      -   6000   4100
# gpu     sm    mem    enc    dec    jpg    ofa  rxpci  txpci
# Idx      %      %      %      %      %      %   MB/s   MB/s
    0     70     10      0      0      -      -   7000      -
END
exec cat "$FIFO"
"""


def row(name, value=None, **more):
    return dict(more, name=name, **({} if value is None else {"value": value}))


class SamplesTest(harness.TestCase):

    def samples(self):
        """Of a dmon that is a script: waits until it has printed all."""
        with card_samples.CardSamples() as samples:
            os.close(os.open(os.environ["FIFO"], os.O_WRONLY))
        return samples

    def setUp(self):
        super().setUp()
        fifo = self.path("fifo")
        # Opened by the script when it has printed all.
        os.mkfifo(fifo)
        os.chmod(self.write("nvidia-smi", DMON), 0o755)
        for name, value in (("FIFO", fifo), ("PATH", "%s:%s" % (
                self.dir, os.environ["PATH"]))):
            self.addCleanup(os.environ.__setitem__, name,
                            os.environ.get(name, ""))
            os.environ[name] = value

    def test_takes_the_median_of_the_busy_seconds(self):
        samples = self.samples()
        self.assertEqual(samples.median(card_samples.BUSY), 80)
        self.assertEqual(samples.median(card_samples.RECEIVED), 6000)

    def test_says_what_the_card_does_not_tell(self):
        with self.assertRaisesRegex(ValueError, "2 samples of 'txpci'"):
            self.samples().median(card_samples.SENT)

    def test_says_that_there_is_no_nvidia_smi(self):
        os.environ["PATH"] = "/nowhere"
        if find_libraries.program("nvidia-smi"):
            self.skipTest("there is one in a toolkit")
        with card_samples.CardSamples() as samples:
            pass
        with self.assertRaisesRegex(ValueError, "no nvidia-smi"):
            samples.median(card_samples.BUSY)


class TargetsTest(harness.TestCase):

    def evaluated(self, *rows):
        return {one["name"]: one
                for one in targets.evaluate(rows, "cuda")}

    def limits(self, to_device, to_host, adam):
        return [row(targets.TO_DEVICE, to_device),
                row(targets.TO_HOST, to_host), row(targets.ADAM, adam)]

    PAIR_RATIO = targets.PAIR + " / the smaller of PCIe's rate and Adam's"

    def test_a_pair_is_compared_with_what_limits_it(self):
        pair = row(targets.PAIR + " on cuda", 900)
        # 13.1 MB at 26.2 GB/s: 2000 a second.
        copies = 2000 * targets.MODEL_BYTES / 1e9
        by_adam = self.evaluated(pair, *self.limits(copies, copies, 1000))
        self.assertEqual(by_adam[self.PAIR_RATIO], {
            "name": self.PAIR_RATIO, "wanted": 0.8, "ratio": 0.9, "met": True})
        by_pcie = self.evaluated(pair, *self.limits(copies, copies, 9000))
        self.assertEqual(by_pcie[self.PAIR_RATIO]["ratio"], 0.45)
        self.assertFalse(by_pcie[self.PAIR_RATIO]["met"])
        by_one_way = self.evaluated(
            pair, *self.limits(copies, copies / 2, 9000))
        self.assertEqual(by_one_way[self.PAIR_RATIO]["ratio"], 0.9)

    def test_peers_are_compared_with_the_same_precision(self):
        found = self.evaluated(
            row(targets.ONE + " on cuda", 300),
            row(targets.BF16 + " on cuda", 500),
            row("PyTorch eager, mnist_cnn, tf32", 100),
            row("PyTorch compile, mnist_cnn, bf16", 1000))
        self.assertEqual(
            found["mnist_cnn, standalone / PyTorch eager, tf32"]["ratio"], 3)
        self.assertEqual(found["mnist_cnn, standalone, bf16 / "
                               "PyTorch compile, bf16"]["ratio"], 0.5)

    def test_pytorchs_best_is_what_counts(self):
        name = "mnist_cnn, standalone / PyTorch's best, tf32"
        ours = row(targets.ONE + " on cuda", 330)
        eager = row("PyTorch eager, mnist_cnn, tf32", 100)
        compiled = row("PyTorch compile, mnist_cnn, tf32", 300)
        self.assertEqual(
            self.evaluated(ours, eager, compiled)[name],
            {"name": name, "wanted": 1.2, "ratio": 1.1, "met": False})
        # The best is not known without one of them.
        self.assertNotIn("met", self.evaluated(ours, eager)[name])

    def test_steps_a_second_are_wanted_of_a_card(self):
        name = "mnist_cnn, standalone / the 8000 a second wanted of an H100"
        self.assertTrue(self.evaluated(
            row(targets.ONE + " on cuda", 8800))[name]["met"])
        on_cpu = targets.evaluate([row(targets.ONE + " on cpu", 14)], "cpu")
        self.assertIn("not a GPU", next(
            one for one in on_cpu if one["name"] == name)["not_measured"])

    def test_says_why_a_ratio_is_missing(self):
        found = self.evaluated(
            row(targets.INCEPTION + " on cuda", 10),
            row(targets.INCEPTION_PAIR + " on cuda", failed="exit code 2"),
            row(targets.ONE + " on cuda", 10),
            row("PyTorch eager, mnist_cnn, tf32", skipped="no PyTorch"))
        pair = "%s / %s" % (targets.INCEPTION_PAIR, targets.INCEPTION)
        self.assertRegex(found[pair]["not_measured"], "on cuda: exit code 2")
        self.assertNotIn("met", found[pair])
        eager = found["mnist_cnn, standalone / PyTorch eager, tf32"]
        self.assertRegex(eager["not_measured"], "no PyTorch")
        self.assertRegex(found[self.PAIR_RATIO]["not_measured"], "was not run")

    def test_the_table_has_a_line_for_each(self):
        lines = targets.table(targets.evaluate([
            row(targets.INCEPTION + " on cpu", 10.0),
            row(targets.INCEPTION_PAIR + " on cpu", 8.0)], "cpu")).splitlines()
        self.assertEqual(len(lines), 1 + len(targets.TARGETS))
        line = next(line for line in lines
                    if line.startswith(targets.INCEPTION_PAIR))
        self.assertRegex(line, r" 0\.800  >= 0\.9  NO$")


if __name__ == "__main__":
    harness.main()
