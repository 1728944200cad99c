"""CPU of ps task 0 for many workers that only talk: how they join, step and
leave.

usage: members_load.py PS_SERVER WORKERS STEPS [watch] [scrape]

The fakes are of this process, over gRPC. `watch`: each waits for news from its
start on, as a worker does. `scrape`: the ps task's metrics are read while all
are there. Wants the packages of members_requirements.txt, and
protoc. The last line is the numbers as JSON.
"""

import itertools
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import grpc

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
# Workers on one connection: a server takes 64 calls at once.
SHARERS = 25
ENDLESS = 10**9
LIMIT_S = 60
QUIET_S = 1.0
SCRAPES = 100


def import_messages(folder):
    """The modules of the messages that are sent."""
    protos = [name for name in os.listdir(os.path.join(ROOT, "proto"))
              if name.endswith(".proto")]
    subprocess.run(["protoc", "-I" + ROOT, "--python_out=" + folder, *(
        os.path.join(ROOT, "proto", name) for name in protos)], check=True)
    sys.path.insert(0, folder)
    # pylint: disable=import-error,import-outside-toplevel
    from proto import coordination_service_pb2, parameter_service_pb2
    return coordination_service_pb2, parameter_service_pb2


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % probe.getsockname()[1]


class Load:
    """A ps task and the fakes."""

    def __init__(self, ps_server, workers, messages, http=None):
        self.coordination, self.parameters = messages
        said = subprocess.run([ps_server, "--version"], check=True,
                              capture_output=True, text=True).stdout
        self.protocol = int(re.search(r"protocol (\d+)", said)[1])
        self.address, self.http = free_address(), http
        self.ps = subprocess.Popen(
            [ps_server, "--ps_hosts=" + self.address, "--job_name=ps",
             "--task_index=0", "--keep_serving",
             *(["--http_address=" + http] if http else [])],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.channels = [grpc.insecure_channel(
            self.address, options=[("grpc.use_local_subchannel_pool", 1)])
            for _ in range(0, workers, SHARERS)]
        self.workers = range(workers)
        self.incarnation = self.epoch = 0
        self.watched = set()

    def sender(self, index):
        sender = self.parameters.Sender(incarnation=1000 + index,
                                        namespace="load")
        sender.task.job, sender.task.index = "worker", index
        return sender

    def call(self, name, index, **fields):
        """The answer to come; `index`: of the worker that asks."""
        messages, service = (
            (self.parameters, "ParameterService")
            if name in ("Hello", "Define", "Seal")
            else (self.coordination, "CoordinationService"))
        request = getattr(messages, name + "Request")(
            sender=self.sender(index), **fields)
        reply = self.coordination.JobState if name == "Watch" else getattr(
            messages, name + "Reply")
        return self.channels[index // SHARERS].unary_unary(
            "/muster.%s/%s" % (service, name), type(request).SerializeToString,
            reply.FromString).future(request, timeout=LIMIT_S,
                                     wait_for_ready=True)

    def cpu_s(self):
        with open("/proc/%d/stat" % self.ps.pid, encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def cpu_of(self, action):
        before = self.cpu_s()
        action()
        return self.cpu_s() - before

    def confirmed(self, name, index, **fields):
        """The answer to who has said the takeover token."""
        reply = self.call(name, index, **fields).result()
        return reply if not reply.takeover else self.call(
            name, index, takeover=reply.takeover, **fields).result()

    def register(self, index):
        return self.confirmed(
            "Register", index, protocol_version=self.protocol,
            training_fingerprint=7, training_text="t", chief=index == 0)

    def watch(self, index, version):
        def again(reply):
            if index in self.watched and reply.exception() is None:
                self.watch(index, reply.result().state_version)
        self.watched.add(index)
        self.call("Watch", index, state_version=version,
                  max_wait_ms=20000).add_done_callback(again)

    def begin(self):
        """The chief commits an epoch of endless rows."""
        hello = self.confirmed("Hello", 0, protocol_version=self.protocol,
                               ps_addresses={0: self.address},
                               muster_version="0.1.0")
        self.incarnation = hello.ps_incarnation
        self.register(0)
        self.epoch = self.call("BeginEpoch", 0).result().model_epoch
        define = self.parameters.DefineRequest(fingerprint=9)
        define.optimizer.name = "sgd"
        getattr(define.replication, "async").SetInParent()
        self.call("Define", 0, ps_incarnation=self.incarnation,
                  model_epoch=self.epoch, fingerprint=9,
                  optimizer=define.optimizer,
                  replication=define.replication).result()
        self.call("Seal", 0, fence=self.parameters.Fence(
            ps_incarnation=self.incarnation, model_epoch=self.epoch)).result()
        self.call("CommitEpoch", 0, model_epoch=self.epoch, fingerprint=9,
                  stop={"steps": ENDLESS}, epoch_examples=ENDLESS, batch_size=1,
                  ps_incarnations={0: self.incarnation},
                  replication=define.replication).result()

    def join(self, watch):
        for index in self.workers:
            version = self.register(index).state.state_version
            if watch:
                self.watch(index, version)
        time.sleep(QUIET_S)

    def step(self, steps):
        """All take so many; each report has its lease, each answer the next."""
        leases = [[] for _ in self.workers]
        for number in range(steps + 1):
            replies = [self.call(
                "Step", index, model_epoch=self.epoch, step=number,
                examples=min(number, 1), loss=1.0, leases_ahead=1,
                ps_incarnation=self.incarnation,
                **({"rows": rows[0]} if rows else {}))
                for index, rows in zip(self.workers, leases)]
            granted = [reply.result() for reply in replies]
            assert all(reply.granted for reply in granted), granted[0]
            leases = [reply.leases for reply in granted]

    def scrape(self, times):
        for _ in range(times):
            with urllib.request.urlopen("http://%s/metrics" % self.http,
                                        timeout=LIMIT_S) as answer:
                text = answer.read().decode()
        assert text.count("muster_steps_total{") == len(self.workers), text

    def leave(self):
        self.watched.clear()
        for left in [self.call("Finish", index, reason="done")
                     for index in itertools.islice(self.workers, 1, None)]:
            left.result()
        time.sleep(QUIET_S)


def main(ps_server, workers, steps, *wishes):
    scrapes = SCRAPES if "scrape" in wishes else 0
    with tempfile.TemporaryDirectory() as folder:
        load = Load(ps_server, int(workers), import_messages(folder),
                    free_address() if scrapes else None)
        try:
            load.begin()
            numbers = {"join_s": load.cpu_of(
                           lambda: load.join("watch" in wishes)),
                       "step_s": load.cpu_of(lambda: load.step(int(steps)))}
            if scrapes:
                numbers["scrape_s"] = load.cpu_of(
                    lambda: load.scrape(scrapes)) / scrapes
            numbers["leave_s"] = load.cpu_of(load.leave)
        finally:
            load.ps.kill()
            load.ps.wait()
    print(json.dumps(numbers), flush=True)
    # Channels with calls under way would be waited for.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
