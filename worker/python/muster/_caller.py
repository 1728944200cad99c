"""Who may call for a job."""

import os
import threading

from muster._errors import ConfigError, ForkedError


class Caller:
    """The process and the thread that made a job."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._thread = threading.get_ident()

    @property
    def is_of_this_process(self) -> bool:
        """False in a child of that process."""
        return self._pid == os.getpid()

    def check_process(self) -> None:
        """Raises ForkedError in a child."""
        if not self.is_of_this_process:
            raise ForkedError(
                "a call for a job in process %d, which was forked after init "
                "in process %d: only that one may call. Fork before init, or "
                "use the start method \"spawn\"" % (os.getpid(), self._pid))

    def check(self) -> None:
        """Raises ForkedError in a child, ConfigError in another thread."""
        self.check_process()
        if self._thread != threading.get_ident():
            raise ConfigError("a call for a job from another thread than the "
                              "one that called init: only that one may call")
