"""The verb `mean`: the mean of several files of predictions."""

import argparse
import sys

from base.failure import Failure, exit_code_of
from base.launcher_flags import local_path

from . import predictions


def main(argv):
    """Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="muster mean", allow_abbrev=False,
        description="Writes the mean of files that `worker predict` has written "
        "of the same rows: of probabilities, the mean of the probabilities. A "
        "row that one file has no values for has none.")
    parser.add_argument("--output", type=local_path, required=True,
                        metavar="FILE.npy", help="the mean, float32")
    parser.add_argument("inputs", type=local_path, nargs="+",
                        metavar="PREDICTIONS.npy")
    options = parser.parse_args(argv)
    try:
        predictions.write(options.output, predictions.mean(options.inputs))
    except Failure as failure:
        print("muster mean: %s" % failure, file=sys.stderr)
        return failure.exit_code
    except OSError as error:
        print("muster mean: %s" % error, file=sys.stderr)
        return exit_code_of(error)
    return 0
