"""Which hosts a run is on, and how many tasks each has: -H and --hostfile.

    -H gpu1:4,user@gpu[2-3]:2          gpu1 slots=4 ps=1
    (host:workers)                     gpu[2-3] slots=2 address=10.0.0.2  # ...
"""

import re

from base import cluster_file
from base.failure import Failure, nearest

# A range of more names is a mistyped one.
MOST = 4096
LOCAL = "localhost"


class Host:
    """`name` is what ssh is given; peers dial `address`."""

    def __init__(self, name, workers=1, ps=None, address=None):
        self.name = name
        self.workers = workers
        # None: --ps decides.
        self.ps = ps
        self.address = address or name.rpartition("@")[2].strip("[]")


def expand(text):
    """The names of Slurm's form: n[1-3,07],gpu8 -> n1 n2 n3 n07 gpu8. Brackets
    around an IPv6 address are none of a range."""
    names = []
    # Commas within brackets part numbers, others names.
    for item in re.split(r",(?![^\[\]]*\])", text):
        names += _expand_one(item, text)
        if len(names) > MOST:
            raise Failure("'%s': more than %d names" % (text, MOST))
    return names


def _expand_one(item, text):
    match = re.search(r"\[([0-9,-]+)\]", item)
    if not match:
        if not item or re.search(r"\s", item):
            raise Failure("'%s': wanted names as n[1-3,7],m1" % text)
        return [item]
    rest = item[match.end():]
    rests = _expand_one(rest, text) if rest else [""]
    found = []
    for part in match.group(1).split(","):
        low, dash, high = part.partition("-")
        high = high if dash else low
        if not (low.isdigit() and high.isdigit()) or int(high) < int(low) or (
                int(high) - int(low) >= MOST):
            raise Failure("'%s': wanted a range as [1-3], found [%s]" %
                          (text, part))
        found += [item[:match.start()] + str(number).zfill(len(low)) + end
                  for number in range(int(low), int(high) + 1)
                  for end in rests]
    return found


def _number(text, what, least):
    if not text.isdigit() or not least <= int(text) <= MOST:
        raise Failure("%s: wanted a number from %d to %d, found '%s'" %
                      (what, least, MOST, text))
    return int(text)


def _checked(name, where, **fields):
    # What begins with a hyphen would be an option of ssh.
    if not re.match(r"(?:[A-Za-z0-9._][A-Za-z0-9._-]*@)?[A-Za-z0-9_\[:]",
                    name):
        raise Failure("%s: wanted [user@]host, found '%s'" % (where, name))
    host = Host(name, **fields)
    cluster_file.check_host(host.address, where)
    return host


def of_flag(text):
    """Hosts of -H."""
    hosts = []
    for item in re.split(r",(?![^\[\]]*\])", text):
        match = re.fullmatch(r"(.*?[^:])(?::(\d+))?", item)
        name = match.group(1) if match else item
        if ":" in name and not name.endswith("]"):
            raise Failure("-H %s: wanted host:workers, found '%s'; an IPv6 "
                          "address stands in brackets" % (text, item))
        workers = _number((match and match.group(2)) or "1", "-H " + item, 0)
        hosts += [_checked(one, "-H " + text, workers=workers)
                  for one in expand(name)]
    return _all_checked(hosts, "-H")


def of_file(path):
    """Hosts of --hostfile."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure("--hostfile=%s: %s" % (path, error)) from None
    hosts = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if words:
            hosts += _of_line(words, "%s, line %d" % (path, number))
    return _all_checked(hosts, path)


def _of_line(words, where):
    fields = {}
    for word in words[1:]:
        key, _, value = word.partition("=")
        if key == "slots":
            fields["workers"] = _number(value, where + ": slots", 0)
        elif key == "ps":
            fields["ps"] = _number(value, where + ": ps", 0)
        elif key == "address":
            fields["address"] = value
        else:
            raise Failure("%s: '%s'%s" % (where, word, nearest(
                key, ("slots", "ps", "address"))))
    return [_checked(name, where, **fields) for name in expand(words[0])]


def _all_checked(hosts, where):
    names = [host.name for host in hosts]
    for name in names:
        if names.count(name) > 1:
            raise Failure("%s: '%s' is there twice" % (where, name))
    addresses = [host.address for host in hosts]
    for address in addresses:
        if addresses.count(address) > 1:
            raise Failure("%s: two hosts with the address %s" %
                          (where, address))
    if not sum(host.workers for host in hosts):
        raise Failure("%s: no host has a worker" % where)
    if len(hosts) > 1 and any(host.address == LOCAL for host in hosts):
        raise Failure("%s: 'localhost' beside others: wanted the name by which "
                      "the others reach this machine" % where)
    return hosts


def deal_ps(hosts, count):
    """Sets `ps` of each host: what its line says, or `count` dealt in turn."""
    if any(host.ps is not None for host in hosts):
        given = sum(host.ps or 0 for host in hosts)
        if count is not None and count != given:
            raise Failure("--ps=%d contradicts the hostfile, which has ps=%d "
                          "in all" % (count, given))
        for host in hosts:
            host.ps = host.ps or 0
        return
    count = 1 if count is None else count
    for i, host in enumerate(hosts):
        host.ps = count // len(hosts) + (i < count % len(hosts))
