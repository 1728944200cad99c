"""mypy --strict over the package muster, beside torch's and NumPy's own types."""

import os
import subprocess
import sys
import unittest

from tests.integration import harness

sys.path.insert(0, os.path.abspath("scripts"))
from base import python_environment  # noqa: E402


class TypingTest(unittest.TestCase):

    def check(self, *arguments):
        mypy, with_torch = (
            python_environment.interpreter(os.path.abspath(path))
            for path in ("tests/full/typing_requirements.txt",
                         "tests/benchmark/peers/torch_requirements.txt"))
        return subprocess.run(
            [mypy, "-m", "mypy", "--strict", "--no-error-summary",
             "--cache-dir=" + os.devnull, "--python-executable=" + with_torch,
             *arguments], cwd="worker/python", text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)

    def test_the_package_has_no_error(self):
        result = self.check("-p", "muster")
        self.assertEqual((result.stdout, result.returncode), ("", 0))

    def test_a_wrong_argument_is_an_error(self):
        result = self.check("-c", "import muster\nmuster.init(train_dir=1)\n")
        self.assertIn("train_dir", result.stdout)
        self.assertEqual(result.returncode, 1)


if __name__ == "__main__":
    harness.main()
