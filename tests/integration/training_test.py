"""Trains with real processes: alone, in clusters, through faults."""

import json
import os
import re
import socket

from tests.integration import harness

TRAINING = harness.softmax_regression(steps=200)

# Fast enough that 200 steps of this problem show it; each rule has its own
# scale.
LEARNING_RATES = {"sgd": 0.5, "momentum": 0.02, "adagrad": 0.1, "rmsprop": 0.01,
                  "adam": 0.01, "adamw": 0.01, "ftrl": 0.5}
# Loss on the test set after 200 steps over that of the first step. (A batch of
# 32 rows is a noisy measure, and a worker may take few of the 200 steps.)
LOSS_RATIO = 0.6
# Steps that last long enough to be interrupted.
ENDLESS = "--set=stop.steps=100000000"


class TrainingTest(harness.TestCase):

    def standalone(self, train_dir, *flags):
        return self.train_standalone(
            *self.training_flags(TRAINING, train_dir, *flags))

    def cluster(self, ps, workers, train_dir, *flags):
        """Trains to the end; returns the chief's output."""
        cluster = self.write_cluster(ps=ps, workers=workers)
        servers = [self.start_ps(cluster, i) for i in range(ps)]
        flags = self.training_flags(TRAINING, train_dir, *flags)
        tasks = [self.start_worker(cluster, i, *flags) for i in range(workers)]
        for process in tasks + servers:
            self.assertEqual(process.wait(), 0, process.output)
        return tasks[0].output

    # ---- Training

    def test_one_ps_and_one_worker_equal_standalone_bit_for_bit(self):
        self.standalone("alone", "--set=optimizer.name=adam")
        self.cluster(1, 1, "cluster", "--set=optimizer.name=adam")
        self.assertEqual(self.parameter_bytes("alone", 200),
                         self.parameter_bytes("cluster", 200))

    def first_loss(self):
        """Of the untrained model: no rule and no other worker is in it."""
        output = self.standalone("first", "--progress_every=0",
                                 "--set=stop.steps=1")
        return float(re.search(r" step=1 loss=(\S+)", output)[1])

    def expect_to_learn(self, name, ps, workers, first_loss):
        folder = "%s_%d_%d" % (name, ps, workers)
        self.cluster(ps, workers, folder, "--set=optimizer.name=" + name,
                     "--set=optimizer.%s.learning_rate=%g" %
                     (name, LEARNING_RATES[name]))
        result = self.result(folder)
        self.assertLessEqual(result["test_loss"], LOSS_RATIO * first_loss)
        self.assertEqual(result["global_step"], 200)
        self.assertEqual(result["cluster"], {"ps": ps, "worker": workers})
        self.assertEqual(sum(worker["steps"] for worker in result["workers"]),
                         200)

    def test_every_optimizer_trains(self):
        first_loss = self.first_loss()
        for name in LEARNING_RATES:
            with self.subTest(optimizer=name):
                self.expect_to_learn(name, 2, 3, first_loss)

    def test_every_shape_of_cluster_trains(self):
        first_loss = self.first_loss()
        for ps, workers in ((1, 1), (1, 2), (3, 2)):
            with self.subTest(ps=ps, workers=workers):
                self.expect_to_learn("adam", ps, workers, first_loss)

    # ---- Restarting

    def test_resumes_on_another_number_of_ps_as_if_never_stopped(self):
        adam = "--set=optimizer.name=adam"
        self.standalone("whole", adam, "--set=stop.steps=40")
        self.cluster(1, 1, "parts", adam, "--set=stop.steps=20")
        self.cluster(2, 1, "parts", adam, "--set=stop.steps=40")
        self.assertEqual(self.parameter_bytes("whole", 40),
                         self.parameter_bytes("parts", 40))
        self.assertEqual(self.result("parts")["start_step"], 20)

    def test_resumes_after_a_kill_in_the_middle_of_a_replacement(self):
        self.standalone("train", "--set=stop.steps=20")
        newest = os.path.join(self.path("train"), "ckpt-%012d" % 20)
        os.rename(newest, os.path.join(self.path("train"),
                                       ".old-ckpt-%012d" % 20))
        os.mkdir(os.path.join(self.path("train"), ".tmp-ckpt-%012d" % 20))
        self.standalone("train", "--set=stop.steps=30")
        self.assertEqual(self.result("train")["start_step"], 20)
        self.assertEqual([name for name in os.listdir(self.path("train"))
                          if name.startswith(".") and name != ".lock"], [])

    # ---- Starting

    def test_workers_may_start_before_the_ps(self):
        cluster = self.write_cluster(ps=1, workers=2)
        flags = self.training_flags(TRAINING, "train")
        other = self.start_worker(cluster, 1, *flags)
        other.wait_for(r"waiting for /job:ps/task:0 at \S+ \(.*refused")
        chief = self.start_worker(cluster, 0, *flags)
        server = self.start_ps(cluster, 0)
        for process in (chief, other, server):
            self.assertEqual(process.wait(), 0, process.output)

    def test_a_taken_port_is_an_error_that_names_it(self):
        cluster = self.write_cluster()
        with open(cluster, encoding="utf-8") as file:
            address = json.load(file)["cluster"]["worker"][0]
        with socket.create_server(("127.0.0.1", int(address.split(":")[1]))):
            worker = self.start_worker(cluster, 0,
                                       *self.training_flags(TRAINING, "train"))
            self.assertEqual(worker.wait(), 2, worker.output)
        self.assertRegex(worker.output,
                         "listen on %s: .* trying again for 10s" % address)

    def test_a_ps_that_keeps_serving_goes_on_and_refuses_another_training(self):
        cluster = self.write_cluster()
        self.start_ps(cluster, 0, "--keep_serving")

        def train(train_dir, *flags):
            worker = self.start_worker(
                cluster, 0, "--link=grpc",
                *self.training_flags(TRAINING, train_dir, *flags))
            return worker.wait(), worker.output

        code, output = train("first")
        self.assertEqual(code, 0, output)
        code, output = train("other", "--set=optimizer.sgd.learning_rate=0.2")
        self.assertEqual(code, 2, output)
        self.assertRegex(output, r"the job of this ps is done \(steps, at step "
                         r"200\).* line \d+ is .*start the ps tasks anew")
        # The same job: what another train_dir lacks is saved there.
        for train_dir in ("first", "copy"):
            code, output = train(train_dir)
            self.assertEqual(code, 0, output)
        self.assertIn("the training ends at step=200", output)
        self.assertEqual(self.parameter_bytes("first", 200),
                         self.parameter_bytes("copy", 200))
        code, output = train("longer", "--set=stop.steps=400")
        self.assertEqual(code, 0, output)
        self.assertIn("going on from step 200", output)
        self.assertEqual(self.result("longer")["global_step"], 400)

    def test_a_second_chief_cannot_use_the_train_dir(self):
        first = self.start(
            "first", [harness.worker(), "--standalone",
                      *self.training_flags(TRAINING, "train", ENDLESS)])
        first.wait_for("saved")
        code, output = self.run_to_end(
            "second", [harness.worker(), "--standalone",
                       *self.training_flags(TRAINING, "train")])
        self.assertEqual(code, 2, output)
        self.assertIn(self.path("train"), output)

    def test_a_ps_with_little_address_space_serves(self):
        # With 8 MiB for each thread's stack and 128 MiB for its heap gRPC
        # aborted, or hung, at up to 500 MB.
        cluster = self.write_cluster(ps=1, workers=1)
        ps = self.start("ps 0", [
            "sh", "-c", 'ulimit -v 250000; exec "$0" "$@"',
            harness.ps_server(), "--cluster=" + cluster, "--task_index=0"])
        worker = self.start_worker(
            cluster, 0, *self.training_flags(TRAINING, "train"))
        self.assertEqual(worker.wait(), 0, worker.output)
        self.assertEqual(ps.wait(), 0, ps.output)

    # ---- Saving

    def test_training_goes_on_when_a_save_fails(self):
        # The parameters file fits into 8 KiB, the slots file does not.
        limited = ["bash", "-c", 'ulimit -f 4; exec "$@"', "x"]
        code, output = self.run_to_end(
            "limited",
            limited + [harness.worker(), "--standalone",
                       *self.training_flags(
                           TRAINING, "train", "--set=optimizer.name=adam",
                           "--set=checkpoint.every_steps=100",
                           "--progress_every=0")])
        # The final save fails too: as on a full disk, it may be tried again.
        self.assertEqual(code, 138, output)
        self.assertIn(" step=200 ", output)
        # A save that is due while one still runs is left out.
        steps = re.findall(
            r"checkpoint at step (\d+) not saved, training goes on", output)
        self.assertEqual(steps, sorted(set(steps), key=int), output)
        self.assertEqual(steps[0], "0", output)
        self.assertLessEqual(set(steps), {"0", "100", "200"}, output)
        self.assertIn("final save: ", output)
        self.assertFalse([name for name in os.listdir(self.path("train"))
                          if name.startswith("ckpt-")])


if __name__ == "__main__":
    harness.main()
