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
from typing import Any, Callable, Dict, List, Optional

import torch
from torch.autograd.graph import increment_version

from muster import *  # pylint: disable=wildcard-import
from muster._errors import ConfigError
from muster._job import Job, current
from muster._model_tensors import ModelTensor, tensors_of
from muster._torch_rules import rate_of, rule_of, settings_of


def _number_of(loss: Any) -> float:
    if isinstance(loss, torch.Tensor):
        return float(loss.item())
    return math.nan if loss is None else float(loss)


class DistributedOptimizer(torch.optim.Optimizer):
    """An optimizer whose update rule runs on the ps tasks of a job.

      optimizer  one of torch.optim's SGD, Adam, AdamW, Adagrad and RMSprop,
                 over the parameters of `model`; it is not stepped itself, and
                 its foreach, fused and capturable mean nothing here
      model      float32, on the CPU; its floating-point buffers (batch norm's
                 averages) and frozen parameters are of the job, too
      job        that of muster.init; None: this process's

    The job starts at the first forward pass for training, at the first batch of
    `job.shard`, or at the first `step()`, whatever comes first: from then on
    the model has the values of the ps tasks, whoever initialized or restored
    them. `step()` pushes the gradients, and brings the values of the next
    step. Its end is `job.done`; a step then changes nothing.

    A parameter without a gradient has one of zeros, which a rule with momentum
    does not pass over as torch does. Several backward passes before a step add
    up, as anywhere. Schedulers take this object, or `optimizer`, in async
    replication: each push carries its rate. The slots (momentum, m, v) lie on
    the ps tasks and in Muster's checkpoints, not in `state_dict()`, which has
    the groups alone.

    Raises ConfigError that names the setting, parameter or buffer which cannot
    be trained so, and says what to do.
    """

    def __init__(self, optimizer: torch.optim.Optimizer,
                 model: torch.nn.Module, job: Optional[Job] = None) -> None:
        self._is_built = False
        self._optimizer = optimizer
        job = job or current()
        if job is None:
            raise ConfigError("DistributedOptimizer: this process has no job: "
                              "muster.init(...) first")
        self._job = job
        self._rule = rule_of(optimizer)
        self._tensors = tensors_of(model, optimizer.param_groups,
                                   self._rule.weight_decay)
        # The groups are the optimizer's own, for its schedulers.
        super().__init__(optimizer.param_groups, optimizer.defaults)
        self._settings = settings_of(self.param_groups)
        self._is_built = True
        # What libmuster reads until the next step is there.
        self._pushed: List[Optional[torch.Tensor]] = []
        self._written = [tensor.tensor for tensor in self._tensors]
        self._forward_hook = model.register_forward_pre_hook(self._on_forward)
        self._job.starter = self.start

    def _on_forward(self, module: torch.nn.Module, _arguments: Any) -> None:
        if (module.training and torch.is_grad_enabled()
                and not torch.compiler.is_compiling()):
            self.start()

    def start(self) -> None:
        """Takes part in the job from now on, with the values of the first step
        in the model; as the first forward pass does."""
        if self._job.is_started:
            return
        self._forward_hook.remove()
        copied = [t.name for t in self._tensors if t.is_copied]
        if copied:
            print("muster: copied in each step, as not contiguous: " +
                  ", ".join(copied), file=sys.stderr)
        self._job.start(
            [(t.name, t.memory.shape, t.is_state, t.memory.data_ptr())
             for t in self._tensors],
            (self._rule.name, self._rule.attributes), **self._job.dealing)
        self._await_step()

    def _await_step(self) -> None:
        self._job.await_step()
        with torch.no_grad():
            for tensor in self._tensors:
                tensor.receive()
        # A graph of the former values must not go backward through these.
        increment_version(self._written)

    def _rate_factor(self) -> float:
        """The part of the rule's rate that a scheduler wants in this step."""
        if settings_of(self.param_groups) != self._settings:
            raise ConfigError(
                "step: the settings of the optimizer have changed since the "
                "start, and only lr may: OneCycleLR and CyclicLR want "
                "cycle_momentum=False")
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

        Returns the closure's result. A job that this call has to start has had
        no gradients from its values: then, without a closure, nothing is
        pushed. Errors: muster.Error and its children."""
        was_started = self._job.is_started
        self.start()
        if self._job.done:
            return None
        if closure is not None:
            loss = closure()
        elif not was_started:
            return None
        factor = self._rate_factor()
        with torch.no_grad():
            for tensor in self._tensors:
                tensor.check()
            self._pushed = [tensor.difference() for tensor in self._tensors]
        rows = self._job.rows()
        self._job.push(
            [None if t is None else t.data_ptr() for t in self._pushed],
            loss=_number_of(loss),
            examples=len(rows[0]) if rows else examples,
            rate_factor=factor)
        # Its schedulers would warn otherwise.
        self._optimizer._opt_called = True  # type: ignore[attr-defined]
        self._await_step()
        self._pushed = []
        return loss if closure is not None else None

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

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Takes the groups, and so the rate; slots come from the ps tasks."""
        super().load_state_dict(dict(state_dict, state={}))
