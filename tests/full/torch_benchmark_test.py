"""The programs of `bench.sh --only=python`, briefly; and what a step of
muster.torch costs in Python, which a soak holds against its limit."""

import json
import os
import sys

from tests.integration import harness

PEERS = "tests/benchmark/peers/"
# Of a step of the small CNN, without the time in libmuster.
PYTHON_LIMIT_S = 100e-6


class TorchBenchmarkTest(harness.TestCase):

    def run_peer(self, program, *arguments):
        process = self.start(program, [
            sys.executable, os.path.abspath(PEERS + program),
            *map(str, arguments)])
        self.assertEqual(process.wait(), 0, process.output)
        return json.loads(process.output.splitlines()[-1])

    def step_of(self, tensors, steps):
        return self.run_peer("torch_step.py", tensors, steps, os.getcwd())

    def test_each_way_to_train_gives_its_speed(self):
        build = [os.getcwd(), "tcp"]
        for way, *more in (["alone"], ["alone_fused"], ["ddp"], ["rpc"],
                           ["async", *build], ["sync", *build]):
            with self.subTest(way):
                found = self.run_peer("torch_cluster.py", way, 2, 10, *more)
                self.assertGreater(found["steps_per_s"], 0)

    def test_a_step_copies_no_contiguous_tensor(self):
        found = self.step_of(8, 200)
        self.assertEqual(found["copies"], 0)
        self.assertEqual(found["calls"], 2)
        self.assertEqual(found["bytes_sent"], found["model_bytes"])
        self.expect_within("Python's own part of a step",
                           found["python_us"] / 1e6, PYTHON_LIMIT_S)

    def test_a_step_copies_each_average_once(self):
        self.assertEqual(self.step_of(102, 3)["copies"], 40)


if __name__ == "__main__":
    harness.main()
