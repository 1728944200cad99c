"""A process's part in a job: checks, and the ends, around its `Handle`."""

import atexit
import dataclasses
import math
import signal
import threading
from types import TracebackType
from typing import (Any, Callable, Dict, Iterator, NamedTuple, Optional,
                    Sequence, Tuple, Type)

import numpy

from muster import _library
from muster._caller import Caller
from muster._ends import Sigterm, exit_at_end, kind_of_end, say
from muster._errors import ConfigError, JobOver, of_exit_code
from muster._handle import Handle
from muster._memory import Memory, checked_address, pointers_to
from muster._rows import RowCalls, Table
from muster._spec import Rule, Settings, place_text, program_text

# Between two looks for Ctrl-C.
_WAIT_MS = 100
_SIGNAL_CODES = (128 + signal.SIGINT, 128 + signal.SIGTERM)

# Name, shape, whether it is state (a moving average), and its memory.
Tensor = Tuple[str, Sequence[int], bool, Memory]


class Step(NamedTuple):
    """The step that is wanted, and what became of the one before."""

    # Steps that this process has begun; the first is 1.
    step: int
    # Updates of all workers, when this step was granted.
    global_step: int
    # Another one: the values are no successors of those before.
    model_epoch: int
    # Steps whose rows are known: this one and those after it.
    leases: int
    # Of the step before: updates between its pull and its own.
    staleness: float
    # What was pushed for the step before is in no update.
    dropped: bool


_current: Optional["Job"] = None


def current() -> Optional["Job"]:
    """This process's job, if it has one: there is one at a time."""
    job = _current
    return job if job is not None and job.is_of_this_process else None


