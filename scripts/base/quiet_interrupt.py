"""Ctrl-C ends a program without a traceback, also while Python starts and
imports: the first import of each program here. The exit code is that of SIGINT,
and what `finally` has runs as ever.

Whoever starts Python blocks SIGINT before (env --block-signal=INT), so that it
waits for this.
"""

import signal
import sys


def _show(kind, error, trace):
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _show
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
