"""What `muster run` must do on two hosts, whatever `ssh` is.

A test case beside this class sets `hosts` (two names), `run_flags` and `env`.
"""

import os
import re
import select
import signal
import sys

from tests.integration import harness

sys.path.insert(0, os.path.abspath("scripts"))
from hosts import certs  # noqa: E402

MUSTER = os.path.abspath("scripts/muster")
TRAINING = harness.softmax_regression(steps=40)
VERSION = 'case "$1" in --version) echo "muster 7"; exit;; esac\n'
# Ends when the file `done` appears, as a ps does after its workers.
PS = """echo "ps $* pid=$$."
while [ ! -e "%(dir)s/done" ]; do sleep 0.05; done
"""
SLEEPS = 'echo "worker pid=$$."; exec sleep 1000\n'


class Scenarios:
    """Mixed into a harness.TestCase."""

    def write_binary(self, name, text):
        os.makedirs(self.path("bin"), exist_ok=True)
        path = self.write(os.path.join("bin", name), "#!/bin/sh\n" + VERSION +
                          text % {"dir": self.dir})
        os.chmod(path, 0o755)

    def muster_run(self, *flags, hosts=None, worker_flags=(), bin_dir="bin"):
        hosts = hosts or ",".join(host + ":1" for host in self.hosts)
        return self.start("muster run", [
            sys.executable, MUSTER, "run", "-H", hosts, *self.run_flags,
            "--bin_dir=" + self.path(bin_dir),
            *flags, "--", *worker_flags], env=self.env, cwd=self.dir)

    def run_with(self, worker, *flags, ps=PS, **more):
        self.write_binary("ps_server", ps)
        self.write_binary("worker", worker)
        return self.muster_run(*flags, **more)

    def pids(self, run, count):
        """Of the tasks, once all have said theirs."""
        return [run.wait_for(r"pid=(\d+)\.").group(1) for _ in range(count)]

    def assert_gone(self, pids):
        for pid in pids:
            try:
                pidfd = os.pidfd_open(int(pid))
            except ProcessLookupError:
                continue
            readable, _, _ = select.select([pidfd], [], [], harness.DEADLINE_S)
            os.close(pidfd)
            self.assertTrue(readable, "process %s is still there" % pid)

    def children(self, parent):
        """Yields (pid, command line as a list)."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid, encoding="utf-8") as file:
                    its = file.read().rpartition(")")[2].split()[1]
                with open("/proc/%s/cmdline" % pid, encoding="utf-8") as file:
                    words = file.read().split("\0")
            except OSError:
                continue
            if int(its) == parent:
                yield int(pid), words

    def clients(self, run):
        """The ssh processes of a run, {host: pid}."""
        return {host: pid for pid, words in self.children(run.pid)
                for host in self.hosts if host in words}

    # ---- The scenarios.

    def train(self, *flags):
        """2 ps tasks and a worker a host; the run, which has ended well."""
        self.write("training.textproto", TRAINING)
        bin_dir = os.path.dirname(os.path.dirname(harness.worker()))
        run = self.muster_run(
            "--ps=2", *flags, bin_dir=bin_dir, worker_flags=[
                "--training=training.textproto", "--compute_threads=1",
                "--train_dir=" + self.path("train")])
        self.assertEqual(run.wait(), 0, run.output)
        return run

    def make_keys(self, *flags):
        keys = self.path("keys")
        for verb in (["init"], ["issue", *flags]):
            self.assertEqual(certs.main([*verb, "--certs_dir=" + keys]), 0)
        return keys

    def test_trains_on_two_hosts(self):
        run = self.train()
        for host in self.hosts:
            self.assertRegex(run.output, r"\[muster run\] %s +\d+\.\d s +muster "
                             r"\S+ .* ms\n" % re.escape(host))
        self.assertIn("[%s worker 1] " % self.hosts[1], run.output)
        self.assertTrue(run.output.endswith("[muster run] done"))
        result = self.result("train")
        self.assertEqual(result["global_step"], 40)
        self.assertEqual(result["cluster"], {"ps": 2, "worker": 2})

    def test_each_host_gets_the_keys_of_its_tasks_and_renewed_ones(self):
        keys = self.make_keys("--workers=2")
        tells = ('for flag; do case "$flag" in --certs_dir=*) '
                 'dir=${flag#*=};; esac; done\n'
                 'echo "keys" $(cd "$dir" && ls -1 | tr "\\n" " ") '
                 '"$(stat -Lc %%a "$dir"/worker-*.key)."\n'
                 'was=$(cat "$dir"/worker-*.pem)\n'
                 'while [ "$(cat "$dir"/worker-*.pem)" = "$was" ]; do sleep 0.1;'
                 ' done\n'
                 'echo "renewed."; touch "%(dir)s/done"\n')
        run = self.run_with(tells, "--certs=" + keys)
        for index in (0, 1):
            run.wait_for_line_after(
                r"worker %d\] .*keys ca.pem (ps-0.key ps-0.pem )?worker-%d.key "
                r"worker-%d.pem 600\." % (index, index, index), 0)
        self.assertEqual(certs.main(["renew", "--certs_dir=" + keys]), 0)
        self.assertEqual(run.wait(), 0, run.output)
        self.assertEqual(run.output.count("renewed."), 2)

    def test_the_first_failure_is_the_exit_code_and_ends_the_rest(self):
        run = self.run_with(
            'case "$*" in *task_index=1*)\n'
            '  while [ ! -e "%(dir)s/go" ]; do sleep 0.05; done\n'
            '  echo bad thing; exit 3;; esac\n' + SLEEPS)
        pids = self.pids(run, 2)
        self.write("go", "")
        self.assertEqual(run.wait(), 3)
        self.assertIn("[%s worker 1] failed first, with exit code 3" %
                      self.hosts[1], run.output)
        self.assertIn("its last lines: bad thing", run.output)
        self.assert_gone(pids)

    def test_interrupt_drains_the_workers(self):
        run = self.run_with(
            'trap \'echo draining; touch "%(dir)s/done"; exit 130\' INT\n'
            'echo "pid=$$."; while :; do sleep 0.05; done\n')
        pids = self.pids(run, 3)
        run.send(signal.SIGINT)
        self.assertEqual(run.wait(), 130)
        for i, host in enumerate(self.hosts):
            self.assertIn("[%s worker %d] draining" % (host, i), run.output)
        self.assertNotIn("failed first", run.output)
        self.assert_gone(pids)

    def test_killing_the_launcher_leaves_nothing_behind(self):
        run = self.run_with(SLEEPS)
        pids = self.pids(run, 3)
        run.send(signal.SIGKILL)
        run.wait()
        self.assert_gone(pids)

    def test_killing_ssh_ends_that_hosts_tasks_and_the_run(self):
        run = self.run_with(SLEEPS)
        pids = self.pids(run, 3)
        os.kill(self.clients(run)[self.hosts[1]], signal.SIGKILL)
        self.assertEqual(run.wait(), 138)
        self.assertIn("[%s worker 1] failed first" % self.hosts[1], run.output)
        self.assertIn("the connection to %s is gone" % self.hosts[1],
                      run.output)
        self.assert_gone(pids)

    def test_restarts_a_killed_worker_on_its_host(self):
        run = self.run_with(
            'case "$*" in *task_index=0*) exec sleep 1000;; esac\n'
            'echo "start $*"\n'
            'if mkdir "%(dir)s/died" 2>/dev/null; then kill -9 $$; fi\n'
            'exit 5\n', "--restart=2")
        self.assertEqual(run.wait(), 5)
        self.assertIn("[%s worker 1] ended with exit code 137 (SIGKILL); "
                      "restart 1 of 2" % self.hosts[1], run.output)
        self.assertEqual(run.output.count("] start "), 2)

    def test_nothing_starts_where_a_host_is_not_ready(self):
        run = self.run_with(SLEEPS, hosts=self.hosts[0] + "," + self.nowhere,
                            ps='echo "ps pid=$$."; sleep 1000\n')
        self.assertEqual(run.wait(), 138, run.output)
        self.assertRegex(run.output, r"%s +FAILED" % self.nowhere)
        self.assertIn("nothing was started", run.output)
        self.assertNotIn("pid=", run.output)
