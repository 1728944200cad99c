"""`muster run` over a program `ssh` that runs all hosts' commands here."""

import contextlib
import errno
import io
import json
import os
import re
import select
import signal
import sys
import time
from unittest import mock

from tests.integration import fake_ssh
from tests.integration import harness
from tests.integration import run_scenarios
from tests.integration.run_scenarios import SLEEPS

sys.path.insert(0, os.path.abspath("scripts"))
from hosts import (agent, certs, channel, host_list, preflight,  # noqa: E402
                   run)
from base.local_tasks import Printer  # noqa: E402
from base.failure import Failure  # noqa: E402


class RunTest(run_scenarios.Scenarios, harness.TestCase):
    hosts = ["127.0.0.1", "127.0.0.2"]
    nowhere = "nowhere"
    # "nowhere" is not on this machine.
    run_flags = ["--allow_insecure_network"]

    def setUp(self):
        super().setUp()
        self.env = fake_ssh.environment(self)

    def test_a_host_without_the_programs_is_named(self):
        run_ = self.muster_run()
        self.assertEqual(run_.wait(), 2)
        self.assertIn("127.0.0.2: no program at '%s/ps_server'" %
                      self.path("bin"), run_.output)

    def test_a_port_that_is_taken_is_named(self):
        with harness.socket.socket() as taken:
            taken.bind(("127.0.0.2", 0))
            taken.listen()
            port = taken.getsockname()[1]
            run_ = self.run_with("exit 1", "--port_base=%d" % port)
            self.assertEqual(run_.wait(), 2)
        self.assertIn("127.0.0.2: cannot listen on 127.0.0.2 port %d: Address "
                      "already in use" % port, run_.output)

    def test_foreign_hosts_are_refused_with_4_before_ssh(self):
        self.run_flags = []
        run_ = self.run_with("exit 1", hosts="gpu1:2,127.0.0.1")
        self.assertEqual(run_.wait(), 4)
        self.assertIn("gpu1: not on this machine", run_.output)
        self.assertIn("--allow_insecure_network", run_.output)

    def test_keys_that_a_peer_would_refuse_start_nothing(self):
        keys = self.path("keys")
        self.assertEqual(certs.main(
            ["init", "--certs_dir=" + keys]), 0)
        run_ = self.run_with("exit 1", "--certs=" + keys)
        self.assertEqual(run_.wait(), 4, run_.output)
        self.assertIn("ps-0.pem is missing", run_.output)
        self.assertIn("muster certs issue", run_.output)

    def test_a_launcher_that_says_nothing_loses_its_tasks(self):
        # As one does whose cable was pulled: no input ends.
        self.write_binary("ps_server", SLEEPS.replace("worker", "ps"))
        self.write_binary("worker", "trap 'echo saved.; exit 143' USR1\n"
                          'echo "worker pid=$$."\n'
                          "while :; do sleep 0.05; done\n")
        code = ("import sys; sys.path.insert(0, 'scripts'); "
                "from hosts import agent; agent.SILENCE_S = 1.0; "
                "agent.DRAIN_S = 3.0; "
                "sys.exit(agent.main([]))")
        command = [sys.executable, "-c", code]
        there = channel.Channel(host_list.Host("a"), command)
        self.addCleanup(there.close)
        there.tell("prepare", files={}, folder="/")
        for number, job in enumerate(("ps", "worker")):
            there.tell("start", number=number, job=job, index=0, nth=0,
                       arguments=[], bin_dir=self.path("bin"))
        lines = []
        while there.alive:
            select.select([there.process.stdout], [], [], 0.2)
            lines += there.read()
            if sum(one["is"] == "output" for one in lines) < 2:
                there.tell("alive")
        self.assertEqual(there.process.wait(), 0)
        said = " ".join(line["line"] for line in lines
                        if line["is"] == "output")
        # The worker has saved; the ps had no job that ends.
        self.assertIn("saved.", said)
        self.assertIn({"is": "exit", "number": 1, "code": 143}, lines)
        self.assertIn("nothing heard", [
            line["text"] for line in lines if line["is"] == "problem"][0])
        self.assert_gone(re.findall(r"pid=(\d+)\.", said))


