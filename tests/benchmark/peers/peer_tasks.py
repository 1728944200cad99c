"""Tasks of a peer's cluster: processes of one program, which ends with its
standard input, and what the workers among them have in common."""

import json
import os
import subprocess
import sys
import threading
import time

# Steps of each worker before those that count.
WARM_UP = 20


def start(program, arguments, environment):
    """`program`: a path of this folder's, run by this Python."""
    return subprocess.Popen(
        [sys.executable, os.path.abspath(program), *map(str, arguments)],
        env={**os.environ, "no_proxy": "127.0.0.1", **environment},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def last_lines(workers, others):
    """The last line of each worker, as JSON; ends all of them. Raises
    RuntimeError if one has none."""
    try:
        lines = [worker.stdout.read().splitlines()[-1:] for worker in workers]
    finally:
        for task in (*workers, *others):
            task.kill()
            task.wait()
    if not all(lines):
        raise RuntimeError("a worker ended before its steps were done")
    return [json.loads(line) for line, in lines]


def end_with_input():
    """This process ends when the one that started it closes its input."""
    def watch():
        sys.stdin.read()
        os._exit(1)  # pylint: disable=protected-access
    threading.Thread(target=watch, daemon=True).start()


def steps_per_s(times):
    """Of all workers together, while all of them ran, from the times at which
    each one's steps ended. Raises RuntimeError if they never did."""
    begin = max(one[WARM_UP - 1] for one in times)
    end = min(one[-1] for one in times)
    if end <= begin:
        raise RuntimeError("a worker had done all its steps before another "
                           "began: wanted more steps")
    return sum(begin < time_ <= end
               for one in times for time_ in one) / (end - begin)


class Marks:
    """A folder in which the workers tell each other how far they are."""

    def __init__(self, folder):
        self.folder = folder

    def set(self, name):
        with open(os.path.join(self.folder, name), "w", encoding="ascii"):
            pass

    def wait_for(self, names):
        while not all(os.path.exists(os.path.join(self.folder, name))
                      for name in names):
            time.sleep(0.02)

    def meet(self, index, workers, where="start"):
        """Returns when all workers have come there."""
        names = ["%s %d" % (where, i) for i in range(workers)]
        self.set(names[index])
        self.wait_for(names)
