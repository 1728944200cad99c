"""Every command in README.md's ```sh blocks runs, made short.

A command that is not known here fails the test: add it to a test, or to
NOT_RUN with the reason.
"""

import itertools
import os
import re
import shlex
import signal
import sys
import time
import urllib.request

from tests.integration import fake_ssh
from tests.integration import harness
from tests.integration import tiny_png

NOT_RUN = {
    "scripts/test.sh": "this test runs in it",
    "scripts/package.sh wheel": "wheel_test makes one",
    "python3 -m venv venv && venv/bin/pip install dist/muster-*.whl torch":
        "wheel_test installs one",
    "scripts/muster run -H localhost:2 --ps=1 -- venv/bin/python train.py":
        "torch_training_test does, with --full: it wants PyTorch",
}
# So that each training takes a moment, on data that needs no package.
SHORT = ["--set=stop.steps=6", "--set=input.type=synthetic",
         "--set=input.synthetic_examples=2000",
         "--set=input.synthetic_test_examples=200",
         "--set=input.batch_size=16"]

# Until ResNet-20's averages tell three colours from each other.
PHOTO_STEPS = 60


def read_blocks():
    """Each sh block as a list of commands."""
    with open("README.md", encoding="utf-8") as file:
        text = file.read()
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        joined = block.replace("\\\n", " ")
        yield [shlex.split(line) for line in joined.splitlines() if line]


def is_task(command):
    return command[0].startswith("bazel-bin/")