class BeatTest(harness.TestCase):
    """An agent hears a beat, SIGALRM, SILENT_BEATS times in SILENCE_S. When it
    was frozen it is one, however long that was."""

    def beat(self, one, times, there_is_input=False):
        with mock.patch.object(agent.select, "select", return_value=(
                [0] if there_is_input else [], [], [])):
            for _ in range(times):
                one.on_beat()

    def test_silence_is_so_many_beats_without_a_word(self):
        one = agent.Agent()
        self.beat(one, agent.SILENT_BEATS)
        with self.assertRaises(agent.Silence):
            self.beat(one, 1)

    def test_what_waits_in_the_pipe_was_said_in_time(self):
        one = agent.Agent()
        self.beat(one, agent.SILENT_BEATS)
        self.beat(one, 1, there_is_input=True)


class InterruptTest(harness.TestCase):
    """Ctrl-C in the moments in which a program has no hands for it yet."""

    def interrupted(self, module, command):
        """Runs it with a `module` that is Ctrl-C when it is imported."""
        self.write(module + ".py", "import os, signal\n"
                   "os.kill(os.getpid(), signal.SIGINT)\n")
        return self.run_to_end("program", command, env=dict(
            os.environ, PYTHONPATH=self.dir))

    def test_while_python_starts_says_nothing(self):
        # `site` imports it, before the program's first line.
        code, output = self.interrupted(
            "sitecustomize", [run_scenarios.MUSTER, "run", "-H", "localhost:1"])
        self.assertEqual((code, output), (128 + signal.SIGINT, ""))

    def test_while_it_imports_says_nothing(self):
        for program in (run_scenarios.MUSTER + " certs init",
                        os.path.abspath("scripts/launcher.py")):
            code, output = self.interrupted(
                "argparse", [sys.executable, *program.split()])
            self.assertEqual((code, output), (128 + signal.SIGINT, ""), program)


