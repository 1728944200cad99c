"""The command line of the launcher.

Part of launcher.py. Python 3 standard library only.
"""

import argparse
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
# A package (package.py) has its programs there, and nothing to build.
PACKAGED = os.path.join(ROOT, "bin")
IS_PACKAGE = os.path.isdir(PACKAGED)
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
VARIABLE = re.compile(r"(^|/)\$[A-Za-z_][A-Za-z0-9_]*(/|$)|\$[{(]|`|"
                      r"\$[A-Z_][A-Z0-9_]+(?![A-Za-z0-9_])")
MARKS = re.compile(r"""(["']).*\1$|\s|.*\s$""", re.DOTALL)


def parse_arguments(argv):
    """Returns the options; ends the process with 2 after a mistake."""
    parser = argparse.ArgumentParser(
        prog="train_local.sh",
        description="Trains on this machine: installs what is missing, "
        "builds, starts ps and worker tasks on free loopback ports, and "
        "evaluates at the end. Ctrl-C drains (exit code 130), as do SIGTERM, "
        "SIGHUP, SIGUSR1, SIGXCPU and the like (143): the chief saves; a "
        "second Ctrl-C or SIGTERM kills.",
        allow_abbrev=False)
    parser.add_argument("--ps", type=not_negative, default=1, metavar="N",
                        help="ps tasks (default 1). 0: none, the workers hold "
                        "the parameters (replication=all_reduce)")
    parser.add_argument("--workers", type=positive, default=2, metavar="M",
                        help="worker tasks (default 2)")
    parser.add_argument("--evaluator", action="store_true",
                        help="one more task, which evaluates each checkpoint "
                        "beside the training")
    stop = parser.add_mutually_exclusive_group()
    stop.add_argument("--steps", type=positive, metavar="S",
                      help="stop after S global steps")
    stop.add_argument("--epochs", type=float, metavar="E",
                      help="stop after E passes over the training set")
    parser.add_argument(
        "--training", type=local_path, metavar="FILE",
        default=os.path.join(ROOT, "worker/model/zoo/mnist_cnn.textproto"),
        help="TrainingSpec (default worker/model/zoo/mnist_cnn.textproto)")
    parser.add_argument("--train_dir", type=local_path, metavar="DIR",
                        help="checkpoints and result.json; an old one is "
                        "resumed (default: a new run_DATE_TIME here)")
    parser.add_argument("--seed", type=int, metavar="K",
                        help="seed of initial values, shuffling and dropout")
    parser.add_argument("--set", action="append", default=[],
                        metavar="FIELD=VALUE",
                        help="override a field of the TrainingSpec; may be "
                        "repeated")
    parser.add_argument("--compute_threads", type=positive, metavar="T",
                        help="of each worker (default: cores, or a cgroup's "
                        "quota of them, over tasks)")
    parser.add_argument("--num_devices", type=positive, default=1, metavar="T",
                        help="towers (replicas of the model on devices of "
                        "their own) of each worker; default 1")
    parser.add_argument("--gpus", type=gpus, default="auto", metavar="N",
                        help="worker I computes on GPU I mod N, as "
                        "CUDA_VISIBLE_DEVICES tells it: a number, none, or auto "
                        "(all that nvidia-smi lists; default)")
    parser.add_argument("--worker_flag", action="append", default=[],
                        metavar="FLAG",
                        help="a further flag of every worker and the evaluator, "
                        "as --worker_flag=--device=cpu; may be repeated")
    parser.add_argument("--link",
                        choices=("auto", "shared_memory", "tcp", "grpc"),
                        help="what carries tensors between workers and ps "
                        "(default: the worker's, auto)")
    parser.add_argument("--certs_dir", type=local_path, metavar="DIR",
                        help="mutual TLS with the keys of `muster certs issue "
                        "--ps N --workers M`")
    parser.add_argument("--progress_every", type=seconds, metavar="S",
                        help="seconds between two progress lines of a worker; "
                        "0: one for each step (default: the worker's)")
    parser.add_argument("--profile_steps", type=positive, metavar="K",
                        help="each worker writes a timeline of K steps, "
                        "profile-worker-N.json, into train_dir")
    parser.add_argument("--restart", type=not_negative, default=0, metavar="N",
                        help="start a task that was killed, or ended with a "
                        "code of 128 or more, again up to N times, as systemd "
                        "or Kubernetes would (default 0)")
    add_binary_flags(parser)
    return parser.parse_args(argv)


def add_binary_flags(parser):
    parser.add_argument("--no_build", action="store_true",
                        help="use the binaries as they are")
    parser.add_argument("--bin_dir", type=local_path, metavar="DIR",
                        default=(PACKAGED if IS_PACKAGE else
                                 os.path.join(ROOT, "bazel-bin")),
                        help="where ps_server/ps_server and worker/worker "
                        "are (default bazel-bin; in a package its bin)")


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("wanted a positive number")
    return value


def not_negative(text):
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("wanted 0 or more")
    return value


def gpus(text):
    return text if text in ("auto", "none") else positive(text)


def seconds(text):
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError("wanted 0 or more seconds")
    return value


def local_path(text):
    """A type of argparse: refuses what cannot be meant as the name of a file or
    folder of this machine. common/config/local_path.h is its twin."""
    why = ""
    if text.startswith("file:/"):
        why = "is an address: write the path alone, without file:"
    elif SCHEME.match(text):
        why = ("is no path of this machine, and no other storage is opened: "
               "mount it (NFS, s3fs, gcsfuse, ...) and give the path that it "
               "has there")
    elif text.startswith("~"):
        why = ("would be a file or folder of just that name, as no shell has "
               "put in the home folder (in quotes and behind = it does not): "
               "write the path out, or ./~ for one that is called so")
    elif VARIABLE.search(text):
        why = ("would be a file or folder of just that name, as no shell has "
               "put in the variable (in single quotes and in files it does "
               "not): write the path out")
    elif MARKS.match(text):
        why = ("would be a file or folder of just that name, with the quotes "
               "or blanks around it (a file of flags wants none): leave them "
               "out")
    if why:
        raise argparse.ArgumentTypeError("'%s' %s" % (text, why))
    return text
