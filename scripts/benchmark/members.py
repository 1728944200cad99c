"""What leases of rows, and workers that come and go, cost and give.

Python 3 standard library only, but for the fakes of members_load.py.
"""

import os
import sys

from . import processes
from .figures import Figure, Measurement, at_least, at_most, of_program

FOLDER = os.path.dirname(os.path.abspath(__file__))
REQUIREMENTS = os.path.join(FOLDER, "members_requirements.txt")
ZOO = os.path.join(processes.ROOT, "worker/model/zoo")
DELAY_S, WORKERS, BATCH = 0.05, 2, 100
SOFTMAX = ["--training=" + os.path.join(ZOO, "softmax_regression.textproto"),
           "--set=input.type=synthetic", "--set=input.batch_size=%d" % BATCH,
           "--set=input.synthetic_test_examples=500", "--set=stop.epochs=0"]
PREFETCH = 2
# Steps are round trips: those of the last worker are 5 times longer.
SLOW_DELAYS_S = (0.02, 0.02, 0.1)
# So that a second has many steps, and who comes is soon connected.
MOVES_DELAY_S = 0.02
FAKES = 1000


def figures(options):
    """The part "members"; what wants hosts is left out without the right to
    make some, what wants fakes without their Python, with a line about it."""
    sys.path.append(processes.ROOT)
    # It tries that when it is imported.
    from . import members_jobs
    builds = {"": members_jobs.Build(*(os.path.join(
        options.bin_dir, path) for path in ("ps_server/ps_server",
                                            "worker/worker")))}
    if options.before:
        builds[" of --before"] = members_jobs.Build(*(os.path.join(
            options.before, path) for path in ("ps_server", "worker")))
    for build in builds.values():
        for program in build:
            processes.check_program(program)
    if members_jobs.network_switch.REASON is None:
        yield from delayed(options, members_jobs, builds)
        yield from members(options, members_jobs, builds[""])
    else:
        _say("%s; jobs between hosts are left out" %
             members_jobs.network_switch.REASON)
    try:
        python = processes.python_with(REQUIREMENTS)
    except processes.Failure as failure:
        _say("%s; fake workers are left out" % failure)
        return
    yield from fakes(options, python, builds)


def delayed(options, jobs, builds):
    """The speed of steps of two distant workers, and the calls of each step."""
    def measured(name, build, steps, delay_s, workers, link):
        flags = [*SOFTMAX, "--link=" + link, "--set=stop.steps=%d" % steps]
        return Measurement(name, [build.worker, *flags], lambda:
                           jobs.steps_per_s(build, flags, delay_s, workers))
    steps = 10 if options.quick else 100
    speeds, calls = [], []
    for which, build in builds.items():
        name = "softmax, 1 ps + 2 workers, 50 ms each way" + which
        speeds.append(measured(name, build, steps, DELAY_S, WORKERS, "tcp"))
        yield Figure(name, "steps/s", speeds[-1:],
                     lambda numbers: numbers["steps_per_s"])
        yield Figure("round trips of a step" + which, "", speeds[-1:],
                     lambda numbers: WORKERS / numbers["steps_per_s"] /
                     (2 * DELAY_S))
        # What a job has besides its steps, both have.
        name = "calls of a step" + which
        calls.append([measured("%s, %d steps" % (name, number), build, number,
                               0, 1, "grpc") for number in (steps, 3 * steps)])
        yield Figure(name, "", calls[-1], lambda few, many: (
            many["calls"] - few["calls"]) / (2 * steps))
    if options.before:
        yield Figure("softmax, 50 ms each way: steps/s over --before", "x",
                     speeds, lambda own, before: own["steps_per_s"] /
                     before["steps_per_s"], at_least(0.98))
        # A heartbeat more or less is not of the steps.
        yield Figure("calls of a step over --before", "x", sum(calls, []),
                     lambda *all_: round((all_[1]["calls"] - all_[0]["calls"]) /
                                         (2 * steps)) /
                     round((all_[3]["calls"] - all_[2]["calls"]) / (2 * steps)),
                     at_most(1.0))


def members(options, jobs, build):
    """One that is slow, and workers that come and go."""
    rows = 300 if options.quick else 600
    slow = Measurement(
        "three workers, one 5 times slower", [build.worker],
        lambda: jobs.one_is_slow(build, rows, SLOW_DELAYS_S, [
            "--set=input.prefetch=%d" % PREFETCH]))
    yield Figure("%s: times slower" % slow.name, "x", [slow],
                 lambda numbers: numbers["times_slower"])
    yield Figure("%s: its steps from the others' last one to the epoch's end" %
                 slow.name, "", [slow], lambda numbers: numbers["waited_steps"],
                 at_most(1 + PREFETCH))
    flags = [*SOFTMAX, "--set=stop.steps=1000000"]
    moves = Measurement(
        "2, 6, then 3 workers, 20 ms each way", [build.worker, *flags],
        lambda: jobs.come_and_go(build, flags, MOVES_DELAY_S,
                                 6.0 if options.quick else 12.0, BATCH))
    for i, number in enumerate((2, 6, 3)):
        yield Figure("%s: examples/s of %d" % (moves.name, number),
                     "1/s", [moves], lambda numbers, i=i: numbers["rates"][i])
    for i, what in enumerate(("come", "leave")):
        yield Figure("%s: until examples/s follow those who %s" % (
            moves.name, what), "s", [moves],
            lambda numbers, i=i: numbers["seconds"][i], at_most(3.0))


def fakes(options, python, builds):
    """CPU of ps task 0 for a thousand workers."""
    number = 100 if options.quick else FAKES

    def load(build, steps, *watch):
        return of_program("%d fake workers %s" % (number, build.ps_server), [
            python, os.path.join(FOLDER, "members_load.py"), build.ps_server,
            str(number), str(steps), *watch])
    watching = load(builds[""], 1, "watch")
    yield Figure("%d workers join, each watching: CPU of ps task 0" % number,
                 "s", [watching], lambda numbers: numbers["join_s"],
                 at_most(2.0))
    yield Figure("%d workers leave, each watching: CPU of ps task 0" % number,
                 "s", [watching], lambda numbers: numbers["leave_s"])
    steps = 20
    stepping = [load(build, steps) for build in builds.values()]
    yield Figure("CPU of ps task 0 for a step of %d" % number, "us",
                 stepping[:1], lambda numbers: 1e6 * numbers["step_s"] /
                 (number * (steps + 1)))
    if options.before:
        yield Figure("CPU of ps task 0 for a step of %d over --before" % number,
                     "x", stepping, lambda own, before: own["step_s"] /
                     before["step_s"], at_most(1.2))


def _say(line):
    print("bench.sh: " + line, file=sys.stderr)
