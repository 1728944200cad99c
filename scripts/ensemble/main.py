"""The verb `ensemble`, from its flags to its table."""

import os
import subprocess
import sys

from base import places
from base.failure import Failure, exit_code_of
from base.local_tasks import die_with_parent
from trainings import cluster, devices, programs
from trainings.definition import Folder, check_training
from trainings.driver import last_error

from . import flags
from .member import EnsembleDriver, training_flags


def main(argv):
    """Returns the exit code."""
    options = flags.parse(argv)
    try:
        return _ensemble(options)
    except Failure as failure:
        print("muster ensemble: %s" % failure, file=sys.stderr)
        return failure.exit_code
    except (OSError, ValueError) as error:
        print("muster ensemble: --ensemble_dir=%s: %s" % (
            options.ensemble_dir, error), file=sys.stderr)
        return exit_code_of(error)


def _ensemble(options):
    if "," in options.ensemble_dir:
        raise Failure("--ensemble_dir=%s: wanted a path without commas, which "
                      "separate members" % options.ensemble_dir)
    each = flags.overrides(options)
    shares = devices.shares(options.devices, options.parallel)
    cluster_ = cluster.create(options, "ensemble", options.ensemble_dir)
    programs.prepare(options)
    for number, fields in enumerate(each):
        check_training(options.bin_dir,
                       training_flags(options.training, options, fields),
                       "member %d: " % number)
    if cluster_ is not None:
        cluster_.check()
    folder = Folder("ensemble", options.ensemble_dir)
    with folder.claim(options.training, {"set": options.set}):
        driver = EnsembleDriver(options, each, shares, cluster_)
        interrupted = driver.run()
        if interrupted is not None:
            return 128 + interrupted
        return _evaluate(driver, options, shares)


def _evaluate(driver, options, shares):
    """Evaluates the members that are done, as one; prints the table."""
    done = [one for one in driver.records if one.state == "DONE"]
    failed = len(driver.records) - len(done)
    if not done:
        raise Failure("no member is done; the same command tries again",
                      exit_code=1)
    result = os.path.join(options.ensemble_dir, "result.json")
    command = [
        places.binary("worker", options.bin_dir), "--evaluate",
        "--ensemble=" + ",".join(one.train_dir for one in done),
        "--output=" + result]
    # Else each takes the best device that there is.
    if all(share.name.startswith("cpu") for share in shares):
        command.append("--device=cpu")
    parent = os.getpid()
    ended = subprocess.run(command, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, check=False,
                           preexec_fn=lambda: die_with_parent(parent))
    if ended.returncode != 0:
        raise Failure("evaluating the ensemble: %s" % last_error(
            ended.stderr.splitlines()), exit_code=ended.returncode)
    print(ended.stdout, end="")
    driver.say("result      %s" % result)
    if failed:
        driver.say("%d of %d members failed; the same command tries them again"
                   % (failed, len(driver.records)))
    return 1 if failed else 0
