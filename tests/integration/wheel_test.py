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

sys.path.insert(0, os.path.abspath("scripts"))
import wheel  # noqa: E402
from base import launcher_flags  # noqa: E402

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
        code, output = self.run_to_end("package", [
            sys.executable, os.path.abspath("scripts/wheel.py"), "--no_build",
            "--bin_dir=" + os.getcwd(), "--out=" + self.path(name)])
        self.assertEqual(code, 0, output)
        path, = glob.glob(os.path.join(self.path(name), "*.whl"))
        return path

    def digest(self, path):
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def test_the_wheel_is_the_same_twice_and_runs_where_it_is_installed(self):
        made = self.make("1")
        self.assertEqual(self.digest(made), self.digest(self.make("2")))
        # In the place of the first.
        self.assertEqual(self.make("1"), made)
        self.check_files(made)
        self.check_installed(made)

    def check_files(self, path):
        name = os.path.basename(path)
        self.assertRegex(
            name, r"^muster-\d+\.\d+\.\d+-py3-none-manylinux_2_\d+_x86_64.whl$")
        with zipfile.ZipFile(path) as packed:
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
        # No backend: it would be three times as large.
        self.assertFalse([name for name in names if "dnnl" in name])
        for library in ("libgrpc", "libprotobuf", "libssl", "zlib"):
            self.assertTrue([name for name in names if re.match(
                re.escape(info) + "licenses/%s[^/]*/copyright$" % library,
                name)], names)

    def check_installed(self, path):
        venv = self.path("venv")
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        python = os.path.join(venv, "bin/python")
        subprocess.run([python, "-m", "pip", "install", "--no-index",
                        "--no-deps", "--quiet", path], check=True)
        # It compares RECORD with what is there.
        shown = subprocess.run([python, "-m", "pip", "show", "--files",
                                "muster"], check=True, capture_output=True,
                               text=True).stdout
        self.assertIn("muster/libmuster.so", shown)
        opened = subprocess.run([python, "-c", OPENED], check=True,
                                capture_output=True, text=True, env={},
                                cwd=self.dir).stdout.splitlines()
        version = os.path.basename(path).split("-")[1]
        there, = glob.glob(os.path.join(venv, "lib/python*/site-packages"))
        with open(os.path.join(there, "muster/_library.py"),
                  encoding="utf-8") as file:
            abi = re.search(r"^ABI = (\d+)$", file.read(), re.MULTILINE)
        self.assertEqual(opened[0], "%s %s" % (version, abi.group(1)))
        ours = [os.path.basename(path) for path in opened
                if path.startswith(os.path.realpath(there))]
        self.assertTrue([name for name in ours if re.match(
            r"libgrpc-[0-9a-f]{8}\.so", name)], opened)
        self.check_library_names(opened[1:], os.path.realpath(there))
        for program in ("ps_server", "musterctl"):
            self.assertIn("muster " + version, subprocess.run(
                [os.path.join(there, "muster/bin", program), "--version"],
                check=True, capture_output=True, text=True, env={}).stdout)
        self.check_launched(os.path.join(there, "muster/bin"), version)

    def check_launched(self, bin_dir, version):
        """Its ps_server is enough for a program of one's own."""
        one = self.start("muster run", [
            sys.executable, os.path.abspath("scripts/muster"), "run", "-H",
            "localhost:1", "--bin_dir=" + bin_dir, "--", "sh", "-c",
            # Until the ps task, of which it is told, is up.
            'while [ ! -e "$0" ]; do sleep 0.05; done; exit 7',
            self.path("up")])
        one.wait_for(r"localhost +\S+ s +muster %s" % re.escape(version))
        one.wait_for(r"ps 0\] .* listening on")
        self.write("up", "")
        self.assertEqual(one.wait(), 7, one.output)

    def check_library_names(self, paths, there):
        """None of ours has a name that another package's may have, too."""
        for path in paths:
            name = os.path.basename(path)
            if path.startswith(there) and name != "libmuster.so":
                self.assertRegex(name, r"-[0-9a-f]{8}\.so")
            for foreign in ("grpc", "protobuf", "absl", "spdlog"):
                if foreign in name:
                    self.assertTrue(path.startswith(there), path)

    def test_without_out_it_lies_where_the_front_page_installs_it_from(self):
        out = wheel.parse_arguments([]).out
        self.assertEqual(out, os.path.join(launcher_flags.ROOT, "dist"))
        with open("README.md", encoding="utf-8") as file:
            self.assertIn("pip install dist/muster-*.whl", file.read())

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
