"""A PyTorch model on Muster's parameter servers.

    import torch, muster.torch as muster
    job = muster.init("run1", ps="localhost:2222")
    opt = muster.DistributedOptimizer(
        torch.optim.Adam(model.parameters(), lr=1e-3), model)
    for x, y in job.shard(loader):
        loss = loss_fn(model(x), y)
        opt.zero_grad(); loss.backward(); opt.step(loss=loss)
    job.finish()

Without `shard`, with rows of one's own: `while not job.done: ...`.
"""

import math
import sys
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from muster import *  # pylint: disable=wildcard-import
from muster._errors import ConfigError
from muster._job import Job, current
from muster._memory import pointers_to
from muster._model_steps import ModelSteps
from muster._model_tensors import tensors_of
from muster._overlap import EarlyGradients
from muster._torch_rules import (check_unchanged, rate_of, rule_of,
                                 settings_of)
from muster._torch_tables import Embedding as Embedding
from muster._torch_tables import EmbeddingBag as EmbeddingBag
from muster._torch_tables import Tables


class _StartHook:
    """Of a model, before its forward passes. That of a copy does nothing."""

    def __init__(self, *of: Any) -> None:
        """`of`: the optimizer and its model; a copy has none."""
        self._of = [weakref.ref(one) for one in of]

    def __reduce__(self) -> Any:
        return _StartHook, ()

    def __call__(self, module: torch.nn.Module, _arguments: Any) -> None:
        if (torch.compiler.is_compiling() or not module.training
                or not torch.is_grad_enabled()):
            return
        optimizer, model = [one() for one in self._of] or (None, None)
        if optimizer is not None and model is module:
            optimizer.start()


def _refuse_step(optimizer: torch.optim.Optimizer, _arguments: Any,
                 _settings: Any) -> None:
    raise ConfigError(
        "step: this %s is that of a DistributedOptimizer, whose step() is the "
        "one to call" % type(optimizer).__name__)


def _number_of(loss: Any) -> float:
    if isinstance(loss, torch.Tensor):
        return float(loss.item())
    return math.nan if loss is None else float(loss)


