"""What `muster run` starts on each host: it has that host's tasks.

It reads a JSON message a line from its input and answers so. The tasks are
killed, by the kernel if need be, when its input ends, and when it dies. When
nothing was heard for SILENCE_S (a cable that was pulled ends no input), they
are asked to save first.
"""

import errno
import fcntl
import json
import os
import random
import select
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time

from base import local_gpus, places, stop_signals
from base.failure import Failure
from base.folder_lock import NO_LOCKS
from base.local_tasks import Task
from base.task_loop import TaskLoop

from . import program

# The launcher speaks every few seconds.
SILENCE_S = 120.0
# In so many parts is the silence counted.
SILENT_BEATS = 12
# For the last save of tasks that nobody hears any more.
DRAIN_S = 30.0
REACH_S = 5.0
# As launcher.py's.
PORTS = range(20000, 32000)
PREFIX = "muster-run-"
# Others take one for left now and then, and not again and again.
FOLDER_TRIES = 100


class Gone(Exception):
    """Nobody is there any more for whom to run tasks."""


class Stranger(Exception):
    """Who speaks is not muster run."""


class Silence(Exception):
    """Nothing was heard for SILENCE_S."""


def _line(kind, fields):
    return json.dumps(dict(fields, **{"is": kind})) + "\n"


def locked(folder):
    """A descriptor whose lock on the folder goes with its process, or None: it
    is another agent's, another user's, or gone. Raises the OSError of a file
    system without locks."""
    lock = None
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = os.fstat(lock)
        # Not of one that was removed before it was locked.
        if found.st_uid == os.getuid() and os.path.samestat(
                found, os.lstat(folder)):
            return lock
    except OSError as error:
        # Of flock: no folder that we may open gives them.
        if lock is not None and error.errno in NO_LOCKS:
            os.close(lock)
            raise
    if lock is not None:
        os.close(lock)
    return None


def own_folder():
    """A new folder, its lock, and what is to be said of it."""
    for _ in range(FOLDER_TRIES):
        folder = tempfile.mkdtemp(prefix=PREFIX)
        try:
            lock = locked(folder)
        except OSError as error:
            return folder, None, (
                "%s has no locks (%s): should this agent be killed, %s and the "
                "keys in it stay; TMPDIR names another place" % (
                    os.path.dirname(folder), error.strerror, folder))
        # Another may have taken it for left in between.
        if lock is not None:
            return folder, lock, ""
        shutil.rmtree(folder, ignore_errors=True)
    raise Failure("%s: each new folder was taken by another agent, %d times" % (
        tempfile.gettempdir(), FOLDER_TRIES))


def remove_left_folders():
    """Those of agents of ours that were killed: keys may lie in them."""
    parent = tempfile.gettempdir()
    for name in os.listdir(parent):
        folder = os.path.join(parent, name)
        try:
            lock = locked(folder) if name.startswith(PREFIX) else None
        except OSError:
            return  # Whose they are cannot be known.
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


