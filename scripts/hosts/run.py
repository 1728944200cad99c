"""The verb `run`: ps and worker tasks on many hosts, by ssh."""

import argparse
import json
import os
import re
import signal
import sys

from base import cluster_file, stop_signals
from base.failure import Failure
from base.launcher_flags import ROOT, local_path, not_negative, positive
from base.local_tasks import Printer
from base.supervisor import Supervisor

from . import channel, host_list, preflight, program, run_keys

ALIVE_EVERY_S = 5.0
# What it says itself to the tasks.
OWN = ("cluster", "ps_hosts", "worker_hosts", "job_name", "task_index",
       "standalone", "bind", "allow_insecure_network", "certs_dir")


def add_host_flags(parser):
    """Those of every launcher on many hosts."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("-H", "--hosts", metavar="HOST:WORKERS,...",
                       help="[user@]host:workers, as gpu1:4,gpu[2-3]:2 (1 if "
                       "left out); `localhost` alone goes without ssh")
    where.add_argument("--hostfile", type=local_path,
                       metavar="FILE", help="a host a line: "
                       "gpu1 slots=4 ps=1 address=10.0.0.1; address: by which "
                       "the others reach it, if not that name")
    parser.add_argument("--restart", type=not_negative, default=0, metavar="N",
                        help="start a task that was killed, or ended with a "
                        "code of 128 or more, again up to N times (default 0)")
    parser.add_argument("--allow_insecure_network", action="store_true",
                        help="talk between hosts without encryption or "
                        "authentication; without it only loopback addresses "
                        "are taken")
    parser.add_argument("--certs", type=local_path,
                        metavar="DIR", help="mutual TLS with the "
                        "keys of `muster certs`; each host gets those of its "
                        "tasks, also renewed ones")
    parser.add_argument("--ssh_port", type=positive, metavar="PORT")
    parser.add_argument("--ssh_option", action="append", default=[],
                        metavar="OPTION", help="as ssh's -o; may be repeated")
    parser.add_argument("--start_timeout", type=positive, default=60,
                        metavar="S", help="seconds for ssh and the agent "
                        "(default 60)")
    parser.add_argument("--muster_dir", type=local_path,
                        default=ROOT, metavar="DIR",
                        help="where the package lies on the hosts (default: "
                        "where it does here, %(default)s)")
    parser.add_argument("--bin_dir", type=local_path,
                        metavar="DIR", help="where ps_server and "
                        "worker are on the hosts (default: bin or bazel-bin of "
                        "the package); with a program in the place of the "
                        "worker ps_server is enough, as in the wheel's "
                        "muster/bin")


def add_task_flags(parser, ports, port_base=None):
    """Those of every launcher that starts ps tasks, too. `ports`: which task
    gets which port."""
    parser.add_argument("--port_base", type=positive, default=port_base,
                        metavar="P", help=ports)
    parser.add_argument("--ps_flag", action="append", default=[],
                        metavar="FLAG", help="a further flag of every ps; may "
                        "be repeated")


def split(argv):
    """(words before the first --, words after it)."""
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], argv[at + 1:]


def parse_with(parser, argv):
    """The options; what stands after -- is `worker_flags`: these, or the
    command line of a program in the place of the worker."""
    own, rest = split(argv)
    options, unknown = parser.parse_known_args(own)
    program.refuse_mixed(parser, unknown, rest)
    if unknown:
        parser.error("unknown here: %s; flags of the workers stand after a --, "
                     "as muster run -H a:2,b:2 -- --training=FILE "
                     "--train_dir=DIR" % " ".join(unknown))
    options.worker_flags = rest
    return options


def parse(argv):
    parser = argparse.ArgumentParser(
        prog="muster run", allow_abbrev=False,
        usage="muster run -H HOST:WORKERS,... [FLAG...] -- --training=FILE "
        "--train_dir=DIR [WORKER FLAG...]\n"
        "       muster run -H HOST:WORKERS,... [FLAG...] -- python train.py "
        "[ARGUMENT...]",
        description="Trains on many hosts: starts an agent on each by ssh, and "
        "looks at all before any task starts. Ctrl-C drains, a second one "
        "kills; nothing is left running, whoever is killed. The same package "
        "lies on each host, in the same place. The training file is sent "
        "along; other files are those of the hosts. A program after the -- "
        "runs in the place of each worker, with role, addresses and the path "
        "of keys in MUSTER_* variables, which muster.init reads.",
        epilog="Exit codes: that of the task which failed first; before the "
        "tasks start, 2 for what is wrong, 138 for hosts that do not answer; "
        "130 after Ctrl-C, 143 after SIGTERM, SIGHUP, SIGUSR1, SIGXCPU and "
        "the like, which drain, too.")
    add_host_flags(parser)
    parser.add_argument("--ps", type=not_negative, metavar="N",
                        help="ps tasks, dealt over the hosts in turn (default: "
                        "the hostfile's, else 1). 0: none, the workers hold "
                        "the parameters (replication=all_reduce)")
    parser.add_argument("--min_workers", type=positive, metavar="M",
                        help="workers may come and go: the run has failed when "
                        "its chief has, or fewer than M of its workers are "
                        "left, and an update of sync waits for M. `muster "
                        "join` starts more")
    parser.add_argument("--cluster", type=local_path, metavar="FILE",
                        help="with --min_workers: write there what `muster "
                        "join` wants to know")
    add_task_flags(parser, "the tasks of each host get ports P, P+1, ... "
                   "(default: free ones from 20000 on)")
    return parse_with(parser, argv)


def check(options):
    if options.cluster and not options.min_workers:
        raise Failure("--cluster=%s: it is for `muster join`, and so wants "
                      "--min_workers=M" % options.cluster)
    check_tasks(options)


def check_tasks(options):
    """Refuses what the tasks would refuse, or what they are told already."""
    check_flags(options.ps_flag)
    if not program.is_program(options.worker_flags):
        check_flags(options.worker_flags)
    if (options.port_base or 0) > 65000:
        raise Failure("--port_base=%d: wanted at most 65000" %
                      options.port_base)


def check_flags(flags):
    for flag in flags:
        name = flag.lstrip("-").partition("=")[0]
        if flag.startswith("-") and name in OWN:
            raise Failure("--%s: muster says it to the tasks itself%s" % (
                name, "; give it before the --" if name.startswith("allow")
                else ""))


def check_min_workers(least, hosts):
    workers = sum(host.workers for host in hosts)
    if least and least > workers:
        raise Failure("--min_workers=%d, but the hosts have %d workers" %
                      (least, workers))
    if least and not any(host.ps for host in hosts):
        raise Failure("--min_workers=%d wants ps tasks (--ps): workers that "
                      "hold the parameters do not come and go" % least)


def hosts_of(options):
    hosts = (host_list.of_flag(options.hosts) if options.hosts else
             host_list.of_file(options.hostfile))
    host_list.deal_ps(hosts, options.ps)
    hosts = [host for host in hosts if host.workers + host.ps]
    check_min_workers(options.min_workers, hosts)
    foreign = [host.name for host in hosts
               if not cluster_file.is_loopback(host.address)]
    if foreign and not (options.certs or options.allow_insecure_network):
        raise Failure("%s: not on this machine; --certs=DIR gives the tasks "
                      "keys (`muster certs` makes them); in a network that "
                      "you trust, --allow_insecure_network goes without" %
                      ", ".join(foreign), exit_code=4)
    return hosts


def take_training(flags):
    """(the flags, {name: text}): the training file, if it is here, goes along
    under a name of ours."""
    if program.is_program(flags):
        return flags, {}
    flags = list(flags)
    for i, flag in enumerate(flags):
        name, equals, path = flag.partition("=")
        if name.lstrip("-") != "training" or not flag.startswith("-"):
            continue
        at = i if equals else i + 1
        path = path if equals else flags[at] if at < len(flags) else ""
        if not os.path.isfile(path):
            return flags, {}
        flags[at] = ("--training=" if equals else "") + (
            "{files}/training.textproto")
        try:
            with open(path, encoding="utf-8") as file:
                return flags, {"training.textproto": file.read()}
        except (OSError, UnicodeDecodeError) as error:
            raise Failure("--training=%s: %s" % (path, error)) from None
    return flags, {}


def common_flags(options):
    """Those of every task."""
    flags = ["--cluster={files}/cluster.json"] + (
        ["--allow_insecure_network"] if options.allow_insecure_network else [])
    if options.certs:
        flags.append("--certs_dir={files}/certs")
    return flags


def index_of(options, job, index):
    """What a task is told: with keys it has the number of its own, and there
    is one chief; another number might be that of a worker that came by
    itself."""
    if options.min_workers and job == "worker" and index and not options.certs:
        return cluster_file.ANY
    return str(index)


def waits_for(options, flags, files):
    """The flags by which an update of sync waits for --min_workers."""
    field = "replication.sync.min_replicas"
    if (not options.min_workers or program.is_program(flags) or
            any(field in flag for flag in flags)):
        return []
    modes = re.findall(r"\breplication\s*:?\s*{\s*(\w+)", re.sub(
        "#.*", "", files.get("training.textproto", "")))
    modes += re.findall(r"(?:^|=)replication[=.](\w+)", "\n".join(flags), re.M)
    return ["--set=%s=%d" % (field, options.min_workers)] if (
        modes[-1:] == ["sync"]) else []


def arguments(job, told, rest):
    """Those of a message `start`: what a task is told, and the rest of its
    flags, or the program that runs in the place of the worker."""
    if job == "worker" and program.is_program(rest):
        return {"arguments": told, "own_program": rest}
    return {"arguments": told + rest}


def plans(rows, options, worker_flags):
    """[(channel, its message `start`)], and the cluster."""
    ports = {row: iter(row.ports) for row in rows}
    cluster = {}
    planned = []
    common = common_flags(options)
    all_reduce = not any(row.channel.host.ps for row in rows)
    worker_flags = (["--set=replication=all_reduce"] if all_reduce
                    else []) + worker_flags
    for job, flags in (("ps", options.ps_flag), ("worker", worker_flags)):
        for row in rows:
            host = row.channel.host
            for nth in range(host.ps if job == "ps" else host.workers):
                addresses = cluster.setdefault(job, [])
                planned.append((row.channel, {
                    "number": len(planned), "job": job,
                    "index": len(addresses), "nth": nth,
                    "workers": host.workers, "bin_dir": options.bin_dir,
                    **arguments(job, common + ["--task_index=" + index_of(
                        options, job, len(addresses))], flags)}))
                # Nobody dials a worker that may come and go.
                listens = job == "ps" or not options.min_workers
                addresses.append(listens and cluster_file.join_address(
                    host.address, next(ports[row])))
    if options.min_workers:
        cluster["worker"] = cluster_file.ANY
    return planned, cluster


def look(options, channels, printer):
    """The Preflight, after its table is printed."""
    flight = preflight.Preflight(channels)
    flight.look(options, {
        one: one.host.ps + (0 if options.min_workers else one.host.workers)
        for one in channels}, options.worker_flags)
    if not any(row.failure for row in flight.rows):
        with_ps = [one for one in channels if one.host.ps]
        flight.reach(with_ps or channels)
    flight.print_table(printer)
    return flight


def beat(channels, keys):
    for one in channels:
        one.tell("alive")
    if keys:
        keys.look()


def train(options, channels, printer):
    program.check_ps(options.worker_flags, sum(
        one.host.ps for one in channels))
    flags, files = take_training(options.worker_flags)
    flags += waits_for(options, flags, files)
    flight = look(options, channels, printer)
    if flight.exit_code() != 0:
        printer.say("nothing was started")
        return flight.exit_code()
    planned, cluster = plans(flight.rows, options, flags)
    if options.cluster:
        write_for_join(options.cluster, cluster, flags, files)
    files["cluster.json"] = json.dumps({"cluster": cluster}, indent=2) + "\n"
    return supervise(options, channels, printer, flight,
                     (planned, files, options.min_workers))


def write_for_join(path, cluster, flags, files):
    """A cluster file, with what else a worker that comes has to know."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"cluster": cluster, "run": {
            "worker_flags": flags, "files": files}}, file, indent=2)
        file.write("\n")


