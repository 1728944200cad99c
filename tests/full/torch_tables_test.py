"""Rows of sparse tables on real ps tasks, by muster.torch and muster.Model: as
torch alone, in checkpoints, over kills. train_tables.py is the worker."""

import os
import shutil
import sys

import muster
import numpy
from tests.integration import harness

# Of values about 1, over 20 steps of Adam.
TOLERANCE = 1e-6
KNOWN = [0, 1, 2, 3, 2 ** 40]


class TorchTablesTest(harness.TestCase):

    def start_tables(self, cluster, index, task, argument=""):
        return self.start("worker %d" % index, [
            sys.executable, os.path.abspath("tests/full/train_tables.py"), task,
            self.path("found-%d.json" % index), self.path("run"), cluster,
            str(index), argument])

    def train(self, task, argument="", ps=2, workers=1):
        """A job to a good end; what each worker found."""
        cluster = self.write_cluster(ps=ps, workers=workers)
        tasks = [self.start_ps(cluster, index) for index in range(ps)]
        tasks += [self.start_tables(cluster, index, task, argument)
                  for index in range(workers)]
        for process in tasks:
            self.assertEqual(process.wait(), 0, process.output)
        return [self.read_json("found-%d.json" % index)
                for index in range(workers)]

    def check_one_worker(self, kind, dim):
        found, = self.train("one_worker", "%s,%d" % (kind, dim))
        numpy.testing.assert_allclose(*numpy.transpose(found["losses"]),
                                      atol=TOLERANCE)
        numpy.testing.assert_allclose(*found["rows"], atol=TOLERANCE)
        self.assertGreater(
            abs(numpy.subtract(found["rows"][0], found["first"])).min(), 1e-3)
        table = muster.load(self.path("run")).tables["user"]
        self.assertEqual(sorted(table.ids.tolist()), KNOWN)
        numpy.testing.assert_array_equal(
            table.lookup(KNOWN), numpy.float32(found["rows"][0]))
        shutil.rmtree(self.path("run"))

    def test_embedding_trains_as_torchs_with_sparse_adam(self):
        for dim in (1, 4):
            with self.subTest(dim):
                self.check_one_worker("embedding", dim)

    def test_embedding_bag_trains_as_torchs_with_sparse_adam(self):
        for mode in ("mean", "sum"):
            with self.subTest(mode):
                self.check_one_worker(mode, 3)

    def test_a_row_in_no_push_stays_and_is_not_made(self):
        found, = self.train("rows_alone")
        first, second, third, last = numpy.float32(found["rows"])
        self.assertTrue((first[:2] != second[:2]).all())
        numpy.testing.assert_array_equal(second[0], last[0])
        numpy.testing.assert_array_equal(first[2], second[2])
        self.assertTrue((third[2] != second[2]).all())
        numpy.testing.assert_array_equal(first[3:], last[3:])
        table = muster.load(self.path("run")).tables["user"]
        self.assertEqual(sorted(table.ids.tolist()), [0, 1, 2])
        # A row that was not made has the first values after the job, too.
        numpy.testing.assert_array_equal(table.lookup(KNOWN), last)

    def test_two_sync_workers_are_one_process_with_the_whole_batch(self):
        for found in self.train("half", workers=2):
            numpy.testing.assert_allclose(*found["rows"], atol=TOLERANCE)

    def test_numpy_rows_are_summed_and_saved(self):
        found, = self.train("numpys")
        each = numpy.repeat([[-4], [3.5], [-4], [-2.0 ** 49]], 3, 1)
        # Seen before the third of three pushes.
        numpy.testing.assert_array_equal(found["last"], 2 * each)
        tables = muster.load(self.path("run")).tables
        numpy.testing.assert_array_equal(
            tables["user"].lookup([4, -7, 4, 2 ** 50]), 3 * each)
        self.assertEqual(tables["user"].lookup(5).tolist(), [0, 0, 0])
        self.assertEqual(len(tables["item"]), 0)
        numpy.testing.assert_array_equal(
            tables["item"].lookup([4, -7, 4, 2 ** 50]),
            numpy.float32(found["item"]))

    def test_a_pattern_without_a_table_is_refused_with_the_tables(self):
        cluster = self.write_cluster(ps=1, workers=1)
        self.start_ps(cluster, 0)
        worker = self.start_tables(cluster, 0, "no_match")
        self.assertEqual(worker.wait(), 2, worker.output)
        self.assertRegex(worker.output, "ConfigError: .*'users'.*user")

    def check_counts(self, killed):
        """Rows count the updates that the job has made."""
        steps = self.result(self.path("run"))["global_step"]
        self.assertGreaterEqual(steps, 2000)
        table = muster.load(self.path("run")).tables["count"]
        # A step that one ps task alone has had is made again, and not counted.
        again = table.lookup(numpy.arange(100)) - steps
        own = table.values[table.ids < 0].sum() - steps
        most = 2 if killed != "none" else 0
        self.assertTrue(((again >= 0) & (again <= most)).all(), again)
        self.assertTrue(0 <= own <= most, own)
        print("%d steps, %d rows, killed: %s" % (steps, len(table), killed))

    def test_rows_count_each_update_once(self):
        self.train("until_the_end", workers=2)
        self.check_counts("none")

    def test_rows_count_each_update_once_over_a_killed_ps(self):
        cluster = self.write_cluster(ps=2, workers=2)
        ps = [self.start_ps(cluster, index) for index in range(2)]
        workers = [self.start_tables(cluster, index, "until_the_end")
                   for index in range(2)]
        for worker in workers:
            worker.wait_for(r"did step=\d{3}")
        ps[1].kill()
        ps[1] = self.start_ps(cluster, 1)
        for process in workers + ps:
            self.assertEqual(process.wait(), 0, process.output)
        self.check_counts("ps 1")


if __name__ == "__main__":
    harness.main()
