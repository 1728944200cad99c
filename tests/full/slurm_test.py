"""`muster task` under real Slurm: slurmctld and three slurmd on this machine, in
a network namespace. Needs root, munge, slurmctld, slurmd and slurm-client.
"""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from tests.integration import harness
from tests.integration import network_hosts
from tests.integration import task_scenarios

sys.path.insert(0, os.path.abspath("scripts"))
from hosts import certs  # noqa: E402

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun")
# For the nodes to be idle.
UP_S = 60
CONFIG = """
ClusterName=t
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge/socket
CredType=cred/munge
SlurmctldPort=6817
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool-%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
SlurmdParameters=config_overrides
SwitchType=switch/none
KillWait=5
SchedulerType=sched/backfill
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=DEFAULT CPUs=8 State=UNKNOWN
NodeName=n[1-3] NodeHostname={host} NodeAddr=127.0.0.1 Port=[17001-17003]
PartitionName=all Nodes=n[1-3] Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""
# slurmd 22.05 ends without a cgroup tree, and does not need it.
CGROUP = """
CgroupPlugin=cgroup/v1
CgroupAutomount=no
CgroupMountpoint={dir}/cgroup
"""


def missing():
    names = [name for name in PROGRAMS if not shutil.which(
        name, path="/usr/sbin:" + os.environ["PATH"])]
    return "not installed: " + ", ".join(names) if names else network_hosts.REASON


@unittest.skipIf(missing() is not None, missing())
class SlurmTest(task_scenarios.Scenarios, harness.TestCase):

    def setUp(self):
        super().setUp()
        self.network = network_hosts.of_test(self, 1)
        # Names of sockets have 107 bytes at most; Bazel's folder is longer.
        self.state = tempfile.mkdtemp(prefix="muster-slurm-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.state, ignore_errors=True)
        self.env = dict(os.environ, SLURM_CONF=self.path("slurm.conf"),
                        PATH="/usr/sbin:" + os.environ["PATH"])
        self.srun = self.network.on(0, ["srun"])
        os.chmod(self.state, 0o755)
        for name in ("munge", "state", "cgroup"):
            os.mkdir(self.of_slurm(name), 0o755)
        names = {"dir": self.state, "host": socket.gethostname()}
        self.write("slurm.conf", CONFIG.format(**names))
        self.write("cgroup.conf", CGROUP.format(**names))
        self.start_munge()
        self.start_daemon("slurmctld", "-D", "-i").wait_for("slurmctld version")
        for i in range(1, 4):
            self.start_daemon("slurmd", "-D", "-N", "n%d" % i, "-c")
        self.wait_until_idle()

    def of_slurm(self, name):
        return os.path.join(self.state, name)

    def start_daemon(self, program, *flags):
        return self.start(program + " " + " ".join(flags),
                          self.network.on(0, [program, *flags]), env=self.env)

    def start_munge(self):
        with open(self.of_slurm("munge/key"), "wb") as file:
            file.write(secrets.token_bytes(1024))
        os.chmod(self.of_slurm("munge/key"), 0o400)
        self.start_daemon(
            "munged", "--foreground", "--force", *(
                "--%s=%s" % (flag, self.of_slurm("munge/" + name))
                for flag, name in (("key-file", "key"), ("socket", "socket"),
                                   ("pid-file", "pid"), ("log-file", "log"),
                                   ("seed-file", "seed"))))

    def wait_until_idle(self):
        deadline = time.monotonic() + UP_S
        while True:
            done = subprocess.run(
                self.network.on(0, ["sinfo", "-h", "-o", "%T %D"]),
                env=self.env, capture_output=True, text=True, check=False)
            if done.stdout.strip() == "idle 3":
                return
            self.assertLess(time.monotonic(), deadline,
                            done.stdout + done.stderr)

    def test_trains_with_keys(self):
        keys = self.path("keys")
        for verb in (["init"], ["issue", "--ps=1", "--workers=2"]):
            self.assertEqual(certs.main([*verb, "--certs_dir=" + keys]), 0)
        step = self.training_step("--certs_dir=" + keys)
        self.assertEqual(step.wait(), 0, step.output)
        for task in ("ps/task:0", "worker/task:0", "worker/task:1"):
            self.assertIn("TLS: /job:%s of cluster 'muster'" % task, step.output)
        self.assertEqual(self.result("train")["global_step"], 40)

    def test_a_cyclic_distribution_is_refused(self):
        step = self.step("--ps=1", tasks=4, srun_flags=[
            "-mcyclic", "--kill-on-bad-exit=1"])
        # 143 of a rank that was ended while its Python started.
        self.assertIn(step.wait(), (2, 143), step.output)
        self.assertIn("wanted srun --distribution=block", step.output)

    def test_trains_by_the_sbatch_example(self):
        """cluster_configs/slurm/train.sbatch, with six tasks on three nodes."""
        with open("cluster_configs/slurm/train.sbatch",
                  encoding="utf-8") as file:
            text = file.read()
        script = self.write("train.sbatch", text.replace(
            "--nodes=6", "--nodes=3").replace("-per-node=1", "-per-node=2"))
        code, output = self.run_to_end("sbatch", self.network.on(0, [
            "sbatch", "--wait", "--output=" + self.path("log"), script,
            "--bin_dir=" + os.path.dirname(os.path.dirname(harness.worker())),
            *self.training_flags(task_scenarios.TRAINING, "train")]),
            deadline_s=UP_S, env=self.env)
        with open(self.path("log"), encoding="utf-8") as file:
            self.assertEqual(code, 0, output + file.read())
        self.assertEqual(self.result("train")["cluster"],
                         {"ps": 2, "worker": 4})


if __name__ == "__main__":
    harness.main()
