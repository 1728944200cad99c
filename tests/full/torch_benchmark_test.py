"""The programs of `bench.sh --only=python`, briefly; and what a step of
muster.torch costs in Python, which a soak holds against its limit."""

import json
import os
import statistics
import sys

import muster.torch
import torch
from tests.integration import harness
from tests.worker.python import fake_library

PEERS = "tests/benchmark/peers/"
sys.path.insert(0, os.path.abspath(PEERS))
# pylint: disable=wrong-import-position
import torch_small_cnn
import torch_step

# Of a step of the small CNN, without the time in libmuster and without forward
# and backward passes between steps, which take Python's code out of the core's
# caches: bench.sh has the time in a training, several times this one.
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
        sys.stderr.write("Python's own part of a step in a training: %.0f us\n"
                         % found["python_us"])

    def test_the_python_code_of_a_step_is_short(self):
        library = torch_step.MeteredLibrary(
            fake_library.FakeLibrary(steps=10000))
        fake_library.use(library, self)
        torch.set_num_threads(1)
        job = muster.torch.init(ps="localhost:1")
        self.addCleanup(job.abandon)
        model = torch_small_cnn.make_model()
        optimizer = muster.torch.DistributedOptimizer(
            torch_small_cnn.adam(model), model, job)
        torch_small_cnn.train(model, optimizer, torch_small_cnn.batches(0), 1)
        self.expect_within("Python's own part of a step, again and again",
                           statistics.median(
                               library.ns_outside(optimizer.step)
                               for _ in range(2000)) / 1e9, PYTHON_LIMIT_S)

    def test_a_step_copies_each_average_once_each_way_and_all_at_once(self):
        self.assertEqual(self.step_of(102, 3)["copies"], 40 + 40 + 1)


if __name__ == "__main__":
    harness.main()