class Job(RowCalls):
    """A worker's part in a training; made by `muster.init`.

    Calls come from the thread that made it, but `log` from any. In the child of
    a fork each fails with ForkedError. As a context manager it finishes at the
    end, and leaves the job where an exception leaves the block.

    Attributes:
      index: of this worker in its job; -1 until ps task 0 has numbered it.
      is_chief: whether this worker initializes, saves and restores.
      num_ps: ps tasks.
      num_workers: workers of the cluster; 0: whoever comes.
    """

    def __init__(self, settings: Settings) -> None:
        """Finds the process's place, without a connection. Errors: ConfigError,
        SecurityError."""
        global _current  # pylint: disable=global-statement
        if current() is not None:
            raise ConfigError(
                "init: this process has a job already, and one process is one "
                "worker: finish() that one first")
        super().__init__()
        self._settings = settings
        self._caller = Caller()
        self._is_finished = False
        self._loss = math.nan
        self._tensors: Sequence[Tensor] = ()
        self._step_rows = 0
        # Of muster.torch: starts the job with the optimizer's tensors, and
        # with the rows of `shard`, as arguments of `start`.
        self.starter: Optional[Callable[[], None]] = None
        self.dealing: Dict[str, Any] = {}
        # Of muster.torch: puts what has come last into the model.
        self.receiver: Optional[Callable[[], None]] = None
        # Of `shard`: the step that its newest batch is of, 0 before the first.
        self.batch_step: Optional[int] = None
        self._handle = Handle(program_text(settings))
        task = self._handle.task
        self.index = int(task.index)
        self.is_chief = bool(task.is_chief)
        self.num_ps = int(task.num_ps)
        self.num_workers = int(task.num_workers)
        self._sigterm = Sigterm(self._on_sigterm)
        atexit.register(self._on_exit)
        _current = self

    # ---- What it is ---------------------------------------------------------
    @property
    def is_started(self) -> bool:
        """Whether its parameters are known; it takes part from then on."""
        return self._handle.is_started

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process made it; false in a child of that one."""
        return self._caller.is_of_this_process

    @property
    def done(self) -> bool:
        """Whether the job is over for this worker: no step will come."""
        return self._is_finished or (
            self.is_started and not self._handle.is_open)

    @property
    def step(self) -> int:
        """Steps that this process has begun, the current one included."""
        return int(self._handle.step.step)

    @property
    def global_step(self) -> int:
        """Updates of all workers, when the current step was granted."""
        return int(self._handle.step.global_step)

    @property
    def staleness(self) -> float:
        """Updates of others between the pull and the update of the step before
        the current one."""
        return float(self._handle.step.staleness)

    @property
    def epoch(self) -> int:
        """That of the current step's first row, from 0 on; 0 where the rows are
        the program's own."""
        found = self._rows_into(0, numpy.empty(0, numpy.int64))
        return found[1] if found else 0

    @property
    def has_end(self) -> bool:
        """Whether `init` says when the job is over."""
        given = self._settings
        return (given.epochs, given.steps, given.seconds) != (None, None, None)

    # ---- Steps --------------------------------------------------------------
    def start(self, tensors: Sequence[Tensor], rule: Rule, *,
              epoch_rows: int = 0, step_rows: int = 0, steps_ahead: int = 0,
              in_order: bool = False, epochs: Optional[float] = None,
              alike: str = "", tables: Sequence[Table] = ()) -> None:
        """Begins to take part; returns at once.

        Args:
          tensors: the parameters, each (name, shape, is_state, memory); memory
            is an array or an address of row-major float32. It has the initial
            values, and from `await_step` on those of each step.
          rule: of the ps tasks: ("adam", {"learning_rate": 1e-3}).
          epoch_rows: rows of an epoch, dealt over all workers; 0: the program
            has rows of its own.
          step_rows: rows of a step of this worker.
          steps_ahead: steps whose rows are wanted beforehand.
          in_order: whether each epoch has the rows in the data set's order.
          epochs: the job's end, if `init` has not said another.
          alike: what else all workers must have alike, in words.
          tables: the sparse ones, each (name, floats of a row).

        Errors: ConfigError.
        """
        self._check_caller()
        if self.is_started:
            raise ConfigError("start: the job was started before")
        if not tensors and not tables:
            raise ConfigError("start: there is no parameter to train")
        self._set_tables(tables)
        addresses: Dict[str, int] = {}
        for name, shape, _, memory in tensors:
            if name in addresses:
                raise ConfigError("start: two parameters are called '%s'" %
                                  name)
            addresses[name] = checked_address("parameter '%s'" % name, shape,
                                              memory, writable=True)
        text = program_text(
            self._with_epochs(epochs), rule, [tensor[:3] for tensor in tensors],
            epoch_rows, step_rows, steps_ahead, in_order, alike, tables,
            self._table_settings)
        self._handle.start(text, list(addresses.values()), list(tensors))
        self._tensors = list(tensors)
        self._step_rows = step_rows

    def await_step(self) -> Optional[Step]:
        """The step that is wanted, once its values lie in the parameters; None
        when the job is over: they are its last ones then. The same one again
        until it is pushed. Waits as long as it takes, but for Ctrl-C
        (KeyboardInterrupt).

        Errors: what has ended the job for this worker, by its exit code.
        JobOver: it has ended before this worker had any value of it.
        SystemExit(143): so has SIGTERM.
        """
        self._check_caller()
        self._check_started()
        while self._handle.is_open:
            if self._await(_WAIT_MS) == _library.STEP:
                step = self._handle.step
                return Step(step.step, step.global_step, step.model_epoch,
                            step.leases, step.staleness, bool(step.dropped))
        self._check_values()
        return None

    def push(self, pointers: Sequence[Optional[Memory]], loss: float = math.nan,
             examples: int = -1, correct: int = -1,
             rate_factor: float = 1.0) -> None:
        """Gives the step's gradients and returns at once. Their memory is to
        stay as it is until the next `await_step` has returned. Without effect
        once the job is over.

        Args:
          pointers: an address or array of each tensor, in their order; of state
            what is to be added to it; None: zeros.
          loss: the mean over the step's rows; without one that of `log`.
          examples: rows of the step.
          correct: right answers among them; -1: not known.
          rate_factor: of the rule's learning rate, more than 0.

        Errors: ConfigError.
        """
        self._check_caller()
        self._check_started()
        if not self._handle.is_open:
            return
        self._check_offered()
        if len(pointers) != len(self._tensors):
            raise ConfigError("push: wanted gradients of %d parameters, found "
                              "%d" % (len(self._tensors), len(pointers)))
        addresses = [
            None if memory is None else checked_address(
                "gradient of '%s'" % tensor[0], tensor[1], memory, False)
            for tensor, memory in zip(self._tensors, pointers)]
        self._push(pointers_to(addresses), pointers, loss, examples, correct,
                   rate_factor)

    def push_from(self, pointers: Any, kept: Any, loss: float, examples: int,
                  rate_factor: float) -> None:
        """The same, unchecked, from a C array of one pointer a tensor to
        memory that `kept` owns; for muster.torch."""
        self._check_caller()
        if self._handle.is_open:
            self._check_offered()
            self._push(pointers, kept, loss, examples, -1, rate_factor)

    def push_tensor(self, index: int, address: int, kept: Any,
                    examples: int = -1, rate_factor: float = 1.0) -> None:
        """Gives the gradient of one tensor before the others, and returns at
        once: it leaves while those are computed. From any thread, before
        `push`, which does not look at that one any more. The tensor's memory
        may have the next step's values from now on. Without effect once the
        job is over.

        Args:
          index: of the tensor, in the order of `start`.
          address: of the gradient, as `push` wants it; `kept` owns its memory.
          examples, rate_factor: those that `push` will say.

        Errors: ConfigError.
        """
        self._caller.check_process()
        if self._handle.is_open:
            self._check_offered()
            self._handle.push_tensor(
                index, address, kept,
                _library.Report(math.nan, examples, -1, rate_factor))

    def rows(self, ahead: int = 0) -> Optional[Tuple[numpy.ndarray, int]]:
        """The rows of the data set that step number `ahead` from now is of, as
        int64 [rows of the step], and the epoch of the first, from 0 on. None
        if they are not known yet, or the job is over."""
        rows = numpy.empty(max(self._step_rows, 0), numpy.int64)
        found = self._rows_into(ahead, rows)
        return (rows[:found[0]], found[1]) if found else None

    def shard(self, loader: Any, epochs: Optional[float] = None,
              ) -> Iterator[Any]:
        """The batches of a torch.utils.data.DataLoader, dealt over all workers:
        each example once an epoch, over so many epochs, in one loop. It ends
        with the job. Only whole batches are dealt: what is left at the very
        end, fewer rows than a batch, is not trained.

        Args:
          loader: over a map-style data set, with a batch_size; its sampler
            says no more than whether rows are shuffled (by the job's seed).
            Batches go on over the ends of epochs; the rest of the job's last
            epoch, fewer rows than a step, is not trained on.
          epochs: None: those of `init`; 1 if it says no end at all.

        Errors: ConfigError for another loader, or a second call.
        """
        # muster itself works without torch.
        from muster import _shard  # pylint: disable=import-outside-toplevel
        self._check_caller()
        return _shard.shard(self, loader, epochs)

    # ---- Beside the steps ---------------------------------------------------
    def log(self, **figures: float) -> None:
        """Figures of the current step for progress lines and the chief's
        TensorBoard: log(loss=0.3, accuracy=0.9). The loss is that of the next
        `push` without one. From any thread; without effect once the job is
        over. Errors: ConfigError if one is no number."""
        self._caller.check_process()
        for name, value in figures.items():
            try:
                number = float(value)
            except (TypeError, ValueError):
                raise ConfigError("log(%s=...): wanted a number, found %r" %
                                  (name, value)) from None
            if name == "loss":
                self._loss = number
            elif self._handle.is_open:
                self._handle.log(name, number)

    def save(self) -> None:
        """The chief saves a checkpoint as soon as it can; without effect at
        other workers."""
        self._check_caller()
        self._check_started()
        if self._handle.is_open:
            self._handle.save()

    def finish(self) -> None:
        """Says that this worker is done, and waits for the end: the chief ends
        the job with the last save when all are done. Once more: no effect.

        Errors: what has ended the job. JobOver: its last values are not here.
        SystemExit(143) after SIGTERM, when all is saved.
        """
        if self._is_finished and self.is_of_this_process:
            return
        self._check_caller()
        if self._handle.is_open:
            if not self._sigterm.has_come:
                self._handle.stop(0)
            while self._handle.is_open:
                self._await(_WAIT_MS)
            if self._handle.step.step:
                self._check_values()
                if self.receiver is not None:
                    self.receiver()
        self._end()
        if self._handle.exit_code:
            raise SystemExit(self._handle.exit_code)

    def abandon(self, kind: Optional[Type[BaseException]] = None) -> None:
        """Leaves the job, if it is not over: as after a signal, the chief saves
        and ends it, and others go on. A Ctrl-C meanwhile kills.

        Args:
          kind: of the exception for which it is left, for the log.
        """
        if not self.is_of_this_process or self._is_finished:
            return
        if self._handle.is_open:
            is_main = threading.current_thread() is threading.main_thread()
            former = is_main and signal.signal(signal.SIGINT, signal.SIG_DFL)
            if not self._sigterm.has_come:
                self._leave(kind)
            self._handle.close()
            if former:
                signal.signal(signal.SIGINT, former)
        self._end()

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if kind is None:
            self.finish()
        else:
            self.abandon(kind)

    # ---- Inside -------------------------------------------------------------
    def _check_caller(self) -> None:
        self._caller.check()
        if self._is_finished:
            raise ConfigError("a call for a job after finish(): init() a new "
                              "one")

    def _check_started(self) -> None:
        if not self.is_started:
            raise ConfigError("a call for a job that has no parameters yet: "
                              "start() it first")

    def _check_offered(self) -> None:
        if not self._handle.is_offered:
            raise ConfigError("push: no step is wanted: await_step() first")

    def _push(self, pointers: Any, kept: Any, loss: float, examples: int,
              correct: int, rate_factor: float) -> None:
        if math.isnan(loss):
            loss, self._loss = self._loss, math.nan
        error = self._give_rows() or self._handle.push(
            pointers, kept,
            _library.Report(loss, examples, correct, rate_factor))
        # Others may have ended the job while this step was computed.
        if error is not None and self._await(0) == _library.STEP:
            raise error

    def _with_epochs(self, epochs: Optional[float]) -> Settings:
        given = self._settings.epochs
        if epochs is None or given == epochs:
            return self._settings
        if given is not None:
            raise ConfigError("init says epochs=%r, but the rows are wanted "
                              "for epochs=%r: leave one of them out" %
                              (given, epochs))
        return dataclasses.replace(self._settings, epochs=epochs)

    def _rows_into(self, ahead: int,
                   rows: numpy.ndarray) -> Optional[Tuple[int, int]]:
        """How many rows the step has, and their epoch."""
        self._check_caller()
        if not self._handle.is_open or not self._step_rows:
            return None
        return self._handle.rows_into(ahead, rows)

    def _await(self, timeout_ms: int) -> int:
        """Handle.wait, and the end of the job if it is over."""
        state = self._handle.wait(timeout_ms)
        exit_code = self._handle.exit_code
        if state == _library.OVER and exit_code not in (0, *_SIGNAL_CODES):
            self._end()
            raise of_exit_code(exit_code, self._handle.words)
        return state

    def _end(self) -> None:
        """The process may have another job from now on."""
        global _current  # pylint: disable=global-statement
        self._is_finished = True
        atexit.unregister(self._on_exit)
        self._sigterm.restore()
        if _current is self:
            _current = None

    def _check_values(self) -> None:
        """Once it is over: raises where the parameters are not the job's, as a
        program that went on would take them for a trained model."""
        if self._handle.step.has_values:
            return
        if self._handle.exit_code == 0:
            self._end()
            raise JobOver((
                "the job on %s is over, and its last values could not be read "
                "here (the log says why): the parameters here are no model. "
                if self._handle.step.step else
                "the job on %s was over when this worker came, which never had "
                "its values: the parameters here are still the initial ones. ")
                % place_text(self._settings) +
                "The trained ones are in the chief's train_dir, if it has one: "
                "muster.load(train_dir) on the chief's machine")
        if not self._handle.step.step:
            self._end()
            raise SystemExit(self._handle.exit_code)

    def _leave(self, kind: Optional[Type[BaseException]]) -> None:
        is_interrupt = kind is not None and issubclass(kind, KeyboardInterrupt)
        # libmuster says that a signal was it, which is not the whole of it.
        if not is_interrupt:
            say("this worker leaves the job" + (
                ", which the program has not finished" if kind is None else
                " because of " + kind.__name__))
        self._handle.stop(int(
            signal.SIGINT if is_interrupt else signal.SIGTERM))

    def _on_exit(self) -> None:
        kind = kind_of_end()
        self.abandon(kind)
        if kind is None and self._sigterm.has_come and self._handle.exit_code:
            exit_at_end(self._handle.exit_code)

    def _on_sigterm(self, number: int, is_first: bool) -> None:
        if not self._handle.is_open:
            raise SystemExit(128 + number)
        if is_first:
            self._handle.stop(number)
