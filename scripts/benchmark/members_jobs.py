"""Jobs of one ps task and workers on other hosts, each with a delay of its own.

Hosts are those of tests/integration/network_switch.py, so steps wait for lines
and not for cores. Python 3 standard library only.
"""

import bisect
import collections
import datetime
import json
import os
import re
import signal
import struct
import sys
import tempfile
import time

from base.programs import Programs
from tests.integration import network_switch, row_visits

from . import processes

PORT = 7000
TCP, SYN, HEADERS = 6, 2, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
LINE = re.compile(r"^(\S+ \S+) I \S+ step=(\d+)", re.M)
START_S = 60
# A rate, which is of a second, has followed a change when so little is missing
# to what it comes to be, which is that of the last seconds.
NEAR, WINDOW_S, SETTLED_S = 0.1, 1.0, 4.0

Build = collections.namedtuple("Build", "ps_server worker")


class Calls:
    """Counts the calls of gRPC in the packets that a server gets: each begins
    with one frame HEADERS of HTTP/2."""

    def __init__(self):
        self.count = 0
        # By client: the next byte's number, what is no whole frame yet (None:
        # nothing of the stream is looked at), and whether that is its begin.
        self._streams = {}

    def add(self, packet):
        if packet[9] != TCP:
            return
        at = (packet[0] & 15) * 4
        client = packet[12:16] + packet[at:at + 2]
        number, = struct.unpack_from("!I", packet, at + 4)
        payload = packet[at + (packet[at + 12] >> 4) * 4:]
        if packet[at + 13] & SYN:
            self._streams[client] = [number + 1 & 0xffffffff, b"", True]
        stream = self._streams.get(client)
        # Not one that comes again.
        if stream and payload and stream[0] == number and stream[1] is not None:
            stream[0] = number + len(payload) & 0xffffffff
            data = stream[1] + payload
            stream[1] = self._parse(data, stream[2])
            stream[2] = stream[2] and len(data) < len(PREFACE)

    def _parse(self, data, is_begin):
        if is_begin:
            if not data.startswith(PREFACE):
                # Else no HTTP/2, as the tensors' own connections.
                return data if PREFACE.startswith(data) else None
            data = data[len(PREFACE):]
        while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], "big"):
            self.count += data[3] == HEADERS
            data = data[9 + int.from_bytes(data[:3], "big"):]
        return data


class Line(network_switch.Switch):
    """Hosts with `delays`, of which the longer one of two holds each way."""

    def __init__(self, delays):
        self._delays, self.calls = delays, Calls()
        super().__init__(len(delays), seed=1)

    def _pass_on(self, source, host, packet):
        if host == 0:
            self.calls.add(packet)
        self._send(host, packet, max(self._delays[source], self._delays[host]))


class Job:
    """A ps task on host 0, whose cluster lists workers on `hosts`, or any if
    that is None; to be used in a `with`."""

    def __init__(self, build, delays, hosts, flags):
        self.build, self.hosts, self.flags = build, hosts, flags
        self.folder = tempfile.TemporaryDirectory()
        self.line, self.programs = Line(delays), Programs()
        self.train_dir = os.path.join(self.folder.name, "train")
        self.cluster = os.path.join(self.folder.name, "cluster.json")
        with open(self.cluster, "w", encoding="utf-8") as file:
            json.dump({"ps": self._addresses([0]), "worker": "any" if hosts
                       is None else self._addresses(hosts)}, file)
        self.ps = self._start(0, build.ps_server, 0)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.programs.__exit__(*error)
        self.line.close()
        self.folder.cleanup()

    def _addresses(self, hosts):
        return ["%s:%d" % (self.line.addresses[host], PORT + i)
                for i, host in enumerate(hosts)]

    def _start(self, host, program, index, *flags):
        return processes.start(self.programs, self.line.on(host, [
            program, "--cluster=" + self.cluster, "--task_index=%s" % index,
            "--allow_insecure_network", *flags]))

    def start_worker(self, host, index):
        return self._start(host, self.build.worker, index, "--train_dir=" +
                           self.train_dir, "--compute_threads=1", *self.flags)

    def train(self):
        """The listed workers train to the end; returns what they printed and
        result.json."""
        workers = [self.start_worker(host, i)
                   for i, host in enumerate(self.hosts)]
        texts = [processes.finish(self.programs, one) for one in workers]
        processes.finish(self.programs, self.ps)
        with open(os.path.join(self.train_dir, "result.json"),
                  encoding="utf-8") as file:
            return texts, json.load(file)


