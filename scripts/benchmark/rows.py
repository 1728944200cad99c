"""What rows of sparse tables cost: in the store of a ps task, and for a worker.

Python 3 standard library only.
"""

import os
import socket
import subprocess

from . import processes
from .figures import Figure, Measurement, at_least, at_most, of_program

ROWS, DIM = 1000000, 16
MANY_ROWS, MANY_DIM = 50000000, 8
# Over the bare map: the store, and a worker with its ps task, CPU of both.
OF_STORE, OF_CLIENT = 0.6, 0.4
# Over values, one slot, id and count of updates.
BYTES_A_ROW = 1.6
# A pull among many rows over one among few.
FLAT = 0.5


def figures(options):
    """The part "rows"."""
    program = os.path.join(options.bin_dir, "tests/benchmark/rows/rows")
    ps_server = os.path.join(options.bin_dir, "ps_server/ps_server")
    for path in (program, ps_server):
        processes.check_program(path)
    rows = ROWS // 10 if options.quick else ROWS

    def measured(figure, rows=rows, dim=DIM):
        flags = ["--figure=" + figure, "--rows=%d" % rows, "--dim=%d" % dim]
        return of_program(" ".join(flags), [program, *flags])

    bare, store = measured("map"), measured("store")
    for verb in ("pull", "push"):
        key = "%s_rows_per_cpu_s" % verb
        yield Figure("%s of rows in a table" % verb, "million/CPU-s", [store],
                     lambda numbers, key=key: numbers[key] / 1e6)
        yield Figure("%s of rows in a table over a bare map" % verb, "x",
                     [store, bare],
                     lambda own, map_, key=key: own[key] / map_[key],
                     at_least(OF_STORE))
    client = Measurement(
        "rows of a worker through shared memory", [program, "--figure=client"],
        lambda: of_client(program, ps_server, rows))
    yield Figure("pulled and pushed rows of a worker, CPU of it and its ps "
                 "task, over a bare map", "x", [client, bare],
                 lambda own, map_: own["rows_per_cpu_s"] /
                 map_["rows_per_cpu_s"], at_least(OF_CLIENT))
    if options.quick:
        return
    few = measured("store", ROWS, MANY_DIM)
    many = measured("store", MANY_ROWS, MANY_DIM)
    wanted = 4 * MANY_DIM * 2 + 8 + 8
    yield Figure("bytes of one of 50 million rows over what it holds", "x",
                 [many], lambda numbers: numbers["bytes_a_row"] / wanted,
                 at_most(BYTES_A_ROW))
    yield Figure("pull among 50 million rows over one among 1 million", "x",
                 [many, few], lambda most, least:
                 most["pull_rows_per_cpu_s"] / least["pull_rows_per_cpu_s"],
                 at_least(FLAT))


def of_client(program, ps_server, rows):
    """The numbers of a worker on a ps task of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = "127.0.0.1:%d" % listener.getsockname()[1]
    server = subprocess.Popen(
        [ps_server, "--ps_hosts=" + address, "--job_name=ps",
         "--task_index=0", "--keep_serving"], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    try:
        command = [program, "--figure=client", "--rows=%d" % rows,
                   "--dim=%d" % DIM, "--ps_address=" + address,
                   "--ps_pid=%d" % server.pid]
        return processes.last_json_line(processes.run(command), command)
    finally:
        server.terminate()
        server.wait()
