"""The package in an empty Debian, by chroot, and as an image that buildah makes.

Needs root, mmdebstrap, buildah and Debian's packages.
"""

import os
import shutil
import tempfile
import unittest

from tests.integration import harness
from tests.integration import package_scenarios

PROGRAMS = ("mmdebstrap", "buildah", "patchelf")
LIMIT_S = 600
# In the empty system: no Python, so that a shell is the launcher.
TRAIN = """set -e
cd /opt/muster
bin/ps_server --cluster=/mnt/cluster.json --task_index=0 &
bin/worker --cluster=/mnt/cluster.json --task_index=0 --compute_threads=1 \
  --training=/mnt/training --train_dir=/mnt/train
wait $!
bin/musterctl checkpoint ls /mnt/train
"""
# What a container gives, too; gone with the mount namespace.
MOUNT = """set -e
mkdir -p "$1/opt/muster"
mount --bind "$2" "$1/opt/muster"
mount --bind "$3" "$1/mnt"
mount -t proc proc "$1/proc"
exec chroot "$1" sh -c "$4"
"""


def missing():
    names = [name for name in PROGRAMS if not shutil.which(name)]
    return "not installed: " + ", ".join(names) if names else None


@unittest.skipIf(missing() is not None, missing())
class PackageTest(harness.TestCase):
    # The empty Debian, and the package; made once.
    root = None
    package = None

    def setUp(self):
        super().setUp()
        self.env = dict(os.environ, BUILDAH_ISOLATION="chroot",
                        STORAGE_DRIVER="vfs", HOME=self.dir,
                        XDG_RUNTIME_DIR=self.dir,
                        PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
        if PackageTest.root is None:
            self.make_once()

    def make_once(self):
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        unittest.addModuleCleanup(shutil.rmtree, folder, ignore_errors=True)
        archive = os.path.join(folder, "muster.tar.gz")
        package_scenarios.make(archive)
        self.succeed("tar", "xzf", archive, "-C", folder)
        root = os.path.join(folder, "root")
        self.succeed("mmdebstrap", "--variant=minbase", "--quiet", "bookworm",
                     root)
        PackageTest.root = root
        PackageTest.package = os.path.join(folder, "muster")

    def succeed(self, *command):
        code, output = self.run_to_end(command[0], list(command), LIMIT_S,
                                       self.env)
        self.assertEqual(code, 0, output)
        return output

    def test_trains_in_an_empty_debian(self):
        for absent in ("usr/bin/python3", "usr/lib/x86_64-linux-gnu/libgrpc.so"):
            self.assertFalse(os.path.exists(os.path.join(self.root, absent)))
        self.write("training", harness.softmax_regression(steps=20))
        self.write_cluster()
        output = self.succeed("unshare", "--mount", "sh", "-c", MOUNT, "sh",
                              self.root, self.package, self.dir, TRAIN)
        self.assertIn("step=20 test_accuracy=", output)
        self.assertIn("ckpt-000000000020", output)

    def buildah(self, *arguments):
        return self.succeed("buildah", "--root", self.path("storage"),
                            "--runroot", self.path("runroot"), *arguments)

    def test_is_an_image_by_ten_lines(self):
        with open(os.path.join(self.package, "Containerfile"),
                  encoding="utf-8") as file:
            self.assertLessEqual(len(file.read().splitlines()), 10)
        base = self.buildah("from", "scratch").split()[-1]
        self.buildah("add", "--quiet", base, self.root, "/")
        self.buildah("commit", "--quiet", base, "debian-empty")
        self.buildah("bud", "--timestamp", "946684800", "--build-arg",
                     "BASE=localhost/debian-empty", "-t", "muster:1",
                     self.package)
        there = self.buildah("from", "localhost/muster:1").split()[-1]
        output = self.buildah("run", there, "--", "worker", "--version")
        self.assertIn("muster ", output)
        self.assertIn("65532", self.buildah(
            "run", there, "--", "sh", "-c", "id -u"))


if __name__ == "__main__":
    harness.main()