class Agent(TaskLoop):
    """Answers messages, and tells of its tasks; the other end judges."""

    def __init__(self):
        super().__init__()
        self.tasks = {}
        self.listening = []
        self.folder = None
        # While it is open, the folder is in use.
        self.lock = None
        self.partial = b""
        self.gpus = None
        # Beats since something was heard.
        self.silent = 0

    def say(self, kind, **fields):
        try:
            sys.stdout.write(_line(kind, fields))
            sys.stdout.flush()
        except OSError:
            raise Gone("nobody reads") from None

    def run(self):
        signal.signal(signal.SIGALRM, self.on_beat)
        beat_s = SILENCE_S / SILENT_BEATS
        signal.setitimer(signal.ITIMER_REAL, beat_s, beat_s)
        self.selector.register(0, selectors.EVENT_READ, (self.on_input, None))
        self.say("hello", time=time.time())
        try:
            while True:
                self.look()
        except Silence:
            self.drain()
            return 0
        except Gone:
            return 0
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.end()

    def on_beat(self, *_):
        """Also where a write waits. While this process is frozen all its beats
        are one; and what is in the pipe by now was said in time."""
        self.silent += 1
        if self.silent > SILENT_BEATS and not select.select([0], [], [], 0)[0]:
            raise Silence

    def drain(self):
        """Has the tasks save, and tells it as far as the pipe has room."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.set_blocking(1, False)
        self.say = self.try_to_say
        self.say("problem", text="nothing heard from muster run for %d s: the "
                 "tasks save and end" % SILENCE_S)
        self.selector.unregister(0)
        workers = [one for one in self.running() if one.job == "worker"]
        # A ps ends with its job.
        for task in workers or self.running():
            task.send(stop_signals.ask())
        self.deadline = self.clock.now() + DRAIN_S
        while self.running() and self.clock.now() < self.deadline:
            self.look()

    def try_to_say(self, kind, **fields):
        try:
            os.write(1, _line(kind, fields).encode())
        except OSError:
            pass

    def running(self):
        return [task for task in self.tasks.values() if task.exit_code is None]

    def end(self):
        for task in self.running():
            task.kill()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def on_input(self, _):
        chunk = os.read(0, 65536)
        if not chunk:
            raise Gone("the input has ended")
        self.silent = 0
        *lines, self.partial = (self.partial + chunk).split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
                do = getattr(self, "do_" + message.pop("do"))
            except (ValueError, LookupError, TypeError, AttributeError):
                raise Stranger from None
            try:
                do(**message)
            except (Failure, OSError) as failure:
                self.say("problem", text=getattr(failure, "strerror", None) or
                         str(failure))

    # ---- Before anything starts.

    def do_look(self, programs, bin_dir, address, ports, port_base):
        """Takes ports, and keeps them until the tasks start. `programs`: those
        that the tasks want."""
        versions = {places.version(places.binary(name, bin_dir))
                    for name in programs}
        if len(versions) > 1:
            raise Failure("%s are of two versions: %s" % (
                " and ".join(programs), ", ".join(sorted(versions))))
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
        remove_left_folders()
        self.folder, self.lock, note = own_folder()
        for name, text in files.items():
            with open(os.path.join(self.folder, name), "w",
                      encoding="utf-8") as file:
                file.write(text)
        if certs:
            self.do_certs(certs)
        if os.path.isdir(folder):
            os.chdir(folder)
        self.gpus = local_gpus.visible("auto")
        self.say("prepared", note=note)

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

    def do_start(self, number, job, index, arguments, bin_dir, nth,
                 own_program=(), workers=1):
        """`nth` of the `workers` of this host, for its GPU. With `own_program`,
        a command line, the arguments are told to it as program.py does."""
        arguments = [argument.replace("{files}", self.folder)
                     for argument in arguments]
        gpu = "" if job == "ps" or not self.gpus else self.gpus[
            nth % len(self.gpus)]
        try:
            if own_program:
                task = program.ProgramTask(
                    job, number, index, own_program, gpu,
                    program.environment(arguments, workers))
            else:
                binary = places.binary("ps_server" if job == "ps" else "worker",
                                       bin_dir)
                task = Task(job, number, index, [binary] + arguments, gpu)
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

    def take_line(self, task, line):
        self.say("output", number=task.number, line=line)

    def look(self):
        """A round of the loop; tells which tasks have ended."""
        for task in self.round():
            self.say("exit", number=task.number, code=task.exit_code)


def main(argv):
    """The verb `agent`, of no use by hand."""
    by_hand = ("muster agent: muster run starts it, without arguments, and "
               "speaks to it")
    if argv:
        print(by_hand, file=sys.stderr)
        return 2
    # The one who ends it is at the other end of the input; tasks that got the
    # same signal from their batch system save meanwhile. (They would inherit
    # SIG_IGN.)
    stop_signals.watch(lambda *_: None)
    os.set_blocking(0, True)
    try:
        return Agent().run()
    except Stranger:
        print(by_hand, file=sys.stderr)
        return 2
