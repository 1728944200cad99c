"""The verb `task`: runs the task of a Slurm job step that its rank says.

    srun -N3 -n3 scripts/muster task --ps 1 --training=... --train_dir=...

The ranks below --ps are ps tasks, the others workers. Rank r listens on port
--port_base + r of its node, so that every task can tell every address.
"""

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys

from base import cluster_file, places, stop_signals
from base.failure import Failure, exit_code_of
from base.launcher_flags import local_path, not_negative, positive
from base.local_tasks import die_with_parent

from . import host_list, program, run

SCONTROL_S = 30
NODE_ADDRESS = re.compile(r"\bNodeName=(\S+).*?\bNodeAddr=(\S+)")


def parse(argv):
    """(own options, the flags of the workers)."""
    parser = argparse.ArgumentParser(
        prog="muster task", allow_abbrev=False,
        usage="srun -n TASKS muster task [FLAG...] --training=FILE "
        "--train_dir=DIR [WORKER FLAG...]\n"
        "       srun -n TASKS muster task [FLAG...] -- python train.py "
        "[ARGUMENT...]",
        description="Runs ps_server or worker, with role and addresses from "
        "the SLURM_* variables of srun: ranks below --ps are ps tasks, the "
        "others workers. Flags that are not listed go to the workers. A "
        "program (without flags before it the -- may be left out) runs in the "
        "place of the worker, with role, addresses and the path of keys in "
        "MUSTER_* variables, which muster.init reads.")
    parser.add_argument("--ps", type=not_negative, default=1, metavar="N",
                        help="ps tasks (default 1). 0: none, the workers hold "
                        "the parameters (replication=all_reduce)")
    run.add_task_flags(parser, "rank r listens on port P + r (default 8888)",
                       8888)
    parser.add_argument("--allow_insecure_network", action="store_true",
                        help="talk between nodes without encryption or "
                        "authentication")
    parser.add_argument("--certs_dir", type=local_path,
                        metavar="DIR", help="mutual TLS with "
                        "the keys of `muster certs`, on a file system that all "
                        "nodes share, or a copy on each")
    parser.add_argument("--bin_dir", type=local_path,
                        metavar="DIR", help="where ps_server and "
                        "worker are (default: bin or bazel-bin of the package); "
                        "with a program ps_server is enough, as in the wheel's "
                        "muster/bin")
    own, rest = ([], argv) if program.is_program(argv) else run.split(argv)
    options, unknown = parser.parse_known_args(own)
    program.refuse_mixed(parser, unknown, rest)
    options.worker_flags = unknown + rest
    return options


def variable(environment, name):
    text = environment.get(name)
    if text is None:
        raise Failure("%s is not set: start it with srun, as srun -n 3 muster "
                      "task --ps 1 ...; muster run -H localhost:2 goes without "
                      "Slurm" % name)
    return text


def number(environment, name):
    text = variable(environment, name)
    if not text.isdecimal():
        raise Failure("%s=%s: wanted a number" % (name, text))
    return int(text)


def tasks_per_node(text):
    """[4, 1, 1] of Slurm's 4,1(x2)."""
    counts = []
    for item in text.split(","):
        match = re.fullmatch(r"(\d{1,4})(?:\(x(\d{1,4})\))?", item)
        if not match:
            raise Failure("SLURM_STEP_TASKS_PER_NODE=%s: wanted numbers as "
                          "4,1(x2)" % text)
        counts += [int(match.group(1))] * int(match.group(2) or 1)
    return counts


def node_of_each_rank(environment):
    """Node names by rank. Raises Failure where the variables contradict each
    other, or srun has dealt the ranks in another way than in blocks."""
    rank = number(environment, "SLURM_PROCID")
    count = number(environment, "SLURM_STEP_NUM_TASKS")
    nodes = host_list.expand(variable(environment, "SLURM_STEP_NODELIST"))
    counts = tasks_per_node(variable(environment, "SLURM_STEP_TASKS_PER_NODE"))
    if len(nodes) != len(counts) or sum(counts) != count or rank >= count:
        raise Failure(
            "SLURM_STEP_NODELIST=%s, SLURM_STEP_TASKS_PER_NODE=%s, "
            "SLURM_STEP_NUM_TASKS=%d and SLURM_PROCID=%d contradict each other"
            % (environment.get("SLURM_STEP_NODELIST"),
               environment.get("SLURM_STEP_TASKS_PER_NODE"), count, rank))
    ranks = [i for i, tasks in enumerate(counts) for _ in range(tasks)]
    if ranks[rank] != number(environment, "SLURM_NODEID"):
        raise Failure("SLURM_NODEID=%s: rank %d of %s tasks a node is on "
                      "another; wanted srun --distribution=block" % (
                          environment["SLURM_NODEID"], rank,
                          environment["SLURM_STEP_TASKS_PER_NODE"]))
    return [nodes[i] for i in ranks]


