"""The definition of a sweep, by which it is known again, and its folder:

    sweep.json, training.textproto   the definition
    trial-0000/, ...                 trial.py
    sweep.csv, parallel.svg          its outcome
"""

import fcntl
import json
import os
import subprocess

from .failure import Failure
from .trial import write_whole

FIELDS = ("param", "set", "sampler", "seed", "pruner")


def check_fields(parameters, options):
    """Has musterctl read the training with each parameter at each of its ends,
    the others at their first. Raises Failure."""
    first = {one.field: one.ends()[0] for one in parameters}
    _check({}, "", options)
    for one in parameters:
        for end in one.ends():
            _check(dict(first, **{one.field: end}),
                   "--param '%s': " % one.field, options)


def _check(values, about, options):
    program = os.path.join(options.bin_dir, "worker/ctl/musterctl")
    done = subprocess.run(
        [program, "model", "show", *training_flags(options.training, options,
                                                   values)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["musterctl failed"])[-1]
        raise Failure(about + said.replace("musterctl model show: ", "", 1))


def training_flags(training, options, values):
    """Flags of a worker or of musterctl: `values` over all trials' --set."""
    return ["--training=" + training, *("--set=" + one for one in options.set),
            *("--set=%s=%s" % item for item in values.items())]


def claim(options):
    """Makes the sweep's folder, or takes that of the same sweep; returns a lock
    that holds while it is open. Raises Failure, OSError."""
    folder = options.sweep_dir
    with open(options.training, encoding="utf-8") as file:
        training = file.read()
    wanted = {name: getattr(options, name) for name in FIELDS}
    os.makedirs(folder, exist_ok=True)
    _check_folder(folder)
    lock = open(os.path.join(folder, ".lock"), "w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Failure("--sweep_dir=%s: another sweep runs there" %
                      folder) from None
    if not os.path.exists(os.path.join(folder, "sweep.json")):
        write_whole(training_copy(folder), training)
        write_whole(os.path.join(folder, "sweep.json"),
                    json.dumps(wanted, indent=1) + "\n")
    _compare(folder, training, wanted)
    return lock


def _check_folder(folder):
    """Nothing is to be mixed with files of others."""
    names = set(os.listdir(folder))
    # The files of a sweep that was killed before its first trial.
    first = {".lock"} | {name + new for name in (
        "training.textproto", "sweep.json") for new in ("", ".new")}
    if "sweep.json" not in names and names - first:
        raise Failure("--sweep_dir=%s: wanted a new folder or a sweep, found "
                      "'%s' there" % (folder, min(names - first)))


def _compare(folder, training, wanted):
    with open(os.path.join(folder, "sweep.json"), encoding="utf-8") as file:
        found = json.load(file)
    with open(training_copy(folder), encoding="utf-8") as file:
        if file.read() != training:
            raise Failure("--sweep_dir=%s is of another sweep: its --training "
                          "is %s; choose another folder" %
                          (folder, training_copy(folder)))
    for name in FIELDS:
        if found.get(name) != wanted[name]:
            raise Failure(
                "--sweep_dir=%s is of another sweep: it has --%s=%s, wanted "
                "%s; choose another folder" % (folder, name, found.get(name),
                                               wanted[name]))


def training_copy(folder):
    """The trials read this one, which nobody edits meanwhile."""
    return os.path.join(folder, "training.textproto")
