"""Workers whose layers are on several devices, beside others."""

import time

from tests.integration import harness
from tests.integration import recovery

# The loss is computed on another lane than the layer before it.
DIVIDED = ["--set=model.device_rule={pattern: 'loss' device: '/cpu:1'}",
           "--compute_threads=2", "--log_device_placement"]


class ModelParallelTest(recovery.TestCase):

    def test_a_divided_worker_trains_beside_another_and_comes_back(self):
        job = recovery.Job(self, 1, 2, flags=[], ps_flags=[])
        job.start_ps(0)
        # One way to the ps each, if the suite leaves them the choice.
        job.start_worker(0, *(harness.link_flags() or ["--link=grpc"]))
        worker = job.start_worker(1, *DIVIDED)
        worker.wait_for(r"layers are computed on cpu:0\+cpu:1")
        worker.wait_for(r"transfer +cpu:1 +forward +from cpu:0 +1280$")
        job.all_train()
        self.pause()
        start = time.monotonic()
        worker.kill()
        worker = job.start_worker(1, *DIVIDED)
        seconds = worker.wait_for_line_after(r" step=\d", start) - start
        self.check_sums(job, job.drain(), extra=1)
        self.report("worker", [seconds])

    def test_a_device_that_is_not_there_is_named_with_its_layer(self):
        code, output = self.run_to_end("worker", [
            harness.worker(), "--standalone",
            "--training=" + self.write("training.textproto",
                                       recovery.TRAINING),
            "--set=model.logits.device=cpu:4711"])
        self.assertEqual(code, 2, output)
        self.assertIn("layer 'logits': device=cpu:4711: there is no device",
                      output)


if __name__ == "__main__":
    harness.main()
