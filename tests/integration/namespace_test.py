"""Several models on ps tasks that keep serving (ps_server --keep_serving)."""

import json
import os
import signal
import time

from tests.integration import harness
from tests.integration import recovery

ENDLESS = 100000000
SAVES = "checkpoint { every_steps: 50 keep: 3 }"
# One trains without waiting for anybody, the other in rounds.
TRAININGS = {
    "a": harness.softmax_regression(ENDLESS, more=SAVES),
    "b": harness.softmax_regression(
        ENDLESS, batch_size=16, learning_rate=0.05,
        more=SAVES + " replication { sync { min_replicas: 1 } }"),
}


class NamespaceTest(recovery.TestCase):

    def setUp(self):
        super().setUp()
        ports = harness.free_ports(6)
        self.ps = ["127.0.0.1:%d" % port for port in ports[:2]]
        self.clusters = {}
        for name, first in (("a", 2), ("b", 4)):
            workers = ["127.0.0.1:%d" % port for port in ports[first:first + 2]]
            self.clusters[name] = self.write(name + ".json", json.dumps(
                {"ps": self.ps, "worker": workers}))

    # The ps tasks know the workers of job a alone.
    def start_servers(self):
        return [self.start_ps(self.clusters["a"], i, "--keep_serving")
                for i in range(2)]

    def start_task(self, job, index, *flags, training=None, train_dir=None):
        training = self.write("%s.textproto" % (training or job),
                              TRAININGS[training or job])
        return self.start_worker(
            self.clusters[job], index, "--namespace=" + job,
            "--training=" + training, "--compute_threads=1",
            "--train_dir=" + self.path(train_dir or "train_" + job),
            "--progress_every=200ms", *flags)

    def ctl(self, *args):
        return self.run_to_end("musterctl", [
            harness.binary("worker/ctl/musterctl"), "namespace", *args,
            "--ps_hosts=" + ",".join(self.ps)])

    def kill_ps(self, servers, jobs, index):
        """Both jobs go on from a checkpoint."""
        since = time.monotonic()
        servers[index].kill()
        servers[index] = self.start_ps(self.clusters["a"], index,
                                       "--keep_serving")
        for tasks in jobs.values():
            restored = tasks[0].wait_for_line_after("restored ", since)
            for task in tasks:
                task.wait_for_line_after(r"\bstep=[1-9]", restored)

    def check_exact(self, train_dir):
        """Each block has had as many updates as are counted."""
        newest = max(name for name in os.listdir(self.path(train_dir))
                     if name.startswith("ckpt-"))
        checkpoint = recovery.Checkpoint(
            os.path.join(self.path(train_dir), newest))
        for parameter, counts in checkpoint.updates().items():
            self.assertEqual(set(counts), {checkpoint.global_step}, parameter)

    def await_steps(self, tasks):
        for task in tasks:
            task.wait_for(r"\bstep=[1-9]")

    def test_two_jobs_survive_each_others_deaths_and_end_by_name(self):
        servers = self.start_servers()
        jobs = {job: [self.start_task(job, i) for i in range(2)]
                for job in ("a", "b")}
        everybody = jobs["a"] + jobs["b"]
        self.await_steps(everybody)

        for task in jobs["a"]:
            task.kill()
        jobs["a"] = [self.start_task("a", i) for i in range(2)]
        self.await_steps(jobs["a"])
        self.kill_ps(servers, jobs, 1)
        self.kill_ps(servers, jobs, 0)

        # A namespace that is in use, by the same training and another one.
        intruder = self.start_task("b", 0, "--bind=127.0.0.1:0",
                                   train_dir="intruder")
        self.assertEqual(intruder.wait(), 2, intruder.output)
        self.assertIn("another job has namespace 'b', whose /job:worker/task:0 "
                      "trains, and is alive", intruder.output)
        intruder = self.start_task("b", 0, "--bind=127.0.0.1:0", training="a",
                                   train_dir="intruder")
        self.assertEqual(intruder.wait(), 2, intruder.output)
        self.assertRegex(intruder.output, "another job has namespace 'b'")

        code, output = self.ctl("ls")
        self.assertEqual(code, 0, output)
        for job in ("a", "b"):
            self.assertRegex(output, r"'%s' +RUNNING +\d+ +2 +\d+" % job)
        code, output = self.ctl("drop", "a")
        self.assertEqual(code, 2, output)
        self.assertIn("2 tasks train there", output)
        code, output = self.ctl("drop", "a", "--force")
        self.assertEqual(code, 0, output)
        for task in jobs["a"]:
            self.assertEqual(task.wait(), 1, task.output)
            self.assertIn("namespace 'a' was dropped (musterctl namespace "
                          "drop --force)", task.output)
        self.await_steps(jobs["b"])
        jobs["b"][0].send(signal.SIGTERM)
        self.assertEqual(jobs["b"][0].wait(), 143, jobs["b"][0].output)
        self.assertEqual(jobs["b"][1].wait(), 0, jobs["b"][1].output)
        self.check_exact("train_b")
        for server in servers:
            self.assertTrue(server.running(), server.output)

    def test_a_training_that_comes_back_goes_on_from_what_the_ps_hold(self):
        self.start_servers()

        def train(steps, *flags, train_dir):
            task = self.start_task("a", 0, "--set=stop.steps=%d" % steps,
                                   *flags, train_dir=train_dir)
            return task.wait(), task.output

        code, output = train(60, train_dir="first")
        self.assertEqual(code, 0, output)
        # Another model from that one's parameters, to the bit.
        student = self.start_worker(
            self.clusters["b"], 0, "--namespace=c", "--read_from=a",
            "--training=" + self.path("a.textproto"),
            "--set=input.batch_size=16", "--set=stop.steps=5", "--train_dir=" + self.path("student"))
        self.assertEqual(student.wait(), 0, student.output)
        self.assertIn("2 of them from namespace 'a' (model epoch 1)",
                      student.output)
        self.assertEqual(*(
            recovery.Checkpoint(self.path(folder)).tensors(
                "parameters.safetensors")
            for folder in ("student/ckpt-000000000000",
                           "first/ckpt-000000000060")))
        # A mistake leaves nothing behind.
        lost = self.start_worker(
            self.clusters["b"], 0, "--namespace=d", "--read_from=typo",
            "--training=" + self.path("a.textproto"),
            "--train_dir=" + self.path("lost"))
        self.assertEqual(lost.wait(), 2, lost.output)
        self.assertIn("namespace 'typo' is not on the ps tasks", lost.output)
        code, output = self.ctl("ls")
        self.assertEqual(code, 0, output)
        self.assertIn("'c'", output)
        self.assertNotIn("'d'", output)
        for verb in ("drop", "reset", "show"):
            code, output = self.ctl(verb, "typo")
            self.assertEqual(code, 2, output)
            self.assertIn("no ps task has namespace 'typo'", output)
        code, output = train(90, train_dir="second")
        self.assertEqual(code, 0, output)
        self.assertIn("going on from step 60, which the ps tasks hold", output)
        result = self.result("second")
        self.assertEqual((result["start_step"], result["global_step"]),
                         (60, 90))
        self.assertEqual(result["namespace"], "a")
        # The first train_dir has another state.
        code, output = train(100, train_dir="first")
        self.assertEqual(code, 0, output)
        self.assertIn("--train_dir has step 60, which is passed over", output)
        code, output = train(200, "--set=optimizer.sgd.learning_rate=0.2",
                             train_dir="other")
        self.assertEqual(code, 2, output)
        self.assertRegex(output, "musterctl namespace reset")
        code, output = self.ctl("reset", "a")
        self.assertEqual(code, 0, output)
        code, output = train(20, "--set=optimizer.sgd.learning_rate=0.2",
                             train_dir="other")
        self.assertEqual(code, 0, output)
        self.assertEqual(self.result("other")["start_step"], 0)

    def test_mistakes_have_names(self):
        for flags, message in (
                (["--namespace=a b"], "--namespace: namespace 'a b'; wanted"),
                (["--namespace=a", "--standalone"], "wants ps tasks"),
                (["--read_from=a", "--standalone"], "--read_from wants ps "),
                (["--read_from=a", "--init_from=b",
                  "--cluster=" + self.clusters["a"], "--task_index=0"],
                 "--read_from and --init_from: "),
                (["--read_from=a", "--namespace=a",
                  "--cluster=" + self.clusters["a"], "--task_index=0"],
                 "--read_from: namespace 'a' is this training's own")):
            code, output = self.run_to_end("worker", [
                harness.worker(), *flags,
                *self.training_flags(TRAININGS["a"], "train")])
            self.assertEqual(code, 2, output)
            self.assertIn(message, output)
        self.start_ps(self.clusters["a"], 0)
        self.start_ps(self.clusters["a"], 1)
        worker = self.start_task("a", 0)
        self.assertEqual(worker.wait(), 2, worker.output)
        self.assertIn("ps_server --keep_serving serves several",
                      worker.output)


if __name__ == "__main__":
    harness.main()