class FolderTest(harness.TestCase):

    def agent(self):
        """One that has prepared; the folder of its keys."""
        there = channel.Channel(host_list.Host("a"), [
            "env", "TMPDIR=" + self.dir, sys.executable, run_scenarios.MUSTER,
            "agent"])
        self.addCleanup(there.close)
        before = set(os.listdir(self.dir))
        there.tell("prepare", files={}, folder="/", certs={"ps-0.key": "k"})
        os.set_blocking(there.process.stdout.fileno(), True)
        while not any(message["is"] == "prepared" for message in there.read()):
            self.assertTrue(there.alive, there.tail)
        made, = set(os.listdir(self.dir)) - before
        return there, made

    def test_keys_of_an_agent_that_was_killed_go_with_the_next(self):
        killed, left = self.agent()
        living, stays = self.agent()
        killed.process.kill()
        killed.process.wait()
        foreign = "muster-run-of-another-kind"
        self.write(foreign, "no folder")
        self.assertTrue(os.path.exists(self.path(left + "/certs/ps-0.key")))
        _, new = self.agent()
        self.assertEqual(set(os.listdir(self.dir)), {stays, new, foreign})
        self.assertTrue(os.path.exists(self.path(stays + "/certs/ps-0.key")))
        living.close()
        self.assertEqual(set(os.listdir(self.dir)), {new, foreign})


    def no_locks(self, *_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    def test_without_locks_it_is_there_and_others_are_let_be(self):
        left = self.path(agent.PREFIX + "left")
        os.mkdir(left)
        with mock.patch.object(agent.fcntl, "flock", self.no_locks), \
                mock.patch.object(agent.tempfile, "tempdir", self.dir):
            agent.remove_left_folders()
            folder, lock, note = agent.own_folder()
        self.assertTrue(os.path.isdir(left))
        self.assertTrue(os.path.isdir(folder))
        self.assertIsNone(lock)
        self.assertIn("has no locks (Function not implemented)", note)

    def test_a_folder_that_others_take_again_and_again_is_an_error(self):
        with mock.patch.object(agent, "locked", return_value=None), \
                mock.patch.object(agent.tempfile, "tempdir", self.dir), \
                self.assertRaisesRegex(Failure, "taken by another agent"):
            agent.own_folder()
        self.assertEqual(os.listdir(self.dir), [])

    def test_an_agent_started_by_hand_says_who_starts_it(self):
        for said in ("garbage", "{}", '{"do": "x"}', "[]"):
            code, output = self.run_to_end("agent", [
                "sh", "-c", "echo '%s' | %s %s agent" % (
                    said, sys.executable, run_scenarios.MUSTER)])
            self.assertEqual(code, 2, output)
            self.assertIn("muster run starts it", output)
            self.assertNotIn("Traceback", output)


class PreflightTest(harness.TestCase):

    def row_of(self, name, version, clock):
        """The agent of a host, by a shell that says its lines."""
        there = channel.Channel(host_list.Host(name), ["sh", "-c", """
            echo '{"is": "hello"}'; read x
            echo '{"is": "looked", "version": "%s", "time": %f, "ports": [7]}'
            read x""" % (version, time.time() + clock)])
        self.addCleanup(there.close)
        return there

    def test_versions_and_clocks_are_compared(self):
        flight = preflight.Preflight([
            self.row_of("a", "muster 1", 0), self.row_of("b", "muster 2", 90)])
        options = run.parse(["-H", "a,b"])
        flight.look(options, {row.channel: 1 for row in flight.rows}, [])
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            flight.print_table(Printer("t"))
        self.assertRegex(output.getvalue(),
                         r"a +0\.\d s +muster 1 +7 +[-+]0\.\d s +-\n")
        self.assertRegex(output.getvalue(),
                         r"b .* FAILED +7 +\+(90|89)\.\d s !")
        self.assertIn("[t] b: 'muster 2', but a has 'muster 1'",
                      output.getvalue())
        self.assertEqual(flight.exit_code(), 2)


def hosts(text, ps=None):
    found = host_list.of_flag(text)
    host_list.deal_ps(found, ps)
    return [(host.name, host.workers, host.ps) for host in found]


class HostListTest(harness.TestCase):

    def test_names_and_numbers(self):
        self.assertEqual(hosts("a:4,b:2"), [("a", 4, 1), ("b", 2, 0)])
        self.assertEqual(hosts("u@n[1-2,07]:3,[::1]:2", ps=5), [
            ("u@n1", 3, 2), ("u@n2", 3, 1), ("u@n07", 3, 1), ("[::1]", 2, 1)])
        self.assertEqual(host_list.of_flag("u@[::1]:2")[0].address, "::1")

    def test_a_file_may_place_the_ps_tasks(self):
        path = self.write("hosts", "# all\ngpu1 slots=4 ps=2 # new\n\n"
                          "gpu[2-3] slots=2\n")
        found = host_list.of_file(path)
        host_list.deal_ps(found, None)
        self.assertEqual([(one.name, one.workers, one.ps) for one in found],
                         [("gpu1", 4, 2), ("gpu2", 2, 0), ("gpu3", 2, 0)])
        with self.assertRaisesRegex(Failure, "--ps=1 contradicts"):
            host_list.deal_ps(host_list.of_file(path), 1)

    def test_slurms_names(self):
        self.assertEqual(host_list.expand("n[1-3,07],m,a[0-1]b[8-9]"), [
            "n1", "n2", "n3", "n07", "m", "a0b8", "a0b9", "a1b8", "a1b9"])

    def test_mistakes_are_named(self):
        for text, words in (
                ("a:x", "host:workers"), ("a:4097", "from 0 to 4096"),
                ("a:0", "no host has a worker"), ("", "wanted names"),
                ("a,a:2", "'a' is there twice"), ("u@a,v@a", "two hosts with"),
                ("-oProxyCommand=x", "wanted [user@]host"),
                ("u@-x", "host name or an IP"), ("a b", "wanted names"),
                ("::1", "stands in brackets"), ("n[3-1]", "wanted a range"),
                ("n[0-9999]", "wanted a range"),
                ("1.2.3", "host name or an IP"),
                ("localhost,b", "'localhost' beside others")):
            with self.assertRaises(Failure, msg=text) as caught:
                host_list.of_flag(text)
            self.assertIn(words, str(caught.exception))
        for line, words in (("a slot=3", "did you mean 'slots'?"),
                            ("a slots=x", "line 1: slots: wanted a number"),
                            ("a address=?", "line 1: wanted a host name")):
            with self.assertRaises(Failure, msg=line) as caught:
                host_list.of_file(self.write("hosts", line))
            self.assertIn(words, str(caught.exception))


class FlagsTest(harness.TestCase):

    def refused(self, code, words, *argv):
        options = run.parse(list(argv))
        with self.assertRaises(Failure) as caught:
            run.check(options)
            run.hosts_of(options)
        self.assertIn(words, str(caught.exception))
        self.assertEqual(caught.exception.exit_code, code)

    def test_mistakes_are_named(self):
        self.refused(4, "--certs=DIR gives the tasks keys", "-H", "a")
        self.refused(2, "--certs_dir: muster says it", "-H", "a", "--certs=c",
                     "--", "--certs_dir=c")
        self.refused(2, "--cluster: muster says it", "-H", "a", "--",
                     "--cluster=x")
        self.refused(2, "give it before the --", "-H", "a", "--",
                     "--allow_insecure_network")
        self.refused(2, "--bind: muster says it", "-H", "a",
                     "--ps_flag=--bind=x:1")
        self.refused(2, "--port_base=65001", "-H", "a", "--port_base=65001")
        self.refused(2, "/nowhere", "--hostfile=/nowhere")
        for argv in ([], ["-H", "a", "--ps=-1"], ["-H", "a", "--hostfile=b"],
                     ["-H", "a", "--sh_port=1"], ["-H", "a", "--training=x"]):
            with self.assertRaises(SystemExit) as caught:
                run.parse(argv)
            self.assertEqual(caught.exception.code, 2)

    def test_flags_of_workers_without_the_two_hyphens_are_named(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            with self.assertRaises(SystemExit) as caught:
                run.main(["-H", "a", "--training=x", "--train_dir=y"])
            self.assertEqual(caught.exception.code, 2)
            self.assertEqual(run.main(["-H", "localhost:1"]), 2)
        self.assertIn("unknown here: --training=x --train_dir=y; flags of the "
                      "workers stand after a --", said.getvalue())
        self.assertIn("wanted -- and the flags of the workers at the end",
                      said.getvalue())

    def test_ssh_gets_its_options_and_asks_nothing(self):
        options = run.parse(["-H", "u@[::1]", "--ssh_port=23", "--ssh_option",
                             "ProxyJump=x", "--muster_dir=/opt/a b"])
        line = channel.command_of(host_list.of_flag("u@[::1]")[0], options)
        self.assertEqual(line[-2:], [
            "u@::1", "exec python3 '/opt/a b/scripts/muster' agent"])
        for words in ("BatchMode=yes", "ProxyJump=x", "23"):
            self.assertIn(words, line)

    def test_the_training_file_goes_along(self):
        path = self.write("t", "text")
        for flags, there in (
                (["--training=" + path, "--x"],
                 ["--training={files}/training.textproto", "--x"]),
                (["--training", path],
                 ["--training", "{files}/training.textproto"])):
            self.assertEqual(run.take_training(flags),
                             (there, {"training.textproto": "text"}))
        self.assertEqual(run.take_training(["--training=/on/the/hosts"]),
                         (["--training=/on/the/hosts"], {}))

    def planned(self, text, *flags):
        options = run.parse(["-H", text, *flags])
        rows = []
        for host in run.hosts_of(options):
            row = type("Row", (), {})()
            row.channel = type("Channel", (), {"host": host})()
            row.ports = [9000 + i for i in range(host.ps + host.workers)]
            rows.append(row)
        return run.plans(rows, options, ["--x"])

    def test_each_task_has_its_index_host_and_port(self):
        plans, cluster = self.planned("127.0.0.1:2,[::1]:1", "--ps=2",
                                      "--ps_flag=--y")
        self.assertEqual(cluster, {
            "ps": ["127.0.0.1:9000", "[::1]:9000"],
            "worker": ["127.0.0.1:9001", "127.0.0.1:9002", "[::1]:9001"]})
        self.assertEqual(
            [(plan["number"], plan["job"], plan["index"], plan["nth"])
             for _, plan in plans],
            [(0, "ps", 0, 0), (1, "ps", 1, 0), (2, "worker", 0, 0),
             (3, "worker", 1, 1), (4, "worker", 2, 0)])
        self.assertEqual(plans[1][1]["arguments"], [
            "--cluster={files}/cluster.json", "--task_index=1", "--y"])
        self.assertEqual(plans[4][1]["arguments"][1:],
                         ["--task_index=2", "--x"])

    def test_without_ps_tasks_the_workers_hold_the_parameters(self):
        plans, cluster = self.planned("127.0.0.1:2", "--ps=0")
        self.assertEqual(json.dumps(cluster),
                         '{"worker": ["127.0.0.1:9000", "127.0.0.1:9001"]}')
        self.assertIn("--set=replication=all_reduce",
                      plans[0][1]["arguments"])


if __name__ == "__main__":
    harness.main()
