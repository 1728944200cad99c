"""A model's parameters and buffers as tensors of a job."""

from typing import Any, Dict, List, Optional

import torch

from muster._errors import ConfigError


class ModelTensor:
    """One that a step of this process leaves as it is: a frozen parameter.

    `memory` is what libmuster reads and writes: the tensor's own, else a copy
    (`is_copied`)."""

    is_state = True

    def __init__(self, name: str, tensor: torch.Tensor) -> None:
        _check(name, tensor)
        self.name = name
        self.tensor = tensor
        values = tensor.detach()
        self.is_copied = not values.is_contiguous()
        self.memory = values.contiguous()
        self._values = values
        self._address = values.data_ptr()

    def check(self) -> None:
        """Raises ConfigError if the model's values lie elsewhere now."""
        if self.tensor.data_ptr() != self._address:
            raise ConfigError(
                "step: the values of '%s' have moved since the start: do not "
                "assign to .data, nor move or convert the model, once a job "
                "has it" % self.name)

    def receive(self) -> None:
        """Takes what libmuster has written."""
        if self.is_copied:
            self._values.copy_(self.memory)

    def difference(self) -> Optional[torch.Tensor]:
        """What is pushed, contiguous; None: zeros."""
        return None


class ModelBuffer(ModelTensor):
    """One that forward passes change, as batch norm's averages, in place or by
    another tensor: so it has memory of the job's beside it."""

    def __init__(self, name: str, module: torch.nn.Module, key: str) -> None:
        super().__init__(name, module.get_buffer(key))
        self._module = module
        self._key = key
        self.memory = self.memory.clone()
        self._difference = torch.empty_like(self.memory)

    def check(self) -> None:
        pass

    def receive(self) -> None:
        self._module.get_buffer(self._key).copy_(self.memory)

    def difference(self) -> Optional[torch.Tensor]:
        now = self._module.get_buffer(self._key)
        if torch.equal(now, self.memory):
            return None
        return torch.sub(now, self.memory, out=self._difference)


class ModelParameter(ModelTensor):
    """One that a ps task's update rule changes."""

    is_state = False

    def __init__(self, name: str, tensor: torch.Tensor,
                 weight_decay: float) -> None:
        super().__init__(name, tensor)
        self._weight_decay = weight_decay
        self._sum = torch.empty_like(self.memory) if weight_decay else None

    def difference(self) -> Optional[torch.Tensor]:
        gradient = self.tensor.grad
        if gradient is None:
            return None
        if gradient.layout is not torch.strided:
            raise ConfigError(
                "step: the gradient of '%s' is sparse, and a ps applies dense "
                "ones: make its layer with sparse=False" % self.name)
        if self._sum is not None:
            return torch.add(gradient, self._values, alpha=self._weight_decay,
                             out=self._sum)
        return gradient.contiguous()


def _check(name: str, tensor: torch.Tensor) -> None:
    what = "DistributedOptimizer: '%s' " % name
    if torch.nn.parameter.is_lazy(tensor):
        raise ConfigError(what + "has no shape yet: give the model a batch "
                          "first, or layers that are not lazy")
    if tensor.device.type != "cpu":
        raise ConfigError(what + "is on '%s', and only models on the CPU are "
                          "trained: move the model to the CPU (model.cpu())" %
                          tensor.device)
    if tensor.layout is not torch.strided:
        raise ConfigError(what + "is no dense tensor (%s)" % tensor.layout)
    if tensor.dtype is not torch.float32:
        raise ConfigError(what + "is %s, wanted torch.float32: model.float(), "
                          "with torch.autocast for shorter activations" %
                          tensor.dtype)


def _buffers_of(model: torch.nn.Module) -> List[ModelBuffer]:
    """Those that a state_dict has, shared ones once, but counts, as
    num_batches_tracked, which are each process's own."""
    found: Dict[torch.Tensor, ModelBuffer] = {}
    for prefix, module in model.named_modules():
        for key, buffer in module.named_buffers(recurse=False):
            if (key not in module._non_persistent_buffers_set
                    and buffer.dtype.is_floating_point
                    and buffer not in found):
                name = _own_name("%s.%s" % (prefix, key) if prefix else key)
                found[buffer] = ModelBuffer(name, module, key)
    return list(found.values())


def _own_name(name: str) -> str:
    """The name without what torch.compile adds."""
    return name.replace("_orig_mod.", "")


def tensors_of(model: torch.nn.Module, groups: List[Dict[str, Any]],
               weight_decay: float) -> List[ModelTensor]:
    """All of `model`, whose optimizer has `groups`. Raises ConfigError that
    names the tensor which cannot be one of a job."""
    optimized = {p for group in groups for p in group["params"]}
    tensors: List[ModelTensor] = []
    for name, parameter in model.named_parameters():
        name = _own_name(name)
        if not parameter.requires_grad:
            tensors.append(ModelTensor(name, parameter))
        elif parameter in optimized:
            tensors.append(ModelParameter(name, parameter, weight_decay))
        else:
            raise ConfigError(
                "DistributedOptimizer: the optimizer lacks the model's '%s': "
                "give it all of model.parameters(), and freeze those that "
                "shall not be trained (requires_grad_(False))" % name)
        optimized.discard(parameter)
    if optimized:
        raise ConfigError(
            "DistributedOptimizer: the optimizer has %d parameters that are "
            "not the model's, the first of shape %s: give it those of the "
            "model that is given here" %
            (len(optimized), list(next(iter(optimized)).shape)))
    return tensors + _buffers_of(model)
