"""cluster_configs/systemd: systemd-analyze has nothing to say of the units."""

import os
import re
import shutil
import subprocess
import unittest

from tests.integration import harness

FOLDER = os.path.abspath("cluster_configs/systemd")
UNITS = ("muster-ps@.service", "muster-worker@.service")
# Of 10; systemd says "OK" up to 4.
EXPOSURE = 2.0


@unittest.skipIf(shutil.which("systemd-analyze") is None,
                 "systemd-analyze is not installed")
class SystemdTest(harness.TestCase):

    def unit(self, name, old="", new=""):
        """A copy whose program is where it is here."""
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            text = file.read()
        for program in ("ps_server", "worker"):
            text = text.replace("/opt/muster/bin/" + program,
                                harness.binary("%s/%s" % (program, program)))
        self.assertIn(old, text)
        return self.write(name.replace("@", "@1"), text.replace(old, new))

    def analyze(self, *arguments):
        done = subprocess.run(
            ["systemd-analyze", *arguments], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False)
        return done.returncode, done.stdout

    def test_units_are_valid(self):
        for name in UNITS:
            self.assertEqual(self.analyze("verify", self.unit(name)), (0, ""))

    def test_a_mistake_would_be_found(self):
        for name in UNITS:
            _, output = self.analyze("verify", self.unit(
                name, "RestartSec=", "RestartSecs="))
            self.assertIn("RestartSecs", output)

    def test_units_are_confined(self):
        for name in UNITS:
            code, output = self.analyze(
                "security", "--offline=yes", self.unit(name))
            self.assertEqual(code, 0, output)
            exposure = re.search(r"exposure level for .*: (\d+\.\d+) OK",
                                 output)
            self.assertLess(float(exposure.group(1)), EXPOSURE, output)

    def test_flags_are_those_of_the_programs(self):
        for name in UNITS:
            with open(self.unit(name), encoding="utf-8") as file:
                line = re.search("^ExecStart=(.*)$", file.read(), re.M).group(1)
            program, *flags = line.split()
            _, text = self.run_to_end(program, [program, "--help"])
            for flag in flags:
                self.assertIn(flag.partition("=")[0] + " ", text)

    def test_mistakes_are_not_tried_again(self):
        for name in UNITS:
            with open(self.unit(name), encoding="utf-8") as file:
                self.assertIn("\nRestartPreventExitStatus=1 2 3 4\n",
                              file.read())


if __name__ == "__main__":
    harness.main()
