"""Cluster files, read as ps_server and worker do (common/cluster/README.md)."""

import collections
import ipaddress
import json
import re

from .failure import Failure, nearest

JOBS = ("ps", "chief", "worker", "evaluator")
# Other names of a job.
CHIEF_NAMES = ("master", "coordinator")
# In the place of the workers' addresses, or of an index: whoever comes.
ANY = "any"
HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?\.?$")
TOKEN = re.compile(r'\s+|#[^\n]*|("(?:[^"\\\n])*"|[A-Za-z_]+|\d+|[{}:])')


class Task(collections.namedtuple("Task", "job index")):
    """Which task of a cluster; printed as worker:1."""

    @classmethod
    def parse(cls, text):
        match = re.fullmatch(r"([a-z]+):(\d{1,4})", text)
        if not match:
            raise Failure("task '%s': wanted JOB:INDEX, as ps:0" % text)
        return cls(job_name(match.group(1), "task '%s'" % text),
                   int(match.group(2)))

    def __str__(self):
        return "%s:%d" % self


def job_name(text, where):
    name = "chief" if text in CHIEF_NAMES else text
    if name not in JOBS:
        raise Failure("%s: job '%s'%s" % (where, text, nearest(text, JOBS)))
    return name


def is_ip(host):
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host):
    """As common/cluster/address.h has it: no name is looked up."""
    return host.lower() in ("localhost", "localhost.") or (
        is_ip(host) and ipaddress.ip_address(host).is_loopback)


def check_host(host, where):
    # The rest of what looks like an address is a mistyped one, not a name.
    if is_ip(host) or HOST_NAME.match(host) and not re.fullmatch(
            r"[0-9.]+", host):
        return host
    raise Failure("%s: wanted a host name or an IP address, found '%s'" %
                  (where, host))


def split_address(text, where):
    """(host, port) of host:port; an IPv6 host stands in brackets."""
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:]+)):(\d{1,5})",
                         text)
    if not match or not 1 <= int(match.group(3)) <= 65535:
        raise Failure("%s: wanted host:port, found '%s'" % (where, text))
    return check_host(match.group(1) or match.group(2), where), int(
        match.group(3))


def join_address(host, port):
    return ("[%s]:%d" if ":" in host else "%s:%d") % (host, port)


def _json_tasks(text, path):
    try:
        document = json.loads(text)
    except ValueError as error:
        raise Failure("%s: no JSON: %s" % (path, error)) from None
    jobs = document.get("cluster", document)
    if not isinstance(jobs, dict):
        raise Failure("%s: wanted jobs with addresses" % path)
    for job, tasks in jobs.items():
        if (job, tasks) == ("worker", ANY):
            continue
        if isinstance(tasks, list):
            tasks = dict(enumerate(tasks))
        if not isinstance(tasks, dict):
            raise Failure("%s: job '%s': wanted a list of host:port" %
                          (path, job))
        for index, address in tasks.items():
            if not str(index).isdigit() or not isinstance(address, str):
                raise Failure("%s: job '%s': wanted indices and host:port, "
                              "found %r: %r" % (path, job, index, address))
            yield job, int(index), address


def _tokens(text, path):
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise Failure("%s: line %d: cannot read '%s'" % (
                path, text.count("\n", 0, at) + 1, text[at:at + 20]))
        if match.group(1):
            yield match.group(1)
        at = match.end()


def _text_fields(tokens, path):
    """[(name, value)] up to the closing brace; a message is such a list."""
    fields = []
    for name in tokens:
        if name == "}":
            break
        value = next(tokens, "")
        if value == ":":
            value = next(tokens, "")
        if value == "{":
            value = _text_fields(tokens, path)
        if not name.isidentifier() or value in ("", "}", ":"):
            raise Failure("%s: wanted job { name: \"ps\" tasks { key: 0 value: "
                          "\"host:port\" } }, found '%s'" % (path, name))
        fields.append((name, value))
    return fields


def _text_tasks(text, path):
    for _, job in _text_fields(_tokens(text, path), path):
        if not isinstance(job, list):
            raise Failure("%s: wanted job { ... }, found '%s'" % (path, job))
        name = str(dict(job).get("name", "")).strip('"')
        for task in (dict(value) for field, value in job if field == "tasks"
                     and isinstance(value, list)):
            index = task.get("key", "0")
            if not str(index).isdigit():
                raise Failure("%s: job '%s': key: wanted an index, found %s" %
                              (path, name, index))
            yield name, int(index), str(task.get("value", "")).strip('"')


def read(path):
    """{Task: (host, port)}. Raises Failure, which names the file."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure("--cluster=%s: %s" % (path, error)) from None
    reader = _json_tasks if text.lstrip().startswith("{") else _text_tasks
    cluster = {}
    for job, index, address in reader(text, path):
        task = Task(job_name(job, path), index)
        where = "%s: %s" % (path, task)
        if task in cluster:
            raise Failure("%s is there twice" % where)
        cluster[task] = split_address(address, where)
    if not cluster:
        raise Failure("%s: no tasks in it" % path)
    return cluster
