"""A host at the other end of ssh, with the agent there and its tasks."""

import collections
import json
import os
import selectors
import shlex
import signal
import subprocess
import sys
import time

from base import places
from base.local_tasks import die_with_parent
from base.supervisor import PEERS_LOST

from . import host_list

# Beside what the user's own configuration of ssh says. A question would wait
# for ever; a host that is gone is noticed after 45 s.
SSH = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-o",
       "ServerAliveCountMax=3"]
# For the agent to kill its tasks, and ssh to tell.
CLOSE_S = 10.0


def command_of(host, options):
    """Starts the agent of a host: by ssh, but for `localhost`."""
    if host.name == host_list.LOCAL:
        return [sys.executable, places.PROGRAM, "agent"]
    flags = ["-o", "ConnectTimeout=%d" % max(1, round(options.start_timeout))]
    for option in options.ssh_option:
        flags += ["-o", option]
    if options.ssh_port:
        flags += ["-p", str(options.ssh_port)]
    program = os.path.join(options.muster_dir, "scripts", "muster")
    return SSH + flags + [host.name.replace("[", "").replace("]", ""),
                          "exec python3 %s agent" % shlex.quote(program)]


class Channel:
    """Messages to and from the agent of a host."""

    def __init__(self, host, command):
        self.host = host
        self.name = host.name
        # Of its tasks: {number: RemoteTask}.
        self.tasks = {}
        self.started = time.monotonic()
        self.alive = True
        self.closed = False
        self.partial = b""
        # What ssh said, and whoever wrote no message.
        self.tail = collections.deque(maxlen=5)
        parent = os.getpid()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=lambda: die_with_parent(parent))
        os.set_blocking(self.process.stdout.fileno(), False)

    def tell(self, do, **fields):
        line = json.dumps(dict(fields, do=do)) + "\n"
        try:
            self.process.stdin.write(line.encode())
            self.process.stdin.flush()
        except (OSError, ValueError):
            pass  # Its output ends, too, and says so.

    def read(self):
        """The messages that have come; a line that is none is {"is": "text"}.
        At the end `alive` is false."""
        try:
            chunk = os.read(self.process.stdout.fileno(), 65536)
        except BlockingIOError:
            return []
        self.alive = bool(chunk)
        *lines, self.partial = (self.partial + chunk).split(b"\n")
        if not chunk and self.partial:
            lines.append(self.partial)
        return [self._message(line) for line in lines]

    def _message(self, line):
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if isinstance(message, dict) and "is" in message:
            return message
        text = line.decode("utf-8", "replace").rstrip("\r")
        self.tail.append(text)
        return {"is": "text", "text": text}

    def hang_up(self):
        """The agent kills its tasks, and ends."""
        try:
            self.process.stdin.close()
        except OSError:
            pass

    def close(self):
        """Hangs up; returns when the agent and ssh are gone."""
        if self.closed:
            return
        self.closed = True
        self.hang_up()
        os.set_blocking(self.process.stdout.fileno(), True)
        selector = selectors.DefaultSelector()
        selector.register(self.process.stdout, selectors.EVENT_READ)
        deadline = time.monotonic() + CLOSE_S
        # Its output is drained, so that it does not wait for a reader.
        while (left := deadline - time.monotonic()) > 0 and (
                selector.select(left)):
            if not os.read(self.process.stdout.fileno(), 65536):
                break
        self.process.kill()
        self.process.wait()

    # ---- While the tasks run.

    def watch(self, supervisor):
        supervisor.selector.register(
            self.process.stdout, selectors.EVENT_READ,
            (lambda _: self.on_messages(supervisor), None))

    def on_messages(self, supervisor):
        ended = []
        for message in self.read():
            task = self.tasks.get(message.get("number"))
            if message["is"] == "output" and task:
                task.tail.append(message["line"])
                supervisor.take_line(task, message["line"])
            elif message["is"] == "exit" and task:
                task.exit_code = message["code"]
                ended.append(task)
            elif "text" in message:
                supervisor.printer.say("%s: %s" % (self.name, message["text"]))
        return ended if self.alive else ended + self.lose(supervisor)

    def lose(self, supervisor):
        """The host is gone, and its tasks with it."""
        supervisor.selector.unregister(self.process.stdout)
        lost = [task for task in self.tasks.values() if task.exit_code is None]
        for task in lost:
            task.exit_code = PEERS_LOST
            task.tail.append("the connection to %s is gone" % self.name)
        return lost


class RemoteTask:
    """A task on a channel's host, as a Supervisor wants it."""

    def __init__(self, channel, plan):
        self.channel = channel
        self.plan = plan
        self.job = plan["job"]
        self.index = plan["index"]
        self.number = plan["number"]
        self.name = "%s %s %d" % (channel.name, self.job, self.index)
        self.restarts = 0
        self.restart_at = None
        self.tail = collections.deque(maxlen=5)
        self.exit_code = None
        channel.tasks[self.number] = self
        channel.tell("start", **plan)

    def send(self, signum):
        if self.exit_code is None:
            self.channel.tell("signal", number=self.number, signum=signum)

    def watch(self, supervisor):
        """The channel is watched for all its tasks."""

    def startable(self):
        return self.channel.alive

    def again(self):
        return RemoteTask(self.channel, self.plan)

    def kill(self):
        self.channel.hang_up()
        self.exit_code = 128 + signal.SIGKILL
