"""`muster task` with the variables of Slurm, and under a program `srun` that
starts all tasks here.
"""

import os
import sys
from unittest import mock

from tests.integration import harness
from tests.integration import task_scenarios

sys.path.insert(0, os.path.abspath("scripts"))
from hosts import run, task  # noqa: E402
from base.failure import Failure  # noqa: E402

# Blocks of tasks on three nodes whose names are addresses of this machine. With
# --kill-on-bad-exit a failure ends all processes of the others, once these are
# that far that they hear of it; the exit code is the highest.
SRUN = '''#!{python}
import os, re, subprocess, sys, time
def hears_sigterm(pid):
    try:
        with open("/proc/%d/status" % pid) as file:
            status = file.read()
    except OSError:
        return True
    masks = re.findall(r"(?m)^Sig(?:Cgt|Ign):\\s*(\\w+)", status)
    return "State:\\tZ" in status or any(int(m, 16) & 1 << 14 for m in masks)
words = sys.argv[1:]
flags = [words.pop(0) for word in list(words) if words[0].startswith("-")]
count = int([flag for flag in flags if flag.startswith("-n")][0][2:])
per_node = [count - 2, 1, 1]
node_of = [i for i, tasks in enumerate(per_node) for _ in range(tasks)]
tasks = []
for rank in range(count):
    tasks.append(subprocess.Popen(words, process_group=0, env=dict(
        os.environ, SLURM_PROCID=str(rank), SLURM_STEP_NUM_TASKS=str(count),
        SLURM_STEP_NODELIST="127.0.0.[1-3]", SLURM_NODEID=str(node_of[rank]),
        SLURM_STEP_TASKS_PER_NODE="%d,1(x2)" % per_node[0])))
codes, left = {}, dict((one.pid, one) for one in tasks)
while left:
    pid, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    codes[pid] = code if code >= 0 else 128 - code
    left.pop(pid)
    if code and "--kill-on-bad-exit=1" in flags:
        for one in left:
            while not hears_sigterm(one):
                time.sleep(0.01)
            os.killpg(one, 15)
sys.exit(max(codes.values()))
'''


class TaskTest(task_scenarios.Scenarios, harness.TestCase):

    def setUp(self):
        super().setUp()
        path = self.write("srun", SRUN.replace("{python}", sys.executable))
        os.chmod(path, 0o755)
        self.srun = [path]
        self.env = dict(os.environ)

    def test_without_srun_it_says_how_to_start_it(self):
        code, output = self.run_to_end("task", [
            sys.executable, task_scenarios.MUSTER, "task", "--ps=1"])
        self.assertEqual(code, 2)
        self.assertIn("SLURM_PROCID is not set: start it with srun", output)


def step(rank, tasks="2,1(x2)", nodes="n[1-3]", node=None, count=4):
    node = node if node is not None else [0, 0, 1, 2][rank]
    return {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": str(count),
            "SLURM_STEP_NODELIST": nodes, "SLURM_NODEID": str(node),
            "SLURM_STEP_TASKS_PER_NODE": tasks}


class SbatchTest(harness.TestCase):
    """cluster_configs/slurm/train.sbatch, with programs that say what they
    would do."""

    def test_stopped_or_alone_it_is_queued_again_and_not_after_a_mistake(self):
        for name, text in (("srun", "exit $CODE"), ("scontrol", "echo $*")):
            os.chmod(self.write(name, "#!/bin/sh\n" + text + "\n"), 0o755)
        for code, again in ((0, ""), (2, ""), (138, "requeue 7"),
                            (143, "requeue 7")):
            found, output = self.run_to_end("sbatch", [
                "bash", "cluster_configs/slurm/train.sbatch"],
                env=dict(os.environ, CODE=str(code), SLURM_JOB_ID="7",
                         PATH=self.dir + ":" + os.environ["PATH"]))
            self.assertEqual((found, output.strip()), (code, again))


