"""What `muster run` starts on each host: it has that host's tasks.

It reads a JSON message a line from its input and answers so. The tasks are
killed, by the kernel if need be, when its input ends, when nothing was heard
for SILENCE_S (a cable that was pulled ends no input), and when it dies.
"""

import errno
import json
import os
import random
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time

import local_gpus
import stop_signals
from local_tasks import Task
from supervisor import Supervisor

from trainings.failure import Failure

from . import places

# The launcher speaks every few seconds.
SILENCE_S = 60
REACH_S = 5.0
# As launcher.py's.
PORTS = range(20000, 32000)


class Gone(Exception):
    """Nobody is there any more for whom to run tasks."""


def silent(*_):
    raise Gone("nothing heard for %d s" % SILENCE_S)


class Agent:
    """Answers messages; a Supervisor's loop without its judgement."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.tasks = {}
        self.listening = []
        self.folder = None
        self.partial = b""
        self.gpus = None

    def say(self, kind, **fields):
        line = json.dumps(dict(fields, **{"is": kind})) + "\n"
        try:
            sys.stdout.write(line)
            sys.stdout.flush()
        except OSError:
            raise Gone("nobody reads") from None

    def run(self):
        signal.signal(signal.SIGALRM, silent)
        signal.alarm(SILENCE_S)
        self.selector.register(0, selectors.EVENT_READ, (self.on_input, None))
        self.say("hello", time=time.time())
        try:
            while True:
                for key, _ in self.selector.select():
                    react, what = key.data
                    react(what)
        except Gone:
            return 0
        finally:
            signal.alarm(0)
            self.end()

    def end(self):
        for task in self.tasks.values():
            if task.exit_code is None:
                task.kill()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def on_input(self, _):
        chunk = os.read(0, 65536)
        if not chunk:
            raise Gone("the input has ended")
        signal.alarm(SILENCE_S)
        *lines, self.partial = (self.partial + chunk).split(b"\n")
        for line in lines:
            message = json.loads(line)
            try:
                getattr(self, "do_" + message.pop("do"))(**message)
            except (Failure, OSError) as failure:
                self.say("problem", text=getattr(failure, "strerror", None) or
                         str(failure))

    # ---- Before anything starts.

    def do_look(self, bin_dir, address, ports, port_base):
        """Takes ports, and keeps them until the tasks start."""
        versions = {places.version(places.binary(name, bin_dir))
                    for name in ("ps_server", "worker")}
        if len(versions) > 1:
            raise Failure("ps_server and worker are of two versions: " +
                          ", ".join(sorted(versions)))
        self.say("looked", version=versions.pop(), time=time.time(),
                 ports=self.take_ports(address, ports, port_base))

    def take_ports(self, address, count, port_base):
        if port_base:
            return [self.listen(address, port_base + i) for i in range(count)]
        ports = []
        for port in random.SystemRandom().sample(PORTS, len(PORTS)):
            if len(ports) == count:
                break
            try:
                ports.append(self.listen(address, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
        return ports

    def listen(self, address, port):
        try:
            family, kind, _, _, name = socket.getaddrinfo(
                address, port, type=socket.SOCK_STREAM)[0]
            one = socket.socket(family, kind)
            self.listening.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(name)
            one.listen()
        except OSError as error:
            raise OSError(error.errno, "cannot listen on %s port %d: %s" % (
                address, port, error.strerror)) from None
        return port

    def do_reach(self, addresses):
        """Connects to each [host, port]."""
        started = time.monotonic()
        for host, port in addresses:
            try:
                socket.create_connection((host, port), REACH_S).close()
            except OSError as error:
                raise Failure("no way to %s port %d: %s" % (
                    host, port, error.strerror or error)) from None
        self.say("reached", seconds=(time.monotonic() - started) / max(
            1, len(addresses)))

    # ---- The tasks.

    def do_prepare(self, files, folder, certs=None):
        """Frees the ports; writes files into a folder that ends with it."""
        for one in self.listening:
            one.close()
        self.folder = tempfile.mkdtemp(prefix="muster-run-")
        for name, text in files.items():
            with open(os.path.join(self.folder, name), "w",
                      encoding="utf-8") as file:
                file.write(text)
        if certs:
            self.do_certs(certs)
        if os.path.isdir(folder):
            os.chdir(folder)
        self.gpus = local_gpus.visible("auto")
        self.say("prepared")

    def do_certs(self, files):
        """Swaps in the keys of its tasks, as a whole; they look each second."""
        link = os.path.join(self.folder, "certs")
        old = os.path.realpath(link)
        new = tempfile.mkdtemp(prefix="certs-", dir=self.folder)
        for name, text in files.items():
            fd = os.open(os.path.join(new, name), os.O_WRONLY | os.O_CREAT,
                         0o600)
            with open(fd, "w", encoding="ascii") as file:
                file.write(text)
        os.symlink(os.path.basename(new), new + ".link")
        os.replace(new + ".link", link)
        if old != link:
            shutil.rmtree(old, ignore_errors=True)

    def do_start(self, number, job, index, arguments, bin_dir, nth):
        """`nth` of the workers of this host, for its GPU."""
        arguments = [argument.replace("{files}", self.folder)
                     for argument in arguments]
        gpu = "" if job == "ps" or not self.gpus else self.gpus[
            nth % len(self.gpus)]
        try:
            program = places.binary("ps_server" if job == "ps" else "worker",
                                    bin_dir)
            task = Task(job, number, index, [program] + arguments, gpu)
        except (Failure, OSError) as failure:
            self.say("output", number=number, line=str(failure))
            self.say("exit", number=number, code=2)
            return
        self.tasks[number] = task
        task.watch(self)

    def do_signal(self, number, signum):
        if number in self.tasks:
            self.tasks[number].send(signum)

    def do_alive(self):
        """Being heard is all."""

    def on_output(self, task):
        if task.process.stdout.closed:
            return  # Its end was seen in the same round.
        lines = task.read_lines()
        if lines is None:
            self.selector.unregister(task.process.stdout)
            return
        for line in lines:
            self.say("output", number=task.number, line=line)

    def on_exit(self, task):
        Supervisor.on_exit(self, task)
        for line in task.rest():
            self.say("output", number=task.number, line=line)
        task.unwatch(self)
        self.say("exit", number=task.number, code=task.exit_code)


def main(argv):
    """The verb `agent`, of no use by hand."""
    if argv:
        print("muster agent: muster run starts it, without arguments",
              file=sys.stderr)
        return 2
    # The one who ends it is at the other end of the input; tasks that got the
    # same signal from their batch system save meanwhile. (They would inherit
    # SIG_IGN.)
    stop_signals.watch(lambda *_: None)
    os.set_blocking(0, True)
    return Agent().run()