class ReadmeTest(harness.TestCase):

    def replace(self, command, cluster):
        """The command with this test's binaries, ports and folders."""
        replaced = [harness.binary(command[0][len("bazel-bin/"):])]
        for argument in command[1:]:
            name, _, value = argument.partition("=")
            if name == "--cluster":
                # The file that the README names must be there.
                self.assertTrue(os.path.exists(value), value)
                argument = "--cluster=" + cluster
            elif name == "--train_dir":
                argument = "--train_dir=" + self.path(value)
            replaced.append(argument)
        return replaced + (SHORT if "worker/worker" in command[0] else [])

    def run_tasks(self, commands):
        cluster = self.write_cluster(ps=1, workers=2)
        tasks = [self.start(" ".join(command[:3]),
                            self.replace(command, cluster))
                 for command in commands]
        for task in tasks:
            self.assertEqual(task.wait(), 0, task.output)

    def write_own_data(self):
        """The folders that the README's commands name: images, and tables."""
        for kind, folder in enumerate((
                *("photos/%s/%s" % half_and_name for half_and_name in
                  itertools.product(("train", "test"),
                                    ("cat", "dog", "elk"))), "new/test")):
            os.makedirs(self.path(folder))
            for i in range(8):
                # A colour a class, as bright as the others.
                tiny_png.write(
                    self.path("%s/%d.png" % (folder, i)), 80, 70,
                    [(200 if j % 3 == kind % 3 else 20) + (i * 31 + j) % 32
                     for j in range(80 * 70 * 3)])
        os.makedirs(self.path("houses"))
        columns = ",".join("c%d" % i for i in range(10))
        for name in ("houses/train.csv", "houses/test.csv", "new/test.csv"):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(columns + ("" if "new" in name else ",price") + "\n")
                for row in range(16):
                    values = [(row * 7 + i) % 5 for i in range(10)]
                    if "new" not in name:
                        values.append(sum(values))
                    file.write(",".join(map(str, values)) + "\n")

    def run_own_data(self, commands):
        """One after the other: the last ones use what the first have saved."""
        self.write_own_data()
        for command in commands:
            arguments = []
            for argument in self.replace(command, cluster="")[1:]:
                for name in ("--set=input.dir=", "--output="):
                    if argument.startswith(name):
                        argument = name + self.path(argument[len(name):])
                if argument not in SHORT:
                    arguments.append(argument)
            steps = PHOTO_STEPS if "--set=input.dir=photos" in command else 3
            arguments += ["--set=stop.steps=%d" % steps,
                          "--set=input.batch_size=4",
                          "--set=evaluation.batch_size=8"]
            code, output = self.run_to_end(
                command[0], [harness.binary("worker/worker"), *arguments],
                deadline_s=2 * harness.DEADLINE_S)
            self.assertEqual(code, 0, output)
        self.assertEqual(self.result(self.path("run3"))["test_accuracy"], 1)
        with open(self.path("classes.csv"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), 9)
        self.assertTrue(lines[0].startswith("file,class,"), lines[0])
        with open(self.path("prices.csv"), encoding="utf-8") as file:
            self.assertEqual(file.readline(), "output_0\n")

    def run_launcher(self, command, train_dir):
        code, output = self.run_to_end("train_local.sh", [
            os.path.abspath(command[0]), *command[1:], *SHORT, "--no_build",
            "--bin_dir=" + os.getcwd(), "--train_dir=" + train_dir],
            deadline_s=2 * harness.DEADLINE_S)
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"test accuracy 0\.\d+ after 6 global steps")
        self.assertIn(os.path.join(train_dir, "result.json"), output)
        self.assertRegex(output, r"checkpoint .*/ckpt-0{11}6")

    def run_sweep(self, command):
        code, output = self.run_to_end("sweep", [
            os.path.abspath(command[0]), *command[1:], *SHORT, "--trials=2",
            "--no_build", "--no_pictures", "--bin_dir=" + os.getcwd(),
            "--sweep_dir=" + self.path("sweep")],
            deadline_s=2 * harness.DEADLINE_S)
        self.assertEqual(code, 0, output)
        self.assertIn("2 done, 0 pruned, 0 failed", output)

    def run_ensemble(self, command):
        """Its models are used by a later command."""
        flags = [flag.replace("_dir=", "_dir=" + self.path("")) if
                 flag.startswith("--ensemble_dir=") else flag
                 for flag in command[1:]]
        code, output = self.run_to_end("ensemble", [
            os.path.abspath(command[0]), *flags, *SHORT, "--no_build",
            "--bin_dir=" + os.getcwd()], deadline_s=2 * harness.DEADLINE_S)
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"\| ensemble \| 0\.\d+ \|")

    def run_many_machines(self, commands):
        """Makes keys, and looks at the training while it runs on two hosts."""
        keys, run, look = commands
        muster = [sys.executable, os.path.abspath(keys[0])]
        split = keys.index("&&")
        for command in (keys[:split], keys[split + 1:]):
            made = self.start(" ".join(command), muster + command[1:],
                              cwd=self.dir)
            self.assertEqual(made.wait(), 0, made.output)
        self.assertEqual(run[2:4], ["-H", "gpu1:4,gpu2:4"])
        flags = []
        for flag in run[4:]:
            name, _, value = flag.partition("=")
            if name == "--train_dir":
                flag = name + "=" + self.path("run1")
            elif name == "--training":
                flag = name + "=" + os.path.abspath(value)
            if name != "--port_base":
                flags.append(flag)
        trains = self.start(
            "muster run", [*muster, "run", "-H", "127.0.0.1:1,127.0.0.2:1",
                           "--bin_dir=" + os.path.dirname(os.path.dirname(
                               harness.worker())),
                           *flags, *SHORT, "--set=stop.steps=1000000"],
            env=fake_ssh.environment(self), cwd=self.dir)
        port = trains.wait_for(r"ps 0\] .*127\.0\.0\.1:(\d+)").group(1)
        trains.wait_for(r" step=\d")
        looks = self.start("musterctl", [
            harness.binary("worker/ctl/musterctl"),
            *(flag.replace("gpu1:8800", "127.0.0.1:" + port)
              for flag in look[1:])], cwd=self.dir)
        self.assertEqual(looks.wait(), 0, looks.output)
        self.assertIn("RUNNING", looks.output)
        trains.send(signal.SIGINT)
        self.assertEqual(trains.wait(), 128 + signal.SIGINT, trains.output)

    def run_operator(self, commands):
        """Looks at a training of 2 ps tasks and 3 workers, through kills."""
        cluster = self.write_cluster(ps=2, workers=3)
        page = harness.free_ports(1)[0]
        first = [flag.replace("127.0.0.1:9180", "127.0.0.1:%d" % page)
                 for flag in self.replace(commands[0], cluster)]
        ps = [self.start("ps 0", first), self.start_ps(cluster, 1)]
        training = self.write("t.textproto", harness.softmax_regression(10**8))
        flags = ["--training=" + training, "--train_dir=" + self.path("seen")]
        workers = [self.start_worker(cluster, i, *flags) for i in range(3)]
        for command in commands[1:]:
            for worker in workers:
                worker.wait_for_line_after(r"\bstep=[1-9]", time.monotonic())
            looks = self.start("musterctl", self.replace(command, cluster),
                               cwd=self.dir)
            self.assertEqual(looks.wait(), 0, looks.output)
            with urllib.request.urlopen("http://127.0.0.1:%d/" % page) as found:
                self.assertIn(b"<html", found.read())
            since = time.monotonic()
            workers[2].kill()
            workers[2] = self.start_worker(cluster, 2, *flags)
            ps[1].kill()
            ps[1] = self.start_ps(cluster, 1)
            workers[0].wait_for_line_after("restored ", since)
        self.assertTrue(self.read_json("trace.json")["traceEvents"])

    def test_every_command_runs(self):
        ran = 0
        for block in read_blocks():
            runs = [command for command in block
                    if command[:2] == ["scripts/muster", "run"]]
            if any(" ".join(command) not in NOT_RUN for command in runs):
                with self.subTest(commands=block):
                    self.run_many_machines(block)
                continue
            if any("profile" in command for command in block):
                with self.subTest(commands=block):
                    self.run_operator(block)
                continue
            tasks = [command for command in block if is_task(command)]
            if tasks:
                with self.subTest(commands=tasks):
                    if any("predict" in command for command in tasks):
                        self.run_own_data(tasks)
                    else:
                        self.run_tasks(tasks)
                    ran += 1
            for command in block:
                if is_task(command) or " ".join(command) in NOT_RUN:
                    continue
                with self.subTest(command=command):
                    ran += 1
                    if command[:2] == ["scripts/muster", "sweep"]:
                        self.run_sweep(command)
                        continue
                    if command[:2] == ["scripts/muster", "ensemble"]:
                        self.run_ensemble(command)
                        continue
                    self.assertEqual(command[0], "scripts/train_local.sh",
                                     "README.md has a command that no test "
                                     "knows")
                    self.run_launcher(command, self.path("run_%d" % ran))
        self.assertGreaterEqual(ran, 4)

    def test_is_not_longer_than_150_lines(self):
        with open("README.md", encoding="utf-8") as file:
            self.assertLessEqual(file.read().count("\n"), 150)


if __name__ == "__main__":
    harness.main()
