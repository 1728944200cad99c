"""A Python worker beside a C++ one in one job: each row counts once an epoch,
whoever trains on it and whoever saves and restores (row_visits.py)."""

import sys

from tests.integration import harness
from tests.integration import row_visits

ROWS = 1200
BATCH = 4

# What row_visits.py's model computes.
PROGRAM = """
import sys
import muster, numpy
cluster, index, train_dir, epochs, mode, units, rows = sys.argv[1:]
shape = (int(units), %d)
w = {"left/dense/weights": numpy.zeros(shape, numpy.float32),
     "right/dense/weights": numpy.zeros(shape, numpy.float32)}
ends = {"rows": int(rows), "batch_size": %d, "epochs": int(epochs)}
with muster.Model(w, "sgd", %r, cluster=cluster, task_index=int(index),
                  train_dir=train_dir, replication=mode, seed=7, max_wait=60,
                  **(ends if int(rows) else {"steps": 9})) as model:
    steps = 0
    while not model.done:
        rows = model.rows()
        error = sum(w.values())[0, rows] - 1
        gradient = numpy.zeros(shape, numpy.float32)
        gradient[0, rows] = 2 * error / len(rows)
        model.push_pull(dict.fromkeys(w, gradient), loss=(error ** 2).mean())
        steps += 1
    print("did steps:", steps, flush=True)
""" % (ROWS, BATCH, row_visits.LEARNING_RATE)


class MixedWorkersTest(harness.TestCase):

    def start_program(self, cluster, index, epochs, mode, units=1, rows=ROWS):
        return self.start("worker %d" % index, [
            sys.executable, "-c", PROGRAM, cluster, str(index),
            self.path("run"), str(epochs), mode, str(units), str(rows)])

    def start_layers(self, cluster, index, epochs, mode):
        training = self.write("%d.textproto" % index, row_visits.training(
            self.path("rows"), ROWS, BATCH, epochs))
        flags = ["--train_dir=" + self.path("run")] if index == 0 else []
        return self.start_worker(cluster, index, "--training=" + training,
                                 "--set=replication=" + mode, *flags)

    def train(self, epochs, mode, chief, other):
        """Both are there before the first step; the chief and the other."""
        cluster = self.write_cluster(ps=2, workers=2)
        ps = [self.start_ps(cluster, index) for index in range(2)]
        waiting = other(cluster, 1, epochs, mode)
        waiting.wait_for("waiting for /job:worker/task:0 to initialize")
        workers = [chief(cluster, 0, epochs, mode), waiting]
        for process in workers + ps:
            self.assertEqual(process.wait(), 0, process.output)
        self.assertRegex(ps[0].output, "does not say what its data are")
        return workers

    def check_visits(self, times, update_rows):
        checkpoint = self.result(self.path("run"))["checkpoint"]
        for weights in row_visits.weights(checkpoint).values():
            visits = row_visits.Visits(weights, [update_rows])
            self.assertEqual((visits.missing(times), visits.surplus(times)),
                             (0, 0), visits)

    def test_each_row_counts_once_an_epoch_whoever_is_the_chief(self):
        _, program = self.train(1, "async", self.start_layers,
                                self.start_program)
        self.assertRegex(program.output, r"did steps: [1-9]")
        self.check_visits(1, BATCH)
        program, _ = self.train(2, "async", self.start_program,
                                self.start_layers)
        self.assertRegex(program.output, r"did steps: [1-9]")
        self.check_visits(2, BATCH)
        layers, _ = self.train(3, "async", self.start_layers,
                               self.start_program)
        self.assertIn("a program has trained the run", layers.output)
        self.check_visits(3, BATCH)

    def test_a_sync_update_is_the_mean_of_both(self):
        self.train(1, "sync", self.start_layers, self.start_program)
        self.check_visits(1, 2 * BATCH)

    def check_refused(self, words, **settings):
        cluster = self.write_cluster(ps=1, workers=2)
        self.start_ps(cluster, 0)
        chief = self.start_layers(cluster, 0, 9, "sync")
        chief.wait_for("step=0|waiting for|initialized")
        program = self.start_program(cluster, 1, 9, "sync", **settings)
        self.assertEqual(program.wait(), 2, program.output)
        self.assertRegex(program.output,
                         "differs from that of /job:worker/task:0: .*" + words)

    def test_a_program_of_other_shapes_is_refused_by_name(self):
        self.check_refused(r"left/dense/weights.* \[2,%d\]" % ROWS, units=2)

    def test_a_program_without_rows_beside_dealt_ones_is_refused_by_name(self):
        self.check_refused("rows: of a program's own", rows=0)


if __name__ == "__main__":
    harness.main()
