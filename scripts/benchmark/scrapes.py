"""What it costs that a ps task is looked at by HTTP.

Python 3 standard library only, but for the fakes of members_load.py.
"""

import json
import os
import socket
import sys
import tempfile
import threading
import urllib.request

from base.programs import Programs

from . import members, processes
from .figures import Figure, Measurement, at_least, at_most, of_program
from .training import SYNTHETIC, ZOO, read_result

WORKERS = 2
# A scrape and a look of the page.
PATHS, EVERY_S = ("/metrics", "/status.json"), 1.0
LIMIT_S = 10
MOST_CPU_S = 0.02


def figures(options):
    """The part "http"; without the fakes' Python a line says that they are
    left out."""
    ps_server, worker = (os.path.join(options.bin_dir, path) for path in (
        "ps_server/ps_server", "worker/worker"))
    for path in (ps_server, worker):
        processes.check_program(path)

    def measured(name, is_looked_at):
        return Measurement(name, [worker], lambda: {
            "steps_per_s": train(ps_server, worker, options.steps,
                                 is_looked_at)})
    name = "mnist_cnn, 1 ps + %d workers" % WORKERS
    yield Figure(name + ": steps/s with a scrape and a page a second over none",
                 "x", [measured(name + ", looked at", True),
                       measured(name, False)],
                 lambda looked, alone: looked["steps_per_s"] /
                 alone["steps_per_s"], at_least(0.99))
    try:
        python = processes.python_with(members.REQUIREMENTS)
    except processes.Failure as failure:
        print("http: %s; fake workers are left out" % failure, file=sys.stderr)
        return
    number = 100 if options.quick else members.FAKES
    yield Figure("CPU of ps task 0 for a scrape with %d workers" % number, "s",
                 [of_program("%d fake workers, scraped" % number, [
                     python, os.path.join(members.FOLDER, "members_load.py"),
                     ps_server, str(number), "1", "scrape"])],
                 lambda numbers: numbers["scrape_s"], at_most(MOST_CPU_S))


def free_addresses(count):
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = ["127.0.0.1:%d" % one.getsockname()[1] for one in listeners]
    for listener in listeners:
        listener.close()
    return addresses


def look(address, stop):
    """Each second, until `stop`."""
    while not stop.wait(EVERY_S):
        for path in PATHS:
            with urllib.request.urlopen("http://%s%s" % (address, path),
                                        timeout=LIMIT_S) as answer:
                answer.read()


def train(ps_server, worker, steps, is_looked_at):
    """Steps/s of all workers together."""
    ps, http, *workers = free_addresses(2 + WORKERS)
    with tempfile.TemporaryDirectory() as folder, Programs() as programs:
        cluster = os.path.join(folder, "cluster.json")
        with open(cluster, "w", encoding="utf-8") as file:
            json.dump({"ps": [ps], "worker": workers}, file)
        train_dir = os.path.join(folder, "train")
        server = processes.start(programs, [
            ps_server, "--cluster=" + cluster, "--http_address=" + http])
        tasks = [processes.start(programs, [
            worker, "--cluster=" + cluster, "--task_index=%d" % i,
            "--training=" + os.path.join(ZOO, "mnist_cnn.textproto"),
            *SYNTHETIC, "--set=stop.steps=%d" % (steps * WORKERS),
            "--train_dir=" + train_dir, "--compute_threads=1"])
            for i in range(WORKERS)]
        stop = threading.Event()
        looker = threading.Thread(target=look, args=(http, stop))
        if is_looked_at:
            looker.start()
        try:
            for task in tasks:
                processes.finish(programs, task)
        finally:
            stop.set()
            if is_looked_at:
                looker.join()
        processes.finish(programs, server)
        return read_result(train_dir)
