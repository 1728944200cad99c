"""A program `ssh` for tests, which runs every host's commands here."""

import os
import sys

# As the real one it copies its input, so that killing it ends the other side's
# input, and no more; and its options have one argument each.
SSH = '''#!{python}
import os, subprocess, sys, threading
words = sys.argv[1:]
while words[0].startswith("-"):
    del words[:1 if words[0] == "-T" else 2]
host, command = words
if host == "nowhere":
    sys.exit("ssh: connect to host nowhere port 22: Connection timed out")
print("a greeting of " + host, flush=True)
there = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE,
                         start_new_session=True)
def copy():
    while chunk := os.read(0, 65536):
        os.write(there.stdin.fileno(), chunk)
    there.stdin.close()
threading.Thread(target=copy, daemon=True).start()
sys.exit(there.wait())
'''


def environment(test):
    """Writes it for a harness.TestCase; an environment that finds it first."""
    os.mkdir(test.path("fake"))
    os.chmod(test.write("fake/ssh", SSH.replace("{python}", sys.executable)),
             0o755)
    return dict(os.environ,
                PATH=test.path("fake") + ":" + os.environ["PATH"])
