"""The package muster over real ps tasks: sync workers beside NumPy alone,
kills, signals, workers that do not fit together."""

import os
import signal
import sys
from unittest import mock

import muster
import numpy
from muster import _local
from tests.integration import harness
from tests.integration import recovery

# Relative: sums of both are of float32, in another order.
TOLERANCE = 1e-5
STEPS = 40
RATE = 0.1

# Each row that a step is of counts one down in its place of w. After so many
# steps a gate is waited for, the other end of a named pipe, with the gradient
# of the next one.
VISITS = """
import sys
import muster, numpy
rows = int(sys.argv[1])
gates = {int(steps) for steps in sys.argv[4:]}
w = numpy.zeros(rows, numpy.float32)
steps = 0
with muster.Model({"w": w}, "sgd", 1.0, train_dir=sys.argv[2], rows=rows,
                  batch_size=4, epochs=2, save_every_steps=100,
                  max_wait=60) as model:
    while not model.done:
        gradient = numpy.zeros(rows, numpy.float32)
        numpy.add.at(gradient, model.rows(), 1)
        if steps in gates:
            print("at gate", steps, flush=True)
            open(sys.argv[3]).close()
        model.push_pull({"w": gradient}, loss=0.0)
        steps += 1
"""


# The same with a table, whose row of each data set row counts down; ids are
# spread over all 64 bits.
ROW_VISITS = """
import sys
import muster, numpy
rows = int(sys.argv[1])
gates = {int(steps) for steps in sys.argv[4:]}
steps = 0
table = {"dim": 3, "optimizer": "sgd", "learning_rate": 1.0, "initial": "zeros"}
with muster.Model({}, "sgd", 1.0, train_dir=sys.argv[2], rows=rows,
                  tables={"visits": table}, batch_size=4, epochs=2,
                  save_every_steps=100, max_wait=60) as model:
    while not model.done:
        ids, counts = numpy.unique(model.rows(), return_counts=True)
        ids = ids.astype(numpy.int64) * 0x1E3779B97F4A7C15
        model.pull_rows("visits", ids)
        if steps in gates:
            print("at gate", steps, flush=True)
            open(sys.argv[3]).close()
        model.push_rows("visits", ids, numpy.repeat(
            counts.astype(numpy.float32), 3).reshape(-1, 3))
        model.push_pull({}, loss=0.0)
        steps += 1
"""


class TestCase(recovery.TestCase):

    def start_program(self, text, cluster, index, *arguments):
        environment = dict(os.environ, MUSTER_CLUSTER=cluster,
                           MUSTER_JOB_NAME="worker",
                           MUSTER_TASK_INDEX=str(index))
        return self.start("worker %d" % index, [
            sys.executable, "-c", text, *map(str, arguments)], environment)


class LocalTestCase(TestCase):

    def setUp(self):
        super().setUp()
        patch = mock.patch.object(_local, "path_of",
                                  lambda name: harness.ps_server())
        patch.start()
        self.addCleanup(patch.stop)
        random = numpy.random.default_rng(3)
        self.x = random.standard_normal((64, 3)).astype(numpy.float32)
        self.y = self.x @ numpy.array([[1], [2], [-1]], numpy.float32)

    def gradient(self, w, rows):
        x, y = self.x[rows], self.y[rows]
        return x.T @ (x @ w - y) / numpy.float32(len(x))


