"""`muster run --min_workers` and `muster join`, over a program `ssh` that runs
all hosts' commands here, and fakes of ps_server and worker."""

import json
import os
import socket
import sys

from tests.integration import fake_ssh
from tests.integration import harness
from tests.integration.run_scenarios import MUSTER, Scenarios

sys.path.insert(0, os.path.abspath("scripts"))
from hosts import join, run  # noqa: E402
from base.failure import Failure  # noqa: E402

# Worker 0 ends well, and with it the ps, when the file `go` appears.
CHIEF = """case "$*" in *task_index=0*)
  while [ ! -e "%(dir)s/go" ]; do sleep 0.05; done
  touch "%(dir)s/done"; exit 0;; esac
"""


class ElasticRunTest(harness.TestCase):
    hosts = ["127.0.0.1", "127.0.0.2"]
    run_flags = ["--allow_insecure_network"]
    write_binary = Scenarios.write_binary
    muster_run = Scenarios.muster_run
    run_with = Scenarios.run_with

    def setUp(self):
        super().setUp()
        self.env = fake_ssh.environment(self)

    def test_a_worker_that_fails_leaves_the_rest(self):
        one = self.run_with(CHIEF + "exit 143\n", "--min_workers=1")
        one.wait_for(r"worker 1\] ended with exit code 143 \(SIGTERM\); the "
                     "training goes on, workers of this launcher: 1")
        self.write("go", "")
        self.assertEqual(one.wait(), 0, one.output)

    def test_fewer_workers_than_wanted_are_a_failure(self):
        one = self.run_with(CHIEF + "exit 3\n", "--min_workers=2")
        self.assertEqual(one.wait(), 3)
        self.assertIn("worker 1] failed first, with exit code 3", one.output)

    def test_without_its_chief_it_has_failed(self):
        one = self.run_with('case "$*" in *task_index=0*) exit 3;; esac\n'
                            "exec sleep 1000\n", "--min_workers=1")
        self.assertEqual(one.wait(), 3)

    def test_workers_come_to_a_cluster_that_lists_none(self):
        self.write("t.textproto", "replication { sync {} }  # async {}")
        one = self.run_with(
            'echo "got $*."\n' + CHIEF + "exec sleep 1000\n",
            "--min_workers=2", "--cluster=" + self.path("c.json"),
            worker_flags=["--training=" + self.path("t.textproto"), "--x"])
        got = dict(one.wait_for(r"worker (\d)\] got (.*)\.$").groups()
                   for _ in range(2))
        one.kill()
        self.assertIn("--task_index=0 ", got["0"])
        self.assertIn("--task_index=any ", got["1"])
        self.assertIn("--set=replication.sync.min_replicas=2", got["1"])
        known = self.read_json("c.json")
        self.assertEqual(known["cluster"]["worker"], "any")
        self.assertEqual(len(known["cluster"]["ps"]), 1)
        self.assertEqual(known["run"], {
            "worker_flags": ["--training={files}/training.textproto", "--x",
                             "--set=replication.sync.min_replicas=2"],
            "files": {"training.textproto":
                      "replication { sync {} }  # async {}"}})


