"""The evaluator job beside a training: real processes, real files."""

import json
import os
import re
import signal

from tests.integration import harness

TRAINING = harness.softmax_regression(
    steps=1000, more="checkpoint { every_steps: 100 keep: 1000 }")
ENDLESS = "--set=stop.steps=100000000"
EVALUATED = re.compile(r"evaluated \S+/ckpt-(\d+): step=(\d+) "
                       r"test_accuracy=(\S+) test_loss=(\S+) test_examples=500$")


class EvaluatorTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        self.cluster = self.write_cluster(ps=1, workers=1, evaluator=True)

    def flags(self, *flags):
        return self.training_flags(TRAINING, "train", *flags)

    def start_evaluator(self, *flags, cluster=None, env=None):
        return self.start(
            "evaluator",
            [harness.worker(), "--cluster=" + (cluster or self.cluster),
             "--job_name=evaluator", *self.flags(*flags)], env=env)

    def read(self, name):
        return self.read_json(os.path.join("train", name))

    def steps_evaluated(self, evaluator):
        return [int(match[2]) for match in map(
            EVALUATED.search, evaluator.output.splitlines()) if match]

    def test_evaluates_every_checkpoint_and_ends_with_the_job(self):
        evaluator = self.start_evaluator()
        evaluator.wait_for("waiting for the first checkpoint")
        server = self.start_ps(self.cluster, 0)
        worker = self.start_worker(self.cluster, 0, *self.flags())
        for process in (worker, server, evaluator):
            self.assertEqual(process.wait(), 0, process.output)
        saved = sorted(int(name[5:]) for name in os.listdir(self.path("train"))
                       if name.startswith("ckpt-"))
        self.assertEqual(self.steps_evaluated(evaluator), saved)
        self.assertEqual(saved[-1], 1000)
        result, newest = self.read("result.json"), self.read("evaluator.json")
        for name in ("global_step", "test_accuracy", "test_loss",
                     "test_examples"):
            self.assertEqual(newest[name], result[name])
        # It is no member of the job, and wrote nothing but its own.
        self.assertEqual([task["task"] for task in result["workers"]],
                         ["/job:worker/task:0"])
        self.assertEqual(
            [name for name in os.listdir(os.path.join(
                self.path("train"), "summaries", "evaluator"))
             if "tfevents" not in name], [])

    def test_its_death_disturbs_nobody_and_another_takes_over(self):
        server = self.start_ps(self.cluster, 0)
        worker = self.start_worker(
            self.cluster, 0, *self.flags(ENDLESS, "--progress_every=0.2"))
        first = self.start_evaluator()
        first.wait_for(EVALUATED)
        first.kill()
        worker.wait_for(r" step=\d+")
        second = self.start_evaluator()
        second.wait_for(EVALUATED)
        worker.send(signal.SIGTERM)
        self.assertEqual(worker.wait(), 128 + signal.SIGTERM, worker.output)
        self.assertEqual(server.wait(), 0, server.output)
        self.assertEqual(second.wait(), 0, second.output)
        self.assertNotIn("/job:evaluator", worker.output + server.output)
        newest = max(name for name in os.listdir(self.path("train"))
                     if name.startswith("ckpt-"))
        self.assertEqual(self.read("evaluator.json")["global_step"],
                         int(newest[5:]))

    def test_ends_with_a_job_whose_end_it_missed(self):
        server = self.start_ps(self.cluster, 0)
        worker = self.start_worker(
            self.cluster, 0, *self.flags("--set=stop.steps=0",
                                         "--set=stop.seconds=2"))
        evaluator = self.start_evaluator()
        evaluator.wait_for(EVALUATED)
        # Cut off until everybody has gone.
        evaluator.send(signal.SIGSTOP)
        for process in (worker, server):
            self.assertEqual(process.wait(), 0, process.output)
        evaluator.send(signal.SIGCONT)
        self.assertEqual(evaluator.wait(), 0, evaluator.output)
        self.assertIn("the job has ended", evaluator.output)
        self.assertEqual(self.read("evaluator.json")["global_step"],
                         self.read("result.json")["global_step"])

    def test_tasks_that_come_after_the_end_say_so_and_end_well(self):
        server = self.start_ps(self.cluster, 0)
        worker = self.start_worker(self.cluster, 0, *self.flags())
        for process in (worker, server):
            self.assertEqual(process.wait(), 0, process.output)
        result = self.read("result.json")
        chief = self.start_worker(self.cluster, 0, *self.flags())
        evaluator = self.start_evaluator()
        self.assertEqual(evaluator.wait(), 0, evaluator.output)
        self.assertIn("the job has ended", evaluator.output)
        self.assertEqual(chief.wait(), 0, chief.output)
        self.assertRegex(
            chief.output, "the training was finished already: step 1000, by "
            r"stop\.steps, as \S+ says, and its ps tasks have left: /job:ps")
        self.assertEqual(self.read("result.json"), result)

    def test_an_old_result_is_not_the_end_of_a_new_job(self):
        self.run_standalone()
        evaluator = self.start_evaluator("--max_wait=6s")
        self.assertEqual(evaluator.wait(), 138, evaluator.output)

    def test_ends_by_a_signal_and_without_a_ps(self):
        evaluator = self.start_evaluator()
        evaluator.wait_for("waiting for the first checkpoint")
        evaluator.send(signal.SIGTERM)
        self.assertEqual(evaluator.wait(), 128 + signal.SIGTERM)
        alone = self.start_evaluator("--max_wait=1s")
        self.assertEqual(alone.wait(), 138, alone.output)
        self.assertRegex(alone.output, r"gave up after waiting 1s for "
                         r"/job:ps/task:0 at \S+ \(connection refused")

    def test_refuses_what_it_cannot_use(self):
        self.run_standalone()
        server = self.start_ps(self.cluster, 0)
        other = self.start_evaluator(
            "--set=optimizer.name=adam")
        self.assertEqual(other.wait(), 3, other.output)
        self.assertRegex(other.output, "evaluate .*ckpt-000000000000.*adam")
        nowhere = self.start_evaluator("--train_dir=")
        self.assertEqual(nowhere.wait(), 2, nowhere.output)
        self.assertIn("--train_dir is missing", nowhere.output)
        server.kill()

    def run_standalone(self):
        code, output = self.run_to_end(
            "standalone", [harness.worker(), "--standalone",
                           *self.flags("--set=stop.steps=10")])
        self.assertEqual(code, 0, output)

    def test_tensorflows_own_configuration_starts_it(self):
        with open(self.cluster, encoding="utf-8") as file:
            cluster = json.load(file)["cluster"]
        del cluster["evaluator"]
        self.run_standalone()
        server = self.start(
            "ps", [harness.ps_server(),
                   "--cluster=" + self.write("c.json", json.dumps(cluster))])
        evaluator = self.start(
            "evaluator", [harness.worker(), *self.flags()],
            env={**os.environ, "TF_CONFIG": json.dumps(
                {"cluster": cluster,
                 "task": {"type": "evaluator", "index": 0}})})
        evaluator.wait_for(r"evaluated \S+/ckpt-000000000010")
        evaluator.send(signal.SIGTERM)
        self.assertEqual(evaluator.wait(), 128 + signal.SIGTERM)
        server.kill()


if __name__ == "__main__":
    harness.main()
