"""scripts/gpu_bundle.sh, and the CPU part of what it makes."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from tests.integration import harness

MAX_BYTES = 56 << 20
# What a bare machine has.
BARE = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
# To pack and to train, on a machine that does other things too.
PATIENCE_S = 300.0


class GpuBundleTest(harness.TestCase):
    """All of one bundle, which takes a minute to make."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # A new place, so that nothing is found by where it was built.
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.bundle = os.path.join(folder.name, "muster_gpu")
        made = subprocess.run(
            [os.path.abspath("scripts/gpu_bundle.sh"), "--no_build",
             "--bin_dir=" + os.getcwd(), "--out=" + cls.bundle],
            capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if made.returncode != 0:
            raise AssertionError(made.stdout + made.stderr)

    def run_bundled(self, program, *arguments):
        return self.run_to_end(
            program, [os.path.join(self.bundle, program), *arguments],
            deadline_s=PATIENCE_S, env=BARE)

    def programs(self):
        return [path for folder in ("worker", "ps_server", "gpu_tests")
                for path in glob.glob(os.path.join(self.bundle, folder, "*"))
                if os.path.isfile(path) and os.access(path, os.X_OK)]

    def test_is_small(self):
        self.assertLess(os.path.getsize(self.bundle + ".tar.xz"), MAX_BYTES)

    def test_brings_every_library_but_glibc(self):
        self.assertGreaterEqual(len(self.programs()), 7)
        for program in self.programs():
            found = subprocess.run(["ldd", program], env=BARE, check=True,
                                   capture_output=True, text=True).stdout
            self.assertNotIn("not found", found)
            for path in re.findall(r"=> (\S+)", found):
                if not os.path.exists(os.path.join(
                        self.bundle, "glibc", os.path.basename(path))):
                    self.assertEqual(os.path.realpath(os.path.dirname(path)),
                                     os.path.realpath(self.bundle + "/lib"))

    def test_brings_a_glibc_for_machines_with_an_older_one(self):
        code, output = self.run_bundled("with_glibc/worker/worker", "--version")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"^muster \d")

    @unittest.skipIf(os.geteuid() != 0, "chroot wants root")
    def test_needs_no_file_of_the_machine(self):
        for program in self.programs():
            name = "/" + os.path.relpath(program, self.bundle)
            code, output = self.run_to_end("chroot", [
                "/usr/sbin/chroot", self.bundle, "/glibc/ld-linux-x86-64.so.2",
                "--library-path", "/glibc:/lib", name, "--help"], env=BARE)
            self.assertEqual(code, 0, output)

    def test_refuses_a_folder_that_is_there(self):
        code, output = self.run_to_end("gpu_bundle.sh", [
            os.path.abspath("scripts/gpu_bundle.sh"), "--no_build",
            "--out=" + self.bundle])
        self.assertEqual(code, 2, output)
        self.assertIn("is there already", output)

    def test_brings_what_its_tests_read(self):
        for path in ("tests/worker/model/golden/losses.txt",
                     "worker/model/zoo/mnist_cnn.textproto"):
            self.assertTrue(os.path.exists(os.path.join(self.bundle, path)))

    def test_brings_a_test_of_the_worker_on_its_cards(self):
        test = self.start(
            "card_test", [sys.executable, "-m", "tests.integration.card_test",
                          "CardTest.test_without_a_driver_the_cpu_trains"],
            env=dict(BARE, MUSTER_CARD_WORKER="worker/worker"),
            cwd=self.bundle)
        self.assertEqual(test.wait(), 0, test.output)
        self.assertIn("skipped 'MUSTER_CARD_WORKER: ", test.output)

    def results(self, *flags):
        """The rows by name, and run_all.sh's exit code."""
        path = self.path("results.json")
        code, _ = self.run_bundled("run_all.sh", "--out=" + path, *flags)
        self.report = self.read_json(path)
        return {row["name"]: row for row in self.report["rows"]}, code

    def test_measures_on_the_cpu_what_wants_no_gpu(self):
        # Two steps, on a machine that does other things.
        rows, code = self.results("--cpu", "--seconds=4", "--only=figures",
                                  "--only=sharing", "--only=sanitizer")
        self.assertEqual(code, 0, rows)
        for name in ("mnist_cnn, standalone",
                     "mnist_cnn, standalone, 2 devices",
                     "mnist_cnn, 1 ps + 1 workers",
                     "mnist_cnn, 1 ps + 2 workers",
                     "mnist_cnn, 2 processes on one card"):
            self.assertGreater(rows[name]["value"], 0)
            self.assertEqual(rows[name]["unit"], "steps/s")
            self.assertTrue(rows[name]["command"])
        for name in ("mnist_cnn, standalone, bf16", "machine",
                     "memcheck of card_backend_parity_test"):
            self.assertEqual(rows[name]["skipped"], "--cpu")
        self.assertEqual(self.report["end"], "complete")
        towers = rows["mnist_cnn, standalone, 2 devices"]
        self.assertAlmostEqual(towers["examples_per_s"] / towers["value"],
                               2 * 128, delta=1)
        one = next(one for one in self.report["targets"]
                   if one["over"] == "mnist_cnn, 1 ps + 1 workers")
        self.assertGreater(one["ratio"], 0)
        self.assertEqual(one["met"], one["ratio"] >= one["wanted"])

    def test_says_what_it_had_no_time_for(self):
        rows, code = self.results("--cpu", "--time_limit=1")
        self.assertEqual(code, 0, rows)
        self.assertRegex(rows["mnist_cnn, standalone"]["skipped"],
                         "^no time left of 1 s: it needs 10 s, and 0 are left$")

    def test_what_fails_is_a_row_with_its_last_lines(self):
        if shutil.which("nvidia-smi") or os.path.exists("/dev/nvidia0"):
            self.skipTest("there may be a card")
        rows, code = self.results("--seconds=1", "--only=figures",
                                  "--only=tests")
        self.assertEqual(code, 1)
        row = rows["mnist_cnn, standalone"]
        self.assertEqual(row["failed"], "exit code 2")
        self.assertIn("cuda:0 cannot be used", row["output"][-1])
        for name in ("card_backend_parity_test", "card_gradient_check_test",
                     "card_parity_test", "card_step_allocation_test"):
            self.assertIn("look for CUDA devices", rows[name]["skipped"])
        self.assertRegex("\n".join(rows["list of devices"]["value"]),
                         "cuda:0: unusable")


if __name__ == "__main__":
    harness.main()
