"""scripts/muster sweep: trials, a driver that is killed, bad input."""

import csv
import json
import os
import shlex
import signal

from tests.integration import harness

MUSTER = os.path.abspath("scripts/muster")
RATES = "--param=optimizer.sgd.learning_rate=choice:0.1,0.2,0.3,0.4"
ENDLESS = 10**9


class SweepTest(harness.TestCase):

    def command(self, *flags, steps=300):
        training = self.write("training.textproto",
                              harness.softmax_regression(steps))
        return [MUSTER, "sweep", "--training=" + training, "--sampler=grid",
                "--metric=test_accuracy", "--maximize", "--no_build",
                "--bin_dir=" + os.getcwd(),
                "--sweep_dir=" + self.path("sweep"), *flags]

    def sweep(self, *flags, steps=300):
        return self.run_to_end(
            "sweep", self.command("--no_pictures", *flags, steps=steps))

    def trial_file(self, number):
        with open(self.path("sweep/trial-%04d/trial.json" % number),
                  encoding="utf-8") as file:
            return file.read()

    def states(self):
        with open(self.path("sweep/sweep.csv"), encoding="utf-8") as file:
            return [row["state"] for row in csv.DictReader(file)]

    def test_killed_it_goes_on_and_keeps_what_has_ended(self):
        driver = self.start("driver", self.command(RATES))
        driver.wait_for(r"2 of 4 ended, 1 running, best test_accuracy=\S+ ")
        driver.kill()
        kept = {number: text for number, text in
                ((i, self.trial_file(i)) for i in range(3))
                if json.loads(text)["state"] == "DONE"}
        self.assertGreaterEqual(len(kept), 2)
        code, output = self.sweep(RATES)
        self.assertEqual(code, 0, output)
        self.assertEqual(output.count(" DONE in "), 4 - len(kept), output)
        for number, text in kept.items():
            self.assertEqual(self.trial_file(number), text)
        self.assertEqual(self.states(), ["DONE"] * 4)
        self.assertIn("| trial | test_accuracy | optimizer.sgd.learning_rate |",
                      output)
        # The last line is a command.
        code, output = self.run_to_end(
            "best", shlex.split(output.splitlines()[-1]))
        self.assertEqual(code, 0, output)

    def test_a_trial_that_fails_is_one_line(self):
        # There is no cache folder, so no packages for the picture, either.
        code, output = self.run_to_end("sweep", self.command(
            "--param=optimizer.sgd.learning_rate=choice:1e38,0.1"),
            env=dict(os.environ, XDG_CACHE_HOME=self.write("file", "")))
        self.assertEqual(code, 0, output)
        self.assertIn("no picture and no hparams: ", output)
        self.assertRegex(output, r"trial 0 FAILED in .*=1e38: exit code 1: "
                         r"step .* a smaller learning rate often helps")
        self.assertEqual(self.states(), ["FAILED", "DONE"])
        self.assertIn("1 done, 0 pruned, 1 failed", output)

    def test_a_signal_has_the_trials_save_and_end(self):
        driver = self.start("driver", self.command(
            "--param=optimizer.sgd.learning_rate=choice:0.1",
            "--param=stop.steps=choice:9,%d,%d" % (ENDLESS, ENDLESS + 1),
            "--parallel=2"))
        driver.wait_for(r"trial 0 DONE in ")
        driver.send(signal.SIGTERM)
        self.assertEqual(driver.wait(), 128 + signal.SIGTERM)
        states = self.states()
        self.assertEqual(states, ["DONE"] + ["INTERRUPTED"] * (len(states) - 1))
        saved = os.listdir(self.path("sweep/trial-0001/run"))
        self.assertGreaterEqual(
            sum(name.startswith("ckpt-") for name in saved), 1)

    def test_pruned_trials_are_ended_and_kept(self):
        # By its rate a trial fails after its first evaluation, is NaN
        # and endless, or comes to its end.
        self.write_worker(
            'say() { echo "2026-11-27 08:00:00+00:00 I /job:worker/task:0 '
            'step=$1 test_accuracy=$2"; }\n'
            'for flag; do case "$flag" in --train_dir=*) dir=${flag#*=};;\n'
            '  *learning_rate=*) rate=${flag##*=};; esac; done\n'
            'case $rate in 0.9) say 10 0.9; exit 1;;\n'
            '0.1) say 10 0.1; exec sleep inf;;\n'
            '0.2) say 10 nan; exec sleep inf;; esac\n'
            'say 10 $rate; mkdir -p "$dir"\n'
            'echo "{\\"test_accuracy\\": $rate}" > "$dir/result.json"\n')
        flags = ["--param=optimizer.sgd.learning_rate=choice:"
                 "0.9,0.2,0.5,0.1,0.6", "--pruner=asha", "--parallel=1",
                 "--bin_dir=" + self.path("bin")]
        for trials in ("4", "5"):
            code, output = self.sweep(*flags, "--trials=" + trials)
            self.assertEqual(code, 0, output)
        self.assertEqual(self.states(),
                         ["FAILED", "PRUNED", "DONE", "PRUNED", "DONE"])
        self.assertIn("2 done, 2 pruned, 1 failed", output)
        self.assertIn("best test_accuracy=0.6 (trial 4)", output)

    def write_worker(self, text):
        """A shell script in its place."""
        os.makedirs(self.path("bin/worker/ctl"))
        os.symlink(harness.binary("worker/ctl/musterctl"),
                   self.path("bin/worker/ctl/musterctl"))
        os.chmod(self.write("bin/worker/worker", "#!/bin/sh\n" + text), 0o755)

    def test_trials_that_met_a_full_disk_go_on_and_mistakes_stay(self):
        # The first start of trial 0 meets a full disk, trial 1 a mistake; then
        # trial 0 has no step left to make, and trial 2 a loss.
        self.write_worker(
            'for flag; do case "$flag" in --train_dir=*) '
            'dir=${flag#*=};; esac; done\n'
            'case "$*" in *trial-0001*) exit 3;; esac\n'
            'loss=0.5\ncase "$*" in *trial-0000*)\n'
            '  mkdir "$dir" 2>/dev/null && exit 138\n  loss=null;; esac\n'
            'mkdir -p "$dir"; echo "{\\"final_loss\\": $loss}" > '
            '"$dir/result.json"\n')
        flags = ["--param=optimizer.sgd.learning_rate=choice:0.1,0.2,0.3",
                 "--bin_dir=" + self.path("bin"), "--metric=final_loss",
                 "--minimize", "--no_pictures"]
        command = [word for word in self.command(*flags)
                   if word not in ("--maximize", "--metric=test_accuracy")]
        code, output = self.run_to_end("sweep", command)
        self.assertEqual(code, 0, output)
        self.assertIn("the same command tries it again", output)
        self.assertEqual(self.states(), ["FAILED", "FAILED", "DONE"])
        code, output = self.run_to_end("sweep", command)
        self.assertEqual(code, 0, output)
        self.assertEqual(self.states(), ["DONE", "FAILED", "DONE"])
        self.assertRegex(output, "trial 0 DONE in .* final_loss=none")
        self.assertIn("best final_loss=0.5 (trial 2)", output)

    def test_a_card_is_all_that_its_trial_sees(self):
        self.write_worker("echo card $CUDA_VISIBLE_DEVICES $*\nexit 3\n")
        code, output = self.run_to_end("sweep", self.command(
            RATES, "--devices=gpu:1,cpu:0", "--bin_dir=" + self.path("bin")),
            env=dict(os.environ, CUDA_VISIBLE_DEVICES="4,7"))
        self.assertEqual(code, 1, output)
        self.assertIn("no trial is done", output)
        self.assertRegex(output, "exit code 3: card 7 --standalone .*"
                         "--device=cuda --cpus=")
        self.assertRegex(output, "exit code 3: card --standalone .*"
                         "--device=cpu --cpus=")

    def test_mistakes_before_the_first_trial_are_named(self):
        for flags, words in (
                (["--param=optimizer.sgd.learning_rat=choice:0.1"],
                 "did you mean 'learning_rate'?"),
                (["--param=optimizer.sgd.learning_rate=choice:0.1,-1"],
                 "'learning_rate' must be > 0, found -1"),
                ([RATES, "--bin_dir=/nowhere"], "no program at '/nowhere")):
            code, output = self.sweep(*flags)
            self.assertEqual((code, words in output), (2, True), output)
            self.assertFalse(os.path.exists(self.path("sweep")))

    def test_a_folder_is_of_one_sweep_and_of_any_metric(self):
        rate = "--param=optimizer.sgd.learning_rate=choice:0.1"
        code, output = self.sweep(rate, "--metric=test_acuracy", steps=9)
        self.assertEqual(
            (code, "did you mean 'test_accuracy'?" in output), (2, True),
            output)
        before = self.trial_file(0)
        code, output = self.sweep(rate, "--metric=examples", steps=9)
        self.assertEqual((code, " DONE in " in output), (0, False), output)
        code, output = self.sweep(RATES, steps=9)
        self.assertEqual((code, "is of another sweep" in output), (2, True),
                         output)
        self.assertEqual(self.trial_file(0), before)


class MusterTest(harness.TestCase):

    def test_an_unknown_verb_gets_the_nearest(self):
        code, output = self.run_to_end("muster", [MUSTER, "swep"])
        self.assertEqual((code, "did you mean 'sweep'?" in output), (2, True))

    def test_help_lists_the_verbs(self):
        code, output = self.run_to_end("muster", [MUSTER, "--help"])
        self.assertEqual((code, "muster sweep " in output), (0, True))


if __name__ == "__main__":
    harness.main()
