"""The verb `ensemble`, from its flags to its table."""

import json
import os
import sys

from base.failure import Failure, exit_code_of
from trainings import cluster, devices, programs
from trainings.definition import Folder, check_training
from trainings.record import write_whole

from . import flags
from .answer import Answers, summary, table
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
        return _evaluate(driver, options, each, shares)


def _evaluate(driver, options, each, shares):
    """Asks the members that are done; prints the table."""
    done = [one for one in driver.records if one.state == "DONE"]
    failed = len(driver.records) - len(done)
    if not done:
        raise Failure("no member is done; the same command tries again",
                      exit_code=1)
    # Else each takes the best device that there is.
    on_cpu = all(share.name.startswith("cpu") for share in shares)
    answers = Answers(options.bin_dir, options.ensemble_dir,
                      ["--device=cpu"] if on_cpu else [], each[0].get("seed"))
    figures = [answers.evaluate(member) for member in done]
    result = summary(done, figures, answers.mean(done, figures[0]))
    path = os.path.join(options.ensemble_dir, "result.json")
    write_whole(path, json.dumps(result, indent=1) + "\n")
    print(table(result), flush=True)
    driver.say("result      %s" % path)
    if answers.has_weights(done):
        driver.say("the ensemble has no test_loss: class_weight and "
                   "input.weight_column are not known of its predictions")
    if failed:
        driver.say("%d of %d members failed; the same command tries them again"
                   % (failed, len(driver.records)))
    return 1 if failed else 0
