"""The verb `certs`: keys and certificates for the tasks of a cluster."""

import argparse
import os
import re
import stat
import sys

from base import cluster_file
from base.failure import Failure
from base.launcher_flags import local_path

from . import certs_folder, openssl

AUTHORITY_DAYS = 3650
LEAF_DAYS = 90
# Who looks at a run, and who changes one, from outside the cluster.
ROLES = ("viewer", "admin")
# SPIFFE's trust domains.
CLUSTER_NAME = re.compile(r"[a-z0-9._-]{1,255}$")
# `verify` could not be content.
REFUSED = 4


def parse(argv):
    parser = argparse.ArgumentParser(
        prog="muster certs", allow_abbrev=False,
        description="Makes and checks keys and certificates (EC P-256, by the "
        "openssl program) for mutual TLS: one authority, and for each task "
        "JOB-INDEX.key and .pem with its SPIFFE URI and its addresses. DIR is "
        "replaced as a whole.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def add(name, help_):
        verb = verbs.add_parser(name, help=help_, description=help_,
                                allow_abbrev=False)
        verb.add_argument("--certs_dir", type=local_path,
                          required=True, metavar="DIR")
        return verb

    init = add("init", "makes the authority, ca.key (keep it from the hosts) "
               "and ca.pem, and the certificates viewer and admin")
    init.add_argument("--name", default="muster", help="the cluster's, as in "
                      "spiffe://NAME/job/ps/task/0 (default muster)")
    issue = add("issue", "makes new keys and certificates for the tasks of a "
                "cluster; others stay as they are")
    of = issue.add_mutually_exclusive_group(required=True)
    of.add_argument("--cluster", type=local_path, metavar="FILE",
                    help="the cluster file of ps_server and worker")
    of.add_argument("--workers", type=_count, metavar="M", help="instead: so "
                    "many workers, wherever they run; a task is known by its "
                    "name, not by its address")
    issue.add_argument("--ps", type=_count, metavar="N",
                       help="with --workers: so many ps tasks (default 1)")
    issue.add_argument("--task", action="append", default=[], metavar="JOB:I",
                       help="for this task only; may be repeated. evaluator:I "
                       "need not be in the cluster")
    issue.add_argument("--host", action="append", default=[],
                       metavar="JOB:I=HOST", help="a further address by which "
                       "that task is reached; may be repeated")
    renew = add("renew", "makes new keys and certificates with the names of "
                "all those that are there; the authority stays")
    for verb, days in ((init, AUTHORITY_DAYS), (issue, LEAF_DAYS),
                       (renew, LEAF_DAYS)):
        verb.add_argument("--days", type=_days, default=days,
                          help="how long they hold (default %d)" % days)
    add("list", "prints role, addresses and end of each certificate")
    verify = add("verify", "checks authority, end, key, role and file modes of "
                 "each certificate; exit code 4 if one is bad")
    verify.add_argument("--cluster", type=local_path,
                        metavar="FILE", help="check too that each "
                        "task of it has one, of its address if of any")
    return parser.parse_args(argv)


def _days(text):
    if not text.isdigit() or not 1 <= int(text) <= AUTHORITY_DAYS:
        raise argparse.ArgumentTypeError("wanted 1 to %d days" % AUTHORITY_DAYS)
    return int(text)


def _count(text):
    if not text.isdigit() or int(text) > 4096:
        raise argparse.ArgumentTypeError("wanted 0 to 4096")
    return int(text)


def stem_of(task):
    return "%s-%d" % task


def uri_of(cluster, name):
    """The URI of a file's stem, as worker-1 or viewer."""
    job, _, index = name.partition("-")
    if job in ROLES:
        return "spiffe://%s/role/%s" % (cluster, job)
    return "spiffe://%s/job/%s/task/%s" % (cluster, job, index)


def names_in(folder):
    """The stems of the certificates, but for the authority's, sorted."""
    return sorted((name[:-4] for name in os.listdir(folder)
                   if name.endswith(".pem") and name != "ca.pem"),
                  key=lambda name: (name.split("-")[0],
                                    [int(i) for i in re.findall(r"\d+", name)]))


def cluster_of(folder):
    """The cluster's name, from the authority's certificate."""
    path = os.path.join(folder, "ca.pem")
    if not os.path.exists(path):
        raise Failure("--certs_dir=%s: no ca.pem in it; muster certs init "
                      "makes one" % folder)
    uris = openssl.read(path).uris
    if len(uris) != 1 or not uris[0].startswith("spiffe://"):
        raise Failure("%s: wanted one URI spiffe://NAME in it, found %s; it is "
                      "of another tool" % (path, uris or "none"))
    return uris[0][len("spiffe://"):]


def _exposed(key):
    """Why a key is nobody's secret, or None."""
    mode = stat.S_IMODE(os.stat(key).st_mode)
    if mode & 0o077:
        return "others can read %s (mode %04o); chmod 600" % (key, mode)
    return None


def _authority(folder):
    """The cluster's name, where its key is to sign."""
    cluster = cluster_of(folder)
    key = os.path.join(folder, "ca.key")
    # Without one openssl says so.
    complaint = _exposed(key) if os.path.exists(key) else None
    if complaint:
        raise Failure(complaint + ", and if others had it, begin anew with "
                      "another --certs_dir", REFUSED)
    return cluster


def _make(folder, cluster, name, addresses, days):
    openssl.make_leaf(os.path.join(folder, name), name, uri_of(cluster, name),
                      addresses, days, os.path.join(folder, "ca"))


def init(options):
    if not CLUSTER_NAME.match(options.name):
        raise Failure("--name=%s: wanted small letters, digits, '.', '-', '_'" %
                      options.name)
    certs_folder.check_new(options.certs_dir)
    with certs_folder.replaced(options.certs_dir) as folder:
        openssl.make_authority(os.path.join(folder, "ca"), options.name,
                               options.days)
        for role in ROLES:
            _make(folder, options.name, role, [],
                  min(options.days, LEAF_DAYS))
    print("%s: authority of cluster '%s' for %d days; viewer, admin" % (
        options.certs_dir, options.name, options.days))


def tasks_of(options):
    """{Task: the addresses that are known}."""
    if options.cluster:
        if options.ps is not None:
            raise Failure("--ps: the tasks of --cluster=%s are in it" %
                          options.cluster)
        return {task: [host] for task, (host, _) in cluster_file.read(
            options.cluster).items()}
    counts = {"ps": 1 if options.ps is None else options.ps,
              "worker": options.workers}
    if not any(counts.values()):
        raise Failure("--ps=0 --workers=0: wanted a task")
    return {cluster_file.Task(job, i): []
            for job, count in counts.items() for i in range(count)}


def wanted(options):
    """{Task: its addresses} for `issue`."""
    found = tasks_of(options)
    only = [cluster_file.Task.parse(text) for text in options.task]
    for task in only:
        if task.job == "evaluator":
            found.setdefault(task, [])
        elif task not in found:
            raise Failure("--task=%s: no such task in %s, which has %s" % (
                task, options.cluster or "--ps and --workers", ", ".join(map(str, sorted(found)))))
    for text in options.host:
        name, _, host = text.partition("=")
        task = cluster_file.Task.parse(name)
        if task not in found:
            raise Failure("--host=%s: no such task in %s" % (
                text, options.cluster or "--ps and --workers"))
        found[task].append(cluster_file.check_host(host, "--host=" + text))
    return {task: found[task] for task in only or found}


def issue(options):
    tasks = wanted(options)
    cluster = _authority(options.certs_dir)
    with certs_folder.replaced(options.certs_dir) as folder:
        for task, addresses in tasks.items():
            _make(folder, cluster, stem_of(task), addresses, options.days)
    print("%s: %s" % (options.certs_dir,
                      ", ".join(stem_of(task) for task in tasks)))


def renew(options):
    cluster = _authority(options.certs_dir)
    with certs_folder.replaced(options.certs_dir) as folder:
        names = names_in(folder)
        for name in names:
            old = openssl.read(os.path.join(folder, name + ".pem"))
            _make(folder, cluster, name, old.addresses, options.days)
    print("%s: %s, for %d days" % (options.certs_dir, ", ".join(names),
                                   options.days))


def list_(options):
    cluster_of(options.certs_dir)
    rows = [("file", "role", "addresses", "ends")]
    for name in ["ca"] + names_in(options.certs_dir):
        one = openssl.read(os.path.join(options.certs_dir, name + ".pem"))
        rows.append((name, " ".join(one.uris), " ".join(one.addresses),
                     "%s, in %d days" % (one.not_after.date(), (
                         one.not_after - openssl.now()).days)))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for row in rows:
        print("  ".join("%-*s" % pair for pair in zip(widths, row)) +
              "  " + row[3])


def complaints(folder, cluster, name):
    """What is wrong with a certificate and its key."""
    pem, key = (os.path.join(folder, name + end) for end in (".pem", ".key"))
    complaint = openssl.complaint(pem, os.path.join(folder, "ca.pem"))
    if complaint is not None:
        yield complaint
    one = openssl.read(pem)
    if name != "ca" and one.uris != [uri_of(cluster, name)]:
        yield "wanted the one URI %s, found %s" % (
            uri_of(cluster, name), " ".join(one.uris) or "none")
    if not os.path.exists(key):
        if name != "ca":
            yield "%s is missing" % key
        return
    exposed = _exposed(key)
    if exposed:
        yield exposed
    if not openssl.is_pair(pem, key):
        yield "%s is the key of another certificate" % key


def _lacks(folder, cluster_path):
    """Which tasks of the cluster have none, or one of other addresses. Who has
    one without an address may be anywhere."""
    for task, (host, _) in cluster_file.read(cluster_path).items():
        pem = os.path.join(folder, stem_of(task) + ".pem")
        if not os.path.exists(pem):
            yield stem_of(task), "%s is missing" % pem
            continue
        addresses = openssl.read(pem).addresses
        if addresses and not openssl.covers(pem, host):
            yield stem_of(task), ("not of its address %s, but of: %s" % (
                host, " ".join(addresses)))


def verify(options):
    folder = options.certs_dir
    cluster = cluster_of(folder)
    names = ["ca"] + names_in(folder)
    bad = [(name, text) for name in names
           for text in complaints(folder, cluster, name)]
    if options.cluster:
        bad += _lacks(folder, options.cluster)
    for name, text in bad:
        print("%s: %s" % (name, text))
    print("%s: %d certificates, %d complaints" % (folder, len(names), len(bad)))
    return REFUSED if bad else 0


VERBS = {"init": init, "issue": issue, "renew": renew, "list": list_,
         "verify": verify}


def main(argv):
    """Returns the exit code."""
    options = parse(argv)
    try:
        return VERBS[options.verb](options) or 0
    except Failure as failure:
        print("muster certs: %s" % failure, file=sys.stderr)
        return failure.exit_code
    except OSError as error:
        print("muster certs: %s" % error, file=sys.stderr)
        return 1
