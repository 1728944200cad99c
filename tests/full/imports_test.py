"""The wheel in one process with torch, TensorFlow, grpcio, ONNX Runtime and
Paddle, imported before and after it, each alone and all together.
train_beside.py is the worker.
"""

import glob
import os
import re
import subprocess
import sys

from tests.integration import harness

sys.path.insert(0, os.path.abspath("scripts"))
from base import python_environment  # noqa: E402

# Paddle 3.3.1 and TensorFlow 2.21.0 work in one process in this order alone,
# without us, too.
LIBRARIES = ("paddle", "torch", "tensorflow", "grpc", "onnxruntime")
# Five of them, with all that they import, on two busy cores.
DEADLINE_S = 240.0


class ImportsTest(harness.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.python, with_torch = (
            python_environment.interpreter(os.path.abspath(path))
            for path in ("tests/full/imports_requirements.txt",
                         "tests/benchmark/peers/torch_requirements.txt"))
        cls.torch, = glob.glob(os.path.join(
            os.path.dirname(with_torch), "../lib/python*/site-packages"))

    def install_wheel(self):
        """Returns the environment of a Python that has it."""
        subprocess.run([sys.executable, os.path.abspath("scripts/wheel.py"),
                        "--no_build", "--bin_dir=" + os.getcwd(),
                        "--out=" + self.dir], check=True)
        wheel, = glob.glob(self.path("*.whl"))
        subprocess.run([self.python, "-m", "pip", "install", "--no-index",
                        "--no-deps", "--quiet", "--target=" + self.path("site"),
                        wheel], check=True)
        # torch's packages last: NumPy is that of the other ones.
        own, = glob.glob(os.path.join(os.path.dirname(self.python),
                                      "../lib/python*/site-packages"))
        return {"PYTHONPATH": os.pathsep.join(
            [self.path("site"), own, self.torch]), "HOME": self.dir,
            "PYTHONDONTWRITEBYTECODE": "1"}

    def check_training(self, environment, order, *libraries):
        cluster = self.write_cluster(ps=1, workers=1)
        run = self.path("-".join(["run", order, *libraries]))
        ps = self.start("ps 0", [self.python, "-m", "muster", "ps", "--cluster="
                                 + cluster, "--task_index=0"], environment)
        worker = self.start("worker 0", [
            self.python, os.path.abspath("tests/full/train_beside.py"), order,
            run, cluster, *libraries], environment)
        self.assertEqual(worker.wait(DEADLINE_S), 0, worker.output)
        self.assertRegex(worker.output, "(?m)^trained beside "
                         + re.escape(" ".join(libraries)))
        self.assertEqual(ps.wait(), 0, ps.output)

    def test_each_library_works_before_and_after_it(self):
        environment = self.install_wheel()
        for libraries in [*((one,) for one in LIBRARIES), LIBRARIES]:
            for order in ("before", "after"):
                with self.subTest(order=order, libraries=libraries):
                    self.check_training(environment, order, *libraries)


if __name__ == "__main__":
    harness.main()
