"""What run_all.sh of a GPU bundle makes of its figures."""

import json
import os
import sys

from tests.integration import harness

sys.path.insert(0, os.path.abspath("scripts/gpu_run"))
import bundled_figures  # pylint: disable=wrong-import-position
import card_samples  # pylint: disable=wrong-import-position
import device_trace  # pylint: disable=wrong-import-position
import find_libraries  # pylint: disable=wrong-import-position
import targets  # pylint: disable=wrong-import-position
import timed_runs  # pylint: disable=wrong-import-position

# As dmon prints it; a card of a container does not tell all.
DMON = """#!/bin/sh
cat <<END
# gpu     sm    mem    enc    dec    jpg    ofa
# Idx      %%      %%      %%      %%      %%      %%
    0      0      0      0      0      0      0
    0     90     10      0      0      -      -
    0     80     10      0      0      -      -
# gpu     sm    mem    enc    dec    jpg    ofa
# Idx      %%      %%      %%      %%      %%      %%
    0     %2s     10      0      0      -      -
END
exec cat "$FIFO"
"""


def row(name, value=None, **more):
    return dict(more, name=name, **({} if value is None else {"value": value}))


class SamplesTest(harness.TestCase):

    def samples(self, last_percent):
        """Of a dmon that is a script: waits until it has printed all."""
        os.chmod(self.write("nvidia-smi", DMON % last_percent), 0o755)
        with card_samples.CardSamples() as samples:
            os.close(os.open(os.environ["FIFO"], os.O_WRONLY))
        return samples

    def setUp(self):
        super().setUp()
        fifo = self.path("fifo")
        # Opened by the script when it has printed all.
        os.mkfifo(fifo)
        for name, value in (("FIFO", fifo), ("PATH", "%s:%s" % (
                self.dir, os.environ["PATH"]))):
            self.addCleanup(os.environ.__setitem__, name,
                            os.environ.get(name, ""))
            os.environ[name] = value

    def test_takes_the_median_of_the_busy_seconds(self):
        self.assertEqual(self.samples("70").busy_percent(), 80)

    def test_says_what_the_card_does_not_tell(self):
        with self.assertRaisesRegex(ValueError, "2 samples of a busy card"):
            self.samples("-").busy_percent()

    def test_says_that_there_is_no_nvidia_smi(self):
        os.environ["PATH"] = "/nowhere"
        if find_libraries.program("nvidia-smi"):
            self.skipTest("there is one in a toolkit")
        with card_samples.CardSamples() as samples:
            pass
        with self.assertRaisesRegex(ValueError, "no nvidia-smi"):
            samples.busy_percent()


class TraceTest(harness.TestCase):

    LANES = {1: "step", 5: "device compute", 6: "to device", 7: "to host"}

    def profile(self, *spans, lanes=None):
        """Of (lane, name, begin, end, step, bytes), in microseconds."""
        lanes = lanes or self.LANES
        ids = {name: number for number, name in lanes.items()}
        return {"traceEvents": [
            {"ph": "M", "name": "thread_name", "tid": number,
             "args": {"name": name}} for number, name in lanes.items()] + [
            {"ph": "X", "name": name, "tid": ids[lane], "ts": begin,
             "dur": end - begin, "args": dict(
                 {"step": step}, **({"bytes": size} if size else {}))}
            for lane, name, begin, end, step, size in spans]}

    def steps(self, count, lanes=None, compute="device compute"):
        """Of 100 us: 20 and 30 busy, then 10 of the update, which is in the
        next one's trace; 400 bytes in, 4 and 8 out."""
        spans = []
        for step in range(1, count + 1):
            at = 1000 + 100 * step
            spans += [
                ("step", "step", at - 10, at + 85, step, 0),
                ("to device", "batch", at - 5, at - 1, step, 400),
                (compute, "forward", at, at + 20, step, 0),
                ("to host", "loss", at + 20, at + 21, step, 4),
                (compute, "backward", at + 30, at + 60, step, 0),
                ("to host", "results", at + 60, at + 62, step, 8),
                (compute, "update", at + 80, at + 90, step + 1, 0)]
        return self.profile(*spans, lanes=lanes)

    def test_is_busy_in_whole_periods(self):
        for count in (2, 3, 30):
            trace = device_trace.DeviceTrace(self.steps(count))
            self.assertEqual(trace.busy_percent(), 60)
            self.assertEqual(trace.bytes_a_step(device_trace.TO_DEVICE), 400)
            self.assertEqual(trace.bytes_a_step(device_trace.TO_HOST), 12)

    def test_what_lies_over_the_end_of_the_last_period_counts_in_part(self):
        trace = device_trace.DeviceTrace(self.profile(
            ("device compute", "update", 0, 10, 1, 0),
            ("device compute", "forward", 10, 50, 1, 0),
            ("device compute", "forward", 110, 150, 2, 0)))
        self.assertEqual(trace.busy_percent(), 40)

    def test_a_step_has_several_stretches_before_the_loss(self):
        trace = device_trace.DeviceTrace(self.profile(
            ("device compute", "forward", 0, 10, 1, 0),
            ("device compute", "forward", 10, 20, 1, 0),
            ("device compute", "forward", 100, 130, 2, 0),
            ("device compute", "forward", 130, 140, 2, 0)))
        self.assertEqual(trace.busy_percent(), 20)

    def test_the_rows_of_a_traced_training(self):
        runs = timed_runs.Runs(limit_s=60)
        bundled_figures.trace_figures(runs, targets.ONE, self.dir)
        self.write("profile-worker-0.json", json.dumps(self.steps(30)))
        bundled_figures.trace_figures(runs, targets.ONE, self.dir)
        one = "mnist_cnn, standalone"
        names = ["GPU busy in " + one, "MB to the GPU in a step of " + one,
                 "MB to the host in a step of " + one]
        self.assertEqual([row["name"] for row in runs.rows], 2 * names)
        self.assertEqual([row.get("skipped") for row in runs.rows],
                         3 * ["no profile: No such file or directory"] +
                         3 * [None])
        self.assertEqual([(row["value"], row["unit"])
                          for row in runs.rows[3:]],
                         [(60, "%"), (0.0004, "MB"), (0.000012, "MB")])

    def test_says_what_is_missing(self):
        for why, profile in (
                ("1 steps", self.steps(1)),
                ("on several devices", self.steps(
                    3, {**self.LANES, 5: "device compute of cuda:0"},
                    "device compute of cuda:0")),
                ("the host's memory", self.profile(
                    ("step", "step", 0, 10, 1, 0)))):
            with self.assertRaisesRegex(ValueError, why):
                device_trace.DeviceTrace(profile)
        with self.assertRaisesRegex(ValueError, "no profile: No such file"):
            device_trace.read(self.path("none.json"))


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

    def test_tells_what_the_card_did(self):
        found = self.evaluated(
            row(targets.BUSY % targets.ONE, 87.5),
            row(targets.MB_TO_HOST % targets.PAIR,
                targets.MODEL_BYTES / 1e6),
            row(targets.MB_TO_DEVICE % targets.PAIR,
                skipped="no profile: No such file or directory"))
        self.assertEqual(
            found["GPU busy in mnist_cnn, standalone / all of the time"], {
                "name": "GPU busy in mnist_cnn, standalone / all of the time",
                "wanted": None, "ratio": 0.875})
        of_pair = "in a step of mnist_cnn, 1 ps + 1 workers / its parameters"
        self.assertEqual(found["MB to the host " + of_pair]["ratio"], 1)
        self.assertRegex(found["MB to the GPU " + of_pair]["not_measured"],
                         "no profile")

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
