"""A muster Job whose ps tasks are NumPy, in this process, for one worker."""

import ctypes

import numpy

from muster import ConfigError, _shard
from tests.worker.python.numpy_rules import NumpyRule


def array_at(address, shape):
    """The float32 memory there."""
    count = int(numpy.prod(shape, dtype=numpy.int64))
    floats = (ctypes.c_float * count).from_address(address)
    return numpy.frombuffer(floats, numpy.float32).reshape(shape)


class FakeJob:
    """What muster.torch wants of a Job. `leases`: epoch and rows of each step,
    after which the job is over, else `steps`; `restored`: values by name that
    the ps tasks have at the start."""

    def __init__(self, steps=1000, leases=None, restored=None):
        self._leases = leases
        self._steps = steps if leases is None else len(leases)
        self._restored = restored or {}
        self._is_wanted = False
        self.starter = None
        self.receiver = None
        self.dealing = {}
        self.batch_step = None
        self.is_started = False
        self.done = False
        self.step = 0
        self.has_end = False
        # What was pushed: (name -> array or None, loss, rate_factor), and of
        # how many examples.
        self.pushes = []
        self.examples = []
        # Gradients of the current step that were given early, by index; the
        # names of those of each push, in order.
        self.early = {}
        self.lefts = []
        self.names = []
        self.states = []
        self.arguments = None
        # Of sparse tables: rows and their rules by (table, id); the distinct
        # ids of each pull, in order.
        self.tables = {}
        self.table_rules = {}
        self.table_rows = {}
        self.pulls = []
        self.row_pushes = []
        self.ends_in_pull = False

    def start(self, tensors, rule, **arguments):
        assert not self.is_started
        self.is_started = True
        self.arguments = arguments
        self.rule = rule
        self.tables = dict(arguments["tables"])
        self.names = [t[0] for t in tensors]
        self.states = [t[0] for t in tensors if t[2]]
        self._memory = [array_at(t[3], tuple(t[1])) for t in tensors]
        self.values = [memory.copy() for memory in self._memory]
        for name, value in zip(self.names, self.values):
            if name in self._restored:
                value[...] = self._restored[name]
        self._rules = [None if t[2] else NumpyRule(*rule) for t in tensors]

    def await_step(self):
        if not self._is_wanted and not self.done:
            if self.step == self._steps:
                self.done = True
            else:
                self.step += 1
                self._is_wanted = True
                self.bring_values()

    def bring_values(self):
        for memory, value in zip(self._memory, self.values):
            memory[...] = value

    def push_tensor(self, index, address, kept, examples=-1, rate_factor=1.0):
        del kept, examples
        value = self.values[index]
        self.early[index] = array_at(address, value.shape).copy()
        self._apply(index, self.early[index], rate_factor)
        # As early as can be.
        self._memory[index][...] = value

    def push_from(self, pointers, kept, loss, examples, rate_factor):
        del kept
        if not self._is_wanted:
            raise ConfigError("no step is wanted")
        self.lefts.append([self.names[index] for index in self.early])
        gradients = [
            None if pointer is None else array_at(pointer, value.shape).copy()
            for pointer, value in zip(pointers, self.values)]
        for index, gradient in self.early.items():
            gradients[index] = gradient
        self.pushes.append((dict(zip(self.names, gradients)), loss,
                            rate_factor))
        self.examples.append(examples)
        for index, gradient in enumerate(gradients):
            if index not in self.early:
                self._apply(index, gradient, rate_factor)
        self.early = {}
        for table, ids, row_gradients in self.row_pushes:
            for row, gradient in zip(ids.tolist(), row_gradients):
                self._apply_row(table, row, gradient, rate_factor)
        self.row_pushes = []
        self._is_wanted = False

    # ---- Sparse tables ------------------------------------------------------
    def has_rule(self, table):
        return table in self.table_rules

    def first_rows(self, table, dim, ids):
        """A tenth of the id, in each float."""
        del table
        return numpy.repeat(ids.astype(numpy.float32).reshape(-1, 1) / 10, dim,
                            axis=1)

    def row(self, table, row):
        first = self.first_rows(table, self.tables[table], numpy.array([row]))
        return self.table_rows.get((table, row), (first[0], None))[0]

    def pull_rows(self, table, ids):
        self.pulls.append((table, ids.tolist()))
        if self.ends_in_pull:
            self.done = True
        if self.done:
            return None
        return numpy.array([self.row(table, row) for row in ids.tolist()],
                           numpy.float32).reshape(len(ids), self.tables[table])

    def push_rows(self, table, ids, gradients):
        self.row_pushes.append((table, ids, gradients))

    def _apply_row(self, table, row, gradient, rate_factor):
        key = (table, row)
        if key not in self.table_rows:
            self.table_rows[key] = (self.row(table, row), NumpyRule(
                *self.table_rules.get(table, self.rule)))
        value, rule = self.table_rows[key]
        rule.apply(value, gradient, rate_factor)

    def _apply(self, index, gradient, rate_factor):
        value, rule = self.values[index], self._rules[index]
        if gradient is None:
            gradient = numpy.zeros_like(value)
        if rule is None:
            value += gradient
        else:
            rule.apply(value, gradient, rate_factor)

    def rows(self, ahead=0):
        if self._leases is None:
            return None
        place = self.step - 1 + ahead
        if self.done or place >= len(self._leases):
            return None
        return numpy.array(self._leases[place][1], numpy.int64), (
            self._leases[place][0])

    def shard(self, loader, epochs=None):
        return _shard.shard(self, loader, epochs)