class JoinTest(harness.TestCase):
    write_binary = Scenarios.write_binary

    def setUp(self):
        super().setUp()
        self.env = fake_ssh.environment(self)
        self.write_binary("ps_server", "exit 1\n")
        self.ps = socket.socket()
        self.ps.bind(("127.0.0.1", 0))
        self.ps.listen()
        self.addCleanup(self.ps.close)

    def write_known(self, **cluster):
        cluster = {"ps": ["127.0.0.1:%d" % self.ps.getsockname()[1]],
                   "worker": "any", **cluster}
        return self.write("c.json", json.dumps({"cluster": cluster, "run": {
            "worker_flags": ["--training={files}/training.textproto", "--x"],
            "files": {"training.textproto": "the training\n"}}}) + "\n")

    def join(self, worker, *flags):
        self.write_binary("worker", worker)
        return self.start("muster join", [
            sys.executable, MUSTER, "join", "--cluster=" + self.write_known(),
            "-H", "127.0.0.1:1,127.0.0.2:2", "--allow_insecure_network",
            "--bin_dir=" + self.path("bin"), *flags], env=self.env,
            cwd=self.dir)

    def test_starts_workers_with_the_training_of_the_run(self):
        one = self.join('echo "got $*."\n'
                        'for flag; do case "$flag" in --training=*|--cluster=*)'
                        ' cat "${flag#*=}";; esac; done\n', "--", "--y")
        self.assertEqual(one.wait(), 0, one.output)
        self.assertEqual(one.output.count("] the training\n"), 3)
        self.assertEqual(one.output.count('"worker": "any"'), 3)
        self.assertRegex(one.output, r"got --cluster=\S+ "
                         r"--allow_insecure_network --task_index=any "
                         r"--training=\S+ --x --y\.")

    def test_one_that_fails_leaves_the_others(self):
        one = self.join('mkdir "%(dir)s/died" 2>/dev/null && exit 1\n'
                        'while [ ! -e "%(dir)s/go" ]; do sleep 0.05; done\n')
        one.wait_for("goes on, workers of this launcher: 2")
        self.write("go", "")
        self.assertEqual(one.wait(), 0, one.output)

    def test_ps_tasks_that_are_not_there_are_named(self):
        port = self.ps.getsockname()[1]
        self.ps.close()
        self.ps = socket.socket()
        self.ps.bind(("127.0.0.1", port))
        one = self.join("exit 1\n")
        self.assertEqual(one.wait(), 2)
        self.assertIn("no way to 127.0.0.1 port %d: Connection refused" % port,
                      one.output)
        self.assertIn("nothing was started", one.output)

    def test_a_cluster_that_lists_its_workers_takes_no_other(self):
        with self.assertRaises(Failure) as caught:
            join.read(self.write_known(worker=["127.0.0.1:9"]))
        self.assertIn("lists its workers takes no other", str(caught.exception))
        path = self.write("c.textproto", 'job { name: "ps" tasks { key: 0 '
                          'value: "h:1" } } job { name: "worker" any_task: '
                          'true }')
        self.assertEqual(join.read(path)[1:], ([["h", 1]], [], {}))

    def test_mistakes_are_named(self):
        for flags in (["--certs=c"], ["--first_index=3"]):
            with self.assertRaises(Failure) as caught:
                join.check(join.parse(["--cluster=c", "-H", "a", *flags]))
            self.assertIn("belong together", str(caught.exception))
        for flags, words in ((["-H", "a:2", "--min_workers=3"], "have 2 worke"),
                             (["-H", "a", "--min_workers=1", "--ps=0"],
                              "wants ps tasks"),
                             (["-H", "a", "--cluster=c"], "--min_workers=M")):
            options = run.parse([*flags, "--allow_insecure_network"])
            with self.assertRaises(Failure) as caught:
                run.check(options)
                run.hosts_of(options)
            self.assertIn(words, str(caught.exception))

    def test_only_sync_waits_for_the_fewest(self):
        options = run.parse(["-H", "a:2", "--min_workers=2"])
        for text, flags, waits in (
                ("replication { sync {} }", [], True),
                ("replication: {\n sync {} }", ["--set=replication=async"], False),
                ("", ["--set=replication.sync.replicas_to_aggregate=2"], True),
                ("replication { sync {} }",
                 ["--set=replication.sync.min_replicas=1"], False),
                ("replication { async {} } # replication { sync {} }", [], False),
                ("", ["--set", "replication=sync"], True)):
            found = run.waits_for(options, flags, {"training.textproto": text})
            self.assertEqual(bool(found), waits, (text, flags))


if __name__ == "__main__":
    harness.main()
