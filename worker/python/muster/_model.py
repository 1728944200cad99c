"""muster.Model: NumPy parameters that ps tasks keep."""

import dataclasses
import math
import numbers
import re
from types import TracebackType
from typing import Any, Dict, Iterable, Mapping, Optional, Tuple, Type, Union

import numpy

from muster._errors import ConfigError, end_with_exit_codes
from muster._init import init
from muster._job import Job
from muster._spec import Settings, one_of

Gradients = Mapping[str, Optional[numpy.ndarray]]


class Model:
    """Parameters of NumPy that all workers of a job train.

        model = muster.Model({"w": w, "b": b}, "adam", 1e-3, ps="host:2222",
                             rows=60000, batch_size=32, epochs=3)
        while not model.done:
            rows = model.rows()
            model.push_pull({"w": gw, "b": gb}, loss=loss)
        model.finish()

    From its creation on, and after each `push_pull`, the arrays hold the values
    from which the gradients of the step are wanted. They belong to the model
    until `finish`: nobody else writes to them. As a context manager it finishes
    at the end, and leaves the job where an exception leaves the block.

    Attributes:
      job: the process's part in the training.
    """

    def __init__(self, parameters: Mapping[str, numpy.ndarray],
                 optimizer: Union[str, Tuple[str, Mapping[str, Any]]] = "sgd",
                 learning_rate: Optional[float] = None, *,
                 state: Iterable[str] = (), rows: int = 0, batch_size: int = 0,
                 tables: Optional[Mapping[str, Union[
                     int, Mapping[str, Any]]]] = None,
                 **init_arguments: Any) -> None:
        """Begins to take part, and waits for the first step.

        Args:
          parameters: float32 arrays, contiguous and writable, of any shape, by
            name; with the initial values, of which the chief's count.
          optimizer: the rule of the ps tasks, "sgd", "momentum", "nesterov",
            "adagrad", "rmsprop", "adam", "adamw" or "ftrl"; with further
            settings as ("adam", {"beta1": 0.8}).
          learning_rate: of the rule, more than 0; None: its default.
          state: names of parameters that are moving averages: what is pushed
            for them is added, by no rule.
          rows: rows of the data set, for `rows()`, each once an epoch; those
            left at the very end, fewer than a step's, are not dealt. 0: the
            program has rows of its own.
          batch_size: rows of a step of this worker.
          tables: sparse ones, by name: the floats of a row, or these with
            settings as Job.table has them:
            {"user": 16, "item": {"dim": 16, "initial": "zeros"}}.
          init_arguments: as `muster.init`.

        Raises:
          ConfigError: what cannot be, or differs between workers.
          JobOver: the job has ended before this worker had its values.
          Error: its other children, for what else keeps it from the first step.
          SystemExit: 143, after SIGTERM meanwhile.
        """
        end_with_exit_codes()
        name, settings = ((optimizer, {}) if isinstance(optimizer, str)
                          else optimizer)
        if learning_rate is not None:
            settings = {"learning_rate": learning_rate, **settings}
        rate = settings.get("learning_rate", 1)
        if isinstance(rate, numbers.Real) and not float(rate) > 0:
            raise ConfigError("Model: learning_rate: wanted more than 0, found "
                              "%r" % rate)
        known = [field.name for field in dataclasses.fields(Settings)]
        for argument in init_arguments:
            one_of("Model: an argument", argument, known)
        if bool(rows) != bool(batch_size):
            raise ConfigError("Model: rows=%r and batch_size=%r belong "
                              "together: give both or none" %
                              (rows, batch_size))
        self._state = set(state)
        for other in self._state:
            one_of("Model: state", other, parameters)
        self._parameters = dict(parameters)
        self.job: Job = init(**init_arguments)
        self._has_rows = bool(rows)
        given: Dict[str, Mapping[str, Any]] = {
            key: value if isinstance(value, Mapping) else {"dim": value}
            for key, value in (tables or {}).items()}
        try:
            for key, value in given.items():
                if len(value) > 1:
                    self.job.table(re.escape(key), **{
                        name: each for name, each in value.items()
                        if name != "dim"})
            self.job.start(
                [(key, numpy.shape(value), key in self._state, value)
                 for key, value in self._parameters.items()],
                (name, settings), epoch_rows=rows, step_rows=batch_size,
                tables=[(key, value.get("dim", 0))
                        for key, value in given.items()])
        except BaseException:
            # Another try in this process is possible.
            self.job.abandon()
            raise
        self.job.await_step()

    @property
    def done(self) -> bool:
        """Whether the job is over: no more gradients are wanted."""
        return self.job.done

    @property
    def step(self) -> int:
        """As Job.step."""
        return self.job.step

    @property
    def global_step(self) -> int:
        """As Job.global_step."""
        return self.job.global_step

    @property
    def staleness(self) -> float:
        """As Job.staleness."""
        return self.job.staleness

    @property
    def epoch(self) -> int:
        """As Job.epoch."""
        return self.job.epoch

    def rows(self) -> numpy.ndarray:
        """Indices of this step's rows, int64 [at most batch_size]; none once
        the job is over. Errors: ConfigError if `rows` was not given."""
        if not self._has_rows:
            raise ConfigError("rows(): nobody deals rows: give Model rows=, "
                              "those of the data set, and batch_size=")
        found = self.job.rows()
        return numpy.empty(0, numpy.int64) if found is None else found[0]

    def pull_rows(self, table: str, ids: Any) -> numpy.ndarray:
        """Values of rows of a sparse table, float32 [*ids.shape, dim], of this
        step; zeros once the job is over. As Job.pull_rows."""
        found = self.job.pull_rows(table, ids)
        return (numpy.zeros((*numpy.shape(ids), self.job.tables[table]),
                            numpy.float32) if found is None else found)

    def push_rows(self, table: str, ids: Any,
                  gradients: numpy.ndarray) -> None:
        """Gradients of rows, which leave with this step's `push_pull`. As
        Job.push_rows."""
        self.job.push_rows(table, ids, gradients)

    def push_pull(self, gradients: Gradients, loss: Optional[float] = None,
                  examples: Optional[int] = None,
                  correct: Optional[int] = None) -> None:
        """Pushes the step's gradients, and waits for the next step: its values
        lie in the parameters then. Without effect once the job is over.

        Args:
          gradients: float32 arrays of the parameters' shapes, one for each
            name; None stands for zeros.
          loss: the mean over the step's rows; None: that of `job.log`.
          examples: rows of the step; None: all that `rows` deals, or not
            known.
          correct: right answers among them; None: not known.

        Raises:
          ConfigError: other names, shapes or dtypes; in any other thread; after
            finish().
          Error: what has ended the job.
        """
        if set(gradients) != set(self._parameters):
            raise ConfigError(
                "push_pull: wanted gradients of %s, found those of %s" %
                (_names(self._parameters), _names(gradients)))
        if examples is None:
            examples = len(self.rows()) if self._has_rows else -1
        self.job.push([gradients[name] for name in self._parameters],
                      math.nan if loss is None else float(loss), examples,
                      -1 if correct is None else correct)
        self.job.await_step()

    def log(self, **figures: float) -> None:
        """As Job.log."""
        self.job.log(**figures)

    def save(self) -> None:
        """As Job.save."""
        self.job.save()

    def finish(self) -> None:
        """As Job.finish."""
        self.job.finish()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.job.__exit__(kind, error, trace)


def _names(values: Iterable[str]) -> str:
    return ", ".join("'%s'" % name for name in sorted(values)) or "none"