class DistributedOptimizer(torch.optim.Optimizer):
    """An optimizer whose update rule runs on the ps tasks of a job.

      optimizer  one of torch.optim's SGD, Adam, AdamW, Adagrad and RMSprop,
                 over the parameters of `model`; it is not stepped itself, and
                 its foreach, fused and capturable mean nothing here
      model      its floating-point buffers (batch norm's averages) and frozen
                 parameters are of the job, too. What is not contiguous float32
                 on the CPU (float16, bfloat16, CUDA) is copied both ways in each
                 step, through pinned memory where it is on a GPU, and the job
                 says so once; ps tasks have float32
      job        that of muster.init; None: this process's
      overlap    each gradient leaves as soon as the backward pass has made it,
                 while others are computed; see below

    The job starts at the first forward pass of `model` for training (but not
    one that torch.compile, made later, makes of it), at the first batch of
    `job.shard`, or by `start()`, whatever comes first: from then on the model
    has the values of the ps tasks, whoever initialized or restored them, and
    nobody else may write to its parameters, replace, freeze or unfreeze them:
    the next step says so, but of writes through `.data`, which it cannot see.
    `step()` pushes the gradients, and brings the values of the next step. Its
    end is `job.done`; a step then changes nothing.

    A parameter without a gradient has one of zeros, which a rule with momentum
    does not pass over as torch does. Several backward passes before a step add
    up, as anywhere. Schedulers take this object, or `optimizer`: each push
    carries its rate, and a synchronous update has that of the worker of lowest
    index in it. The slots (momentum, m, v) lie on
    the ps tasks and in Muster's checkpoints, not in `state_dict()`, which has
    the groups alone.

    With `overlap` the same is trained, to the bit, but a gradient that has left
    cannot be changed any more: an error names what changes one between
    backward() and step() (clipping), and a second backward() before step(). A
    parameter may have its next value as soon as its gradient has left: read
    none between backward() and step(), and change lr after step() alone.

    Raises ConfigError that names the setting, parameter or buffer which cannot
    be trained so, and says what to do.
    """

    def __init__(self, optimizer: torch.optim.Optimizer,
                 model: torch.nn.Module, job: Optional[Job] = None,
                 overlap: bool = False) -> None:
        self._is_built = False
        self._optimizer = optimizer
        job = job or current()
        if job is None:
            raise ConfigError("DistributedOptimizer: this process has no job: "
                              "muster.init(...) first")
        self._job = job
        self._rule = rule_of(optimizer)
        self._steps = ModelSteps(*tensors_of(model, optimizer.param_groups),
                                 self._rule.weight_decay)
        self._tables = Tables(model, job, self.start)
        if overlap and self._tables:
            raise ConfigError(
                "DistributedOptimizer: overlap=True, and the model has the "
                "sparse table '%s', whose rows leave with the whole step: "
                "leave overlap out" % self._tables.definitions[0][0])
        # The groups are the optimizer's own, for its schedulers.
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self._settings = settings_of(self.param_groups)
        self._is_built = True
        # Where the gradients lie, as in the step before.
        self._addresses: List[Optional[int]] = []
        self._pointers: Any = None
        self._early = EarlyGradients(
            self._steps, self._is_running, self._push_early) if overlap else None
        # Of the gradients that have left in this step: their figures.
        self._early_figures: Optional[Tuple[int, float]] = None
        self._forward_hook = model.register_forward_pre_hook(
            _StartHook(self, model))
        optimizer.register_step_pre_hook(_refuse_step)
        self._job.starter = self.start
        self._job.receiver = self._steps.receive

    def __reduce_ex__(self, _protocol: Any) -> Any:
        raise ConfigError(
            "a DistributedOptimizer cannot be copied nor pickled, as its job "
            "is this process's: make one of the copied model in another "
            "process, or save its state_dict()")

    def start(self) -> None:
        """Takes part in the job from now on, with the values of the first step
        in the model; as the first forward pass does."""
        if self._job.is_started:
            return
        self._check_decay()
        self._forward_hook.remove()
        tensors = self._steps.tensors
        copied = [t.name for t in tensors if t.is_copied]
        if copied:
            print("muster: copied in each step, as not contiguous float32 on "
                  "the CPU: " + ", ".join(copied), file=sys.stderr)
        self._job.start(
            [(t.name, t.memory.shape, t.is_state, t.memory.data_ptr())
             for t in tensors],
            (self._rule.name, self._rule.attributes), alike=self._alike(),
            tables=self._tables.definitions, **self._job.dealing)
        self._await_step()

    def _alike(self) -> str:
        """What this process does itself, and no ps task knows of."""
        decay = self._rule.weight_decay
        return "weight_decay=%r, added to gradients" % decay if decay else ""

    def _check_decay(self) -> None:
        for name, _ in self._tables.definitions if (
                self._rule.weight_decay) else ():
            if not self._job.has_rule(name):
                raise ConfigError(
                    "DistributedOptimizer: weight_decay=%g, which rows of table "
                    "'%s' that no step has would miss: give the table a rule "
                    "of its own, as job.table(\"%s\", \"%s\")" %
                    (self._rule.weight_decay, name, name, self._rule.name))

    def _await_step(self) -> None:
        self._job.await_step()
        self._steps.receive()

    def _is_running(self) -> bool:
        return self._job.is_started and not self._job.done

    def _rate_factor(self) -> float:
        """The part of the rule's rate that a scheduler wants in this step."""
        check_unchanged(self.param_groups, self._settings)
        rate = rate_of(self.param_groups)
        factor: float = rate / self._rule.attributes["learning_rate"]
        # A ps wants a rate, if one that moves nothing.
        return max(factor, sys.float_info.min)

    def step(self, closure: Optional[Callable[[], Any]] = None, *,
             loss: Any = None, examples: int = -1) -> Any:
        """Pushes the gradients and brings the values of the next step.

          closure  as torch's; its result is the loss
          loss     the mean over this step's examples, for the progress line: a
                   tensor of one element or a number
          examples how many they are, where the batch is not of `job.shard`

        Returns the closure's result. Errors: muster.Error and its children."""
        if not self._job.is_started and closure is None:
            raise ConfigError(
                "step: these gradients are not of the job's values, since the "
                "job begins with the first forward pass of the model that "
                "DistributedOptimizer was given, and there was none: compile "
                "before, or call start() of the optimizer before the first one")
        self.start()
        if self._job.done:
            self._tables.forget()
            return None
        self._check_batch()
        if closure is not None:
            loss = closure()
        figures = self._figures(examples)
        early = {} if self._early is None else self._early.left()
        self._check_early(figures)
        self._tables.push()
        self._push(self._steps.differences(early), _number_of(loss), *figures)
        # Its schedulers would warn otherwise.
        self._optimizer._opt_called = True  # type: ignore[attr-defined]
        self._await_step()
        if self._early is not None:
            self._early.clear()
            self._early_figures = None
        return loss if closure is not None else None

    def _figures(self, examples: int = -1) -> Tuple[int, float]:
        """How many examples the step has, and its part of the rate."""
        rows = self._job.rows()
        return len(rows[0]) if rows else examples, self._rate_factor()

    def _check_early(self, figures: Tuple[int, float]) -> None:
        early = self._early_figures
        if early is None or early == figures:
            return
        if early[1] != figures[1]:
            raise ConfigError(
                "step: lr was changed since the backward pass, and gradients "
                "have left with the former one, as overlap=True wants it: "
                "step a scheduler after step()")
        raise ConfigError(
            "step: examples=%d, and gradients have left without a number of "
            "examples, as overlap=True wants it: let job.shard deal the "
            "batches, or leave one of the two out" % figures[0])

    def _check_batch(self) -> None:
        if self._job.batch_step not in (None, self._job.step):
            raise ConfigError(
                "step: a second one with one batch, or one before the first, "
                "and the rows of a step are those of its own batch: make one "
                "step() a batch of job.shard")

    def _push(self, pushed: List[Optional[torch.Tensor]], loss: float,
              examples: int, factor: float) -> None:
        addresses = [None if tensor is None else tensor.data_ptr()
                     for tensor in pushed]
        if addresses != self._addresses:
            self._addresses, self._pointers = addresses, pointers_to(addresses)
        try:
            self._job.push_from(self._pointers, pushed, loss, examples, factor)
        except ConfigError as error:
            raise self._explained(error, factor) from error

    def _push_early(self, index: int, pushed: torch.Tensor) -> None:
        if self._early_figures is None:
            self._check_batch()
            self._early_figures = self._figures()
        examples, factor = self._early_figures
        try:
            self._job.push_tensor(index, pushed.data_ptr(), pushed, examples,
                                  factor)
        except ConfigError as error:
            raise self._explained(error, factor) from error

    def _explained(self, error: ConfigError, factor: float) -> ConfigError:
        if factor == 1:
            return error
        start = self._rule.attributes["learning_rate"]
        return ConfigError(
            "step: lr of the optimizer is %g and was %g at the start: %s" %
            (factor * start, start, error))

    @property
    def _step_supports_amp_scaling(self) -> bool:
        # Asked for by GradScaler.step; it leaves out a step now and then.
        raise ConfigError(
            "step: a GradScaler is not supported: torch.autocast with "
            "torch.bfloat16 needs none")

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """Of this class's own; later: ConfigError."""
        if self._is_built:
            raise ConfigError(
                "add_param_group: the tensors of a job are those that "
                "DistributedOptimizer was given: give it all of them")
        super().add_param_group(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As torch's; of the step's rows of tables, too."""
        super().zero_grad(set_to_none)
        self._tables.zero_grad()

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Takes the groups, and so the rate; slots come from the ps tasks."""
        super().load_state_dict(dict(state_dict, state={}))
