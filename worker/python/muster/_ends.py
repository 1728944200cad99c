"""How a process that has a job ends: SIGTERM, the exit code, the last words."""

import atexit
import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any, Callable, Optional, Type

# Two within it are one: `timeout` and batch systems send it twice.
_ONE_SIGNAL_S = 1.0

_exit_code = 0


def say(text: str) -> None:
    """A line beside those of libmuster."""
    print("muster: " + text, file=sys.stderr, flush=True)


def kind_of_end() -> Optional[Type[BaseException]]:
    """Of the exception that ends the process, at its exit; None: none, or
    SystemExit."""
    return getattr(sys, "last_type", None)


def exit_at_end(exit_code: int) -> None:
    """At the process's exit: it ends with this code instead of the program's,
    once other hooks have run."""
    global _exit_code  # pylint: disable=global-statement
    _exit_code = exit_code


def _end_process() -> None:
    if _exit_code:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass
        # A hook has no other way to change the code.
        os._exit(_exit_code)  # pylint: disable=protected-access


# Early, as the first registered runs last.
atexit.register(_end_process)


class Sigterm:
    """SIGTERM while the process has a job: a handler in the main thread, where
    the program has none. The first drains, a later one kills.

    Attributes:
      has_come: whether one has.
    """

    def __init__(self, on_signal: Callable[[int, bool], None]) -> None:
        """`on_signal` gets the number, and whether it is the first."""
        self._on_signal = on_signal
        self._pid = os.getpid()
        # Monotonic.
        self._came_at: Optional[float] = None
        self._former: Any = None
        if (threading.current_thread() is threading.main_thread() and
                signal.getsignal(signal.SIGTERM) == signal.SIG_DFL):
            self._former = signal.signal(signal.SIGTERM, self._handle)

    @property
    def has_come(self) -> bool:
        return self._came_at is not None

    def restore(self) -> None:
        """The handler of before the job."""
        if self._former is not None:
            signal.signal(signal.SIGTERM, self._former)
            self._former = None

    def _handle(self, number: int, frame: Optional[FrameType]) -> None:
        del frame
        now = time.monotonic()
        before, self._came_at = self._came_at, now
        if self._pid != os.getpid() or (
                before is not None and now >= before + _ONE_SIGNAL_S):
            # In a child it was not meant for, it is as if it were not there.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        else:
            self._on_signal(number, before is None)
