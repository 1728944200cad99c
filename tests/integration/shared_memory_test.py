"""Shared memory between real processes: chosen, refused, and their deaths."""

import os
import re
import signal
import time

from tests.integration import harness

TRAINING = [
    "--training=worker/model/zoo/softmax_regression.textproto",
    "--set=input.type=synthetic", "--set=input.synthetic_examples=2000",
    "--set=input.synthetic_test_examples=200", "--set=input.batch_size=16",
    "--set=stop.epochs=1000000", "--compute_threads=1", "--progress_every=0.5",
]
LINK = r"link to /job:ps/task:0: "
CONNECTED = LINK + "shared memory"
# A peer that was killed is noticed at once.
NOTICED_S = 1.0


def mapped_segments(process):
    """How many pieces of our shared memory the process has mapped."""
    with open("/proc/%d/maps" % process.pid, encoding="utf-8") as maps:
        return sum("/memfd:muster" in line for line in maps)


def open_files(process):
    return len(os.listdir("/proc/%d/fd" % process.pid))


class SharedMemoryTest(harness.TestCase):

    runs = 0

    def start_training(self, cluster, *flags, index=0, steps=100000):
        return self.start("worker %d" % index, [
            harness.worker(), "--cluster=" + cluster,
            "--task_index=%d" % index, "--set=stop.steps=%d" % steps,
            *TRAINING, *flags])

    def await_segments(self, process, count):
        """Polls /proc: nothing tells from outside when memory is unmapped."""
        deadline = time.monotonic() + harness.DEADLINE_S
        while mapped_segments(process) != count:
            self.assertLess(time.monotonic(), deadline,
                            "%d segments are mapped, wanted %d" %
                            (mapped_segments(process), count))

    def test_is_chosen_on_one_machine(self):
        cluster = self.write_cluster(ps=2, workers=1)
        servers = [self.start_ps(cluster, i) for i in range(2)]
        worker = self.start_training(cluster, steps=20)
        self.assertEqual(worker.wait(), 0)
        for server in servers:
            self.assertEqual(server.wait(), 0)
        for i in range(2):
            self.assertIn("link to /job:ps/task:%d: shared memory" % i,
                          worker.output)
        self.assertNotIn("lost", worker.output)

    def train_in_place(self, *flags):
        """Two ps tasks, one worker, 20 steps; what the worker said and its
        parameters."""
        cluster = self.write_cluster(ps=2, workers=1)
        servers = [self.start_ps(cluster, i) for i in range(2)]
        self.runs += 1
        folder = self.path("run%d" % self.runs)
        worker = self.start_training(cluster, "--train_dir=" + folder, *flags,
                                     steps=20)
        self.assertEqual(worker.wait(), 0)
        for server in servers:
            self.assertEqual(server.wait(), 0)
        with open(os.path.join(folder, "ckpt-000000000020",
                               "parameters.safetensors"), "rb") as saved:
            return worker.output, saved.read()

    def test_each_link_and_parameters_in_place_give_the_same_bits(self):
        in_place = "--set=replication.async.pull=IN_PLACE"
        _, consistent = self.train_in_place()
        said, parameters = self.train_in_place(in_place)
        self.assertIn("pull: IN_PLACE", said)
        self.assertNotIn("not possible", said)
        # One worker's updates come between its steps.
        self.assertEqual(parameters, consistent)
        for link in ("grpc", "tcp"):
            said, parameters = self.train_in_place(in_place, "--link=" + link)
            harness.check_link(said, link)
            self.assertEqual(said.count(
                "pull: IN_PLACE is not possible, pulling consistently: "
                "/job:ps/task:0: parameters can be read in place through shared "
                "memory only"), 1)
            self.assertEqual(parameters, consistent)

    def test_parameters_in_place_follow_a_restarted_ps(self):
        cluster = self.write_cluster()
        server = self.start_ps(cluster, 0)
        worker = self.start_training(
            cluster, "--train_dir=" + self.path("run"),
            "--set=replication.async.pull=IN_PLACE",
            "--set=checkpoint.every_steps=50")
        worker.wait_for(r"step=[1-9]\d\d")
        # Slots, and parameters.
        self.assertEqual(mapped_segments(worker), 2)
        server.send(signal.SIGKILL)
        server.wait()
        self.start_ps(cluster, 0)
        worker.wait_for("restored ")
        worker.wait_for(r"step=[1-9]\d\d")
        self.assertNotIn("not possible", worker.output)
        self.await_segments(worker, 2)

    def test_a_ps_that_offers_none_is_spoken_to_over_grpc(self):
        cluster = self.write_cluster()
        self.start_ps(cluster, 0, "--link=grpc")
        worker = self.start_training(cluster, steps=20)
        self.assertEqual(worker.wait(), 0)
        said = re.findall(LINK + ".*", worker.output)
        self.assertEqual(said, [
            "link to /job:ps/task:0: no shared memory: the ps offers none",
            "link to /job:ps/task:0: gRPC; no TCP: the ps offers none"])

    def test_where_it_is_required_a_ps_that_offers_none_is_an_error(self):
        cluster = self.write_cluster()
        self.start_ps(cluster, 0, "--link=grpc")
        worker = self.start_training(cluster, "--link=shared_memory")
        self.assertEqual(worker.wait(), 2)
        self.assertIn("start the worker with --link=auto or grpc",
                      worker.output)

    def test_where_tcp_is_required_a_ps_that_offers_none_is_an_error(self):
        cluster = self.write_cluster()
        self.start_ps(cluster, 0, "--link=grpc")
        worker = self.start_training(cluster, "--link=tcp")
        self.assertEqual(worker.wait(), 2)
        self.assertIn("no TCP: the ps offers none; start the worker with "
                      "--link=auto or grpc", worker.output)

    def test_tcp_carries_tensors_within_a_machine_too(self):
        cluster = self.write_cluster()
        self.start_ps(cluster, 0)
        worker = self.start_training(cluster, "--link=tcp", steps=20)
        self.assertEqual(worker.wait(), 0)
        self.assertEqual(re.findall(LINK + ".*", worker.output),
                         ["link to /job:ps/task:0: TCP"])

    def test_grpc_takes_no_memory(self):
        cluster = self.write_cluster()
        server = self.start_ps(cluster, 0)
        worker = self.start_training(cluster, "--link=grpc")
        worker.wait_for(r"step=[1-9]")
        self.assertEqual(mapped_segments(worker), 0)
        self.assertEqual(mapped_segments(server), 0)

    def test_wrong_flags_are_refused(self):
        cluster = self.write_cluster()
        for process in (self.start_ps(cluster, 0, "--link=shm"),
                        self.start_training(cluster, "--link=shm")):
            self.assertEqual(process.wait(), 2)
            self.assertIn("wanted auto, shared_memory, tcp or grpc", process.output)
        alone = self.start("alone", [harness.worker(), "--standalone",
                                     "--link=grpc", *TRAINING])
        self.assertEqual(alone.wait(), 2)
        self.assertIn("without links", alone.output)

    def test_a_killed_worker_leaves_no_memory_behind(self):
        cluster = self.write_cluster(workers=2)
        server = self.start_ps(cluster, 0)
        chief = self.start_training(cluster)
        chief.wait_for(CONNECTED)
        chief.wait_for(r"step=[1-9]")
        files = open_files(server)
        for _ in range(3):
            victim = self.start_training(cluster, index=1)
            victim.wait_for(CONNECTED)
            victim.wait_for(r"step=[1-9]")
            self.await_segments(server, 2)
            victim.send(signal.SIGKILL)
            victim.wait()
            self.await_segments(server, 1)
        # gRPC closes its connections a little later.
        deadline = time.monotonic() + harness.DEADLINE_S
        while open_files(server) > files:
            self.assertLess(time.monotonic(), deadline)

    def test_a_killed_ps_is_noticed_at_once_and_connected_again(self):
        cluster = self.write_cluster()
        server = self.start_ps(cluster, 0)
        worker = self.start_training(cluster, "--train_dir=" + self.path("run"))
        worker.wait_for(r"step=[1-9]")
        killed = time.monotonic()
        server.send(signal.SIGKILL)
        server.wait()
        noticed = worker.wait_for_line_after(
            LINK + r"connection lost; the ps at \S+ is gone", killed)
        self.expect_within("the death is noticed", noticed - killed, NOTICED_S)
        worker.wait_for_line_after(
            r"waiting for /job:ps/task:0 at .*connection refused", killed)
        self.await_segments(worker, 0)
        server = self.start_ps(cluster, 0)
        back = worker.wait_for_line_after(CONNECTED, killed)
        worker.wait_for_line_after(r"step=[1-9]", back)
        self.await_segments(worker, 1)
        self.await_segments(server, 1)


if __name__ == "__main__":
    harness.main()
