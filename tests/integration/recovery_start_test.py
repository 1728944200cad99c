"""Start order (T22), wrong clusters (T23), the end of a job (T27)."""

import concurrent.futures
import itertools
import os
import socket
import time

from tests.integration import harness
from tests.integration import recovery

# The longest pause between two starts, in seconds.
LONGEST_GAP_S = 20.0 if recovery.SOAK else 0.3
# Clusters at a time: most of a start is waiting.
AT_A_TIME = 6
# A worker knows so long after the chief's initialization that it is over.
TOLD_S = 1.0
# All processes end so long after the last step (T27).
END_S = 5.0
SHORT = "--set=stop.steps=60"
# A taken port is tried for 10 s.
PORT_S = 20.0


class RecoveryStartTest(recovery.TestCase):

    def assert_free(self, job):
        for role, count in (("ps", len(job.ps)), ("worker", len(job.workers))):
            for index in range(count):
                host, port = job.address(role, index).split(":")
                with socket.socket() as probe:
                    # As the next run would do: TIME_WAIT is no hindrance.
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind((host, int(port)))

    def run_in_order(self, number, order, gaps):
        """One job; `order` has 0 and 1 for the ps, 2 and 3 for the workers."""
        job = recovery.Job(self, 2, 2, [], [], name="job%d" % number)
        for index, gap in zip(order, gaps):
            time.sleep(gap)
            if index < 2:
                job.start_ps(index)
            else:
                job.start_worker(index - 2)
        job.all_train()
        self.check_sums(job, job.drain())
        self.assert_free(job)

    def test_every_order_of_starts_trains(self):
        orders = list(itertools.permutations(range(4)))
        gaps = [[self.random.uniform(0, LONGEST_GAP_S) for _ in range(4)]
                for _ in orders]
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            done = list(pool.map(self.run_in_order, range(len(orders)), orders,
                                 gaps))
        self.assertEqual(len(done), 24)

    def test_all_tasks_end_soon_after_the_last_step(self):
        job = recovery.Job(self, 2, 2, [SHORT], []).start()
        start = job.workers[0].wait_for_line_after("the training ends at", 0)
        for task in job.tasks():
            self.assertEqual(task.wait(), 0, task.output)
            with self.assertRaises(ProcessLookupError, msg="an orphan"):
                os.killpg(task.pid, 0)
        seconds = time.monotonic() - start
        self.expect_within("all tasks end", seconds, END_S)
        self.assert_free(job)
        self.assertEqual(self.result(job.train_dir)["global_step"], 60)

    def test_who_waits_is_told_at_once_that_the_model_is_there(self):
        job = recovery.Job(self, 1, 2, [], [])
        ps = job.start_ps(0)
        # It has waited long enough to say so; a poll would be slow by now.
        waiting = job.start_worker(1)
        waiting.wait_for("waiting for /job:worker/task:0 to initialize")
        ps.wait_for("waiting for /job:worker/task:0.* to come; ")
        job.start_worker(0)
        ready = ps.wait_for_line_after("job is RUNNING", 0)
        told = waiting.wait_for_line_after("no longer waiting", 0)
        self.expect_within("who waits is told", told - ready, TOLD_S)

    def test_a_ps_that_waited_long_does_not_miss_the_end_of_a_short_job(self):
        job = recovery.Job(self, 2, 1, [SHORT], [])
        # By then its connection is tried as seldom as it ever is.
        job.start_ps(1).wait_for("waiting for /job:ps/task:0")
        job.start_ps(0)
        job.start_worker(0)
        for task in job.tasks():
            self.assertEqual(task.wait(), 0, task.output)

    # ---- Peers that never come

    def test_a_ps_that_never_comes_is_named(self):
        job = recovery.Job(self, 2, 2, ["--max_wait=2s"], [])
        job.start_ps(0)
        for index in range(2):
            worker = job.start_worker(index)
            self.assertEqual(worker.wait(), 138, worker.output)
            self.assertRegex(worker.output, "gave up after waiting 2s for "
                             "/job:ps/task:1 at " + job.address("ps", 1))

    def test_a_chief_that_never_comes_is_named(self):
        job = recovery.Job(self, 1, 2, ["--max_wait=2s"], [])
        job.start_ps(0)
        worker = job.start_worker(1)
        self.assertEqual(worker.wait(), 138, worker.output)
        self.assertRegex(worker.output, "gave up after waiting 2s for "
                         "/job:worker/task:0 to initialize or restore")

    # ---- Wrong clusters

    def test_two_jobs_on_one_port_are_told_apart(self):
        first = recovery.Job(self, 1, 1, [], [], name="first").start()
        first.all_train()
        second = recovery.Job(self, 1, 1, [], [], name="second")
        second.write_cluster(ps=[first.address("ps", 0)],
                             worker=[second.address("worker", 0)])
        # Its ps cannot have the port; its worker meets the other job's ps,
        # which knows another worker under that name.
        ps = second.start_ps(0)
        worker = second.start_worker(0)
        self.assertEqual(worker.wait(), 2, worker.output)
        self.assertIn(second.address("worker", 0), worker.output)
        self.assertEqual(ps.wait(PORT_S + harness.DEADLINE_S), 2, ps.output)
        self.assertRegex(ps.output, first.address("ps", 0) + ".* in use")
        first.all_train()
        first.drain()

    def test_another_list_of_ps_tasks_is_named(self):
        job = recovery.Job(self, 2, 2, [], []).start()
        job.all_train()
        ps = [job.address("ps", index) for index in range(2)]
        worker = [job.address("worker", index) for index in range(2)]
        # Same tasks in another order: every pull would be a wrong one.
        job.workers[1].kill()
        job.write_cluster(ps=ps[::-1], worker=worker)
        stranger = job.start_worker(1)
        self.assertEqual(stranger.wait(), 2, stranger.output)
        self.assertIn("/job:ps/task:", stranger.output)
        job.write_cluster(ps=ps, worker=worker)
        job.start_worker(1)
        job.all_train()
        job.drain()

    def test_an_own_name_that_does_not_exist_is_an_error(self):
        job = recovery.Job(self, 1, 1, [], ["--allow_insecure_network"])
        address = "no-such-host.invalid:2222"
        job.write_cluster(ps=[address], worker=["worker.invalid:2222"])
        ps = job.start_ps(0)
        self.assertEqual(ps.wait(), 2, ps.output)
        self.assertIn("listen on %s: no such host" % address, ps.output)

    def test_a_peers_name_that_does_not_exist_is_waited_for_by_name(self):
        # It may exist in a moment: Kubernetes names a pod when it is ready.
        job = recovery.Job(
            self, 1, 1, ["--max_wait=3s", "--allow_insecure_network",
                         "--bind=127.0.0.1:0"], [])
        address = "no-such-host.invalid:2222"
        job.write_cluster(ps=[address], worker=["worker.invalid:2222"])
        worker = job.start_worker(0)
        self.assertEqual(worker.wait(), 138, worker.output)
        self.assertRegex(worker.output, r"/job:ps/task:0 at %s \(.*(DNS|name)" %
                         address)


if __name__ == "__main__":
    harness.main()
