"""`muster run` over real sshd: on two loopback addresses, and on two hosts that
are network namespaces. Needs root, openssh-server and iproute2.
"""

import getpass
import os
import re
import signal
import subprocess
import unittest

from tests.integration import harness
from tests.integration import network_hosts
from tests.integration import run_scenarios

SSHD = "/usr/sbin/sshd"
CONFIG = """
Port {port}
{addresses}
HostKey {dir}/host
PidFile none
AuthorizedKeysFile {dir}/user.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin yes
"""


@unittest.skipUnless(os.path.exists(SSHD), "openssh-server is not installed")
class SshTest(run_scenarios.Scenarios, harness.TestCase):
    hosts = ["127.0.0.1", "127.0.0.2"]
    # Nobody listens there.
    nowhere = "127.0.0.3"
    # A run without keys wants it.
    insecure = []

    def setUp(self):
        super().setUp()
        self.env = dict(os.environ)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                            self.path(name)], check=True)
        os.makedirs("/run/sshd", exist_ok=True)
        port = harness.free_ports(1)[0]
        self.start_sshd(self.hosts, port, [])
        self.run_flags = ["--ssh_port=%d" % port] + [
            "--ssh_option=" + option for option in (
                "IdentityFile=" + self.path("user"), "User=" + getpass.getuser(),
                "UserKnownHostsFile=" + self.path("known"),
                "StrictHostKeyChecking=accept-new")]

    def start_sshd(self, addresses, port, under):
        config = self.write("sshd_config", CONFIG.format(
            dir=self.dir, port=port, addresses="\n".join(
                "ListenAddress " + address for address in addresses)))
        daemon = self.start("sshd", [*under, SSHD, "-D", "-e", "-f", config])
        for _ in addresses:
            daemon.wait_for("Server listening on")
        self.addCleanup(self.end_sessions, daemon)

    def end_sessions(self, daemon):
        """After a pulled cable they would live on."""
        for pid, _ in self.children(daemon.pid):
            os.kill(pid, signal.SIGKILL)

    def test_trains_with_keys(self):
        self.insecure = []
        run = self.train("--certs=" + self.make_keys("--ps=2", "--workers=2"))
        for job in ("ps", "worker"):
            for i, host in enumerate(self.hosts):
                self.assertRegex(
                    run.output, r"\[%s %s %d\] .*TLS: /job:%s/task:%d of "
                    "cluster 'muster'" % (re.escape(host), job, i, job, i))
        self.assertEqual(self.result("train")["global_step"], 40)

    def test_a_key_that_is_not_taken_is_said(self):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                        self.path("stranger")], check=True)
        self.run_flags = [flag.replace(self.path("user"), self.path("stranger"))
                          for flag in self.run_flags]
        run = self.run_with("exit 1", "--ssh_option=IdentitiesOnly=yes")
        self.assertEqual(run.wait(), 2)
        self.assertIn("Permission denied", run.output)
        self.assertIn("nothing was started", run.output)


@unittest.skipUnless(os.path.exists(SSHD), "openssh-server is not installed")
@unittest.skipIf(network_hosts.REASON is not None, network_hosts.REASON)
class NamespaceTest(SshTest):
    """The launcher is on a third host; no socket leads past the bridge."""
    insecure = ["--allow_insecure_network"]

    def setUp(self):
        self.network = None
        super().setUp()

    def start_sshd(self, addresses, port, under):
        self.network = network_hosts.of_test(self, 4)
        self.hosts = self.network.addresses[:2]
        # A host without sshd.
        self.nowhere = self.network.addresses[3]
        for i, host in enumerate(self.hosts):
            super().start_sshd([host], port, self.network.on(i, []))

    def muster_run(self, *flags, **more):
        return super().muster_run(*self.insecure, *flags, **more)

    def start(self, name, command, env=None, cwd=None):
        if name == "muster run":
            command = self.network.on(2, command)
        return super().start(name, command, env, cwd)

    def test_a_cable_that_is_pulled_ends_the_hosts_tasks(self):
        run = self.run_with(run_scenarios.SLEEPS)
        pids = self.pids(run, 3)
        network_hosts.ip("-n", self.network.names[1], "link", "set", "eth0",
                      "down")
        # ssh gives up after 45 s, the agent after 60.
        self.assertEqual(run.wait(4 * harness.DEADLINE_S), 138)
        self.assertIn("the connection to %s is gone" % self.hosts[1],
                      run.output)
        self.assert_gone(pids)


if __name__ == "__main__":
    harness.main()
