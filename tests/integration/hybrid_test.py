"""Towers inside each worker, and every way of replication between workers."""

from tests.integration import harness

STEPS = 60
WORKERS = 2
# Rows that all towers of all workers take together, in every row of the matrix.
GLOBAL_BATCH = 32
EXAMPLES = 640

TRAINING = harness.softmax_regression(
    STEPS, batch_size=16, examples=EXAMPLES, test_examples=200,
    learning_rate=0.2)

# The three rows: what each worker computes of one step.
TOWERS = {
    "one_tower": ["--set=input.batch_size=16"],
    "two_towers": ["--devices=2", "--set=input.batch_size=8"],
    "divided_global_batch": ["--devices=2", "--set=input.batch_size=0",
                             "--set=input.global_batch_size=%d" % GLOBAL_BATCH],
}
# The columns, and how many pushes of workers are one global step.
MODES = {
    "async": (["--set=replication.async.staleness_scaled_learning_rate=false"],
              1),
    # From the first step on, however late a worker is.
    "sync": (["--set=replication.sync.total_replicas=%d" % WORKERS,
              "--set=replication.sync.min_replicas=%d" % WORKERS], WORKERS),
    "bounded_staleness": (["--set=replication.bounded_staleness.bound=1"], 1),
    "all_reduce": (["--set=replication=all_reduce"], WORKERS),
}
# Of a model that guesses among ten classes: ln 10.
FIRST_LOSS = 2.3
# 60 steps of this problem get well below half of it; a cell that applied no
# gradient, or a wrong one, would not.
LOSS_RATIO = 0.7


class HybridTest(harness.TestCase):

    def train(self, name, ps, *flags):
        """Trains to the end on two workers; returns result.json."""
        cluster = self.write_cluster(ps=ps, workers=WORKERS,
                                     name=name + ".json")
        flags = self.training_flags(TRAINING, name, "--device=cpu", *flags)
        # The chief last: nothing begins without it, and a worker that starts
        # later may find all steps taken.
        tasks = [self.start_worker(cluster, i, *flags)
                 for i in reversed(range(1, WORKERS))]
        for process in tasks:
            process.wait_for(r"cluster:")
        tasks += [self.start_ps(cluster, i) for i in range(ps)]
        tasks.append(self.start_worker(cluster, 0, *flags))
        for process in tasks:
            self.assertEqual(process.wait(), 0, process.output)
        return self.result(name)

    def check(self, result, ps, mode, pushes, towers):
        self.assertEqual(result["replication"], mode)
        self.assertEqual(result["stop_reason"], "steps")
        self.assertEqual(result["global_step"], STEPS)
        self.assertEqual(result["cluster"], {"ps": ps, "worker": WORKERS})
        self.assertEqual(result["devices"],
                         ["cpu:%d" % tower for tower in range(towers)])
        rows = GLOBAL_BATCH // WORKERS
        self.assertEqual(result["rows_per_push"], rows)
        self.assertEqual(result["batch_size"], rows // towers)
        if mode in ("sync", "all_reduce"):
            self.assertEqual(len(result["workers"]), WORKERS)
        steps = sum(worker["steps"] for worker in result["workers"])
        self.assertEqual(steps, STEPS * pushes)
        self.assertEqual(result["examples"], steps * rows)
        for worker in result["workers"]:
            self.assertEqual(worker["examples"], worker["steps"] * rows)
        self.assertLess(result["test_loss"], LOSS_RATIO * FIRST_LOSS)

    def check_column(self, mode):
        replication, pushes = MODES[mode]
        for ps in (0,) if mode == "all_reduce" else (1, 2):
            for row, flags in TOWERS.items():
                with self.subTest(mode=mode, row=row, ps=ps):
                    result = self.train("%s_%s_%d" % (mode, row, ps), ps,
                                        *replication, *flags)
                    self.check(result, ps, mode, pushes,
                               1 if row == "one_tower" else 2)

    def test_async(self):
        self.check_column("async")

    def test_sync(self):
        self.check_column("sync")

    # The mean of a worker's towers first, then of the workers.
    def test_all_reduce(self):
        self.check_column("all_reduce")

    def test_bounded_staleness(self):
        self.check_column("bounded_staleness")

    def test_workers_with_different_numbers_of_towers_are_refused(self):
        cluster = self.write_cluster(ps=1, workers=2)
        flags = ["--training=" + self.write("training.textproto", TRAINING),
                 "--compute_threads=1", "--set=stop.steps=100000000",
                 "--set=replication=sync", "--progress_every=0.1"]
        server = self.start_ps(cluster, 0)
        chief = self.start_worker(cluster, 0, "--devices=2",
                                  "--train_dir=" + self.path("train"), *flags)
        chief.wait_for(r" step=")
        other = self.start_worker(cluster, 1, *flags)
        self.assertEqual(other.wait(), 2, other.output)
        self.assertRegex(other.output, r"its training differs .*towers: 2 \(--devices")
        for process in (chief, server):
            process.kill()


if __name__ == "__main__":
    harness.main()
