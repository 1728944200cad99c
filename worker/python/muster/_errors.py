"""What can go wrong, by the exit code that a worker has for it."""

import sys
from types import TracebackType
from typing import Dict, Optional, Type

from muster._words import in_arguments


class Error(Exception):
    """The training failed, or a call could not be carried out.

    An uncaught one ends the process with `exit_code`, which is that of a worker
    of `muster run`: 1 to 127 are permanent, another try may help from 128 on.
    """

    # Where users know it, in tracebacks.
    __module__ = "muster"
    exit_code = 1


class ConfigError(Error):
    """A setting, shape, name, dtype or call that cannot be."""

    __module__ = "muster"
    exit_code = 2


class CheckpointError(Error):
    """The train_dir, or a checkpoint in it, is of no use."""

    __module__ = "muster"
    exit_code = 3


class SecurityError(Error):
    """Keys, or an address, that are not allowed."""

    __module__ = "muster"
    exit_code = 4


class UnavailableError(Error):
    """A peer that did not come, or a full disk: another try may help."""

    __module__ = "muster"
    exit_code = 138


class ForkedError(Error):
    """A call in a process that was forked after `init`."""

    __module__ = "muster"


class JobOver(Error):
    """The job is over, and this worker has not its values: it came too late, or
    they could not be read. Nothing has failed, but what is here is no model."""

    __module__ = "muster"
    exit_code = 0


# MUSTER_ERROR_..., muster.h.
_OF_KIND: Dict[int, Type[Error]] = {
    1: ConfigError,
    2: CheckpointError,
    3: SecurityError,
    4: UnavailableError,
    6: ForkedError,
}


def of_kind(kind: int, words: str) -> Error:
    """The error that a call of libmuster has returned."""
    return _OF_KIND.get(kind, Error)(in_arguments(words))


def of_exit_code(exit_code: int, words: str) -> Error:
    """Why a worker has ended with `exit_code`, which is no signal's."""
    for kind in _OF_KIND.values():
        if kind.exit_code == exit_code and kind is not ForkedError:
            return kind(in_arguments(words))
    return Error(in_arguments(words))


def end_with_exit_codes() -> None:
    """An uncaught Error ends the process with its exit code from now on, after
    what `sys.excepthook` does with it."""
    former = sys.excepthook
    if getattr(former, "of_muster", False):
        return

    def hook(kind: Type[BaseException], error: BaseException,
             trace: Optional[TracebackType]) -> None:
        if isinstance(error, JobOver):
            # Words alone, as nothing has failed.
            error, trace = error.with_traceback(None), None
        former(kind, error, trace)
        if isinstance(error, Error):
            # Python takes it from a hook as from a program: atexit runs.
            raise SystemExit(error.exit_code)

    hook.of_muster = True  # type: ignore[attr-defined]
    sys.excepthook = hook
