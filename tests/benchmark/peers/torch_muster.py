"""The package muster of a build, beside its ps task."""

import json
import os
import subprocess

from loopback_ports import free_ports

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))


def write_cluster(folder, workers):
    """Addresses of 1 ps and so many workers, and in `folder`/package what a
    wheel would install. Returns the cluster file."""
    ports = free_ports(1 + workers)
    addresses = ["127.0.0.1:%d" % port for port in ports]
    path = os.path.join(folder, "cluster.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"ps": addresses[:1], "worker": addresses[1:]}, file)
    return path


def write_package(folder, bin_dir):
    """The package, which finds its library beside it. Returns PYTHONPATH."""
    package = os.path.join(folder, "package")
    os.mkdir(package)
    for path in (os.path.join(ROOT, "worker/python/muster"),
                 os.path.join(bin_dir, "worker/python/libmuster.so")):
        os.symlink(os.path.abspath(path),
                   os.path.join(package, os.path.basename(path)))
    return package


def start_ps(cluster, bin_dir):
    """With no output, but of errors."""
    return subprocess.Popen(
        [os.path.join(bin_dir, "ps_server/ps_server"), "--cluster=" + cluster,
         "--task_index=0"], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL)
