"""The signals by which people and batch systems ask the launchers to end.

As common/process/stop_signals.h does for the tasks. Python 3 standard library
only.
"""

import signal
import sys
import time

# Each is a SIGTERM, but stays ignored where it was (nohup), and is never a
# second signal: a shell repeats its SIGHUP, the kernel SIGXCPU in each second.
NOTICES = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM,
           signal.SIGXCPU)
ALL = (signal.SIGINT, signal.SIGTERM, *NOTICES)


def ask():
    """Has a task of ours save and end. No SIGTERM: systemd and Slurm may have
    sent theirs to every process, and a second one would end the task without
    its save. Tasks ignore what is ignored here."""
    return next((signum for signum in (signal.SIGUSR1, signal.SIGUSR2)
                 if signal.getsignal(signum) != signal.SIG_IGN),
                signal.SIGTERM)


def meaning(signum):
    """SIGINT or SIGTERM: 128 and it is the exit code."""
    return signal.SIGINT if signum == signal.SIGINT else signal.SIGTERM


def end(signum, _=None):
    """A handler, for where nothing is left to be looked after."""
    sys.exit(128 + meaning(signum))


def watch(handler, signums=ALL):
    """Gives them to `handler`; returns the handlers that there were."""
    return {signum: signal.signal(signum, handler) for signum in signums
            if signum not in NOTICES or
            signal.getsignal(signum) != signal.SIG_IGN}


# `timeout` sends its SIGTERM to the process, and again to its group.
ONE_WISH_S = 1.0


class Rule:
    """What a signal does, by those before it."""
    STOP, KILL = "stop", "kill"

    def __init__(self):
        self.stopping = False
        # When the first SIGINT or SIGTERM came.
        self.asked = None

    def on_signal(self, signum, clock=time.monotonic):
        """STOP, KILL or None."""
        if signum not in ALL:
            return None
        if signum not in NOTICES:
            now = clock()
            if self.asked is None:
                self.asked = now
            elif now - self.asked >= ONE_WISH_S:
                return self.KILL
        was_stopping, self.stopping = self.stopping, True
        return None if was_stopping else self.STOP
