"""Workers whose layers are on several devices, beside others."""

import time

from tests.integration import harness
from tests.integration import recovery

# The loss is a stage of its own.
PIPELINED = ["--set=model.device_rule={pattern: 'loss' device: '/cpu:1'}",
             "--set=model.pipeline.micro_batches=4", "--compute_threads=2",
             "--log_device_placement"]


class ModelParallelTest(recovery.TestCase):

    def test_a_pipelined_worker_trains_beside_another_and_comes_back(self):
        job = recovery.Job(self, 1, 2, flags=[], ps_flags=[])
        job.start_ps(0)
        # One way to the ps each, if the suite leaves them the choice.
        job.start_worker(0, *(harness.link_flags() or ["--link=grpc"]))
        worker = job.start_worker(1, *PIPELINED)
        worker.wait_for(r"pipeline: 4 micro-batches of 8 rows; cpu:0 computes "
                        r"logits, cpu:1 computes loss$")
        worker.wait_for(r"transfer +cpu:1 +forward +from cpu:0 +320$")
        job.all_train()
        self.pause()
        start = time.monotonic()
        worker.kill()
        worker = job.start_worker(1, *PIPELINED)
        seconds = worker.wait_for_line_after(r" step=\d", start) - start
        self.check_sums(job, job.drain(), extra=1)
        self.report("worker", [seconds])

    def refused(self, *flags):
        code, output = self.run_to_end("worker", [
            harness.worker(), "--standalone",
            "--training=" + self.write("training.textproto",
                                       recovery.TRAINING), *flags])
        self.assertEqual(code, 2, output)
        return output

    def test_what_cannot_be_is_named_with_its_layer(self):
        self.assertIn(
            "layer 'logits': device=cpu:4711: there is no device",
            self.refused("--set=model.logits.device=cpu:4711"))
        self.assertIn(
            "model.pipeline: all layers",
            self.refused("--set=model.pipeline.micro_batches=4"))
        self.assertIn(
            "cannot be divided into 5 equal parts",
            self.refused("--set=model.loss.device=cpu:1",
                         "--set=model.pipeline.micro_batches=5"))
        self.assertIn(
            "--device_memory_limit_mb: wanted 0 (no limit) or more, found -1",
            self.refused("--device_memory_limit_mb=-1"))

    def test_a_dry_run_prints_the_stages_and_trains_nothing(self):
        code, output = self.run_to_end("worker", [
            harness.worker(), "pipeline",
            "--training=" + self.write("training.textproto",
                                       recovery.TRAINING), *PIPELINED])
        self.assertEqual(code, 0, output)
        self.assertIn("bubble in theory: 0.200", output)
        self.assertNotIn("step=", output)


if __name__ == "__main__":
    harness.main()
