"""job.shard, over a job in this process whose leases a test gives."""

import unittest

import torch
from torch.utils import data

import muster.torch
from tests.integration import harness
from tests.worker.python.fake_job import FakeJob


class Rows(data.Dataset):
    """Row i is i."""

    def __init__(self, size):
        self._size = size

    def __len__(self):
        return self._size

    def __getitem__(self, row):
        return float(row)


class Fetched(Rows):
    """Rows of several at once, at least one."""

    def __getitems__(self, rows):
        assert rows
        return [float(row) for row in rows]


class Own(data.DataLoader):
    def __iter__(self):
        return iter([])


class Endless(data.IterableDataset):
    def __iter__(self):
        return iter([1.0])


class Unsized(data.Dataset):
    def __getitem__(self, row):
        return float(row)


class ReleasingJob(FakeJob):
    """At step `at` the leases are others, as after the death of a ps."""

    def __init__(self, leases, at, later):
        super().__init__(leases=leases)
        self._at, self._later = at, later

    def await_step(self):
        super().await_step()
        if self.step == self._at:
            self._leases = self._leases[:self._at - 1] + self._later
            self._steps = len(self._leases)


class NearJob(FakeJob):
    """The rows of no step are known before it."""

    def rows(self, ahead=0):
        return None if ahead else super().rows()


def leases_of(*batches):
    return [(0, list(batch)) for batch in batches]


def optimizer_of(job):
    model = torch.nn.Linear(1, 1)
    return muster.torch.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model, job), model


def rows_of(job, loader):
    """The rows of each batch of the loop."""
    optimizer, model = optimizer_of(job)
    found = []
    for batch in job.shard(loader):
        model(batch.float().reshape(-1, 1)).sum().backward()
        optimizer.step()
        found.append([int(row) for row in batch.tolist()])
    return found


class ShardTest(unittest.TestCase):

    def check_rows(self, job, wanted, **settings):
        settings = {"dataset": Rows(8), "batch_size": 2, "shuffle": True,
                    **settings}
        self.assertEqual(rows_of(job, data.DataLoader(**settings)), wanted)

    def test_batches_are_those_of_the_leases_in_their_order(self):
        batches = [[3, 1], [6, 0], [5]]
        job = FakeJob(leases=leases_of(*batches))
        self.check_rows(job, batches)
        self.assertEqual(job.examples, [2, 2, 1])

    def test_processes_load_them_in_their_order_too(self):
        batches = [[row, row + 1] for row in range(0, 7)]
        self.check_rows(FakeJob(leases=leases_of(*batches)), batches,
                        num_workers=2, prefetch_factor=2)

    def test_one_batch_is_enough_for_many_processes(self):
        self.check_rows(FakeJob(leases=leases_of([4, 2])), [[4, 2]],
                        num_workers=3)

    def test_equal_rows_of_two_epochs_are_two_batches(self):
        job = FakeJob(leases=[(0, [0, 1]), (1, [0, 1]), (2, [0, 1])])
        self.check_rows(job, [[0, 1]] * 3, num_workers=2)

    def test_other_leases_in_mid_run_drop_what_was_loaded_ahead(self):
        for workers in (0, 1, 2):
            with self.subTest(workers=workers):
                job = ReleasingJob(
                    leases_of([0, 1], [2, 3], [4, 5], [6, 7]), 3,
                    leases_of([7, 0], [4, 5]))
                self.check_rows(job, [[0, 1], [2, 3], [7, 0], [4, 5]],
                                num_workers=workers)

    def test_the_job_is_told_of_the_rows(self):
        job = FakeJob(leases=leases_of([1, 2]))
        self.check_rows(job, [[1, 2]], num_workers=2, prefetch_factor=3)
        self.assertEqual(job.arguments, {
            "epoch_rows": 8, "step_rows": 2, "steps_ahead": 6,
            "in_order": False, "epochs": 1, "alike": "", "tables": []})

    def test_a_loader_that_does_not_shuffle_has_the_rows_in_order(self):
        job = FakeJob(leases=leases_of([1, 2]))
        self.check_rows(job, [[1, 2]], shuffle=False)
        self.assertEqual((job.arguments["in_order"],
                          job.arguments["steps_ahead"]), (True, 0))

    def test_epochs_are_those_of_init_where_it_says_an_end(self):
        job = FakeJob(leases=leases_of([1, 2]))
        job.has_end = True
        self.check_rows(job, [[1, 2]])
        self.assertIsNone(job.arguments["epochs"])

    def test_the_loaders_own_collate_makes_the_batches(self):
        job = FakeJob(leases=leases_of([1, 2], [3]))
        self.check_rows(job, [[10, 20], [30]], num_workers=1,
                        collate_fn=lambda rows: torch.tensor(rows) * 10)

    def test_a_data_set_that_fetches_many_is_not_asked_for_none(self):
        for workers in (0, 2):
            self.check_rows(NearJob(leases=leases_of([4, 2], [1])),
                            [[4, 2], [1]], dataset=Fetched(8),
                            num_workers=workers)

    def test_a_second_step_with_one_batch_is_refused_by_name(self):
        job = FakeJob(leases=leases_of([1, 2], [3]))
        optimizer, model = optimizer_of(job)
        next(job.shard(data.DataLoader(Rows(8), batch_size=2)))
        model(torch.ones(1, 1)).sum().backward()
        optimizer.step()
        with self.assertRaisesRegex(muster.torch.ConfigError, "a second one"):
            optimizer.step()
        self.assertEqual(len(job.pushes), 1)

    def test_a_step_before_the_first_batch_is_refused_by_name(self):
        job = FakeJob(leases=leases_of([1, 2], [3]))
        optimizer, _ = optimizer_of(job)
        job.shard(data.DataLoader(Rows(8), batch_size=2))
        optimizer.start()
        with self.assertRaisesRegex(muster.torch.ConfigError,
                                    "before the first"):
            optimizer.step()

    def test_a_batch_without_a_step_is_refused_by_name(self):
        job = FakeJob(leases=leases_of([1, 2], [3]))
        optimizer_of(job)
        batches = job.shard(data.DataLoader(Rows(8), batch_size=2))
        next(batches)
        with self.assertRaisesRegex(muster.torch.ConfigError, r"step\(\)"):
            next(batches)


