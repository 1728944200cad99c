"""The definition of several trainings, by which they are known again, in their
folder: VERB.json and training.textproto.
"""

import fcntl
import json
import os
import subprocess

from base import places
from base.failure import Failure
from base.folder_lock import take_lock

from .record import read_object, write_whole


def check_training(bin_dir, flags, about=""):
    """Has musterctl read the training of a worker's `flags`. Raises Failure,
    with `about` before what it says."""
    done = subprocess.run(
        [places.binary("musterctl", bin_dir), "model", "show", *flags],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["musterctl failed"])[-1]
        raise Failure(about + said.replace("musterctl model show: ", "", 1))


def training_copy(folder):
    """Trainings read this one, which nobody edits meanwhile."""
    return os.path.join(folder, "training.textproto")


class Folder:
    """The folder of one start of a verb, which --VERB_dir names."""

    def __init__(self, verb, path):
        self.path = path
        self.verb = verb
        self.flag = "--%s_dir=%s" % (verb, path)
        self.definition = os.path.join(path, verb + ".json")

    def claim(self, training_file, wanted):
        """Makes it, or takes that of the same definition: the training, and
        `wanted`, {flag: value}. Returns a lock that holds while it is open.
        Raises Failure, OSError, ValueError."""
        with open(training_file, encoding="utf-8") as file:
            training = file.read()
        os.makedirs(self.path, exist_ok=True)
        self._check()
        lock = open(os.path.join(self.path, ".lock"), "w", encoding="utf-8")
        try:
            take_lock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, self.flag)
        except BlockingIOError:
            raise Failure("%s: another %s runs there" % (
                self.flag, self.verb)) from None
        if not os.path.exists(self.definition):
            write_whole(training_copy(self.path), training)
            write_whole(self.definition, json.dumps(wanted, indent=1) + "\n")
        self._compare(training, wanted)
        return lock

    def _check(self):
        """Nothing is to be mixed with files of others."""
        names = set(os.listdir(self.path))
        own = os.path.basename(self.definition)
        # The files of one that was killed before its first training.
        first = {".lock"} | {name + new for name in ("training.textproto", own)
                             for new in ("", ".new")}
        if own not in names and names - first:
            raise Failure("%s: wanted a new folder or that of the same %s, "
                          "found '%s' there" % (self.flag, self.verb,
                                                min(names - first)))

    def _compare(self, training, wanted):
        found = read_object(self.definition)
        with open(training_copy(self.path), encoding="utf-8") as file:
            if file.read() != training:
                raise Failure("%s is of another %s: its --training is %s; "
                              "choose another folder" % (
                                  self.flag, self.verb,
                                  training_copy(self.path)))
        for name, value in wanted.items():
            if found.get(name) != value:
                raise Failure(
                    "%s is of another %s: it has --%s=%s, wanted %s; choose "
                    "another folder" % (self.flag, self.verb, name,
                                        found.get(name), value))
