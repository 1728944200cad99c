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

# As nvidia-smi prints it; a card of a container does not tell all.
SAMPLES = """#!/bin/sh
cat <<END
0, 345
90, 1980
[N/A], 1980
80, 1965
%s, 1950
END
exec cat "$FIFO"
"""


def row(name, value=None, **more):
    return dict(more, name=name, **({} if value is None else {"value": value}))


class SamplesTest(harness.TestCase):

    def samples(self, last_percent):
        """Of an nvidia-smi that is a script; waits until it has printed."""
        os.chmod(self.write("nvidia-smi", SAMPLES % last_percent), 0o755)
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
        self.assertEqual(self.samples("70").busy(), {
            "value": 80, "samples": 3, "sm_clock_mhz": 1965})

    def test_says_what_the_card_does_not_tell(self):
        with self.assertRaisesRegex(ValueError, "2 samples of a busy card"):
            self.samples("-").busy()

    def test_says_that_there_is_no_nvidia_smi(self):
        os.environ["PATH"] = "/nowhere"
        if find_libraries.program("nvidia-smi"):
            self.skipTest("there is one in a toolkit")
        with card_samples.CardSamples() as samples:
            pass
        with self.assertRaisesRegex(ValueError, "no nvidia-smi"):
            samples.busy()


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
            self.assertEqual(trace.period_us(), 100)
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
        bundled_figures.trace_figures(runs, targets.ONE, self.dir, None)
        self.write("profile-worker-0.json", json.dumps(self.steps(30)))
        bundled_figures.trace_figures(runs, targets.ONE, self.dir, 9500)
        one = "mnist_cnn, standalone"
        names = ["GPU busy at most in " + one,
                 "MB to the GPU in a step of " + one,
                 "MB to the host in a step of " + one]
        self.assertEqual([row["name"] for row in runs.rows], 2 * names)
        self.assertEqual([row.get("skipped") for row in runs.rows],
                         3 * ["no profile: No such file or directory"] +
                         3 * [None])
        self.assertEqual([(row["value"], row["unit"])
                          for row in runs.rows[3:]],
                         [(60, "%"), (0.0004, "MB"), (0.000012, "MB")])
        busy = runs.rows[3]
        self.assertEqual(busy["period_us"], 100)
        self.assertEqual(busy["measured_period_us"], 105.263)
        self.assertNotIn("notes", busy)

    def test_a_profile_that_slows_its_steps_says_so(self):
        trace = device_trace.DeviceTrace(self.steps(3))
        for steps_per_s in (8900, 11200):
            self.assertRegex(
                bundled_figures.busy(trace, steps_per_s)["notes"][0],
                "a profiled step took 100.0 us.* differ by more than 10 %")
        for steps_per_s in (9200, 10900):
            self.assertNotIn("notes", bundled_figures.busy(trace, steps_per_s))

    def test_a_profile_of_no_length(self):
        with self.assertRaisesRegex(ValueError, "2 steps of a device, over 0"):
            device_trace.DeviceTrace(self.profile(
                ("device compute", "forward", 5, 9, 1, 0),
                ("device compute", "forward", 5, 9, 2, 0)))

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


