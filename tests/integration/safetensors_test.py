"""The safetensors package and numpy read what we write, and we what they do."""

import json
import os
import subprocess

from tests.integration import checkpoint_test
from tests.integration import harness
from scripts.base import python_environment

# Prints every tensor of the files given: name, dtype, shape, sum.
READ = """
import json, sys
import numpy
from safetensors import safe_open
from safetensors.numpy import load_file
found = {}
for path in sys.argv[1:]:
    tensors = load_file(path)
    with safe_open(path, framework="numpy") as file:
        assert sorted(file.keys()) == sorted(tensors)
    for name, tensor in tensors.items():
        assert numpy.isfinite(tensor).all(), name
        found[name] = [str(tensor.dtype), list(tensor.shape),
                       float(tensor.astype("float64").sum())]
print(json.dumps(found))
"""
# Writes the model's parameters in this dtype, and prints their sums.
WRITE = """
import json, sys
import numpy
from safetensors.numpy import save_file
path, dtype, shapes = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
random = numpy.random.default_rng(20261121)
tensors = {name: random.standard_normal(shape).astype(dtype)
           for name, shape in shapes.items()}
save_file(tensors, path, metadata={"format": "np", "note": "from numpy"})
print(json.dumps({name: float(t.astype("float32").astype("float64").sum())
                  for name, t in tensors.items()}))
"""


class SafetensorsTest(checkpoint_test.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.python = python_environment.interpreter()

    def python_json(self, script, *arguments):
        done = subprocess.run([self.python, "-c", script, *arguments],
                              check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    def test_the_package_reads_our_files(self):
        self.assert_trains()
        found = self.python_json(READ, self.file(20),
                                 self.file(20, "slots.safetensors"))
        for name, shape in checkpoint_test.PARAMETERS.items():
            self.assertEqual(found[name][:2], ["float32", shape])
            for slot in ("m", "v"):
                self.assertEqual(found["%s/%s" % (name, slot)][:2],
                                 ["float32", shape])
            # Twenty updates of the one block.
            self.assertEqual(found[name + "/t"], ["int64", [1], 20.0])
        self.assertEqual(len(found), 4 * len(checkpoint_test.PARAMETERS))

    def test_the_package_reads_an_export(self):
        self.assert_trains()
        exported = self.path("w.safetensors")
        code, output = self.run_to_end("export", [
            harness.musterctl(), "checkpoint", "export", self.path("train"),
            exported])
        self.assertEqual(code, 0, output)
        self.assertEqual(self.python_json(READ, exported),
                         self.python_json(READ, self.file(20)))

    def test_we_read_the_packages_files(self):
        for dtype in ("float32", "float16", "float64"):
            with self.subTest(dtype=dtype):
                path = self.path(dtype + ".safetensors")
                sums = self.python_json(
                    WRITE, path, dtype, json.dumps(checkpoint_test.PARAMETERS))
                self.assert_trains("--init_from=" + path, train_dir=dtype)
                found = self.python_json(READ, self.file(0, train_dir=dtype))
                self.assertEqual({name: tensor[2]
                                  for name, tensor in found.items()}, sums)
                self.assertTrue(os.path.exists(path))


if __name__ == "__main__":
    harness.main()
