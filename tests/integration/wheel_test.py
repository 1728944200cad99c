"""scripts/package.sh wheel: the same bytes each time, and a package that pip
installs where nothing else of ours is.
"""

import csv
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import unittest
import zipfile

from tests.integration import harness

OPENED = """
import ctypes, os, site, sys
there = os.path.join(site.getsitepackages()[0], "muster")
library = ctypes.CDLL(os.path.join(there, "libmuster.so"))
library.muster_version.restype = ctypes.c_char_p
print(library.muster_version().decode(), library.muster_abi())
with open("/proc/self/maps") as maps:
    print(*sorted({line.split()[-1] for line in maps if ".so" in line}), sep="\\n")
"""


@unittest.skipIf(shutil.which("patchelf") is None, "patchelf is not installed")
class WheelTest(harness.TestCase):

    def make(self, name):
        os.mkdir(self.path(name))
        code, output = self.run_to_end("package", [
            sys.executable, os.path.abspath("scripts/wheel.py"), "--no_build",
            "--bin_dir=" + os.getcwd(), "--out=" + self.path(name)])
        self.assertEqual(code, 0, output)
        wheel, = glob.glob(os.path.join(self.path(name), "*.whl"))
        return wheel

    def digest(self, path):
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def test_the_wheel_is_the_same_twice_and_runs_where_it_is_installed(self):
        wheel = self.make("1")
        self.assertEqual(self.digest(wheel), self.digest(self.make("2")))
        self.check_files(wheel)
        self.check_installed(wheel)

    def check_files(self, wheel):
        name = os.path.basename(wheel)
        self.assertRegex(
            name, r"^muster-\d+\.\d+\.\d+-py3-none-manylinux_2_\d+_x86_64.whl$")
        with zipfile.ZipFile(wheel) as packed:
            names = packed.namelist()
            info = name.split("-py3")[0] + ".dist-info/"
            self.assertIn("Tag: py3-none-manylinux_2_",
                          packed.read(info + "WHEEL").decode())
            listed = [row[0] for row in csv.reader(
                packed.read(info + "RECORD").decode().splitlines())]
        self.assertEqual(sorted(listed), sorted(names))
        self.assertIn("muster/__init__.py", names)
        self.assertIn("muster/py.typed", names)
        self.assertFalse([name for name in names if "/worker" in name])

    def check_installed(self, wheel):
        venv = self.path("venv")
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        python = os.path.join(venv, "bin/python")
        subprocess.run([python, "-m", "pip", "install", "--no-index",
                        "--no-deps", "--quiet", wheel], check=True)
        # It compares RECORD with what is there.
        shown = subprocess.run([python, "-m", "pip", "show", "--files",
                                "muster"], check=True, capture_output=True,
                               text=True).stdout
        self.assertIn("muster/libmuster.so", shown)
        opened = subprocess.run([python, "-c", OPENED], check=True,
                                capture_output=True, text=True, env={},
                                cwd=self.dir).stdout.splitlines()
        version = os.path.basename(wheel).split("-")[1]
        self.assertEqual(opened[0], version + " 1")
        there, = glob.glob(os.path.join(venv, "lib/python*/site-packages"))
        ours = [os.path.basename(path) for path in opened
                if path.startswith(os.path.realpath(there))]
        self.assertTrue([name for name in ours if re.match(
            r"libgrpc-[0-9a-f]{8}\.so", name)], opened)
        self.check_library_names(opened[1:], os.path.realpath(there))
        for program in ("ps_server", "musterctl"):
            self.assertIn("muster " + version, subprocess.run(
                [os.path.join(there, "muster/bin", program), "--version"],
                check=True, capture_output=True, text=True, env={}).stdout)

    def check_library_names(self, paths, there):
        """None of ours has a name that another package's may have, too."""
        for path in paths:
            name = os.path.basename(path)
            if path.startswith(there) and name != "libmuster.so":
                self.assertRegex(name, r"-[0-9a-f]{8}\.so")
            for foreign in ("grpc", "protobuf", "absl", "spdlog"):
                if foreign in name:
                    self.assertTrue(path.startswith(there), path)

    def test_a_missing_program_is_named(self):
        code, output = self.run_to_end("package", [
            sys.executable, os.path.abspath("scripts/wheel.py"), "--no_build",
            "--bin_dir=" + self.dir, "--out=" + self.dir])
        self.assertEqual(code, 1)
        self.assertIn("no file at '%s/worker/python/libmuster.so" % self.dir,
                      output)
        self.assertEqual(glob.glob(self.path("*.whl")), [])


if __name__ == "__main__":
    harness.main()