class LocalTest(LocalTestCase):

    def train(self, train_dir):
        w = numpy.zeros((3, 1), numpy.float32)
        with muster.Model({"w": w}, "sgd", RATE, train_dir=train_dir,
                          replication="sync", steps=STEPS) as model:
            index = int(os.environ["MUSTER_TASK_INDEX"])
            rows = slice(index * 32, (index + 1) * 32)
            while not model.done:
                model.push_pull({"w": self.gradient(w, rows)})
            return model.global_step

    def test_two_sync_workers_are_numpy_with_the_whole_batch(self):
        with muster.local(ps=2, workers=2) as cluster:
            found = cluster.run(self.train, self.path("run"))
        w = numpy.zeros((3, 1), numpy.float32)
        for _ in range(STEPS):
            w -= numpy.float32(RATE) * self.gradient(w, slice(0, 64))
        numpy.testing.assert_allclose(muster.load(self.path("run"))["w"], w,
                                      rtol=TOLERANCE)
        self.assertEqual(found, [STEPS - 1] * 2)

    def test_workers_of_other_shapes_end_with_why(self):
        def train():
            size = 3 + int(os.environ["MUSTER_TASK_INDEX"])
            with muster.Model({"w": numpy.zeros(size, numpy.float32)}, steps=9,
                              replication="sync") as model:
                while not model.done:
                    model.push_pull({"w": None})

        with muster.local(ps=1, workers=2) as cluster:
            with self.assertRaisesRegex(muster.ConfigError, "w"):
                cluster.run(train)


class LivingJobTest(LocalTestCase):

    def train_and_load(self, train_dir):
        w = numpy.zeros((3, 1), numpy.float32)
        cluster = os.environ["MUSTER_CLUSTER"]
        loads = []
        with muster.Model({"w": w, "b": numpy.ones(2, numpy.float32)}, "sgd",
                          RATE, train_dir=train_dir, steps=STEPS) as model:
            while not model.done:
                # At rest: the one worker computes.
                loads.append((w.copy(), muster.load(cluster=cluster)))
                model.push_pull({"w": self.gradient(w, slice(0, 64)),
                                 "b": None})
        return model.global_step, loads

    def test_what_is_loaded_is_what_the_worker_has_and_disturbs_nobody(self):
        with muster.local(ps=2, workers=1) as cluster:
            (step, loads), = cluster.run(self.train_and_load, self.path("run"))
        self.assertEqual(step, STEPS - 1)
        self.assertEqual(len(loads), STEPS)
        for w, found in loads:
            numpy.testing.assert_array_equal(found["w"], w)
            numpy.testing.assert_array_equal(found["b"], [1, 1])

    def test_a_namespace_that_is_not_there_is_refused_with_why(self):
        hosts = "localhost:%d" % harness.free_ports(1)[0]
        self.start("ps", [harness.ps_server(), "--ps_hosts=" + hosts,
                          "--job_name=ps", "--keep_serving"])
        # Not in this process, which forks workers.
        for arguments, words in (
                ("namespace='cnn', max_wait=60",
                 "ConfigError: namespace 'cnn' is not on the ps tasks"),
                ("max_wait=0.01", "has no whole model: /job:ps/task:0")):
            code, output = self.run_to_end("load", [
                sys.executable, "-c", "import muster\nmuster.load(ps=%r, %s)" %
                (hosts, arguments)])
            self.assertEqual(code, 1)
            self.assertIn(words, output)


