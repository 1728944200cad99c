"""job.shard: the batches of a DataLoader, dealt over all workers."""

import collections
import itertools
from typing import Any, Callable, Deque, Iterator, List, Optional, Tuple

from torch.utils import data

from muster._errors import ConfigError
from muster._job import Job

# Of a batch: epoch and rows; None: there was none to ask for.
_Key = Optional[Tuple[int, bytes]]


class _LeasedRows:
    """A batch sampler: the rows of this step, then those of the next ones,
    each once; no rows where no more are leased."""

    def __init__(self, job: Job) -> None:
        self._job = job
        # What was asked for and has not come, oldest first.
        self.asked: Deque[_Key] = collections.deque()

    def __iter__(self) -> "_LeasedRows":
        return self

    def __next__(self) -> List[int]:
        for ahead in itertools.count():
            found = self._job.rows(ahead)
            if found is None:
                self.asked.append(None)
                return []
            rows, epoch = found
            key = (epoch, rows.tobytes())
            if key not in self.asked:
                self.asked.append(key)
                return list(rows.tolist())
        raise AssertionError("count() has no end")

    def next_batch(self, batches: Iterator[Any]) -> Any:
        """This step's batch; those of leases that are no longer are dropped."""
        found = self._job.rows(0)
        assert found is not None
        wanted = (found[1], found[0].tobytes())
        while True:
            batch = next(batches)
            if self.asked.popleft() == wanted:
                return batch


class _DataSet:
    """A data set that may be asked for no rows. Loaders' processes may be sent
    one."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __getattr__(self, name: str) -> Any:
        if name == "_dataset":
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __getitems__(self, rows: List[int]) -> Any:
        return self._dataset.__getitems__(rows) if rows else []


class _Collate:
    """A loader's collate_fn, but for no rows. Loaders' processes may be sent
    one."""

    def __init__(self, collate: Callable[[List[Any]], Any]) -> None:
        self._collate = collate

    def __call__(self, rows: List[Any]) -> Any:
        return self._collate(rows) if rows else None


def _refusal(loader: Any) -> Optional[str]:
    """Why no rows can be dealt, and what to do; None: they can."""
    if not isinstance(loader, data.DataLoader):
        return ("wanted a torch.utils.data.DataLoader, found %s" %
                type(loader).__name__)
    if type(loader).__iter__ is not data.DataLoader.__iter__:
        return ("%s has an __iter__ of its own, and rows are dealt beside it: "
                "do in the data set, in collate_fn or in the loop what it "
                "does, and give a DataLoader" % type(loader).__name__)
    if isinstance(loader.dataset, data.IterableDataset):
        return ("rows of an IterableDataset have no numbers to deal: give a "
                "map-style data set (__getitem__, __len__), or loop over "
                "`while not job.done` with rows of each worker's own")
    if not hasattr(loader.dataset, "__len__"):
        return ("the data set has no length: give it __len__, or loop over "
                "`while not job.done` with rows of each worker's own")
    if loader.batch_size is None or (
            type(loader.batch_sampler) is not data.BatchSampler):
        return ("the loader makes no batches of a batch_size, but has "
                "batch_size=None or a batch_sampler: give it a batch_size")
    if loader.drop_last:
        return ("drop_last=True, and batches go on over the ends of epochs; "
                "the rest of the job's last epoch, fewer rows than a step, is "
                "not trained on: leave it out")
    if isinstance(loader.sampler, data.RandomSampler):
        if loader.sampler.replacement or (
                loader.sampler.num_samples != len(loader.dataset)):
            return ("the loader's sampler has replacement or num_samples, and "
                    "each example is dealt once an epoch: give shuffle=True")
    elif not isinstance(loader.sampler, data.SequentialSampler):
        return ("the loader has a sampler (%s), and the job deals the rows "
                "over all workers itself: give shuffle=True or False" %
                type(loader.sampler).__name__)
    if len(loader.dataset) == 0:
        return "the data set is empty"
    return None


def _loader_of(loader: Any, rows: _LeasedRows) -> Any:
    """A loader like the given one, of other rows."""
    dataset = loader.dataset
    # torch would ask it for no rows.
    if getattr(dataset, "__getitems__", None):
        dataset = _DataSet(dataset)
    return data.DataLoader(
        dataset, batch_sampler=rows, num_workers=loader.num_workers,
        collate_fn=_Collate(loader.collate_fn), pin_memory=loader.pin_memory,
        timeout=loader.timeout, worker_init_fn=loader.worker_init_fn,
        multiprocessing_context=loader.multiprocessing_context,
        generator=loader.generator, prefetch_factor=loader.prefetch_factor)


def _batches(job: Job, loader: Any) -> Iterator[Any]:
    if job.starter is None:
        raise ConfigError("shard: the job has no parameters yet: make the "
                          "DistributedOptimizer before the loop")
    job.starter()
    rows = _LeasedRows(job)
    batches: Optional[Iterator[Any]] = None
    while not job.done:
        if batches is None:
            batches = iter(_loader_of(loader, rows))
        step = job.step
        batch = rows.next_batch(batches)
        job.batch_step = step
        yield batch
        if not job.done and job.step == step:
            raise ConfigError(
                "shard: the next batch was asked for before step() of the "
                "optimizer: each batch is one step's; one that several "
                "backward passes make wants a loader with a larger batch_size")


def shard(job: Job, loader: Any, epochs: Optional[float]) -> Iterator[Any]:
    """Job.shard."""
    refusal = _refusal(loader)
    if job.dealing:
        refusal = ("a job has one loop over its rows: give epochs=N to shard "
                   "instead of a loop around it")
    elif job.is_started:
        refusal = ("the job has started without rows to deal: call shard "
                   "before the first forward pass")
    if refusal is not None:
        raise ConfigError("shard: " + refusal)
    if epochs is None and not job.has_end:
        epochs = 1
    job.dealing = {
        "epoch_rows": len(loader.dataset), "step_rows": loader.batch_size,
        "steps_ahead": loader.num_workers * (loader.prefetch_factor or 0),
        "in_order": isinstance(loader.sampler, data.SequentialSampler),
        "epochs": epochs}
    job.batch_step = 0
    return _batches(job, loader)
