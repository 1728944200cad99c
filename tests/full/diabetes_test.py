"""The zoo's linear_regression finds, on scikit-learn's diabetes data, what the
normal equations say.

scikit-learn and NumPy come from PyPI (requirements.txt).
"""

import os
import subprocess

from tests.integration import harness
from scripts.base import python_environment

TRAINING = "worker/model/zoo/linear_regression.textproto"
LIMIT_S = 300
# A part of the least error: how far from it steps of batches may end.
TOLERANCE = 0.01


class DiabetesTest(harness.TestCase):

    def test_the_mean_squared_error_is_that_of_the_normal_equations(self):
        python = python_environment.interpreter(
            os.path.abspath("tests/full/requirements.txt"))
        data = self.path("diabetes")
        os.mkdir(data)
        subprocess.run(
            [python, os.path.abspath("tests/full/write_diabetes.py"), data],
            stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=True)
        least = self.read_json("diabetes/least_squares.json")
        self.assertEqual(least["rows"], 442)
        train_dir = self.path("run")
        code, output = self.run_to_end("worker", [
            harness.worker(), "--standalone",
            "--training=" + os.path.abspath(TRAINING),
            "--train_dir=" + train_dir, "--compute_threads=1",
            "--set=input.dir=" + data], LIMIT_S)
        self.assertEqual(code, 0, output)
        root = self.result(train_dir)["test_root_mean_squared_error"]
        ratio = root ** 2 / least["mean_squared_error"]
        print("mean squared error: %.1f, %.4f times the least" % (
            root ** 2, ratio))
        # No linear model is below the least; float32 and printing round.
        self.assertGreater(ratio, 1 - 1e-5)
        self.assertLess(ratio, 1 + TOLERANCE)


if __name__ == "__main__":
    harness.main()