def points(text):
    """[(seconds, step)] of a worker's lines of progress, rising."""
    found = [(datetime.datetime.fromisoformat(when).timestamp(), int(step))
             for when, step in LINE.findall(text)]
    return [one for i, one in enumerate(found) if i == 0 or one > found[i - 1]]


def rate(steps, begin, end):
    """Steps/s between, of points."""
    def at(when):
        i = min(max(bisect.bisect(steps, (when,)), 1), len(steps) - 1)
        (t0, s0), (t1, s1) = steps[i - 1], steps[i]
        return s0 + (s1 - s0) * (when - t0) / (t1 - t0)
    return (at(end) - at(begin)) / (end - begin)


def seconds_to_follow(steps, event, end):
    """From `event` on, until the rate is that of the time before `end`."""
    settled = rate(steps, end - SETTLED_S, end)
    rises = settled > rate(steps, event - SETTLED_S, event)
    when = event
    while True:
        over = rate(steps, when - WINDOW_S, when) / settled
        if over >= 1 - NEAR if rises else over <= 1 + NEAR:
            return when - event
        when += 0.1


def steps_per_s(build, flags, delay_s, workers):
    """Of all workers together; and the calls of the whole job."""
    with Job(build, (0, delay_s), [1] * workers, flags) as job:
        _, result = job.train()
        return {"steps_per_s": sum(one["steps_per_s"] or 0.0
                                   for one in result["workers"]),
                "calls": job.line.calls.count}


def one_is_slow(build, rows, delays, flags):
    """How long the others stood still at the end, in steps of the slow one;
    raises Failure unless each row was trained on exactly once."""
    with tempfile.TemporaryDirectory() as folder:
        training = os.path.join(folder, "rows.textproto")
        with open(training, "w", encoding="utf-8") as file:
            file.write(row_visits.training(os.path.join(folder, "rows"), rows,
                                           2, 1))
        with Job(build, (0, *delays), range(1, len(delays) + 1), [
                "--training=" + training, "--progress_every=0s",
                *flags]) as job:
            texts, result = job.train()
            for weights in row_visits.weights(result["checkpoint"]).values():
                visits = row_visits.Visits(weights, (2,))
                if visits.missing(1) or visits.surplus(1):
                    raise processes.Failure("wanted each row once: %s" % visits)
    end = datetime.datetime.fromisoformat(re.search(
        r"^(\S+ \S+) I \S+ the training ends at step=", texts[0], re.M)[1]).timestamp()
    last = min(max(when for when, _ in points(text) if when < end)
               for text in texts[:-1])
    steps = [one["steps_per_s"] for one in result["workers"]]
    return {"waited_steps": (end - last) * steps[-1],
            "times_slower": min(steps[:-1]) / steps[-1]}


def come_and_go(build, flags, delay_s, stage_s, batch):
    """Two workers, then six, then three."""
    with Job(build, (0, delay_s), None, [
            *flags, "--progress_every=0.1s"]) as job:
        def stay():
            if job.programs.wait(chief, stage_s):
                raise processes.Failure("the chief has ended:\n" + chief.text())
            return time.time()
        chief = job.start_worker(1, 0)
        job.programs.await_line(chief, " step=", START_S)
        others = [job.start_worker(1, "any")]
        events = [stay()]
        others += [job.start_worker(1, "any") for _ in range(4)]
        events.append(stay())
        for other in others[:3]:
            other.send(signal.SIGTERM)
        events.append(stay())
        job.programs.end(chief)
    steps = points(chief.text())
    print("members: examples/s by second: %s" % " ".join(
        "%.0f" % (batch * rate(steps, when, when + 1)) for when in range(
            int(steps[0][0]) + 1, int(events[-1]))), file=sys.stderr)
    rates = [batch * rate(steps, end - SETTLED_S, end) for end in events]
    return {"rates": rates,
            "seconds": [seconds_to_follow(steps, *pair)
                        for pair in zip(events, events[1:])]}