def supervise(options, channels, printer, flight, work):
    """Has the agents start the tasks, and sees these to their end; returns the
    exit code. `work`: (tasks, as plans gives them, files, the fewest workers
    with which it goes on, or None)."""
    planned, files, min_workers = work
    keys = run_keys.Keys(options.certs, planned) if options.certs else None
    if keys:
        keys.check()
    for one in channels:
        one.tell("prepare", files=files, folder=os.getcwd(),
                 certs=keys.of(one) if keys else {})
    for row, message in flight.ask("prepared", "ports", preflight.ANSWER_S):
        row.cells["ports"] = "free"
        if message["note"]:
            printer.say("%s: %s" % (row.channel.name, message["note"]))
    if flight.exit_code() != 0:
        flight.print_table(printer)
        return flight.exit_code()
    supervisor = Supervisor(printer, options.restart, min_workers)
    for one in channels:
        one.watch(supervisor)
    supervisor.pulse = (ALIVE_EVERY_S, lambda: beat(channels, keys))
    return supervisor.look_after(
        (channel.RemoteTask(one, plan) for one, plan in planned),
        lambda: printer.say("done"))


def main(argv):
    """Returns the exit code."""
    options = parse(argv)
    if not options.worker_flags and "--" not in argv:
        print("muster run: wanted -- and the flags of the workers at the end, "
              "as -- --training=FILE --train_dir=DIR, or a program: -- python "
              "train.py", file=sys.stderr)
        return 2
    return launch("muster run", options, check, train)


def launch(name, options, check_options, work):
    """Connects to the hosts and has `work` done there; returns its exit code."""
    printer = Printer(name)
    # Stopped, it would be silent, and the agents end their tasks then.
    signal.signal(signal.SIGTSTP, lambda *_: None)
    signal.signal(signal.SIGTERM, stop_signals.end)
    channels = []
    try:
        check_options(options)
        for host in hosts_of(options):
            channels.append(channel.Channel(
                host, channel.command_of(host, options)))
        return work(options, channels, printer)
    except Failure as failure:
        print("%s: %s" % (name, failure), file=sys.stderr)
        return failure.exit_code
    except OSError as error:
        print("%s: %s" % (name, error), file=sys.stderr)
        return 1
    finally:
        for one in channels:
            one.hang_up()
        for one in channels:
            one.close()
