"""What the study trains: its rows, and the flags of each.

Every row goes through the same examples with the same recipe, so that rows
differ in nothing but how the work is divided and how gradients meet. Python 3
standard library only.
"""

import dataclasses

# What is trained, from the root of the tree.
TRAINING = "worker/model/zoo/mnist_cnn.textproto"
# Rows whose gradients make one step of the single process, and of all workers
# together: a worker of W takes BATCH / W in each of its steps.
BATCH = 128
# Of Fashion-MNIST, and of the synthetic set that takes its place in a test.
EXAMPLES = 60000
# Of updates of BATCH rows; falls to 0 along half a cosine over the run. An
# update of fewer or more rows has its rate times the root of their part.
LEARNING_RATE = 0.002
# Test accuracy whose time is measured.
TARGET = 0.88
# For a verdict. The first has the curves, and is the only one of rows that have
# no limit.
SEEDS = (1, 2, 3)
# Points of mean test accuracy that a row may lose against the single process.
STRICT = 0.5
LOOSE = 1.5

ASYNC = ("async.staleness_scaled_learning_rate=false",)


@dataclasses.dataclass(frozen=True)
class Row:
    """One way to train. `workers` 0 is a single process."""

    name: str
    title: str
    workers: int = 0
    # "async", "sync", "bounded_staleness" or "all_reduce"; "" of a single
    # process.
    mode: str = ""
    # Fields below `replication`.
    replication: tuple = ()
    # Tasks beside the workers'; in all-reduce there are none.
    ps: int = 1
    # Of each worker.
    towers: int = 1
    # Of each worker; 0: its share of the cores.
    only_threads: int = 0
    # Of the workers' gradients, those that make an update; 0: all. The rows of
    # the others are not trained on, so that there are more updates.
    aggregate: int = 0
    # Points that may be lost; None: the row shows time.
    limit: float = None
    # The part of the study's epochs that is trained; above 1, the schedule is
    # longer as well.
    part: float = 1.0
    # Looks at the test set in a run with a curve; the last is at the end.
    evaluations: int = 5
    # Each worker has BATCH rows.
    grown: bool = False
    # Its last worker stands still for half of the time.
    straggler: bool = False
    # It is trained with every seed, also without a limit.
    every_seed: bool = False

    def global_batch(self):
        return BATCH * max(1, self.workers) if self.grown else BATCH

    def steps_per_batch(self):
        """Global steps in which the rows of a global batch are used."""
        one_for_all = self.mode in ("", "sync", "all_reduce")
        return 1 if one_for_all else self.workers

    def rows_per_step(self):
        rows = self.global_batch() // self.steps_per_batch()
        return rows * self.aggregate // self.workers if self.aggregate else rows

    def steps(self, epochs):
        batches = max(1, int(epochs * EXAMPLES / self.global_batch()))
        return batches * self.global_batch() // self.rows_per_step()

    def has_seed(self, seed):
        return (seed == SEEDS[0] or self.limit is not None or
                self.every_seed or self.name == "single")

    def settings(self, epochs, seed):
        """The fields of the TrainingSpec that this row sets."""
        has_curve = seed == SEEDS[0] and self.evaluations > 1
        steps = self.steps(epochs * self.part)
        return [
            *(["replication=all_reduce"] if self.mode == "all_reduce" else []),
            *["replication." + field for field in self.replication],
            "input.batch_size=0",
            "input.global_batch_size=%d" % self.global_batch(),
            "optimizer.learning_rate=%r" % LEARNING_RATE,
            "optimizer.learning_rate_scaling=SQRT",
            "optimizer.reference_batch_size=%d" % BATCH,
            "optimizer.schedule=cosine",
            "optimizer.schedule.decay_steps=%d" % self.steps(
                epochs * max(1.0, self.part)),
            "stop.epochs=0", "stop.steps=%d" % steps,
            "evaluation.every_steps=%d" % (
                steps // self.evaluations + 1 if has_curve else 0),
            "checkpoint.every_seconds=0", "checkpoint.every_steps=0",
            "summary.every_steps=0", "seed=%d" % seed]

    def threads(self, cores):
        """Compute threads of each worker."""
        return self.only_threads or max(self.towers, cores // max(1, self.workers), 1)


def _sync(workers, aggregate=0):
    # From the first step on all workers are there.
    return ("sync.replicas_to_aggregate=%d" % aggregate,
            "sync.min_replicas=%d" % (aggregate or workers))


def _bounded(bound, workers, **settings):
    name = "ssp%d_%d" % (bound, workers)
    title = "bounded staleness %d, %d worker%s" % (
        bound, workers, "s" if workers > 1 else "")
    if "towers" in settings:
        name = "hybrid_" + name
        title += " of two towers"
    return Row(name, title, workers, "bounded_staleness",
               ("bounded_staleness.bound=%d" % bound,), **settings)


# What only shows the accuracy has no curve.
_ACCURACY = {"evaluations": 1}
# What only shows time is trained a part of the way, without a curve.
_TIME = {"part": 0.5, "evaluations": 1}
_STRAGGLER = {"part": 0.25, "evaluations": 1, "straggler": True}
# One epoch of four times fewer updates would not come to the target.
_GROWN = {"part": 2.0, "evaluations": 8, "grown": True}

ROWS = (
    Row("single", "one process"),
    Row("towers", "two towers in one process", towers=2, limit=STRICT),
    Row("async2", "async, 2 workers", 2, "async", ASYNC, limit=LOOSE),
    Row("sync2", "sync, 2 workers", 2, "sync", _sync(2), limit=STRICT),
    _bounded(0, 2, limit=STRICT),
    _bounded(3, 2, limit=LOOSE),
    _bounded(10, 2, limit=LOOSE),
    Row("async4", "async, 4 workers", 4, "async", ASYNC, limit=LOOSE),
    Row("sync4", "sync, 4 workers", 4, "sync", _sync(4), limit=STRICT),
    Row("hybrid", "sync, 2 workers of two towers", 2, "sync", _sync(2),
        towers=2, limit=STRICT),
    Row("hybrid_async", "async, 2 workers of two towers", 2, "async", ASYNC,
        towers=2, limit=LOOSE, **_ACCURACY),
    _bounded(0, 2, towers=2, limit=STRICT, **_ACCURACY),
    _bounded(3, 2, towers=2, limit=LOOSE, **_ACCURACY),
    Row("backup", "sync, first 3 of 4 workers", 4, "sync",
        _sync(4, aggregate=3), aggregate=3, limit=STRICT, **_ACCURACY),
    Row("sync4_grown", "sync, 4 workers, 128 rows each", 4, "sync", _sync(4),
        **_GROWN),
    Row("async4_grown", "async, 4 workers, 128 rows each", 4, "async", ASYNC,
        **_GROWN),
    Row("async1", "async, 1 worker", 1, "async", ASYNC, **_TIME),
    Row("sync1", "sync, 1 worker", 1, "sync", _sync(1), **_TIME),
    _bounded(0, 1, **_TIME),
    _bounded(0, 4, **_TIME),
    _bounded(3, 4, **_TIME),
    _bounded(10, 4, **_TIME),
    Row("sync2_straggler", "sync, 2 workers, one a straggler", 2, "sync",
        _sync(2), **_STRAGGLER),
    Row("sync4_straggler", "sync, 4 workers, one a straggler", 4, "sync",
        _sync(4), **_STRAGGLER),
    Row("sync4_backup", "sync, first 3 of 4 workers, one a straggler", 4,
        "sync", _sync(4, aggregate=3), **_STRAGGLER),
    Row("async4_straggler", "async, 4 workers, one a straggler", 4, "async",
        ASYNC, **_STRAGGLER),
)


def _original(name, title, workers=0, mode="", **settings):
    replication = {"async": ASYNC, "sync": _sync(workers)}.get(mode, ())
    return Row(name, title, workers, mode, replication, every_seed=True,
               **settings)


# The systems of the original, a page of their own (original.py).
ORIGINAL = (
    _original("one_thread", "one device, 1 thread", only_threads=1),
    _original("two_threads", "one device, 2 threads", only_threads=2),
    _original("two_towers", "in-graph: 2 towers", towers=2),
    _original("async1_ps1", "asynchronous", 1, "async"),
    _original("async2_ps1", "asynchronous", 2, "async"),
    _original("async4_ps1", "asynchronous", 4, "async"),
    _original("async2_ps2", "asynchronous", 2, "async", ps=2),
    _original("sync1_ps1", "synchronous", 1, "sync"),
    _original("sync2_ps1", "synchronous", 2, "sync"),
    _original("sync4_ps1", "synchronous", 4, "sync"),
    _original("sync2_ps2", "synchronous", 2, "sync", ps=2),
    _original("hybrid2_ps1", "hybrid: asynchronous, 2 towers each", 2, "async",
              towers=2),
    _original("all_reduce2", "all-reduce", 2, "all_reduce", ps=0),
    _original("all_reduce4", "all-reduce", 4, "all_reduce", ps=0),
)

BY_NAME = {row.name: row for row in ROWS + ORIGINAL}
