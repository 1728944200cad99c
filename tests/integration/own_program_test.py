"""A program of the user's own in the place of the worker: `muster run`, `join`
and `task` with a command line, over fakes of ssh and ps_server."""

import contextlib
import io
import json
import os
import re
import signal
import socket
import sys
from unittest import mock

from tests.integration import fake_ssh
from tests.integration import harness
from tests.integration.run_scenarios import MUSTER, PS, SLEEPS, Scenarios

sys.path.insert(0, os.path.abspath("scripts"))
from base.failure import Failure  # noqa: E402
from hosts import join, program, run, task  # noqa: E402

# Prints what it was told and the cluster file, a JSON text; the ps ends then.
TELLS = """
import json, os, sys
told = {name: value for name, value in os.environ.items()
        if name.startswith("MUSTER_")}
with open(told["MUSTER_CLUSTER"]) as file:
    told["cluster"] = json.load(file)["cluster"]
for name in ("TF_CONFIG", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"):
    told[name] = os.environ.get(name)
told["keys"] = sorted(os.listdir(told.get("MUSTER_CERTS_DIR", "/proc/self/ns")))
print("told", json.dumps(told), sys.argv[1:])
open(%r, "w").close()
"""
# When asked it saves, and lets a child, as a data loader has, say that it lives.
DRAINS = """
import os, signal, subprocess, sys
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def save(*_):
    child.stdin.write(b"child lives.\\n")
    child.stdin.flush()
    print("saved,", child.stdout.readline().decode())
    open(%r, "w").close()
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
print("pid=%%d. pid=%%d." %% (os.getpid(), child.pid))
while True: signal.pause()
"""


