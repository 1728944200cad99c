"""Bursts of measurement on a quiet machine.

Before a burst: wait until others use next to no CPU. After it: was it
disturbed? Others' CPU time is the machine's minus our own and our ended
children's. Python 3 standard library only.
"""

import os
import resource
import time

# In cores. A burst begins below the one, and counts below the other.
QUIET_CORES = 0.05
DISTURBED_CORES = 0.06
# How long others are watched before a burst.
LOOK_S = 0.3
# A burst that is disturbed so often is reported as noisy.
ATTEMPTS = 3


class Machine:
    """CPU times and the clock, in seconds."""

    def busy_s(self):
        # user nice system idle iowait irq softirq steal: interrupts are often
        # our own loopback packets.
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(field) for field in file.readline().split()[1:9]]
        return sum(ticks[i] for i in (0, 1, 2, 7)) / os.sysconf("SC_CLK_TCK")

    def own_s(self):
        return sum(usage.ru_utime + usage.ru_stime for usage in (
            resource.getrusage(resource.RUSAGE_SELF),
            resource.getrusage(resource.RUSAGE_CHILDREN)))

    def now_s(self):
        return time.monotonic()

    def pass_time(self, seconds):
        time.sleep(seconds)


class Gate:
    """Runs bursts; has so much patience for a loud machine, in all."""

    def __init__(self, patience_s, machine=None):
        self.patience_s = patience_s
        self.machine = machine or Machine()

    def run(self, burst):
        """(what burst() returns, whether the machine was quiet meanwhile)."""
        for _ in range(ATTEMPTS):
            quiet = self._wait()
            started = self._read()
            result = burst()
            foreign, seconds = self._foreign_since(started)
            if quiet and foreign <= DISTURBED_CORES:
                return result, True
            self.patience_s -= seconds
            if self.patience_s <= 0:
                break
        return result, False

    def _wait(self):
        while self.patience_s > 0:
            started = self._read()
            self.machine.pass_time(LOOK_S)
            foreign, seconds = self._foreign_since(started)
            if foreign <= QUIET_CORES:
                return True
            self.patience_s -= seconds
        return False

    def _read(self):
        return (self.machine.busy_s() - self.machine.own_s(),
                self.machine.now_s())

    def _foreign_since(self, started):
        """(cores that others used, seconds)."""
        foreign, now = self._read()
        seconds = max(now - started[1], 1e-9)
        return (foreign - started[0]) / seconds, seconds