class ProcessTest(TestCase):

    ROWS = 4000

    def start_visits(self, cluster, index, *gates, program=VISITS):
        path = self.path("gate%d" % index)
        if gates:
            os.mkfifo(path)
        return self.start_program(program, cluster, index, self.ROWS,
                                  self.path("run"), path, *gates)

    def open_gate(self, index):
        os.close(os.open(self.path("gate%d" % index), os.O_WRONLY))

    def assert_each_row_twice(self):
        numpy.testing.assert_array_equal(muster.load(self.path("run"))["w"],
                                         numpy.full(self.ROWS, -2))

    def test_each_row_counts_once_an_epoch_over_kills(self):
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
        self.assert_each_row_twice()

    def test_each_row_of_a_table_counts_once_an_epoch_over_kills(self):
        cluster = self.write_cluster(ps=2, workers=3)
        ps = [self.start_ps(cluster, i) for i in range(2)]
        workers = [self.start_visits(cluster, index, *gates, program=ROW_VISITS)
                   for index, gates in enumerate(((100, 200), (100,), (100,)))]
        for worker in workers:
            worker.wait_for("at gate 100")
        for i in (1, 0):
            ps[i].kill()
            ps[i] = self.start_ps(cluster, i)
        self.open_gate(0)
        workers[0].wait_for("at gate 200")
        for index in (1, 0):
            workers[index].kill()
            workers[index] = self.start_visits(cluster, index,
                                               program=ROW_VISITS)
        self.open_gate(2)
        for process in workers + ps:
            self.assertEqual(process.wait(), 0, process.output)
        table = muster.load(self.path("run")).tables["visits"]
        numpy.testing.assert_array_equal(
            numpy.sort(table.ids), numpy.sort(
                numpy.arange(self.ROWS) * 0x1E3779B97F4A7C15))
        # A step that one ps task alone has had is dealt again, and counted.
        again = -table.values - 2
        self.assertGreaterEqual(again.min(), 0)
        numpy.testing.assert_array_equal(again, again[:, [0, 0, 0]])
        self.assertLessEqual(again[:, 0].sum(),
                             self.result("run")["examples_repeated"])

    def test_a_table_outlives_kills_in_mid_save_on_other_numbers_of_ps(self):
        # Of two workers in rounds, each row is in the gradient of one.
        program = ROW_VISITS.replace(
            "save_every_steps=100", "save_every_steps=1, replication='sync'")
        for tasks in (3, 1, 2):
            cluster = self.write_cluster(ps=tasks, workers=2)
            processes = [self.start_ps(cluster, i) for i in range(tasks)]
            processes += [self.start_visits(cluster, i, program=program)
                          for i in range(2)]
            chief = processes[tasks]
            if tasks != 2:
                for _ in range(self.random.randrange(3, 15)):
                    chief.wait_for("saved ")
                for process in self.random.sample(processes, len(processes)):
                    process.kill()
        for process in processes:
            self.assertEqual(process.wait(), 0, process.output)
        table = muster.load(self.path("run")).tables["visits"]
        self.assertEqual(len(table), self.ROWS)
        numpy.testing.assert_array_equal(table.values,
                                         numpy.full((self.ROWS, 3), -1))

    def test_sigterm_drains_and_the_next_start_goes_on(self):
        cluster = self.write_cluster(ps=1, workers=1)
        ps = self.start_ps(cluster, 0)
        worker = self.start_visits(cluster, 0, 30)
        worker.wait_for("at gate 30")
        worker.send(signal.SIGTERM)
        worker.wait_for("interrupted")
        self.open_gate(0)
        self.assertEqual(worker.wait(), 143, worker.output)
        self.assertNotIn("Traceback", worker.output)
        self.assertEqual(muster.load(self.path("run"))["w"].sum(), -30 * 4)
        ps.kill()
        self.start_ps(cluster, 0)
        worker = self.start_visits(cluster, 0)
        self.assertEqual(worker.wait(), 0, worker.output)
        self.assert_each_row_twice()

    def test_ctrl_c_ends_a_wait_for_a_ps(self):
        worker = self.start_visits(self.write_cluster(), 0)
        worker.wait_for("waiting for /job:ps/task:0")
        worker.send(signal.SIGINT)
        self.assertEqual(worker.wait(), 130, worker.output)
        self.assertIn("KeyboardInterrupt", worker.output)

    def test_a_ps_that_does_not_come_is_exit_code_138(self):
        worker = self.start_visits(
            self.write_cluster(), 0,
            program=VISITS.replace("max_wait=60", "max_wait=0.5"))
        self.assertEqual(worker.wait(), 138, worker.output)
        self.assertIn("muster.UnavailableError: ", worker.output)

    def test_gradients_of_another_shape_are_exit_code_2(self):
        cluster = self.write_cluster()
        self.start_ps(cluster, 0)
        worker = self.start_visits(cluster, 0, program=VISITS.replace(
            "gradient = numpy.zeros(rows", "gradient = numpy.zeros(rows + 1"))
        self.assertEqual(worker.wait(), 2, worker.output)
        self.assertIn("muster.ConfigError: gradient of 'w': wanted the shape "
                      "[4000], found [4001]", worker.output)


if __name__ == "__main__":
    harness.main()