class OwnProgramTest(harness.TestCase):
    hosts = ["127.0.0.1", "127.0.0.2"]
    run_flags = ["--allow_insecure_network"]
    write_binary = Scenarios.write_binary
    muster_run = Scenarios.muster_run
    pids = Scenarios.pids
    assert_gone = Scenarios.assert_gone
    make_keys = Scenarios.make_keys

    def setUp(self):
        super().setUp()
        self.env = dict(fake_ssh.environment(self), TF_CONFIG="{",
                        MUSTER_CERTS_DIR="of another run", OMP_NUM_THREADS="1",
                        CUDA_VISIBLE_DEVICES="7,8")
        self.env.pop("PYTHONUNBUFFERED", None)

    def program(self, text, *arguments):
        return [sys.executable, self.write("train.py", text), *arguments]

    def run_program(self, text, *flags, arguments=(), **more):
        """On hosts with ps_server alone, as a wheel has it."""
        self.write_binary("ps_server", PS)
        return self.muster_run(*flags, worker_flags=self.program(
            text, *arguments), **more)

    def told(self, one, index):
        """What worker `index` of a run that has ended was told."""
        text, rest = re.search(r"worker %d\] told (\{.*\}) (\[.*\])\n" % index,
                               one.output).groups()
        return json.loads(text), rest

    def test_it_is_told_role_cluster_and_cores_and_keeps_its_arguments(self):
        one = self.run_program(
            TELLS % self.path("done"), arguments=[
                "--training=x", "--cluster=y", "--", "a b"])
        self.assertEqual(one.wait(), 0, one.output)
        for index in (0, 1):
            told, rest = self.told(one, index)
            self.assertEqual(rest, "['--training=x', '--cluster=y', '--', 'a b']")
            self.assertEqual({name: value for name, value in told.items()
                              if name.isupper() and name != "MUSTER_CLUSTER"}, {
                "MUSTER_JOB_NAME": "worker", "MUSTER_TASK_INDEX": str(index),
                "MUSTER_ALLOW_INSECURE_NETWORK": "1", "OMP_NUM_THREADS": "1",
                "TF_CONFIG": None, "CUDA_VISIBLE_DEVICES": "7"})
            self.assertEqual(sorted(told["cluster"]), ["ps", "worker"])
            self.assertEqual([len(tasks) for tasks in told["cluster"].values()],
                             [1, 2])
        self.assertTrue(one.output.endswith("[muster run] done"))

    def test_here_it_goes_without_ssh_and_network(self):
        self.run_flags = []
        one = self.run_program(TELLS % self.path("done"), hosts="localhost:2")
        self.assertEqual(one.wait(), 0, one.output)
        for index, gpu in ((0, "7"), (1, "8")):
            told, _ = self.told(one, index)
            self.assertNotIn("MUSTER_ALLOW_INSECURE_NETWORK", told)
            self.assertNotIn("MUSTER_CERTS_DIR", told)
            self.assertEqual(told["CUDA_VISIBLE_DEVICES"], gpu)

    def test_of_keys_it_is_told_the_path(self):
        self.run_flags = []
        keys = self.make_keys("--workers=2")
        one = self.run_program(TELLS % self.path("done"), "--certs=" + keys)
        self.assertEqual(one.wait(), 0, one.output)
        told, _ = self.told(one, 1)
        self.assertEqual(told["keys"], ["ca.pem", "worker-1.key",
                                        "worker-1.pem"])
        with open(keys + "/worker-1.key", encoding="ascii") as file:
            self.assertNotIn(file.read().splitlines()[1], one.output)

    def test_its_exit_code_is_that_of_the_run(self):
        one = self.run_program(
            "import os, sys, time\n"
            "if os.environ['MUSTER_TASK_INDEX'] == '1':\n"
            "    print('bad thing'); sys.exit(3)\n"
            "time.sleep(1000)\n")
        self.assertEqual(one.wait(), 3)
        self.assertIn("[127.0.0.2 worker 1] failed first, with exit code 3",
                      one.output)
        self.assertIn("its last lines: bad thing", one.output)

    def test_one_that_lost_its_peers_is_started_again(self):
        one = self.run_program(
            "import os, sys, time\n"
            "if os.environ['MUSTER_TASK_INDEX'] == '0': time.sleep(1000)\n"
            "print('start', sys.argv[1:])\n"
            "try: os.mkdir(%r)\n"
            "except FileExistsError: sys.exit(5)\n"
            "sys.exit(138)\n" % self.path("died"), "--restart=2",
            arguments=["--lr=1"])
        self.assertEqual(one.wait(), 5)
        self.assertIn("worker 1] ended with exit code 138 (peers lost, or disk "
                      "full); restart 1 of 2", one.output)
        self.assertEqual(one.output.count("] start ['--lr=1']"), 2)

    def test_one_that_is_not_there_is_named(self):
        self.write_binary("ps_server", SLEEPS)
        one = self.muster_run(worker_flags=["pyton", "train.py"])
        self.assertEqual(one.wait(), 2)
        self.assertIn("No such file or directory: 'pyton'", one.output)

    def test_a_host_without_ps_server_is_refused(self):
        self.write_binary("worker", SLEEPS)
        one = self.muster_run(worker_flags=["python", "train.py"])
        self.assertEqual(one.wait(), 2)
        self.assertIn("no program at '%s/ps_server'" % self.path("bin"),
                      one.output)

    def drained(self, signum, code):
        one = self.run_program(DRAINS % self.path("done"))
        found = [one.wait_for(r"pid=(\d+)\. pid=(\d+)\.").groups()
                 for _ in self.hosts]
        one.send(signum)
        self.assertEqual(one.wait(), code, one.output)
        self.assertEqual(one.output.count("] saved, child lives."), 2)
        self.assert_gone(sum(found, ()))

    def test_ctrl_c_asks_the_program_alone_and_nothing_is_left(self):
        self.drained(signal.SIGINT, 130)

    def test_a_notice_asks_it_by_sigterm(self):
        self.drained(signal.SIGUSR1, 143)

    def test_workers_that_come_and_go_have_no_number(self):
        path = self.path("c.json")
        one = self.run_program(TELLS % self.path("done"), "--min_workers=1",
                               "--cluster=" + path)
        self.assertEqual(one.wait(), 0, one.output)
        self.assertEqual([self.told(one, index)[0]["MUSTER_TASK_INDEX"]
                          for index in (0, 1)], ["0", "any"])
        self.assertEqual(self.told(one, 1)[0]["cluster"]["worker"], "any")
        self.join(self.read_json("c.json")["run"])

    def join(self, known, *own):
        """`muster join` with what a run has written; the worker's output."""
        with socket.socket() as ps:
            ps.bind(("127.0.0.1", 0))
            ps.listen()
            path = self.write("c.json", json.dumps({"run": known, "cluster": {
                "ps": ["127.0.0.1:%d" % ps.getsockname()[1]],
                "worker": "any"}}))
            one = self.start("muster join", [
                sys.executable, MUSTER, "join", "--cluster=" + path, "-H",
                "127.0.0.2:1", *self.run_flags,
                "--bin_dir=" + self.path("bin"), "--", *own], env=self.env)
            self.assertEqual(one.wait(), 0, one.output)
        told, rest = self.told(one, 1)
        self.assertEqual(told["MUSTER_TASK_INDEX"], "any")
        return rest

    def test_more_join_with_its_program_or_another(self):
        self.write_binary("ps_server", "exit 9\n")
        tells = self.program(TELLS % self.path("done"), "--lr=1")
        known = {"worker_flags": tells, "files": {}}
        self.assertEqual(self.join(known), "['--lr=1']")
        self.assertEqual(self.join(known, "--x"), "['--lr=1', '--x']")
        known = {"worker_flags": ["--training=t"], "files": {}}
        self.assertEqual(self.join(known, *tells), "['--lr=1']")


