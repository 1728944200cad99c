"""Fashion-MNIST in every format that others' programs write trains as its IDX
files do.

Pillow, NumPy, pandas and tfrecord come from PyPI (requirements.txt). Files of a few
rows, for CI: //tests/worker/input/data_set:file_data_sets_test .
"""

import os
import shutil
import subprocess
import tempfile

from tests.integration import harness
from scripts.base import python_environment

FASHION_MNIST = "/usr/share/datasets/fashion-mnist"
TRAINING = "worker/model/zoo/softmax_regression.textproto"
# More than an epoch, of 468.
STEPS = 600
# To write, or to read, 70,000 rows on a busy machine.
LIMIT_S = 900
# Of the test accuracy: what JPEG's losses may change.
JPEG_DELTA = 0.005


class DataFormatsTest(harness.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        python = python_environment.interpreter(
            os.path.abspath("tests/full/requirements.txt"))
        cls.data = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        cls.addClassCleanup(shutil.rmtree, cls.data, ignore_errors=True)
        subprocess.run(
            [python, os.path.abspath("tests/full/write_formats.py"),
             FASHION_MNIST, cls.data],
            stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=True)
        cls.trained = {}

    def train(self, input_type, folder, *more):
        """(bytes of the parameters, test accuracy) after STEPS steps."""
        if folder not in self.trained:
            train_dir = self.path("run_" + os.path.basename(folder))
            code, output = self.run_to_end("worker on %s" % folder, [
                harness.worker(), "--standalone",
                "--training=" + os.path.abspath(TRAINING),
                "--train_dir=" + train_dir, "--compute_threads=1",
                "--set=input.type=" + input_type,
                "--set=input.dir=" + os.path.join(self.data, folder),
                "--set=stop.steps=%d" % STEPS,
                "--set=checkpoint.every_seconds=0",
                "--set=summary.every_steps=0", *more], LIMIT_S)
            self.assertEqual(code, 0, output)
            self.trained[folder] = (self.parameter_bytes(train_dir, STEPS),
                                    self.result(train_dir)["test_accuracy"])
        return self.trained[folder]

    def test_npz_csv_and_tfrecord_give_the_bits_of_idx(self):
        wanted = self.train("idx", FASHION_MNIST)
        self.assertGreater(wanted[1], 0.8)
        for input_type, folder in (("npy", "npz"), ("csv", "csv"),
                                   ("tfrecord", "tfrecord")):
            with self.subTest(folder):
                self.assertEqual(self.train(input_type, folder), wanted)

    def test_what_others_write_gives_the_bits_of_idx(self):
        wanted = self.train("idx", FASHION_MNIST)
        for input_type, folder, *more in (
                ("npy", "pandas"), ("npy", "keras"), ("idx", "bgzip"),
                ("idx", "emnist"),
                ("csv", "headless", "--set=input.header=false",
                 "--set=input.label_column=0")):
            with self.subTest(folder):
                self.assertEqual(self.train(input_type, folder, *more), wanted)

    def test_png_gives_the_bits_of_idx(self):
        self.assertEqual(self.train("image_folder", "png"),
                         self.train("idx", "idx_by_class"))

    def test_jpeg_gives_the_accuracy_of_idx(self):
        jpeg, accuracy = self.train("image_folder", "jpeg")
        wanted, wanted_accuracy = self.train("idx", "idx_by_class")
        self.assertNotEqual(jpeg, wanted)
        self.assertAlmostEqual(accuracy, wanted_accuracy, delta=JPEG_DELTA)


if __name__ == "__main__":
    harness.main()
