"""The command line of `muster ensemble`."""

import argparse
import shlex

from base.failure import Failure
from base.launcher_flags import add_binary_flags, local_path, positive
from trainings import cluster

DEFAULT_MEMBERS = 4


def parse(argv):
    """Returns the options; ends the process with 2 after a mistake."""
    parser = argparse.ArgumentParser(
        prog="muster ensemble", allow_abbrev=False,
        description="Trains several members, and evaluates them as one model. "
        "Each member is a training in one process on a share of this machine, "
        "alone or with the ps tasks of a cluster. "
        "Killed, or ended by Ctrl-C, it goes on with the same command: members "
        "that are done are kept, others go on from their last checkpoint.")
    parser.add_argument("--training", type=local_path,
                        required=True, metavar="FILE",
                        help="the TrainingSpec")
    parser.add_argument("--ensemble_dir", type=local_path,
                        required=True, metavar="DIR",
                        help="members and results; an ensemble that is there "
                        "goes on")
    parser.add_argument("--members", type=positive, metavar="N",
                        help="how many (default %d, or one a line of "
                        "--set_each); may grow later" % DEFAULT_MEMBERS)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--vary", choices=("seed",), default="seed",
                       help="members differ by their seed (default): --seed, "
                       "and each next one more")
    which.add_argument("--set_each", "--set-each", type=local_path,
                       metavar="FILE",
                       help="members differ by the lines of FILE, one each: "
                       "FIELD=VALUE words as --set takes them, quoted as in a "
                       "shell; # begins a comment")
    parser.add_argument("--seed", type=int, default=1, metavar="K",
                        help="of the first member (default 1)")
    parser.add_argument("--set", action="append", default=[],
                        metavar="FIELD=VALUE",
                        help="override a field in all members; may be repeated")
    parser.add_argument("--parallel", type=positive, metavar="N",
                        help="members at once (default: one a device)")
    parser.add_argument("--devices", type=lambda text: text.split(","),
                        default=[], metavar="LIST",
                        help="one for each running member: cpu:0,cpu:1 are "
                        "equal shares of the cores, gpu:0 a card with such a "
                        "share (default: cpu shares)")
    cluster.add_flags(parser, "member")
    add_binary_flags(parser)
    return parser.parse_args(argv)


def overrides(options):
    """[{field: text}], one a member. Raises Failure."""
    if options.set_each is None:
        return [{"seed": str(options.seed + i)}
                for i in range(options.members or DEFAULT_MEMBERS)]
    try:
        with open(options.set_each, encoding="utf-8") as file:
            lines = list(enumerate(file.read().splitlines(), 1))
    except (OSError, ValueError) as error:
        raise Failure("--set_each=%s: %s" % (options.set_each, error)) from None
    found = [one for one in (_of_line(options.set_each, *line)
                             for line in lines) if one]
    if not found or (options.members or len(found)) != len(found):
        raise Failure("--set_each=%s: wanted a line a member%s, found %d" % (
            options.set_each, ", %d by --members" % options.members
            if options.members else "", len(found)))
    return found


def _of_line(path, number, line):
    where = "--set_each=%s: line %d: " % (path, number)
    fields = {}
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        raise Failure(where + str(error)) from None
    for word in words:
        field, equals, value = word.partition("=")
        if not equals or not field or field in fields:
            raise Failure(where + "wanted FIELD=VALUE words, each field once, "
                          "found '%s'" % word)
        fields[field] = value
    return fields
