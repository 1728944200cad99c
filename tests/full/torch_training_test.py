"""PyTorch models on real ps tasks, by muster.torch: as torch alone, whoever
dies. train_torch.py is the worker."""

import os
import re
import shutil
import sys

import muster
import numpy
from tests.integration import harness

# Of a loss: another order of the same sums, over 50 steps.
RELATIVE = 1e-5
# Of the data set of `visits`; some seconds of it.
ROWS = 4000
MANY_ROWS = 20000
RULES = ("sgd", "momentum", "nesterov", "adam", "adamw", "adagrad", "rmsprop")


class TorchTrainingTest(harness.TestCase):

    def start_torch(self, cluster, index, task, *argument):
        return self.start("worker %d" % index, [
            sys.executable, os.path.abspath("tests/full/train_torch.py"), task,
            self.path("found-%d.json" % index), self.path("run"), cluster,
            str(index), *argument])

    def train(self, task, *arguments):
        """Workers to a good end, each with one of the arguments; what they
        found."""
        cluster = self.write_cluster(ps=1, workers=len(arguments))
        ps = self.start_ps(cluster, 0)
        workers = [self.start_torch(cluster, index, task, argument)
                   for index, argument in enumerate(arguments)]
        for process in workers + [ps]:
            self.assertEqual(process.wait(), 0, process.output)
        return [self.read_json("found-%d.json" % index)
                for index in range(len(arguments))]

    def check_one_worker(self, rule):
        found, = self.train("one_worker", rule)
        own, alone = found["losses"]
        self.assertLess(alone[-1], alone[0])
        numpy.testing.assert_allclose(own, alone, rtol=RELATIVE)
        for ours, theirs in found["buffers"]:
            numpy.testing.assert_allclose(ours, theirs, rtol=1e-4)
        return found

    def test_each_rule_trains_as_torch_alone(self):
        for rule in RULES:
            with self.subTest(rule):
                self.check_one_worker(rule)
                shutil.rmtree(self.path("run"))

    def test_batch_norm_trains_as_torch_alone(self):
        self.assertEqual(len(self.check_one_worker("sgd,norm")["buffers"]), 3)

    def test_a_scheduler_trains_as_torch_alone(self):
        self.check_one_worker("adamw,schedule")

    def test_overlap_trains_the_same_to_the_bit(self):
        for rule in ("adam,norm", "momentum,schedule"):
            with self.subTest(rule):
                found = []
                for more in ("", ",overlap"):
                    worker, = self.train("one_worker", rule + more)
                    found.append((worker["losses"][0],
                                  muster.load(self.path("run"))))
                    shutil.rmtree(self.path("run"))
                (losses, values), (early_losses, early_values) = found
                self.assertEqual(early_losses, losses)
                self.assertEqual(early_values.keys(), values.keys())
                for name, value in values.items():
                    numpy.testing.assert_array_equal(early_values[name], value)

    def test_two_sync_workers_are_one_process_with_the_whole_batch(self):
        for rule in ("adam", "adam,overlap"):
            halves = self.train("half", rule, rule)
            numpy.testing.assert_allclose(
                numpy.mean([half["losses"] for half in halves], axis=0),
                halves[0]["whole"], rtol=RELATIVE)
            shutil.rmtree(self.path("run"))

    def test_sync_workers_under_a_scheduler_are_one_process(self):
        for rule in ("sgd,schedule", "adam,schedule"):
            with self.subTest(rule):
                halves = self.train("half", rule, rule)
                numpy.testing.assert_allclose(
                    numpy.mean([half["losses"] for half in halves], axis=0),
                    halves[0]["whole"], rtol=RELATIVE)
                shutil.rmtree(self.path("run"))

    def check_each_example(self, task):
        """What two workers found, one of them with processes that load."""
        workers = self.train(task, "0", "2")
        batches = [batch for worker in workers for batch in worker["rows"]]
        rows = sorted(row for batch in batches for row in batch)
        self.assertEqual(rows, sorted(list(range(304)) * 2))
        self.assertEqual(
            muster.load(self.path("run"))["updates"],
            [self.result(self.path("run"))["global_step"]])
        return workers

    def test_each_example_is_dealt_once_an_epoch(self):
        self.check_each_example("sharded")

    def test_sync_workers_share_the_examples(self):
        for worker in self.check_each_example("sharded_in_sync"):
            self.assertEqual(len(worker["rows"]), 38)

    def test_the_program_of_the_front_page_trains(self):
        with open("README.md", encoding="utf-8") as file:
            program = re.search("^```python\n(.*?)^```", file.read(),
                                re.MULTILINE | re.DOTALL).group(1)
        path = self.write("train.py", program)
        cluster = self.write_cluster(ps=1, workers=2)
        ps = self.start_ps(cluster, 0)
        workers = [self.start(
            "worker %d" % index, [sys.executable, path], cwd=self.dir,
            env={**os.environ, "MUSTER_CLUSTER": cluster,
                 "MUSTER_TASK_INDEX": str(index)}) for index in range(2)]
        for process in workers + [ps]:
            self.assertEqual(process.wait(), 0, process.output)
        self.assertIn("each of 2000 examples was trained on 3 times",
                      workers[0].output)

    def test_a_killed_ps_comes_back_and_the_training_ends(self):
        cluster = self.write_cluster(ps=1, workers=2)
        ps = self.start_ps(cluster, 0)
        workers = [self.start_torch(cluster, index, "until_the_end", "")
                   for index in range(2)]
        for worker in workers:
            worker.wait_for(r"did step=\d{3}")
        ps.kill()
        ps = self.start_ps(cluster, 0)
        for process in workers + [ps]:
            self.assertEqual(process.wait(), 0, process.output)
        self.assertEqual(muster.load(self.path("run"))["updates"],
                         [self.result(self.path("run"))["global_step"]])

    def start_visits(self, cluster, index, *gates, task="visits", rows=ROWS):
        argument = str(rows)
        if gates:
            if not os.path.exists(self.path("gate%d" % index)):
                os.mkfifo(self.path("gate%d" % index))
            argument += ":" + ",".join(
                [self.path("gate%d" % index), *map(str, gates)])
        return self.start_torch(cluster, index, task, argument)

    def open_gate(self, index):
        os.close(os.open(self.path("gate%d" % index), os.O_WRONLY))

    def test_each_row_counts_once_an_epoch_over_kills_before_pushes(self):
        cluster = self.write_cluster(ps=1, workers=2)
        ps = self.start_ps(cluster, 0)
        chief = self.start_visits(cluster, 0, 150, 300)
        worker = self.start_visits(cluster, 1, 150)
        chief.wait_for("at gate 150")
        worker.wait_for("at gate 150")
        ps.kill()
        ps = self.start_ps(cluster, 0)
        self.open_gate(0)
        chief.wait_for("at gate 300")
        worker.kill()
        worker = self.start_visits(cluster, 1)
        chief.kill()
        chief = self.start_visits(cluster, 0)
        for process in (chief, worker, ps):
            self.assertEqual(process.wait(), 0, process.output)
        numpy.testing.assert_array_equal(
            muster.load(self.path("run"))["visits"], numpy.full(ROWS, -2))

    def check_rows(self, killed):
        """Each row twice, but for what result.json says."""
        result = self.result(self.path("run"))
        repeated = result.get("examples_repeated", 0)
        # Of each worker that was killed its newest step.
        self.assertLessEqual(repeated, killed * 4)
        surplus = -muster.load(self.path("run"))["visits"] - 2
        more, fewer = surplus[surplus > 0].sum(), -surplus[surplus < 0].sum()
        print("rows: %d once more, %d once less; said: %d repeated" %
              (more, fewer, repeated))
        self.assertLessEqual(more, repeated)
        self.assertLessEqual(fewer, result.get("examples_left", 0))

    def test_rows_count_as_often_as_said_over_kills_anywhere(self):
        # One stands at a gate while the other one is killed, as it would be at
        # the job's end before that one is back.
        cluster = self.write_cluster(ps=1, workers=2)
        ps = self.start_ps(cluster, 0)
        chief = self.start_visits(cluster, 0, 400, rows=MANY_ROWS)
        worker = self.start_visits(cluster, 1, rows=MANY_ROWS)
        chief.wait_for("at gate 400")
        worker.wait_for(r"did steps=\d\d")
        worker.kill()
        worker = self.start_visits(cluster, 1, 100, rows=MANY_ROWS)
        worker.wait_for("at gate 100")
        self.open_gate(0)
        chief.wait_for("did steps=5")
        chief.kill()
        chief = self.start_visits(cluster, 0, 100, rows=MANY_ROWS)
        chief.wait_for("at gate 100")
        self.open_gate(1)
        worker.wait_for(r"did steps=\d{3}")
        ps.kill()
        ps = self.start_ps(cluster, 0)
        self.open_gate(0)
        for process in (chief, worker, ps):
            self.assertEqual(process.wait(), 0, process.output)
        self.check_rows(killed=2)

    def test_rows_count_as_often_as_said_over_kills_in_sync(self):
        def start(index):
            return self.start_visits(cluster, index, task="visits_in_sync")

        cluster = self.write_cluster(ps=1, workers=2)
        ps = self.start_ps(cluster, 0)
        workers = [start(0), start(1)]
        for killed in (1, "ps", 0):
            for worker in workers:
                worker.wait_for(r"did steps=[1-9]")
            if killed == "ps":
                ps.kill()
                ps = self.start_ps(cluster, 0)
            else:
                workers[killed].kill()
                workers[killed] = start(killed)
        for process in workers + [ps]:
            self.assertEqual(process.wait(), 0, process.output)
        self.check_rows(killed=2)


if __name__ == "__main__":
    harness.main()
