"""The verb `sweep`, from its flags to its report."""

import glob
import math
import os
import sys

from base import places, python_environment
from base.failure import Failure, exit_code_of
from trainings import cluster, devices, driver, programs

from . import flags, sampler, space, table
from .definition import check_fields, claim
from .driver import SweepDriver
from .trial import Trial

FOLDER = os.path.dirname(os.path.abspath(__file__))


def main(argv):
    """Returns the exit code."""
    options = flags.parse(argv)
    try:
        return _sweep(options)
    except (Failure, python_environment.EnvironmentFailure) as failure:
        print("muster sweep: %s" % failure, file=sys.stderr)
        return getattr(failure, "exit_code", 2)
    except (OSError, ValueError) as error:
        print("muster sweep: --sweep_dir=%s: %s" % (options.sweep_dir, error),
              file=sys.stderr)
        return exit_code_of(error)


def _sweep(options):
    parameters = space.parse_all(options.param)
    fields = [one.field for one in parameters]
    shares = devices.shares(options.devices, options.parallel)
    sampler_ = sampler.create(options.sampler, parameters, options.seed)
    has_study = options.sampler == "tpe" or options.pruner != "none"
    if has_study:
        add_packages(_python())
    cluster_ = cluster.create(options, "sweep", options.sweep_dir)
    programs.prepare(options)
    check_fields(parameters, options)
    if cluster_ is not None:
        cluster_.check()
    with claim(options):
        if options.trials < sampler_.size < math.inf:
            say("the grid has %d points; --trials=%d takes the first of them" %
                (sampler_.size, options.trials))
        sweep = SweepDriver(options, sampler_, shares,
                            Trial.load_all(options.sweep_dir, options.metric),
                            cluster_,
                            _study(options, parameters) if has_study else None)
        try:
            interrupted = sweep.run()
        finally:
            table.write_csv(options.sweep_dir, sweep.records, fields,
                            options.metric)
        if interrupted is not None:
            return 128 + interrupted
        return _report(sweep, options, parameters, fields)


def say(text):
    driver.say(SweepDriver.VERB, text)


def _python():
    return python_environment.interpreter(
        os.path.join(FOLDER, "requirements.txt"))


def add_packages(python):
    """This Python gets the packages of that one, which has its version."""
    sys.path[1:1] = glob.glob(os.path.join(
        os.path.dirname(os.path.dirname(python)),
        "lib/python3*/site-packages"))


def _study(options, parameters):
    # pylint: disable=import-outside-toplevel
    from .study import Study
    return Study(options, parameters)


def _report(sweep, options, parameters, fields):
    found = table.best(sweep.records, options.maximize)
    if found is None:
        raise Failure("no trial is done and has a %s; %s/sweep.csv says how "
                      "each has ended" % (options.metric, options.sweep_dir),
                      exit_code=1)
    print(table.text_table(sweep.records, fields, options.metric,
                           options.maximize))
    say("table       %s/sweep.csv" % options.sweep_dir)
    if not options.no_pictures:
        _draw(sweep.records, options, parameters)
    say("best, once more with the whole machine:")
    worker = places.binary("worker", options.bin_dir)
    print(table.best_command(found, options.sweep_dir, min(
        worker, os.path.relpath(worker), key=len), sweep.flags_of))
    return 0


def _draw(trials, options, parameters):
    """A line says why not, where the packages cannot be had."""
    trials = [one for one in trials if one.value() is not None]
    try:
        add_packages(_python())
        # pylint: disable=import-outside-toplevel
        from . import hparams, picture
    except (python_environment.EnvironmentFailure, OSError,
            ImportError) as failure:
        say("no picture and no hparams: %s" % failure)
        return
    for what, module in (("picture", picture), ("hparams", hparams)):
        try:
            say("%-11s %s" % (what, module.write(options, trials, parameters)))
        except Exception as error:  # pylint: disable=broad-except
            # The sweep is done all the same.
            say("no %s: %s: %s" % (what, type(error).__name__, error))
