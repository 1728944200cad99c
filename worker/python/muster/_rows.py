"""Rows of sparse tables: settings, and what the steps of a job read and give."""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from muster import _library
from muster._errors import ConfigError, Error, of_kind
from muster._handle import Handle
from muster._memory import checked_address
from muster._spec import (Settings, TableSettings, one_of, table_def_text,
                          table_settings)

# Name, and floats of a row.
Table = Tuple[str, int]

# Between two looks for Ctrl-C.
_WAIT_MS = 100
_Array = numpy.ndarray


def ids_of(what: str, ids: Any) -> _Array:
    """int64, contiguous, of the same shape. Errors: ConfigError."""
    found = numpy.asarray(ids)
    if found.dtype.kind not in "iu" and found.size:
        raise ConfigError("%s: wanted ids that are whole numbers (int64), "
                          "found %s" % (what, found.dtype))
    return numpy.ascontiguousarray(found, numpy.int64).reshape(found.shape)


def first_rows(table_def: str, dim: int, ids: _Array) -> _Array:
    """The first values of a table's rows, [*ids.shape, dim]; `table_def` is the
    text of its TableDef. Errors: ConfigError."""
    values = numpy.empty((*ids.shape, dim), numpy.float32)
    kind = _library.load().muster_first_rows(
        table_def.encode("utf-8"), ids.ctypes.data, ids.size,
        values.ctypes.data)
    if kind != _library.OK:
        raise of_kind(kind, _library.words())
    return values


def _summed(ids: _Array, gradients: _Array) -> Tuple[_Array, _Array]:
    """Each id once, with the sum of its gradients, added in their order."""
    distinct, places = numpy.unique(ids, return_inverse=True)
    if len(distinct) == len(ids):
        return ids, gradients
    sums = numpy.zeros((len(distinct), gradients.shape[1]), numpy.float32)
    numpy.add.at(sums, places.reshape(-1), gradients)
    return distinct, sums


class _Given(NamedTuple):
    """Gradients of rows of one step."""
    ids: _Array
    gradients: _Array


class RowCalls:
    """A job's calls for sparse tables; see Job."""

    _handle: Handle
    _settings: Settings

    def __init__(self) -> None:
        self._table_settings: List[TableSettings] = []
        # By name: their number, and floats of a row.
        self._tables: Dict[str, Tuple[int, int]] = {}
        self._given: Dict[str, List[_Given]] = {}

    @property
    def tables(self) -> Dict[str, int]:
        """Floats of a row of each table, by its name; none before `start`."""
        return {name: dim for name, (_, dim) in self._tables.items()}

    def table(self, pattern: str, optimizer: Optional[str] = None, *,
              initial: Optional[str] = None, scale: Optional[float] = None,
              max_rows: int = 0, **attributes: Any) -> None:
        """Settings of the sparse tables whose whole name matches, before the
        start; of several patterns the first that matches counts.

            job.table("user|item", "adagrad", learning_rate=0.05)

        Args:
          pattern: a regular expression (POSIX extended).
          optimizer: the rule of the rows; None: the model's. A row that no
            step has stays as it is, so that none may have weight decay.
          initial: the first values, "uniform" (default) in [-scale, scale), or
            "zeros": a function of the job's seed, table, id and element.
          scale: default 0.05.
          max_rows: of the table; one more evicts who was updated longest ago.
            0: no limit.
          attributes: of the rule.

        Errors: ConfigError. One whose pattern matches no table of the job:
        that ends its start, and names the tables.
        """
        self._check_caller()
        if self._handle.is_started:
            raise ConfigError("table: the job has started: say it before the "
                              "first step")
        self._table_settings.append(table_settings(
            pattern, optimizer, attributes, initial, scale, max_rows))

    def has_rule(self, table: str) -> bool:
        """Whether `table` was given an optimizer for it."""
        found = self._settings_of(table)
        return found is not None and found.rule is not None

    def first_rows(self, table: str, dim: int, ids: _Array) -> _Array:
        """The values that rows of a job which begins have; for muster.torch."""
        return first_rows(table_def_text(table, dim, self._settings_of(table),
                                         self._settings.seed), dim, ids)

    def pull_rows(self, table: str, ids: Any) -> Optional[_Array]:
        """Values of rows in the step that is wanted: float32 [*ids.shape, dim].
        An id that was never pushed to has its first values, and no row is made.
        None when the job is over. Waits as long as it takes, but for Ctrl-C.

        Args:
          table: its name.
          ids: int64, of any shape; they may repeat.

        Errors: ConfigError; what has ended the job.
        """
        self._check_caller()
        index, dim = self._table_of("pull_rows", table)
        found = ids_of("pull_rows('%s')" % table, ids)
        values = numpy.empty((*found.shape, dim), numpy.float32)
        if self._handle.is_open:
            self._check_offered()
        while self._handle.is_open:
            kind = found.size and self._handle.pull_rows(index, found, values,
                                                         _WAIT_MS)
            if kind == _library.OK:
                return values
            if kind == _library.JOB_OVER:
                while (self._handle.is_open and
                       self._await(_WAIT_MS) == _library.WAITING):
                    pass
        return None

    def push_rows(self, table: str, ids: Any, gradients: _Array) -> None:
        """Gives gradients of rows, which leave with the next `push`, of the
        same step; their memory is to stay as it is until the next `await_step`
        has returned. Rows that are not there are made; those of a table that
        are in no push stay as they are. Without effect once the job is over.

        Args:
          table: its name.
          ids: int64, of any shape; gradients of equal ones are summed in their
            order, also over several calls.
          gradients: float32 [*ids.shape, dim], contiguous.

        Errors: ConfigError.
        """
        self._check_caller()
        _, dim = self._table_of("push_rows", table)
        what = "push_rows('%s')" % table
        found = ids_of(what, ids)
        checked_address(what + ": gradients", (*found.shape, dim), gradients,
                        writable=False)
        if not self._handle.is_open:
            return
        self._check_offered()
        self._given.setdefault(table, []).append(
            _Given(found.reshape(-1), gradients.reshape(-1, dim)))

    # ---- Inside -------------------------------------------------------------
    def _check_caller(self) -> None:
        raise NotImplementedError

    def _check_started(self) -> None:
        raise NotImplementedError

    def _check_offered(self) -> None:
        raise NotImplementedError

    def _await(self, timeout_ms: int) -> int:
        raise NotImplementedError

    def _settings_of(self, table: str) -> Optional[TableSettings]:
        for settings in self._table_settings:
            if re.fullmatch(settings.pattern, table):
                return settings
        return None

    def _table_of(self, what: str, table: str) -> Tuple[int, int]:
        self._check_started()
        if table not in self._tables:
            one_of("%s: the name of a table" % what, table, self._tables)
        return self._tables[table]

    def _set_tables(self, tables: Sequence[Table]) -> None:
        """At the start. Errors: ConfigError."""
        found: Dict[str, Tuple[int, int]] = {}
        for index, (name, dim) in enumerate(tables):
            if name in found:
                raise ConfigError("start: two tables are called '%s'" % name)
            found[name] = (index, dim)
        self._tables = found

    def _give_rows(self) -> Optional[Error]:
        """muster_push_rows of all that was given for the step. Returns why it
        was refused, if it was."""
        given, self._given = self._given, {}
        for table, parts in given.items():
            ids, gradients = _summed(
                numpy.concatenate([part.ids for part in parts]),
                numpy.concatenate([part.gradients for part in parts])
            ) if len(parts) > 1 else _summed(*parts[0])
            error = self._handle.push_rows(self._tables[table][0], ids,
                                           gradients)
            if error is not None:
                return error
        return None
