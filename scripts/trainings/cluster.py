"""The running cluster on which trainings have a namespace each: --cluster."""

import hashlib
import os
import re
import subprocess

from base import cluster_file, places
from base.failure import Failure
from base.launcher_flags import local_path

# What a namespace's name may not have.
OTHER = re.compile(r"[^A-Za-z0-9_.-]+")
LONGEST_NAME = 60


def add_flags(parser, one):
    """`one`: what the verb calls a training."""
    parser.add_argument("--cluster", type=local_path, metavar="FILE",
                        help="train on the ps tasks of this cluster file, "
                        "which run with --keep_serving: each %s in a namespace "
                        "of its own, with a worker here" % one)
    parser.add_argument("--keep_namespaces", action="store_true",
                        help="with --cluster: leave the ps tasks what a %s has "
                        "there when it has ended (default: dropped)" % one)
    parser.add_argument("--certs_dir", type=local_path, metavar="DIR",
                        help="with --cluster: keys, as workers take them")
    parser.add_argument("--allow_insecure_network", action="store_true",
                        help="with --cluster: of another machine, without "
                        "encryption")


def create(options, verb, folder):
    """The Cluster of the flags, or None. Raises Failure."""
    if options.cluster is None:
        if options.keep_namespaces:
            raise Failure("--keep_namespaces wants --cluster")
        return None
    return Cluster(options, verb, folder)


class Cluster:
    """The ps tasks of --cluster, for the trainings in `folder`."""

    def __init__(self, options, verb, folder):
        tasks = cluster_file.read(options.cluster)
        ps = sorted(task for task in tasks if task.job == "ps")
        if not ps:
            raise Failure("--cluster=%s: wanted ps tasks, found none" %
                          options.cluster)
        self.keeps = options.keep_namespaces
        self._bin_dir = options.bin_dir
        self._ps = ["--ps_hosts=" + ",".join(
            cluster_file.join_address(*tasks[task]) for task in ps)]
        if options.certs_dir is not None:
            self._ps.append("--certs_dir=" + options.certs_dir)
        if options.allow_insecure_network:
            self._ps.append("--allow_insecure_network")
        # Another folder of that name, on this machine or another, is another.
        path = os.path.realpath(folder)
        self._prefix = "%s-%s-%s" % (
            verb, OTHER.sub("_", os.path.basename(path))[:LONGEST_NAME],
            hashlib.sha256(path.encode()).hexdigest()[:8])

    def namespace(self, record):
        return "%s/%s" % (self._prefix, os.path.basename(record.folder))

    def flags(self, record):
        """Of the record's worker: a job of one, which nobody looks for."""
        return [*self._ps, "--worker_hosts=127.0.0.1:1", "--task_index=0",
                "--bind=127.0.0.1:0", "--namespace=" + self.namespace(record)]

    def check(self):
        """That there are ps tasks, which keep serving. Raises Failure."""
        error = self._musterctl("ls")
        if error:
            raise Failure("--cluster: " + error)

    def drop(self, record):
        """Frees what the ended record has on the ps tasks. The text of an
        error, or ""."""
        # Its worker has ended, but ps task 0 may not know it.
        error = self._musterctl("drop", self.namespace(record), "--force")
        # One that failed at its start has left nothing.
        return "" if "no ps task has namespace" in error else error

    def _musterctl(self, *words):
        done = subprocess.run(
            [places.binary("musterctl", self._bin_dir), "namespace", *words, *self._ps],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False, start_new_session=True)
        if done.returncode == 0:
            return ""
        return (done.stderr.strip().splitlines() or ["musterctl failed"])[-1]