class RefusalTest(unittest.TestCase):

    def check_refused(self, words, loader, job=None):
        job = FakeJob() if job is None else job
        with self.assertRaisesRegex(muster.torch.ConfigError, words):
            next(job.shard(loader))

    def test_each_loader_that_cannot_be_dealt_is_told_why(self):
        rows = Rows(8)
        weighted = data.WeightedRandomSampler([1.0] * 8, 8)
        loaders = [
            ("DataLoader, found list", [1]),
            ("IterableDataset", data.DataLoader(Endless())),
            ("no length", data.DataLoader(
                Unsized(), sampler=data.SequentialSampler(rows))),
            ("batch_size=None", data.DataLoader(rows, batch_size=None)),
            ("batch_sampler", data.DataLoader(rows, batch_sampler=[[1]])),
            ("Own has an __iter__", Own(rows)),
            ("drop_last.*fewer rows than a step, is not trained on", data.DataLoader(rows, 2, drop_last=True)),
            ("WeightedRandomSampler", data.DataLoader(rows, sampler=weighted)),
            ("replacement", data.DataLoader(rows, sampler=data.RandomSampler(
                rows, replacement=True))),
            ("empty", data.DataLoader(Rows(0)))]
        for words, loader in loaders:
            with self.subTest(words):
                self.check_refused(words, loader)

    def test_a_second_shard_is_told_of_epochs(self):
        job = FakeJob(leases=leases_of([1]))
        loader = data.DataLoader(Rows(8))
        job.shard(loader)
        self.check_refused("epochs=N", loader, job)

    def test_a_shard_before_the_optimizer_is_told(self):
        self.check_refused("DistributedOptimizer", data.DataLoader(Rows(8)))

    def test_a_shard_after_the_first_step_is_told(self):
        job = FakeJob(leases=leases_of([1]))
        optimizer, _ = optimizer_of(job)
        optimizer.start()
        self.check_refused("before the first forward",
                           data.DataLoader(Rows(8)), job)


if __name__ == "__main__":
    harness.main()