def addresses(nodes):
    """{node: what to dial}: its name, or its NodeAddr where the name cannot be
    resolved. Every task asks the same, so that all say the same."""
    unknown = [node for node in nodes if not _resolves(node)]
    if not unknown:
        return {node: node for node in nodes}
    try:
        said = subprocess.run(
            ["scontrol", "--oneliner", "show", "node", ",".join(nodes)],
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
            timeout=SCONTROL_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    found = dict(NODE_ADDRESS.findall(said))
    for node in nodes:
        if not _resolves(found.get(node, "")):
            raise Failure("node %s: its name cannot be resolved, nor has "
                          "`scontrol show node` an address of it; set NodeAddr "
                          "in slurm.conf, or name it in /etc/hosts" % node)
    return found


def _resolves(name):
    try:
        return bool(name and socket.getaddrinfo(name, None))
    except OSError:
        return False


def ranks_and_addresses(options, environment, address_of):
    """(rank of this task, node of each rank, host:port of each rank)."""
    nodes = node_of_each_rank(environment)
    if options.ps >= len(nodes):
        raise Failure("--ps=%d of SLURM_STEP_NUM_TASKS=%d leave no worker" % (
            options.ps, len(nodes)))
    if options.port_base + len(nodes) > 65536:
        raise Failure("--port_base=%d: wanted room for %d ports below 65536" % (
            options.port_base, len(nodes)))
    dial = address_of(list(dict.fromkeys(nodes)))
    return number(environment, "SLURM_PROCID"), nodes, [
        cluster_file.join_address(dial[node], options.port_base + i)
        for i, node in enumerate(nodes)]


def command(options, environment, address_of):
    """(command line of this task, its environment, or None: our own)."""
    rank, nodes, all_ = ranks_and_addresses(options, environment, address_of)
    program.check_ps(options.worker_flags, options.ps)
    ps, workers = all_[:options.ps], all_[options.ps:]
    keys = (["--allow_insecure_network"] if options.allow_insecure_network
            else [])
    if options.certs_dir:
        keys.append("--certs_dir=" + options.certs_dir)
    common = ["--worker_hosts=" + ",".join(workers),
              *(["--ps_hosts=" + ",".join(ps)] if ps else []), *keys]
    if rank < options.ps:
        return [places.binary("ps_server", options.bin_dir), *common,
                "--task_index=%d" % rank, *options.ps_flag], None
    index = "--task_index=%d" % (rank - options.ps)
    if program.is_program(options.worker_flags):
        file = in_memory(json.dumps({"cluster": {"ps": ps, "worker": workers}}))
        return options.worker_flags, program.environment(
            ["--cluster=" + file, *keys, index],
            nodes[options.ps:].count(nodes[rank]))
    return [places.binary("worker", options.bin_dir), *common, index,
            *([] if options.ps else ["--set=replication=all_reduce"]),
            *options.worker_flags], None


def in_memory(text):
    """The path of a file for our children that is gone when we are, even after
    kill -9."""
    fd = os.memfd_create("cluster.json")
    with open(fd, "w", encoding="utf-8", closefd=False) as file:
        file.write(text)
    return "/proc/%d/fd/%d" % (os.getpid(), fd)


def become(line, asked, environment=None):
    """Runs the command; returns its exit code. But a task that ended because
    Slurm `asked` it to has not failed: srun's code is the highest, and 143
    would hide that of the task for whose failure the others were ended. That is
    so of SIGTERM alone (True); after a notice, --signal=USR1@60, it is 143.
    With an `environment`, a program of the user's own, notices reach it as
    SIGTERM."""
    parent = os.getpid()

    def before_exec():
        die_with_parent(parent)
        if environment is not None:
            program.ignore_notices()
    task = subprocess.Popen(line, env=environment, preexec_fn=before_exec)

    def forward(*_):
        asked.append(False)
        task.terminate()
    if environment is not None:
        stop_signals.watch(forward, stop_signals.NOTICES)
    if asked:
        # Before there was a task to hear of it.
        task.terminate()
    code = task.wait()
    code = code if code >= 0 else 128 - code
    return (0 if asked and all(asked) and code == 128 + signal.SIGTERM
            else code)


def main(argv):
    """Returns the exit code."""
    asked = []
    # Slurm signals all processes of a task, the command too.
    stop_signals.watch(
        lambda signum, _: asked.append(signum == signal.SIGTERM))
    signal.signal(signal.SIGINT, lambda *_: None)
    options = parse(argv)
    try:
        run.check_tasks(options)
        line, environment = command(options, os.environ, addresses)
        return become(line, asked, environment)
    except Failure as failure:
        print("muster task: %s" % failure, file=sys.stderr)
        return failure.exit_code
    except OSError as error:
        print("muster task: %s" % error, file=sys.stderr)
        return exit_code_of(error)
    finally:
        # The interpreter, as it ends, would take a signal as any program does.
        stop_signals.watch(signal.SIG_IGN)
