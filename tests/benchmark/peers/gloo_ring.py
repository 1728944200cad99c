#!/usr/bin/env python3
"""Gloo's ring all-reduce, for bench.sh --peers.

  gloo_ring.py PROGRAM PROCESSES BYTES SECONDS

PROCESSES of PROGRAM, which build_gloo_ring.sh builds, on loopback. Prints the
first one's line of JSON.
"""

import subprocess
import sys
import tempfile

LIMIT_S = 300


def main(program, processes, size, seconds):
    with tempfile.TemporaryDirectory() as store:
        ranks = [subprocess.Popen(
            [program, str(rank), processes, str(int(size) // 4), seconds,
             store],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            for rank in range(int(processes))]
        try:
            # One line: a pipe holds it.
            codes = [rank.wait(LIMIT_S) for rank in ranks]
            if any(codes):
                sys.exit("gloo_ring.py: exit codes %s" % codes)
            print(ranks[0].stdout.read(), end="")
        finally:
            for rank in ranks:
                if rank.poll() is None:
                    rank.kill()
                    rank.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
