"""libmuster without a network: the functions of muster.h over ps tasks that
subtract each gradient from its parameter."""

import ctypes
import os
import re

import numpy

from muster import _library


class FakeLibrary:
    """Grants `steps` steps, then is over with `exit_code` and `words`."""

    def __init__(self, steps=3, exit_code=0, words=""):
        self.steps = steps
        self.exit_code = exit_code
        self.words = words
        # What the next calls of these names return.
        self.failures = {}
        self.abi = _library.ABI
        self.shapes = []
        # (name, arguments) of each call but await.
        self.calls = []
        self.spec = ""
        self.pushed = []
        self.reports = []
        self.step = 0
        self.is_offered = False
        self.stopped_by = None
        self.is_closed = False
        # At the end; None: if there was a step.
        self.has_values = None
        self.task = {"job": b"worker", "index": 0, "is_chief": 1, "num_ps": 1,
                     "num_workers": 2}
        # Rows of each step.
        self.rows = []
        # Of sparse tables: floats of a row, by number; rows by (table, id), of
        # which others have their id in each float; the ids of each pull.
        self.dims = []
        self.table_rows = {}
        self.pulls = []
        self.given_rows = []
        # What a job that is read says that it has.
        self.tables = []

    def _fail(self, name):
        return self.failures.pop(name, _library.OK)

    def _called(self, name, *arguments):
        self.calls.append((name, *arguments))
        return self._fail(name)

    def muster_version(self):
        return b"0.1.0"

    def muster_abi(self):
        return self.abi

    def muster_error(self):
        return self.words.encode()

    def muster_resolve(self, spec, task):
        self.spec = spec.decode()
        for name, value in self.task.items():
            setattr(task._obj, name, value)
        return self._called("resolve")

    def muster_start(self, spec, values, error):
        self.spec = spec.decode()
        self.values = list(values)
        error._obj.value = self._called("start")
        return None if error._obj.value else 1

    def muster_await(self, job, timeout_ms, step):
        assert job == 1 and not self.is_closed
        if self.step == self.steps and not self.is_offered or (
                self.stopped_by is not None):
            state = _library.OVER
        elif self._fail("await"):
            state = _library.WAITING
        else:
            self.step += not self.is_offered
            self.is_offered = True
            state = _library.STEP
            step._obj.step = self.step
            step._obj.global_step = 10 * self.step
            step._obj.staleness = 0.5
            step._obj.leases = 1
        step._obj.state = state
        step._obj.has_values = bool(self.step if self.has_values is None
                                    else self.has_values)
        return state

    def muster_rows(self, job, ahead, rows, size, epoch):
        if ahead or not self.rows:
            return -1
        found = self.rows[self.step - 1][:size]
        ctypes.memmove(rows, numpy.array(found, numpy.int64).ctypes.data,
                       8 * len(found))
        epoch._obj.value = 2
        return len(self.rows[self.step - 1])

    def muster_push(self, job, gradients, report):
        assert self.is_offered
        error = self._called("push")
        if error:
            return error
        self.is_offered = False
        for table, ids, row_gradients in self.given_rows:
            for row, gradient in zip(ids, row_gradients):
                self.table_rows[table, row] = (
                    self.row(table, row) - gradient)
        self.given_rows = []
        report = report._obj
        self.reports.append((report.loss, report.examples, report.correct,
                             report.learning_rate_factor))
        arrays = []
        for value, gradient, shape in zip(self.values, gradients, self.shapes):
            arrays.append(gradient and array_at(gradient, shape).copy())
            if gradient:
                array_at(value, shape)[...] -= arrays[-1]
        self.pushed.append(arrays)
        return _library.OK

    def muster_push_tensor(self, job, tensor, gradient, report):
        assert self.is_offered
        return self._called(
            "push_tensor", tensor,
            array_at(gradient, self.shapes[tensor]).tolist(),
            report._obj.examples, report._obj.learning_rate_factor)

    def row(self, table, row):
        return self.table_rows.get(
            (table, row), numpy.full(self.dims[table], row, numpy.float32))

    def muster_pull_rows(self, job, table, ids, count, values, timeout_ms):
        assert self.is_offered
        error = self._called("pull_rows", table, count)
        if error:
            return error
        self.pulls.append((table, ids_at(ids, count)))
        array_at(values, (count, self.dims[table]))[...] = [
            self.row(table, row) for row in ids_at(ids, count)]
        return _library.OK

    def muster_push_rows(self, job, table, ids, count, gradients):
        assert self.is_offered
        error = self._called("push_rows", table, count)
        if error:
            return error
        found = ids_at(ids, count)
        assert len(set(found)) == count
        self.given_rows.append((table, found, array_at(
            gradients, (count, self.dims[table])).copy()))
        return _library.OK

    def muster_first_rows(self, table_def, ids, count, values):
        """Twice the id in each float."""
        self.spec = table_def.decode()
        dim = int(re.search(r"dim: (\d+)", self.spec).group(1))
        array_at(values, (count, dim))[...] = 2 * numpy.array(
            ids_at(ids, count), numpy.float32).reshape(-1, 1)
        return self._called("first_rows")

    def muster_read_open(self, spec, error):
        self.spec = spec.decode()
        return 2

    def muster_read_tensors(self, reader, timeout_ms, tensors, count):
        self._names = (_library.Tensor * 1)(_library.Tensor(
            b"w", (ctypes.c_int64 * 1)(2), 1))
        tensors._obj.contents = self._names[0]
        count._obj.value = 1
        return _library.OK

    def muster_read_values(self, reader, timeout_ms, values):
        array_at(values[0], (2,))[...] = [5, 6]
        return self._called("read_values")

    def muster_read_tables(self, reader, names, count):
        self._names = (ctypes.c_char_p * len(self.tables))(*self.tables)
        if self.tables:
            ctypes.memmove(ctypes.addressof(names._obj),
                           ctypes.addressof(ctypes.c_void_p(
                               ctypes.addressof(self._names))), 8)
        count._obj.value = len(self.tables)
        return _library.OK

    def muster_read_close(self, reader):
        return _library.OK

    def muster_stop(self, job, signal):
        self.stopped_by = signal
        if signal:
            self.exit_code = 128 + signal
        return self._called("stop", signal)

    def muster_save(self, job):
        return self._called("save")

    def muster_log(self, job, name, value):
        return self._called("log", name.decode(), value)

    def muster_close(self, job):
        self.is_closed = True
        self.calls.append(("close",))
        return self.exit_code


def array_at(address, shape):
    """The memory that libmuster would read or write."""
    count = int(numpy.prod(shape, dtype=int))
    return numpy.frombuffer((ctypes.c_float * count).from_address(address),
                            numpy.float32).reshape(shape)


def ids_at(address, count):
    """The int64 ids that libmuster would read."""
    return list((ctypes.c_int64 * count).from_address(address)) if count else []


def use(library, case):
    """In the test `case`, in the place of libmuster.so."""
    _library.use(library)
    case.addCleanup(_library.use, None)
    for name in [name for name in os.environ if name.startswith("MUSTER_")]:
        del os.environ[name]
    return library
