"""A muster_job: the calls of muster.h for it, and the memory that they use."""

import ctypes
from typing import Any, List, Optional, Sequence, Tuple

import numpy

from muster import _library
from muster._errors import Error, of_kind
from muster._memory import pointers_to


class Handle:
    """libmuster's side of a job. Who may call, and when, is `Job`'s matter.

    Attributes:
      task: the process's place.
      step: the newest muster_step.
      is_open: whether libmuster takes part.
      is_started: whether it does or did.
      is_offered: whether gradients of `step` are wanted.
      exit_code: 0 until it is over.
      words: why it is over.
    """

    def __init__(self, spec: bytes) -> None:
        """Finds the process's place, without a connection. Errors: ConfigError,
        SecurityError."""
        self._library = _library.load()
        self._job: Optional[int] = None
        # What libmuster reads and writes stays alive as long as it does.
        self._kept_values: Any = None
        self._kept_gradients: Any = None
        self._kept_parts: List[Any] = []
        self.task = _library.Task()
        self.step = _library.Step()
        self.is_started = False
        self.is_offered = False
        self.exit_code = 0
        self.words = ""
        self._check(self._library.muster_resolve(spec,
                                                 ctypes.byref(self.task)))

    @property
    def is_open(self) -> bool:
        return self._job is not None

    def start(self, spec: bytes, addresses: Sequence[int], kept: Any) -> None:
        """muster_start; `kept` owns the memory at `addresses`."""
        kind = ctypes.c_int(0)
        job = self._library.muster_start(spec, pointers_to(addresses),
                                         ctypes.byref(kind))
        if not job:
            raise of_kind(kind.value, _library.words())
        self._kept_values = kept
        self._job = job
        self.is_started = True

    def wait(self, timeout_ms: int) -> int:
        """muster_await. OVER closes it."""
        state = self._library.muster_await(self._job, timeout_ms,
                                           ctypes.byref(self.step))
        self.is_offered = state == _library.STEP
        if self.is_offered:
            self._forget_gradients()
        elif state == _library.OVER:
            self.close()
            self.words = _library.words()
        return int(state)

    def push(self, pointers: Any, kept: Any,
             report: _library.Report) -> Optional[Error]:
        """muster_push of a C array of pointers to memory that `kept` owns.
        Returns why it was refused, if it was."""
        self._kept_gradients = kept
        kind = self._library.muster_push(self._job, pointers,
                                         ctypes.byref(report))
        if kind != _library.OK:
            return of_kind(kind, _library.words())
        self.is_offered = False
        return None

    def push_tensor(self, index: int, address: int, kept: Any,
                    report: _library.Report) -> None:
        """muster_push_tensor; `kept` owns the memory at `address`."""
        self._kept_parts.append(kept)
        self._check(self._library.muster_push_tensor(
            self._job, index, address, ctypes.byref(report)))

    def pull_rows(self, table: int, ids: numpy.ndarray, values: numpy.ndarray,
                  timeout_ms: int) -> int:
        """muster_pull_rows: OK, NOT_YET (then again, with the same) or
        JOB_OVER."""
        kind = int(self._library.muster_pull_rows(
            self._job, table, ids.ctypes.data, ids.size, values.ctypes.data,
            timeout_ms))
        if kind not in (_library.NOT_YET, _library.JOB_OVER):
            self._check(kind)
        return kind

    def push_rows(self, table: int, ids: numpy.ndarray,
                  gradients: numpy.ndarray) -> Optional[Error]:
        """muster_push_rows. Returns why it was refused, if it was."""
        self._kept_parts.append((ids, gradients))
        kind = self._library.muster_push_rows(
            self._job, table, ids.ctypes.data, ids.size, gradients.ctypes.data)
        return (None if kind == _library.OK
                else of_kind(kind, _library.words()))

    def rows_into(self, ahead: int,
                  rows: numpy.ndarray) -> Optional[Tuple[int, int]]:
        """How many rows the step has, and their epoch, once both are known."""
        epoch = ctypes.c_int64(0)
        count = self._library.muster_rows(
            self._job, ahead, rows.ctypes.data, len(rows), ctypes.byref(epoch))
        return None if count < 0 else (int(count), int(epoch.value))

    def log(self, name: str, number: float) -> None:
        """muster_log."""
        self._check(self._library.muster_log(self._job, name.encode("utf-8"),
                                             number))

    def save(self) -> None:
        """muster_save."""
        self._check(self._library.muster_save(self._job))

    def stop(self, number: int) -> None:
        """muster_stop."""
        self._check(self._library.muster_stop(self._job, number))

    def close(self) -> None:
        """muster_close."""
        job, self._job = self._job, None
        self.is_offered = False
        self.exit_code = int(self._library.muster_close(job))
        self._forget_gradients()

    def _forget_gradients(self) -> None:
        self._kept_gradients = None
        self._kept_parts.clear()

    def _check(self, kind: int) -> None:
        if kind != _library.OK:
            raise of_kind(kind, _library.words())
