"""Makes the package of scripts/package.sh from the test's programs."""

import os
import subprocess
import sys


def make(path):
    """Writes the package; returns what package.py prints."""
    return subprocess.run(
        [sys.executable, os.path.abspath("scripts/package.py"), "--no_build",
         "--bin_dir=" + os.getcwd(), "--out=" + path], check=True,
        stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
