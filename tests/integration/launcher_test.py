"""scripts/launcher.py with small shell scripts in place of the binaries."""

import json
import os
import re
import select
import signal
import sys
import time
import unittest

from tests.integration import harness

sys.path.insert(0, os.path.abspath("scripts"))
from base import stop_signals  # noqa: E402
from base.local_tasks import AwakeClock  # noqa: E402

LAUNCHER = os.path.abspath("scripts/launcher.py")

# Ends when the file `done` appears beside it, as a ps does after its workers.
PS = """#!/bin/sh
echo "ps $* pid=$$."
while [ ! -e "$DIR/done" ]; do sleep 0.05; done
"""


class RuleTest(harness.TestCase):

    def test_only_a_second_interrupt_or_term_kills(self):
        rule = stop_signals.Rule()
        found = [rule.on_signal(signum, lambda: at) for signum, at in (
            (signal.SIGTSTP, 0), (signal.SIGXCPU, 1), (signal.SIGXCPU, 2),
            (signal.SIGTERM, 3), (signal.SIGHUP, 4), (signal.SIGINT, 5))]
        self.assertEqual(found, [None, rule.STOP, None, None, None, rule.KILL])

    def test_a_term_twice_within_a_second_is_one(self):
        rule = stop_signals.Rule()
        found = [rule.on_signal(signal.SIGTERM, lambda: at)
                 for at in (5.0, 5.0, 5.9, 6.0)]
        self.assertEqual(found, [rule.STOP, None, None, rule.KILL])


class AwakeClockTest(harness.TestCase):

    def test_frozen_seconds_are_not_counted(self):
        times = iter((100, 103, 173, 174, 174))
        clock = AwakeClock(lambda: next(times))
        self.assertEqual(clock.now(), 3)
        self.assertEqual(clock.now(), 13)
        self.assertEqual(clock.now(), 14)
        self.assertEqual(clock.until(100), AwakeClock.BEAT_S)


class LauncherTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        self.env = dict(os.environ, DIR=self.dir)
        self.train_dir = self.path("train")

    def write_binary(self, name, text):
        os.makedirs(self.path(name), exist_ok=True)
        path = self.write(os.path.join(name, name), text)
        os.chmod(path, 0o755)

    def launch(self, worker, *flags, ps=PS):
        self.write_binary("ps_server", ps)
        self.write_binary("worker", "#!/bin/sh\n" + worker)
        return self.start("launcher", [
            sys.executable, LAUNCHER, "--no_build", "--bin_dir=" + self.dir,
            "--train_dir=" + self.train_dir, *flags], env=self.env)

    def assert_gone(self, pid):
        """Waits until no process has this id (it may be a zombie of init's)."""
        try:
            pidfd = os.pidfd_open(int(pid))
        except ProcessLookupError:
            return
        readable, _, _ = select.select([pidfd], [], [], harness.DEADLINE_S)
        os.close(pidfd)
        self.assertTrue(readable, "process %s is still there" % pid)

    def test_gives_every_task_its_flags(self):
        launcher = self.launch(
            'echo "worker $*"; touch "$DIR/done"', "--ps=2", "--workers=1",
            "--steps=7", "--seed=3", "--set=input.batch_size=4",
            "--compute_threads=2", "--progress_every=0.5",
            "--profile_steps=5")
        self.assertEqual(launcher.wait(), 0)
        cluster_file = os.path.join(self.train_dir, "cluster.json")
        for line in (
                "[ps 1] ps --cluster=%s --task_index=1" % cluster_file,
                "[worker 0] worker --cluster=%s --task_index=0 " % cluster_file,
                "--compute_threads=2 --set=stop.steps=7 --set=stop.epochs=0 "
                "--set=seed=3 --set=input.batch_size=4 --progress_every=0.5 "
                "--profile_steps=5"):
            self.assertIn(line, launcher.output)
        with open(cluster_file, encoding="utf-8") as file:
            cluster = json.load(file)["cluster"]
        self.assertEqual(len(cluster["ps"]), 2)
        self.assertEqual(len(set(cluster["ps"] + cluster["worker"])), 3)

    def test_tf_config_is_not_for_tasks_whose_cluster_is_said(self):
        self.env["TF_CONFIG"] = '{"cluster": {"worker": ["h:1"]}}'
        launcher = self.launch('echo "tf=$TF_CONFIG."; touch "$DIR/done"',
                               "--workers=1")
        self.assertEqual(launcher.wait(), 0)
        self.assertIn("tf=.", launcher.output)

    def test_without_ps_tasks_the_workers_hold_the_parameters(self):
        launcher = self.launch('echo "worker $*"', "--ps=0", "--workers=2",
                               "--steps=7")
        self.assertEqual(launcher.wait(), 0)
        self.assertIn("--set=replication=all_reduce --set=stop.steps=7",
                      launcher.output)
        self.assertNotIn("[ps ", launcher.output)
        with open(os.path.join(self.train_dir, "cluster.json"),
                  encoding="utf-8") as file:
            cluster = json.load(file)["cluster"]
        self.assertEqual(list(cluster), ["worker"])
        self.assertEqual(len(cluster["worker"]), 2)

    def test_without_ps_tasks_one_good_end_is_the_jobs(self):
        launcher = self.launch(
            'case "$*" in *task_index=0*) echo $$ > "$DIR/pid"; exit 0;; esac\n'
            'while [ ! -s "$DIR/pid" ]; do sleep 0.05; done\n'
            'while kill -0 "$(cat "$DIR/pid")"; do sleep 0.05; done\n'
            'kill -9 $$', "--ps=0", "--restart=3")
        # Who is killed now has nobody to come back to.
        self.assertEqual(launcher.wait(), 128 + signal.SIGKILL)
        self.assertNotIn("restart 1 of 3", launcher.output)

    def test_prefixes_lines_and_keeps_the_last_one_without_newline(self):
        launcher = self.launch(
            'printf "one\\ntwo"; touch "$DIR/done"', "--workers=1")
        self.assertEqual(launcher.wait(), 0)
        self.assertEqual([line for line in launcher.output.split("\n")
                          if line.startswith("[worker 0]")],
                         ["[worker 0] one", "[worker 0] two"])
        self.assertNotIn("\x1b", launcher.output)

    def test_prints_accuracy_and_newest_checkpoint(self):
        launcher = self.launch(
            'mkdir -p "$DIR/train/ckpt-000000000000" '
            '"$DIR/train/ckpt-000000000010" "$DIR/train/ckpt-000000000020.tmp";'
            'echo \'{"test_accuracy": 0.9, "global_step": 10, "wall_s": 1}\' '
            '> "$DIR/train/result.json"; touch "$DIR/done"', "--workers=1")
        self.assertEqual(launcher.wait(), 0)
        self.assertIn("test accuracy 0.9000", launcher.output)
        self.assertRegex(launcher.output, r"checkpoint  \S+/ckpt-000000000010\n?")
        self.assertIn(os.path.join(self.train_dir, "result.json"),
                      launcher.output)

    def test_prints_how_often_each_example_was_trained_on(self):
        launcher = self.launch(
            'mkdir -p "$DIR/train"; echo \'{"global_step": 10, "wall_s": 1, '
            '"coverage": "each of 400 examples was trained on once"}\' '
            '> "$DIR/train/result.json"; touch "$DIR/done"', "--workers=1")
        self.assertEqual(launcher.wait(), 0)
        self.assertIn("[train_local] each of 400 examples was trained on once\n",
                      launcher.output)

    def test_prints_the_loss_where_there_is_no_accuracy(self):
        for figures, said in (
                ('"test_loss": 0.25', "test loss 0.2500 after 10 global steps"),
                ('"test_accuracy": null, "test_loss": null',
                 "no finite figure after 10 global steps"),
                ('"validation_loss": 0.5',
                 "validation loss 0.5000 after 10 global steps"),
                ('"final_loss": 1',
                 "not evaluated (no test half) after 10 global steps")):
            launcher = self.launch(
                'echo \'{%s, "global_step": 10, "wall_s": 1}\' '
                '> "$DIR/train/result.json"; touch "$DIR/done"' % figures,
                "--workers=1")
            self.assertEqual(launcher.wait(), 0, launcher.output)
            self.assertIn(said, launcher.output)

    def test_reports_the_first_failure_and_ends_the_others(self):
        launcher = self.launch(
            'case "$*" in *task_index=1*) echo bad thing; exit 3;; esac\n'
            'exec sleep 1000')
        ps = launcher.wait_for(r"\[ps 0\] .*pid=(\d+)\.").group(1)
        self.assertEqual(launcher.wait(), 3)
        self.assertIn("[worker 1] failed first, with exit code 3",
                      launcher.output)
        self.assertIn("its last lines: bad thing", launcher.output)
        self.assert_gone(ps)

    def test_a_killed_task_is_the_root_cause(self):
        launcher = self.launch('echo "pid=$$."; exec sleep 1000',
                               "--workers=1")
        worker = launcher.wait_for(r"worker 0\] pid=(\d+)").group(1)
        os.kill(int(worker), signal.SIGKILL)
        self.assertEqual(launcher.wait(), 128 + signal.SIGKILL)
        self.assertIn("[worker 0] failed first, with exit code 137 (SIGKILL)",
                      launcher.output)

    def test_interrupt_drains_the_workers(self):
        launcher = self.launch(
            'trap \'echo draining; touch "$DIR/done"; exit 130\' INT\n'
            'echo ready; while :; do sleep 0.05; done', "--workers=1")
        launcher.wait_for("worker 0. ready")
        launcher.send(signal.SIGINT)
        self.assertEqual(launcher.wait(), 128 + signal.SIGINT)
        self.assertIn("[worker 0] draining", launcher.output)
        self.assertNotIn("failed first", launcher.output)

    SAVES = ('trap \'echo draining; touch "$DIR/done"; exit 143\' USR1\n'
             'echo ready; while :; do sleep 0.05; done')

    def test_the_notices_of_batch_systems_drain_the_workers(self):
        for signum in (signal.SIGTERM, *stop_signals.NOTICES):
            with self.subTest(signum.name):
                launcher = self.launch(self.SAVES, "--workers=1")
                launcher.wait_for("worker 0. ready")
                launcher.send(signum)
                self.assertEqual(launcher.wait(), 143, launcher.output)
                self.assertIn(signum.name + ": the workers finish",
                              launcher.output)
                self.assertIn("[worker 0] draining", launcher.output)
                os.remove(self.path("done"))

    def test_under_nohup_a_hang_up_is_ignored(self):
        self.addCleanup(signal.signal, signal.SIGHUP,
                        signal.signal(signal.SIGHUP, signal.SIG_IGN))
        launcher = self.launch(self.SAVES, "--workers=1")
        launcher.wait_for("worker 0. ready")
        launcher.send(signal.SIGHUP)
        launcher.send(signal.SIGTERM)
        self.assertEqual(launcher.wait(), 143)
        self.assertNotIn("SIGHUP", launcher.output)

    def test_second_interrupt_kills(self):
        launcher = self.launch(
            'trap "" INT\necho "ready pid=$$."; while :; do sleep 0.05; done',
            "--workers=1")
        worker = launcher.wait_for(r"worker 0. ready pid=(\d+)").group(1)
        launcher.send(signal.SIGINT)
        launcher.wait_for("once more to kill")
        time.sleep(stop_signals.ONE_WISH_S)
        launcher.send(signal.SIGINT)
        self.assertEqual(launcher.wait(), 128 + signal.SIGINT)
        self.assert_gone(worker)

    def test_killing_the_launcher_leaves_nothing_behind(self):
        launcher = self.launch('echo "pid=$$."; exec sleep 1000')
        pids = {}
        while len(pids) < 3:
            match = launcher.wait_for(r"\[(\w+ \d)\] .*pid=(\d+)\.")
            pids[match.group(1)] = match.group(2)
        launcher.send(signal.SIGKILL)
        self.assertEqual(launcher.wait(), 128 + signal.SIGKILL)
        for pid in pids.values():
            self.assert_gone(pid)

    # ---- The evaluator is the worker's binary, too.

    def test_an_evaluator_is_one_more_task_and_may_end_last(self):
        launcher = self.launch(
            'echo "run $*"\ncase "$*" in\n'
            '*job_name=evaluator*)\n'
            '  while [ ! -e "$DIR/done" ]; do sleep 0.05; done; echo last;;\n'
            '*) touch "$DIR/done";;\nesac', "--workers=1", "--evaluator",
            "--compute_threads=1")
        self.assertEqual(launcher.wait(), 0, launcher.output)
        cluster_file = os.path.join(self.train_dir, "cluster.json")
        self.assertIn("[evaluator 0] run --cluster=%s --job_name=evaluator "
                      "--training=" % cluster_file, launcher.output)
        self.assertIn("[evaluator 0] last", launcher.output)
        with open(cluster_file, encoding="utf-8") as file:
            cluster = json.load(file)["cluster"]
        self.assertEqual({job: len(tasks) for job, tasks in cluster.items()},
                         {"ps": 1, "worker": 1, "evaluator": 1})

    def test_an_evaluator_that_fails_ends_nothing(self):
        launcher = self.launch(
            'case "$*" in\n'
            '*job_name=evaluator*) echo broken; exit 3;;\n'
            '*) while [ ! -e "$DIR/go" ]; do sleep 0.05; done\n'
            '   touch "$DIR/done";;\nesac', "--workers=1", "--evaluator")
        launcher.wait_for(r"\[evaluator 0\] ended with exit code 3 .*the "
                          "training goes on")
        self.write("go", "")
        self.assertEqual(launcher.wait(), 0, launcher.output)
        self.assertNotIn("failed first", launcher.output)

    # Kills itself at its first start.
    DIES_ONCE = ('echo "start $*"\n'
                 'if mkdir "$DIR/died" 2>/dev/null; then kill -9 $$; fi\n')

    def test_restarts_a_killed_worker_with_the_same_flags(self):
        launcher = self.launch(self.DIES_ONCE + 'touch "$DIR/done"',
                               "--workers=1", "--restart=2")
        self.assertEqual(launcher.wait(), 0, launcher.output)
        self.assertIn("[worker 0] ended with exit code 137 (SIGKILL); restart "
                      "1 of 2 in 0.2 s", launcher.output)
        starts = [line for line in launcher.output.split("\n")
                  if line.startswith("[worker 0] start ")]
        self.assertEqual(len(starts), 2)
        self.assertEqual(starts[0], starts[1])
        self.assertNotIn("failed first", launcher.output)

    def test_restarts_a_killed_ps_while_the_workers_go_on(self):
        launcher = self.launch(
            'while [ ! -e "$DIR/again" ]; do sleep 0.05; done\n'
            'touch "$DIR/done"', "--restart=1", "--workers=1",
            ps='#!/bin/sh\n' + self.DIES_ONCE + 'touch "$DIR/again"\n'
            'while [ ! -e "$DIR/done" ]; do sleep 0.05; done')
        self.assertEqual(launcher.wait(), 0, launcher.output)
        self.assertEqual(launcher.output.count("[ps 0] start "), 2)
        self.assertEqual(launcher.output.count("restart 1 of 1"), 1)

    def test_gives_up_after_so_many_restarts(self):
        launcher = self.launch('echo start; exit 138', "--workers=1",
                               "--restart=2")
        self.assertEqual(launcher.wait(), 138)
        self.assertEqual(launcher.output.count("[worker 0] start"), 3)
        self.assertIn("restart 1 of 2 in 0.2 s", launcher.output)
        self.assertIn("restart 2 of 2 in 0.4 s", launcher.output)
        self.assertIn("[worker 0] failed first, with exit code 138 (peers lost, "
                      "or disk full)", launcher.output)

    def test_a_permanent_failure_is_not_tried_again(self):
        launcher = self.launch('exit 3', "--workers=1", "--restart=5")
        self.assertEqual(launcher.wait(), 3)
        self.assertNotIn("restart 1", launcher.output)

    def test_nothing_is_restarted_after_an_interrupt(self):
        launcher = self.launch(
            'trap \'touch "$DIR/done"; exit 130\' INT\n'
            'echo ready; while :; do sleep 0.05; done', "--workers=1",
            "--restart=5")
        launcher.wait_for("worker 0. ready")
        launcher.send(signal.SIGINT)
        self.assertEqual(launcher.wait(), 128 + signal.SIGINT)
        self.assertNotIn("restart 1", launcher.output)

    def test_a_worker_that_comes_back_after_the_end_is_no_failure(self):
        # The ps ends when the other worker is done; nobody is left for this one.
        launcher = self.launch(
            'case "$*" in *task_index=0*)\n'
            '  while [ ! -e "$DIR/died" ]; do sleep 0.05; done\n'
            '  touch "$DIR/done"; exit 0;; esac\n' +
            self.DIES_ONCE + 'exec sleep 1000', "--restart=1")
        self.assertEqual(launcher.wait(), 0, launcher.output)
        self.assertNotIn("failed first", launcher.output)

    def test_bad_options_exit_with_2(self):
        for flags in (["--workers=0"], ["--restart=-1"], ["--ps=x"], ["--nonsense"],
                      ["--steps=1", "--epochs=1"],
                      ["--bin_dir=" + self.path("none")]):
            code, output = self.run_to_end(
                "launcher", [sys.executable, LAUNCHER, *flags])
            self.assertEqual(code, 2, output)

    def launch_with_gpus(self, cards, *flags, told=None):
        """Three workers that say which GPU they see; `cards` of nvidia-smi."""
        self.write_binary("smi", "")
        smi = self.write("smi/nvidia-smi", "#!/bin/sh\n" + "".join(
            "echo 'GPU %d: a card (UUID: GPU-%d)'\n" % (i, i)
            for i in range(cards)))
        os.chmod(smi, 0o755)
        self.env["PATH"] = self.path("smi") + ":" + self.env["PATH"]
        self.env.pop("CUDA_VISIBLE_DEVICES", None)
        if told is not None:
            self.env["CUDA_VISIBLE_DEVICES"] = told
        launcher = self.launch(
            'echo "sees <$CUDA_VISIBLE_DEVICES>"; touch "$DIR/done"',
            "--workers=3", *flags,
            ps=PS.replace("pid=", "sees=<$CUDA_VISIBLE_DEVICES> pid="))
        self.assertEqual(launcher.wait(), 0)
        self.assertIn("sees=<> ", launcher.output)
        return [re.search(r"\[worker %d\] sees <(.*)>" % i,
                          launcher.output).group(1) for i in range(3)]

    def test_spreads_the_workers_over_the_gpus(self):
        self.assertEqual(self.launch_with_gpus(2), ["0", "1", "0"])

    def test_spreads_over_as_many_gpus_as_it_is_told(self):
        self.assertEqual(self.launch_with_gpus(4, "--gpus=3"), ["0", "1", "2"])

    def test_gives_no_gpu_to_those_who_want_none(self):
        self.assertEqual(self.launch_with_gpus(2, "--gpus=none"), [""] * 3)
        self.assertEqual(self.launch_with_gpus(0), [""] * 3)

    def test_takes_only_gpus_that_it_may_see(self):
        self.assertEqual(self.launch_with_gpus(8, told="5,GPU-7"),
                         ["5", "GPU-7", "5"])

    def test_hands_worker_flags_on(self):
        launcher = self.launch('echo "worker $*"; touch "$DIR/done"',
                               "--workers=1", "--worker_flag=--device=cpu",
                               "--worker_flag=--log_device_placement")
        self.assertEqual(launcher.wait(), 0)
        self.assertIn("--device=cpu --log_device_placement", launcher.output)

    def build_configuration(self, *arguments, before=":", **programs):
        """What train_local.sh builds with, if these programs are there;
        `before` is run first."""
        folder = self.path("programs")
        os.makedirs(folder, exist_ok=True)
        for name, text in programs.items():
            path = self.write("programs/" + name.replace("_", "-"),
                              "#!/bin/sh\n" + text)
            os.chmod(path, 0o755)
        code, output = self.run_to_end("cuda_config", [
            "/bin/bash", "-c",
            'source scripts/cuda_config.bash; %s; cuda_config "$@"' % before,
            "-", *arguments], env={"PATH": folder})
        self.assertEqual(code, 0)
        return output.strip()

    @unittest.skipUnless(os.path.exists("/usr/local/cuda/include/cudnn.h"),
                         "there is no CUDA toolkit")
    def test_builds_with_cuda_where_there_is_a_gpu_and_the_toolkit(self):
        there = {"nvidia_smi": "exit 0\n", "nvcc": "exit 0\n"}
        self.assertEqual(self.build_configuration("--ps=1", **there),
                         "--config=cuda")
        for none in (["--gpus=none"], ["--gpus", "none"]):
            self.assertEqual(self.build_configuration(*none, **there), "")

    def test_says_that_a_gpu_is_of_no_use_without_the_toolkit(self):
        without = "has_cuda_toolkit() { false; }"
        gpu = {"nvidia_smi": "exit 0\n"}
        self.assertRegex(self.build_configuration(before=without, **gpu),
                         "^cuda_config: there is a GPU, but no nvcc .*$")
        self.assertEqual(self.build_configuration("--gpus=none", before=without,
                                                  **gpu), "")

    @unittest.skipIf(os.path.exists("/dev/nvidia0"), "there is a GPU")
    def test_builds_without_cuda_where_there_is_no_gpu(self):
        self.assertEqual(self.build_configuration(nvcc="exit 0\n"), "")
        self.assertEqual(self.build_configuration(
            nvidia_smi="exit 9\n", nvcc="exit 0\n"), "")


if __name__ == "__main__":
    harness.main()
