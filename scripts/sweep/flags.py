"""The command line of `muster sweep`."""

import argparse

from base.launcher_flags import add_binary_flags, local_path, positive
from trainings import cluster

from .trial import HALVES

SAMPLERS = ("random", "grid", "tpe")
PRUNERS = ("none", "median", "asha")


def parse(argv):
    """Returns the options; ends the process with 2 after a mistake."""
    parser = argparse.ArgumentParser(
        prog="muster sweep", allow_abbrev=False,
        description="Trains with many values of some fields and says which "
        "are best. Each trial is a training in one process on a share of "
        "this machine, alone or with the ps tasks of a cluster. Killed, or "
        "ended by Ctrl-C, it goes on with the same command: trials that have "
        "ended are kept.")
    parser.add_argument("--training", type=local_path,
                        required=True, metavar="FILE",
                        help="the TrainingSpec")
    parser.add_argument("--param", required=True, action="append",
                        metavar="FIELD=DISTRIBUTION",
                        help="a field as --set names it, and what it may be: "
                        "log:LO:HI, uniform:LO:HI, int:LO:HI (with :POINTS, "
                        "so many of them at even distances) or choice:A,B,C; "
                        "may be repeated")
    parser.add_argument("--set", action="append", default=[],
                        metavar="FIELD=VALUE",
                        help="override a field in all trials; may be repeated")
    parser.add_argument("--sweep_dir", type=local_path,
                        required=True, metavar="DIR",
                        help="trials and results; a sweep that is there goes "
                        "on")
    parser.add_argument("--metric", default="test_loss", metavar="NAME",
                        help="a figure of result.json (default test_loss); "
                        "validation_..., which leaves the test half out of the "
                        "choice, with --set=input.validation_fraction=0.1")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--maximize", action="store_true",
                       help="the more of it, the better")
    which.add_argument("--minimize", action="store_true",
                       help="the less of it, the better")
    parser.add_argument("--trials", type=positive, default=20, metavar="N",
                        help="in all (default 20); may grow later")
    parser.add_argument("--parallel", type=positive, metavar="N",
                        help="trials at once (default: one a device)")
    parser.add_argument("--devices", type=lambda text: text.split(","),
                        default=[], metavar="LIST",
                        help="one for each running trial: cpu:0,cpu:1 are "
                        "equal shares of the cores, gpu:0 a card with such a "
                        "share (default: cpu shares)")
    parser.add_argument("--sampler", choices=SAMPLERS, default="random",
                        help="random (default); grid: all values with all; "
                        "tpe: Optuna's, which learns from the trials before")
    parser.add_argument("--seed", type=int, default=1, metavar="K",
                        help="of the sampler (default 1)")
    parser.add_argument("--pruner", choices=PRUNERS, default="none",
                        help="ends trials that are no good at an evaluation "
                        "(--set=evaluation.every_steps=N), by Optuna: worse "
                        "than the median, or asha's successive halving "
                        "(default none)")
    parser.add_argument("--no_pictures", action="store_true",
                        help="neither parallel.svg nor hparams for "
                        "TensorBoard, which take packages from PyPI the first "
                        "time")
    cluster.add_flags(parser, "trial")
    add_binary_flags(parser)
    options = parser.parse_args(argv)
    if options.pruner != "none" and not options.metric.startswith(HALVES):
        parser.error("--pruner=%s looks at evaluations: wanted a --metric that "
                     "they have (test_..., validation_...), found '%s'" % (
                         options.pruner, options.metric))
    return options
