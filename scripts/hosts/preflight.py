"""The look at each host before anything starts, and the table of it."""

import re
import selectors
import time

from base.local_tasks import AwakeClock

from . import program

# From it on a clock is pointed out; nothing depends on it but people.
CLOCK_S = 2.0
# For what an agent does in a moment, and its ways to the others.
ANSWER_S = 60.0
# ssh's words where another try may help.
RETRYABLE = re.compile("timed out|refused|reset|No route|closed by|unreachable")
HEAD = ("host", "ssh", "version", "ports", "clock", "route")


class Row:
    """A host's line of the table."""

    def __init__(self, channel):
        self.channel = channel
        self.cells = dict.fromkeys(HEAD[1:], "-")
        self.cells["host"] = channel.name
        self.failure = None
        self.retryable = False
        self.version = None
        self.ports = []

    def fail(self, column, text, retryable=False):
        if self.failure is None:
            self.cells[column] = "FAILED"
            self.failure = text
            self.retryable = retryable


def gather(channels, kind, deadline_s):
    """{channel: message} of those that say `kind` or have a problem in time."""
    found = {}
    selector = selectors.DefaultSelector()
    for channel in channels:
        selector.register(channel.process.stdout, selectors.EVENT_READ, channel)
    clock = AwakeClock()
    deadline = clock.now() + deadline_s
    while selector.get_map() and (left := clock.until(deadline)) > 0:
        for key, _ in selector.select(left):
            channel = key.data
            for message in channel.read():
                if message["is"] in (kind, "problem"):
                    message["at"] = time.time()
                    found[channel] = message
            if channel in found or not channel.alive:
                selector.unregister(key.fileobj)
    return found


class Preflight:
    """Asks all hosts at once, one question after the other."""

    def __init__(self, channels):
        self.rows = [Row(channel) for channel in channels]

    def good(self):
        return [row for row in self.rows if row.failure is None]

    def ask(self, kind, column, deadline_s):
        """Yields (row, answer); who has none, or a problem, has failed."""
        rows = self.good()
        found = gather([row.channel for row in rows], kind, deadline_s)
        for row in rows:
            message = found.get(row.channel)
            if message is None:
                said = " / ".join(row.channel.tail)
                row.fail(column, "%s%s" % (
                    "no answer in %g s" % deadline_s if row.channel.alive else
                    "the connection has ended", said and ": " + said),
                    row.channel.alive or bool(RETRYABLE.search(said)))
            elif message["is"] == "problem":
                row.fail(column, message["text"])
            else:
                yield row, message

    def look(self, options, ports_of, worker_flags):
        """`ports_of`: {channel: how many}."""
        programs = ["ps_server"]
        if not program.is_program(worker_flags):
            programs.append("worker")
        for row, _ in self.ask("hello", "ssh", options.start_timeout):
            row.cells["ssh"] = "%.1f s" % (
                time.monotonic() - row.channel.started)
        asked = time.time()
        for row in self.good():
            row.channel.tell("look", programs=programs,
                             bin_dir=options.bin_dir,
                             address=row.channel.host.address,
                             ports=ports_of[row.channel],
                             port_base=options.port_base)
        for row, message in self.ask("looked", "ports", ANSWER_S):
            row.version = row.cells["version"] = message["version"]
            row.ports = message["ports"]
            row.cells["ports"] = " ".join(map(str, row.ports)) or "none"
            # Between the question and the answer.
            behind = max(0.0, asked - message["time"])
            ahead = max(0.0, message["time"] - message["at"])
            row.cells["clock"] = "%+.1f s%s" % (
                ahead - behind, " !" if ahead + behind > CLOCK_S else "")
        self.compare_versions()

    def compare_versions(self):
        first = self.rows[0].version
        for row in self.rows[1:]:
            if first and row.version and row.version != first:
                row.fail("version", "'%s', but %s has '%s'; wanted one version "
                         "on all hosts" % (
                             row.version, self.rows[0].channel.name, first))

    def reach(self, listeners, others=()):
        """Each host connects to the others' first port; `listeners`: the
        channels of hosts to which others must get; and to `others`, [host,
        port] of tasks that run."""
        for row in self.good():
            row.channel.tell("reach", addresses=list(others) + [
                [other.channel.host.address, other.ports[0]]
                for other in self.good()
                if other.channel in listeners and other is not row])
        for row, message in self.ask("reached", "route", ANSWER_S):
            row.cells["route"] = "%.1f ms" % (1000 * message["seconds"])

    def print_table(self, printer):
        table = [HEAD] + [[row.cells[name] for name in HEAD]
                          for row in self.rows]
        widths = [max(len(line[i]) for line in table) for i in range(len(HEAD))]
        for line in table:
            printer.say("  ".join("%-*s" % pair for pair in zip(
                widths, line)).rstrip())
        for row in self.rows:
            if row.failure is not None:
                printer.say("%s: %s" % (row.channel.name, row.failure))

    def exit_code(self):
        """0; 138 if every failure may be gone at another try; else 2."""
        bad = [row for row in self.rows if row.failure is not None]
        if not bad:
            return 0
        return 138 if all(row.retryable for row in bad) else 2
