"""scripts/package.sh: its tar is the same each time, and trains where it is
unpacked, whatever else is on the machine.
"""

import os
import re
import shutil
import subprocess
import sys
import unittest

from tests.integration import harness
from tests.integration import package_scenarios

GLIBC = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util))\.so\.\d+$")


@unittest.skipIf(shutil.which("patchelf") is None, "patchelf is not installed")
class PackageTest(harness.TestCase):

    def unpack(self, archive):
        os.mkdir(self.path("there"))
        subprocess.run(["tar", "xzf", archive, "-C", self.path("there")],
                       check=True)
        return self.path("there/muster")

    def test_two_runs_give_the_same_bytes_which_train_elsewhere(self):
        said = package_scenarios.make(self.path("1.tar.gz"))
        again = package_scenarios.make(self.path("2.tar.gz"))
        digests = re.findall("sha256 ([0-9a-f]{64})", said + again)
        self.assertEqual(len(digests), 2)
        self.assertEqual(digests[0], digests[1])
        folder = self.unpack(self.path("1.tar.gz"))
        self.check_libraries(folder)
        self.check_training(folder)
        self.check_c_program(folder)

    def check_libraries(self, folder):
        for name in ("ps_server", "worker", "musterctl"):
            listed = subprocess.run(
                ["ldd", os.path.join(folder, "bin", name)], check=True,
                capture_output=True, text=True, env={}).stdout
            for library, path in re.findall(r"(\S+) => (\S+)", listed):
                self.assertEqual(
                    os.path.dirname(os.path.realpath(path)) ==
                    os.path.realpath(os.path.join(folder, "lib")),
                    not GLIBC.match(library), "%s takes %s" % (name, path))

    def check_c_program(self, folder):
        with open(os.path.join(folder, "worker/python/README.md"),
                  encoding="utf-8") as file:
            line = re.search("^    (gcc .* -lmuster .*)$", file.read(),
                             re.MULTILINE).group(1)
        subprocess.run(line, shell=True, check=True, cwd=folder)
        hosts = "localhost:%d" % harness.free_ports(1)[0]
        self.start("ps", [os.path.join(folder, "bin/ps_server"),
                          "--ps_hosts=" + hosts, "--job_name=ps"])
        code, output = self.run_to_end(
            "program", [os.path.join(folder, "example"), hosts])
        self.assertEqual(code, 0, output)
        self.assertIn("y = 2.00 x + 1.00, done", output)

    def check_training(self, folder):
        self.write("training", harness.softmax_regression(steps=20))
        code, output = self.run_to_end("muster run", [
            sys.executable, os.path.join(folder, "scripts/muster"), "run", "-H",
            "localhost:1", "--", "--training=" + self.path("training"),
            "--train_dir=" + self.path("train"), "--compute_threads=1"])
        self.assertEqual(code, 0, output)
        self.assertEqual(self.result("train")["global_step"], 20)
        code, output = self.run_to_end("muster sweep", [
            sys.executable, os.path.join(folder, "scripts/muster"), "sweep",
            "--training=" + self.path("training"), "--minimize", "--trials=1",
            "--param=seed=choice:3", "--no_pictures",
            "--sweep_dir=" + self.path("sweep")])
        self.assertEqual(code, 0, output)
        self.assertIn("muster/bin/worker --standalone", output)
        code, output = self.run_to_end("muster ensemble", [
            sys.executable, os.path.join(folder, "scripts/muster"), "ensemble",
            "--training=" + self.path("training"), "--members=1",
            "--ensemble_dir=" + self.path("ensemble")])
        self.assertEqual(code, 0, output)
        self.assertIn("| ensemble |", output)

    def test_a_file_that_is_there_is_kept(self):
        code, output = self.run_to_end("package", [
            sys.executable, os.path.abspath("scripts/package.py"),
            "--no_build", "--out=" + self.write("old", "x")])
        self.assertEqual(code, 2)
        self.assertIn("is there already", output)

    def test_a_missing_program_is_named(self):
        code, output = self.run_to_end("package", [
            sys.executable, os.path.abspath("scripts/package.py"), "--no_build",
            "--bin_dir=" + self.dir, "--out=" + self.path("new")])
        self.assertEqual(code, 1)
        self.assertIn("no program at '%s/ps_server" % self.dir, output)
        self.assertFalse(os.path.exists(self.path("new")))


if __name__ == "__main__":
    harness.main()
