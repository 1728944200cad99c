"""Real TensorBoard reads what a training wrote: tags, steps, values, restarts.

TensorBoard comes from PyPI, in the environment of python_environment.py.
"""

import glob
import json
import math
import os
import shutil
import struct
import subprocess

from tests.integration import harness
from scripts.base import python_environment

TRAINING = "worker/model/zoo/softmax_regression.textproto"
BATCH = 128
# Elements of each parameter.
PARAMETERS = {"logits/bias": 10, "logits/weights": 7840}
SCALARS = {
    "loss", "accuracy", "gradient_norm", "learning_rate", "steps_per_s",
    "examples_per_s", "worker_0/steps_per_s", "worker_0/examples_per_s",
    "worker_0/staleness", "input_wait", "test_accuracy", "test_loss"}
# Scalars are float32: half of 2^-23 is the largest relative rounding error of
# one, and some checks divide two.
FLOAT_RTOL = 2e-7
# A norm is of float32 values, but summed here in another order.
NORM_RTOL = 1e-6


def close(a, b, rtol=FLOAT_RTOL):
    return math.isclose(a, b, rel_tol=rtol, abs_tol=1e-30)


def read_parameter(checkpoint, name):
    """The values of one tensor of a checkpoint's safetensors file."""
    with open(os.path.join(checkpoint, "parameters.safetensors"), "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        begin, end = header[name]["data_offsets"]
        file.seek(8 + size + begin)
        return struct.unpack("<%df" % ((end - begin) // 4),
                             file.read(end - begin))


def norm(values):
    return math.sqrt(math.fsum(value * value for value in values))


def buckets(values, count=30):
    """The histogram that TensorBoard's histogram_pb makes of `values`."""
    least, most = min(values), max(values)
    width = (most - least) / count
    counts = [0] * count
    for value in values:
        counts[min(count - 1, int((value - least) // width))] += 1
    return [[least + i * width, least + (i + 1) * width, counts[i]]
            for i in range(count)]


class TensorBoardTest(harness.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.python = python_environment.interpreter()

    def setUp(self):
        super().setUp()
        self.train_dir = self.path("run")

    def flags(self, *flags):
        return ["--training=" + os.path.abspath(TRAINING), "--train_dir=" +
                self.train_dir, "--compute_threads=1",
                "--set=input.type=synthetic",
                "--set=input.synthetic_examples=12800",
                "--set=input.synthetic_test_examples=1000",
                "--set=checkpoint.every_seconds=0", "--set=stop.epochs=0",
                *flags]

    def start_standalone(self, *flags):
        return self.start("worker", [harness.worker(), "--standalone",
                                     *self.flags(*flags)])

    def train(self, *flags):
        worker = self.start_standalone(*flags)
        self.assertEqual(worker.wait(), 0)
        return self.result(self.train_dir)

    def read(self):
        """What both of TensorBoard's readers find, which is the same."""
        done = subprocess.run(
            [self.python,
             os.path.abspath("tests/integration/read_tensorboard.py"),
             os.path.join(self.train_dir, "summaries")],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            timeout=2 * harness.DEADLINE_S, check=True)
        found = json.loads(done.stdout)
        self.assertEqual(list(found["python"]), ["chief"])
        self.assertEqual(found["python"], found["rust"])
        return found["python"]["chief"], found["files"]

    def assert_steps(self, series, steps):
        self.assertEqual([step for step, _ in series], list(steps))

    def checkpoint(self, step):
        return os.path.join(self.train_dir, "ckpt-%012d" % step)

    def test_reads_every_tag_step_and_value(self):
        result = self.train(
            "--set=stop.steps=20", "--set=summary.every_steps=1",
            "--set=summary.histograms_every_steps=5",
            "--set=optimizer.schedule=exponential",
            "--set=optimizer.schedule.decay_rate=0.5",
            "--set=optimizer.schedule.decay_steps=10")
        found, files = self.read()

        scalars = found["scalars"]
        norms = {kind + "_norms/" + name for name in PARAMETERS
                 for kind in ("parameter", "gradient")}
        self.assertEqual(set(scalars), SCALARS | norms)
        for tag in SCALARS - {"test_accuracy", "test_loss"}:
            self.assert_steps(scalars[tag], range(1, 21))
        for tag in norms:
            self.assert_steps(scalars[tag], (5, 10, 15, 20))
        self.check_values(scalars, result)
        self.check_histograms(found["histograms"])

        (step, text), = found["text"]["training_spec"]
        self.assertEqual(step, 0)
        self.assertIn('    name: "softmax_regression"\n', text)
        self.check_graph(found["graphs"])
        self.check_images(found["images"])
        self.assertEqual(files[0][0]["kind"], "file_version")
        self.assertEqual(files[0][1], {"kind": "session_log", "step": 0})

    def check_values(self, scalars, result):
        for step, value in scalars["learning_rate"]:
            self.assertTrue(close(value, 1e-3 * 0.5 ** (step / 10)), step)
        for step, value in scalars["accuracy"]:
            self.assertTrue(close(value * BATCH, round(value * BATCH)), step)
        self.assertTrue(close(scalars["loss"][-1][1], result["final_loss"]))
        for tag in ("test_accuracy", "test_loss"):
            self.assert_steps(scalars[tag], (20,))
            self.assertTrue(close(scalars[tag][0][1], result[tag]), tag)
        for steps, examples in (
                ("steps_per_s", "examples_per_s"),
                ("worker_0/steps_per_s", "worker_0/examples_per_s")):
            for (step, a), (_, b) in zip(scalars[steps], scalars[examples]):
                self.assertGreater(a, 0)
                self.assertTrue(close(a * BATCH, b), (steps, step))
        for _, value in scalars["worker_0/staleness"]:
            self.assertEqual(value, 0)
        # The norm of all gradients is made of those of each.
        whole = dict(scalars["gradient_norm"])
        parts = [dict(scalars["gradient_norms/" + name]) for name in PARAMETERS]
        for step in parts[0]:
            self.assertTrue(close(whole[step],
                                  norm([part[step] for part in parts])), step)

    def check_graph(self, graphs):
        (step, nodes), = graphs["__run_graph__"]
        self.assertEqual(step, 0)
        self.assertEqual(list(nodes), ["input", "flatten", "logits", "loss"])
        self.assertEqual(nodes["input"]["shape"], [BATCH, 1, 28, 28])
        self.assertEqual(nodes["logits"], {
            "op": "dense", "input": ["flatten"], "device": "/device:CPU:0",
            "shape": [BATCH, 10]})

    def check_images(self, tags):
        self.assertEqual(list(tags), ["input"])
        # The first point of the curves, and the evaluation at the end.
        self.assert_steps(tags["input"], (1, 20))
        first, last = (images for _, images in tags["input"])
        self.assertEqual(len(first), 3)
        # Nothing varies them.
        self.assertEqual(first, last)
        for image in first:
            self.assertEqual((image["size"], image["mode"]), ([28, 28], "L"))
        self.assertNotEqual(first[0], first[1])

    def check_histograms(self, histograms):
        tags = {kind + "/" + name for name in PARAMETERS
                for kind in ("parameters", "gradients")}
        self.assertEqual(set(histograms), tags | {"staleness"})
        for tag in tags:
            self.assert_steps(histograms[tag], (5, 10, 15, 20))
            for _, rows in histograms[tag]:
                self.assertEqual(len(rows), 30)
                self.assertEqual(sum(count for _, _, count in rows),
                                 PARAMETERS[tag.split("/", 1)[1]])
        for step, rows in histograms["staleness"]:
            self.assertEqual(rows[:29], [[0, 0, 0]] * 29, step)
            self.assertEqual(rows[29], [0, 0, 1], step)

    def test_goes_on_where_a_run_ended(self):
        flags = ("--set=summary.every_steps=5",
                 "--set=summary.histograms_every_steps=1")
        self.train("--set=stop.steps=10", *flags)
        self.train("--set=stop.steps=20", "--set=summary.images=0", *flags)
        found, files = self.read()
        self.assertEqual(len(files), 2)
        self.assertEqual(files[1][1], {"kind": "session_log", "step": 11})
        # Also the points of the restored step itself are still there.
        self.assert_steps(found["scalars"]["loss"], (5, 10, 15, 20))
        self.assert_steps(found["scalars"]["test_accuracy"], (10, 20))
        self.assert_steps(found["text"]["training_spec"], (0, 10))
        self.assert_steps(found["graphs"]["__run_graph__"], (0, 10))
        self.assert_steps(found["images"]["input"], (5, 10))
        # Step 11 computes with what the checkpoint of step 10 holds.
        for name, count in PARAMETERS.items():
            values = read_parameter(self.checkpoint(10), name)
            self.assertEqual(len(values), count)
            step, found_norm = found["scalars"]["parameter_norms/" + name][10]
            self.assertEqual(step, 11)
            self.assertTrue(close(found_norm, norm(values), NORM_RTOL), name)
            step, rows = found["histograms"]["parameters/" + name][10]
            self.assertEqual(step, 11)
            for row, wanted in zip(rows, buckets(values)):
                self.assertAlmostEqual(row[0], wanted[0], delta=1e-12)
                self.assertAlmostEqual(row[1], wanted[1], delta=1e-12)
                self.assertEqual(row[2], wanted[2])

    def test_no_curve_folds_back_after_a_kill(self):
        flags = ("--set=summary.every_steps=10",
                 "--set=summary.histograms_every_steps=50")
        saved, killed = self.train_and_kill(flags)
        before, _ = self.read()
        self.assertGreaterEqual(before["scalars"]["loss"][-1][0], killed - 9)

        last = saved - saved % 10 + 100
        self.train("--set=stop.steps=%d" % last, *flags)
        found, files = self.read()
        self.assertEqual(files[1][1],
                         {"kind": "session_log", "step": saved + 1})
        for plugin, tags in found.items():
            for tag, series in tags.items():
                steps = [step for step, _ in series]
                self.assertEqual(steps, sorted(set(steps)), (plugin, tag))
                self.assertLessEqual(steps[-1], last, (plugin, tag))
        self.assert_steps(found["scalars"]["loss"], range(10, last + 1, 10))
        # And they are those of a run that nobody killed.
        self.train_dir = self.path("other")
        self.train("--set=stop.steps=%d" % last, *flags)
        other, _ = self.read()
        self.assertEqual(found["scalars"]["gradient_norm"],
                         other["scalars"]["gradient_norm"])
        for name in PARAMETERS:
            self.assertEqual(found["histograms"]["gradients/" + name],
                             other["histograms"]["gradients/" + name])
        # A mean whose steps the restart cut in two is of the second part.
        cut = saved - saved % 10 + 10 if saved % 10 else 0
        for tag in ("loss", "accuracy"):
            self.assertEqual(
                [point for point in found["scalars"][tag] if point[0] != cut],
                [point for point in other["scalars"][tag] if point[0] != cut])

    def train_and_kill(self, flags):
        """Leaves a torn record and one checkpoint, older than the last points.

        Returns the checkpoint's step and that of a later one, before which the
        points were on the disk.
        """
        worker = self.start_standalone(
            "--set=stop.steps=1000000000", "--set=checkpoint.every_steps=200",
            "--set=checkpoint.keep=1000000", *flags)
        saves = [int(worker.wait_for(r"saved \S+ckpt-0*([1-9]\d*)").group(1))
                 for _ in range(3)]
        worker.kill()
        for name in os.listdir(self.train_dir):
            if name.startswith("ckpt-") and int(name[-12:]) > saves[0]:
                shutil.rmtree(os.path.join(self.train_dir, name))
        killed_file, = glob.glob(
            os.path.join(self.train_dir, "summaries", "chief", "events.*"))
        # As if the kill had come in the middle of a record.
        with open(killed_file, "r+b") as file:
            torn = file.read(20)
            file.seek(0, os.SEEK_END)
            file.write(torn)
        return saves[0], saves[-1]

    def test_the_chief_shows_every_worker(self):
        cluster = self.write_cluster(ps=1, workers=2)
        self.start_ps(cluster, 0)
        # In sync, where the job does not end before both have come.
        workers = [self.start_worker(
            cluster, index, *self.flags(
                "--set=stop.steps=400", "--set=summary.every_steps=20",
                "--set=replication=sync"))
                   for index in range(2)]
        for worker in workers:
            self.assertEqual(worker.wait(), 0)
        found, files = self.read()
        self.assertEqual(len(files), 1)
        for index in range(2):
            for rate in ("steps_per_s", "examples_per_s", "staleness"):
                self.assertIn("worker_%d/%s" % (index, rate), found["scalars"])
        counted = sum(count for _, rows in found["histograms"]["staleness"]
                      for _, _, count in rows)
        self.assertGreater(counted, 0)
        self.assertLessEqual(counted, 2 * 400)

    def test_zero_periods_write_nothing(self):
        self.train("--set=stop.steps=3", "--set=summary.every_steps=0")
        self.assertFalse(os.path.exists(
            os.path.join(self.train_dir, "summaries")))


if __name__ == "__main__":
    harness.main()