class BecomeTest(harness.TestCase):

    WAITS = [sys.executable, "-c", "import signal; signal.pause()"]

    def test_who_was_asked_before_it_had_a_task_ends_it(self):
        self.assertEqual(task.become(self.WAITS, [True]), 0)

    def test_after_a_notice_of_the_time_limit_the_code_is_143(self):
        self.assertEqual(task.become(self.WAITS, [False, True]), 143)

    def test_another_end_keeps_its_exit_code(self):
        fails = [sys.executable, "-c", "raise SystemExit(3)"]
        self.assertEqual(task.become(fails, []), 3)


class CommandTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        for name in ("ps_server", "worker"):
            os.chmod(self.write(name, ""), 0o755)

    def command(self, environment, *flags):
        options = task.parse(["--bin_dir=" + self.dir, *flags])
        run.check_tasks(options)
        line, _ = task.command(options, environment, lambda nodes: {
            node: "10.0.0." + node[1:] for node in nodes})
        return line

    HOSTS = ["--worker_hosts=10.0.0.1:9001,10.0.0.2:9002,10.0.0.3:9003",
             "--ps_hosts=10.0.0.1:9000", "--allow_insecure_network"]
    FLAGS = ["--ps=1", "--port_base=9000", "--allow_insecure_network",
             "--ps_flag=--y", "--x"]

    def test_role_index_and_addresses_come_of_the_rank(self):
        self.assertEqual(self.command(step(0), *self.FLAGS), [
            self.path("ps_server"), *self.HOSTS, "--task_index=0", "--y"])
        self.assertEqual(self.command(step(3), *self.FLAGS), [
            self.path("worker"), *self.HOSTS, "--task_index=2", "--x"])

    def test_without_ps_tasks_the_workers_hold_the_parameters(self):
        line = self.command(step(0, "2", "n1", 0, 2), "--ps=0")
        self.assertEqual(line[1:], [
            "--worker_hosts=10.0.0.1:8888,10.0.0.1:8889", "--task_index=0",
            "--set=replication=all_reduce"])

    def refused(self, words, environment, *flags):
        with self.assertRaises(Failure) as caught:
            self.command(environment, *flags)
        self.assertIn(words, str(caught.exception))
        self.assertEqual(caught.exception.exit_code, 2)

    def test_mistakes_and_contradictions_are_named(self):
        self.refused("contradict each other", step(0, count=5))
        self.refused("contradict each other", step(0, nodes="n[1-2]"))
        self.refused("contradict each other", step(0, count=0, tasks="0"))
        self.refused("--distribution=block", step(1, node=1))
        self.refused("wanted numbers as 4,1(x2)", step(0, tasks="x"))
        self.refused("wanted a number", dict(step(0), SLURM_PROCID="x"))
        self.refused("wanted names", step(0, nodes=""))
        self.refused("--ps=4 of", step(0), "--ps=4")
        self.refused("--port_base=65533", step(0), "--port_base=65533")
        self.refused("--cluster: muster says it", step(0), "--cluster=x")
        self.refused("--task_index: muster says it", step(0), "--task_index=1")

    def test_variables_that_are_half_set_are_named(self):
        for name in step(0):
            half = step(0)
            del half[name]
            self.refused(name + " is not set: start it with srun", half)
        self.refused("wanted a number", dict(step(0), SLURM_PROCID="\u00b2"))

    def test_a_name_that_cannot_be_resolved_is_asked_of_slurm(self):
        scontrol = ('NodeName=n1 Arch=x NodeAddr=127.0.0.1 NodeHostName=m\n'
                    'NodeName=n2 NodeAddr=127.0.0.2 State=IDLE\n')
        with mock.patch.object(task, "_resolves", lambda name: "." in name), (
                mock.patch("subprocess.run")) as run_:
            run_.return_value.stdout = scontrol
            self.assertEqual(task.addresses(["n1", "n2"]),
                             {"n1": "127.0.0.1", "n2": "127.0.0.2"})
            with self.assertRaisesRegex(Failure, "node n3: its name cannot"):
                task.addresses(["n1", "n3"])
        self.assertEqual(task.addresses(["127.0.0.1"]),
                         {"127.0.0.1": "127.0.0.1"})


if __name__ == "__main__":
    harness.main()
