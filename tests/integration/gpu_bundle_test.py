"""scripts/gpu_bundle.sh, and the CPU part of what it makes."""

import glob
import json
import os
import re
import subprocess

from tests.integration import harness

MAX_MIB = 60
# Programs that a bare machine has.
BARE = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


class GpuBundleTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        # A new place, so that nothing is found by where it was built.
        self.out = self.path("muster_gpu")
        code, output = self.run_to_end("gpu_bundle.sh", [
            os.path.abspath("scripts/gpu_bundle.sh"), "--no_build",
            "--bin_dir=" + os.getcwd(), "--out=" + self.out])
        self.assertEqual(code, 0, output)

    def run_bundled(self, program, *arguments):
        return self.run_to_end(program, [os.path.join(self.out, program),
                                         *arguments],
                               env=BARE, deadline_s=240)

    def test_is_whole_and_measures_on_the_cpu(self):
        self.assertLess(os.path.getsize(self.out + ".tar.xz"), MAX_MIB << 20)
        programs = [path for folder in ("worker", "ps_server", "gpu_tests")
                    for path in glob.glob(os.path.join(self.out, folder, "*"))
                    if os.access(path, os.X_OK)]
        self.assertGreaterEqual(len(programs), 4)
        for program in programs:
            found = subprocess.run(["ldd", program], env=BARE, check=True,
                                   capture_output=True, text=True).stdout
            self.assertNotIn("not found", found)
            for path in re.findall(r"=> (\S+)", found):
                name = os.path.basename(path)
                if os.path.exists(os.path.join(self.out, "glibc", name)):
                    continue
                self.assertEqual(os.path.dirname(os.path.realpath(path)),
                                 os.path.realpath(self.out + "/lib"), path)
        self.check_old_glibc()
        self.check_run()

    def check_old_glibc(self):
        """A machine whose own is too old takes the bundle's."""
        code, output = self.run_bundled("with_glibc/worker/worker", "--version")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"^muster \d")

    def check_run(self):
        results = self.path("results.json")
        code, output = self.run_bundled("run_all.sh", "--cpu", "--seconds=1",
                                        "--out=" + results)
        self.assertEqual(code, 0, output)
        with open(results, encoding="utf-8") as file:
            rows = {row["name"]: row for row in json.load(file)["rows"]}
        for name in ("mnist_cnn, standalone on cpu",
                     "mnist_cnn, 1 ps + 1 workers on cpu",
                     "mnist_cnn, 1 ps + 2 workers on cpu",
                     "inception_small, standalone on cpu"):
            self.assertGreater(rows[name]["value"], 0)
        for row in rows.values():
            self.assertTrue(row["command"])
            self.assertNotIn("failed", row)
        for name in ("card_backend_parity_test", "PyTorch eager, mnist_cnn, tf32"):
            self.assertEqual(rows[name]["skipped"], "--cpu")


if __name__ == "__main__":
    harness.main()