class TrainingTest(harness.TestCase):

    def figures(self, text="", **more):
        self.write("result.json", json.dumps(dict({
            "mode": "standalone", "rows_per_push": 128,
            "workers": [{"steps_per_s": 10.5}, {"steps_per_s": 9.5}]},
                                                  **more)))
        return bundled_figures.training_figures(self.dir, text)

    def test_a_training_gives_examples_and_who_updates(self):
        self.assertEqual(self.figures(), {
            "value": 20, "examples_per_s": 2560, "rows_per_step": 128,
            "updated_on": "host"})
        self.assertEqual(self.figures("parameters stay on cuda:0, and are "
                                      "updated there")["updated_on"], "device")
        self.assertEqual(self.figures(mode="cluster")["updated_on"], "ps")

    def test_a_training_without_steps_gives_none(self):
        for workers in ([], [{"steps_per_s": 0}]):
            with self.assertRaisesRegex(ValueError, "fewer than two steps"):
                self.figures(workers=workers)


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
            dict(self.evaluated(ours, eager, compiled)[name],
                 ratio=1.1, met=False))
        # Others have failed, which leaves a best.
        for way in ("graph", "graph contiguous"):
            found = self.evaluated(
                ours, eager, row("PyTorch %s, mnist_cnn, tf32" % way, 110),
                row("PyTorch compile, mnist_cnn, tf32", failed="exit code 1"))
            self.assertEqual(found[name]["ratio"], 3)
            self.assertIs(found[name]["met"], True)
            self.assertRegex(
                found[name]["remark"], "^PyTorch's best is %s; without .*"
                "compile: exit code 1" % way)
        self.assertRegex(self.evaluated(ours)[name]["not_measured"],
                         "^PyTorch graph, compile, eager, .*: it was not run$")

    def test_steps_a_second_are_wanted_of_a_card(self):
        name = "mnist_cnn, standalone / the 8000 a second wanted of an H100"
        self.assertTrue(self.evaluated(
            row(targets.ONE + " on cuda", 8800))[name]["met"])
        on_cpu = targets.evaluate([row(targets.ONE + " on cpu", 14)], "cpu")
        self.assertIn("not a GPU", next(
            one for one in on_cpu if one["name"] == name)["not_measured"])

    def test_tells_what_the_card_did(self):
        busy = "GPU busy at most in mnist_cnn, standalone / all of the time"
        found = self.evaluated(
            row(targets.BUSY % targets.ONE, 87.5),
            row(targets.MB_TO_HOST % targets.PAIR,
                targets.MODEL_BYTES / 1e6),
            row(targets.MB_TO_DEVICE % targets.PAIR,
                skipped="no profile: No such file or directory"))
        self.assertEqual(
            found[busy], {"name": busy, "wanted": None, "ratio": 0.875})
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
        self.assertRegex(found[self.PAIR_RATIO]["not_measured"],
                         "it was not run")

    def test_steps_of_several_rows_are_compared_in_examples(self):
        found = self.evaluated(
            row(targets.ONE + " on cuda", 100, examples_per_s=12800,
                updated_on="device"),
            row(targets.TOWERS + " on cuda", 50, examples_per_s=12800,
                updated_on="host"),
            row(targets.THREE + " on cuda", 150, examples_per_s=19200,
                updated_on="ps"),
            row(targets.HOST_UPDATE + " on cuda", 80, examples_per_s=10240,
                updated_on="host"))
        for name, other, ratio, remark in (
                (targets.TOWERS, targets.ONE, 1, "host / on the device"),
                (targets.THREE, targets.ONE, 1.5, "ps / on the device"),
                (targets.TOWERS, targets.HOST_UPDATE, 1.25,
                 "host / on the host")):
            one = found["%s / %s, in examples" % (name, other)]
            self.assertEqual(one["ratio"], ratio)
            self.assertEqual(one["remark"], "updated on the " + remark)

    def test_a_figure_of_zero_leaves_the_other_ratios(self):
        found = self.evaluated(row(targets.ONE + " on cuda", 100),
                               row(targets.PLAIN + " on cuda", 0),
                               row(targets.HOST_UPDATE + " on cuda", 50))
        self.assertRegex(
            found["%s / %s" % (targets.ONE, targets.PLAIN)]["not_measured"],
            "^it cannot be computed: ZeroDivisionError")
        self.assertEqual(
            found["%s / %s" % (targets.ONE, targets.HOST_UPDATE)]["ratio"], 2)

    def test_the_table_has_a_line_for_each(self):
        lines = targets.table(targets.evaluate([
            row(targets.INCEPTION + " on cpu", 10.0),
            row(targets.INCEPTION_PAIR + " on cpu", 8.0)], "cpu")).splitlines()
        self.assertEqual(len(lines), 1 + len(targets.TARGETS))
        line = next(line for line in lines
                    if line.startswith(targets.INCEPTION_PAIR))
        self.assertRegex(line, r" 0\.800  >= 0\.9  NO  \(updated on the ")


if __name__ == "__main__":
    harness.main()