class SlurmTest(harness.TestCase):
    """Ranks 0 (a ps) to 2 of one node."""

    FLAGS = ["--ps=1", "--port_base=9000", "--certs_dir=keys"]

    def command(self, rank, *flags):
        environment = {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "3",
                       "SLURM_STEP_NODELIST": "n1", "SLURM_NODEID": "0",
                       "SLURM_STEP_TASKS_PER_NODE": "3"}
        os.chmod(self.write("ps_server", ""), 0o755)
        options = task.parse(["--bin_dir=" + self.dir, *flags])
        run.check_tasks(options)
        return task.command(options, environment, lambda nodes: {
            "n1": "10.0.0.1"})

    def test_a_rank_becomes_the_program(self):
        words = ["python", "train.py", "--ps=7", "--cluster=c", "--", "x"]
        line, environment = self.command(2, *self.FLAGS, "--", *words)
        self.assertEqual(line, words)
        self.assertEqual({name: environment.get(name)
                          for name in program.NAMES[1:]}, {
            "MUSTER_JOB_NAME": "worker", "MUSTER_TASK_INDEX": "1",
            "MUSTER_CERTS_DIR": "keys", "MUSTER_ALLOW_INSECURE_NETWORK": None})
        with open(environment["MUSTER_CLUSTER"], encoding="utf-8") as file:
            self.assertEqual(json.load(file), {"cluster": {
                "ps": ["10.0.0.1:9000"],
                "worker": ["10.0.0.1:9001", "10.0.0.1:9002"]}})

    def test_a_ps_is_as_ever(self):
        line, environment = self.command(0, *self.FLAGS, "--", "python")
        self.assertEqual((line[0], line[-1]),
                         (self.path("ps_server"), "--task_index=0"))
        self.assertIsNone(environment)

    def test_without_ps_tasks_there_is_no_rank_for_it(self):
        with self.assertRaisesRegex(Failure, "--ps=0: wanted ps tasks"):
            self.command(1, "--ps=0", "--", "python")

    def test_cores_are_those_of_the_workers_of_its_node(self):
        with mock.patch.object(program.local_cores, "threads") as threads:
            self.command(2, *self.FLAGS, "--", "python")
        threads.assert_called_with(2)

    def test_alone_it_needs_no_hyphens(self):
        self.assertEqual(task.parse(["python", "t.py", "--ps=2"]).worker_flags,
                         ["python", "t.py", "--ps=2"])

    def test_one_that_is_not_there_is_a_mistake(self):
        # main() gives this process other handlers of signals.
        code, output = self.run_to_end("task", [sys.executable, "-c", (
            "import sys; sys.path.insert(0, 'scripts')\n"
            "from hosts import task\n"
            "task.command = lambda *_: (['pyton'], {})\n"
            "sys.exit(task.main(['pyton']))")])
        self.assertEqual(code, 2)
        self.assertIn("No such file or directory: 'pyton'", output)

    def test_a_notice_of_slurm_reaches_it_as_sigterm(self):
        # Slurm signals both processes; os.killpg here does.
        code = ("import sys; sys.path.insert(0, 'scripts')\n"
                "from hosts import task\n"
                "import os\n"
                "sys.exit(task.become([sys.executable, '-u', '-c', %r], [], "
                "dict(os.environ)))" % (
                    "import signal, sys, time\n"
                    "signal.signal(15, lambda *_: sys.exit('saved.'))\n"
                    "print('there.'); time.sleep(1000)"))
        one = self.start("task", [sys.executable, "-c", code])
        one.wait_for("there")
        os.killpg(one.pid, signal.SIGUSR1)
        self.assertEqual(one.wait(), 1, one.output)
        self.assertIn("saved.", one.output)

    def test_outside_of_slurm_it_says_what_is_missing(self):
        with mock.patch.dict(os.environ):
            os.environ.pop("SLURM_PROCID", None)
            code, output = self.run_to_end("task", [
                sys.executable, MUSTER, "task", "python", "train.py"])
        self.assertEqual(code, 2)
        self.assertIn("SLURM_PROCID is not set: start it with srun", output)
        self.assertIn("muster run -H localhost:2 goes without", output)


