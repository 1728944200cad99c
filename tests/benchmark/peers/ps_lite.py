#!/usr/bin/env python3
"""Pushes and pulls of ps-lite (BytePS's fork), for bench.sh --peers.

  ps_lite.py PROGRAM BYTES SECONDS

A scheduler, a server and a worker of PROGRAM, which build_ps_lite.sh builds, on
loopback. Prints the worker's line of JSON.
"""

import os
import subprocess
import sys

from loopback_ports import free_ports

LIMIT_S = 300


def main(program, *arguments):
    environment = dict(
        os.environ, DMLC_NUM_SERVER="1", DMLC_NUM_WORKER="1",
        DMLC_PS_ROOT_URI="127.0.0.1", DMLC_NODE_HOST="127.0.0.1",
        DMLC_PS_ROOT_PORT=str(free_ports(1)[0]), PS_VERBOSE="0")
    tasks = [subprocess.Popen(
        [program, *arguments], env=dict(environment, DMLC_ROLE=role),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        for role in ("scheduler", "server", "worker")]
    try:
        # The worker prints next to nothing: a pipe holds it.
        codes = [task.wait(LIMIT_S) for task in tasks]
        if any(codes):
            sys.exit("ps_lite.py: exit codes %s" % codes)
        print(tasks[-1].stdout.read(), end="")
    finally:
        for task in tasks:
            if task.poll() is None:
                task.kill()
                task.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