class MistakesTest(harness.TestCase):

    def refused(self, found, verb, *argv):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            with self.assertRaises(SystemExit) as caught:
                verb.parse(list(argv))
        self.assertEqual(caught.exception.code, 2)
        self.assertIn("'%s': a program stands in the place of the worker and "
                      "of its flags" % found, said.getvalue())

    def test_flags_of_the_worker_beside_a_program_are_named(self):
        for verb, own in ((run, ["-H", "a"]), (task, []),
                          (join, ["-H", "a", "--cluster=c"])):
            self.refused("--training=x --set=y", verb, *own, "--training=x",
                         "--set=y", "--", "python")
            self.refused("python", verb, *own, "--", "--devices=2", "python")
            self.refused("--", verb, *own, "--", "--training=x", "--", "python")

    def test_a_program_without_the_hyphens_is_named(self):
        self.refused("python", run, "-H", "a", "python", "train.py")
        self.refused("python", task, "--ps=1", "python", "train.py")

    def test_values_of_flags_are_no_program(self):
        self.assertEqual(task.parse(
            ["--ps", "1", "--training", "x", "--y"]).worker_flags,
            ["--training", "x", "--y"])

    def test_without_ps_tasks_it_is_refused(self):
        options = run.parse(["-H", "a", "--", "python", "--set=x"])
        with self.assertRaisesRegex(Failure, "--ps=0: wanted ps tasks for `py"):
            run.train(options, [], None)

    def test_what_belongs_to_it_is_not_looked_at(self):
        training = self.write("t", "replication { sync {} }")
        words = ["python", "--training=" + training, "--cluster=c",
                 "--set=replication=sync"]
        options = run.parse(["-H", "a", "--min_workers=1", "--", *words])
        run.check(options)
        join.check(join.parse(["-H", "a", "--cluster=c", "--", *words]))
        self.assertEqual(run.take_training(words), (words, {}))
        self.assertEqual(run.waits_for(options, words, {}), [])

    def test_a_flag_of_ps_tasks_is_none(self):
        self.assertEqual(run.arguments("ps", ["--x"], ["y"]),
                         {"arguments": ["--x", "y"]})


if __name__ == "__main__":
    harness.main()
