"""A model's parameters and buffers as tensors of a job."""

from typing import Any, Dict, List, Optional, Tuple

import torch

from muster._errors import ConfigError

# Modules that have a parameter, each under a name.
Owners = List[Tuple[torch.nn.Module, str]]


class ModelTensor:
    """One that a step of this process leaves as it is: a frozen parameter.

    `memory` is what libmuster reads and writes: the tensor's own, else a copy
    (`is_copied`)."""

    is_state = True

    def __init__(self, name: str, tensor: torch.Tensor,
                 owners: Owners) -> None:
        _check(name, tensor)
        self.name = name
        self.tensor = tensor
        self._owners = owners
        self._version = tensor._version
        values = tensor.detach()
        self.is_copied = not values.is_contiguous()
        self.memory = values.contiguous()
        self._values = values
        self._address = values.data_ptr()

    def check(self) -> None:
        """Raises ConfigError if the model has other values than those that
        the step came with, or trains other tensors than at the start."""
        if any(module._parameters.get(key) is not self.tensor
               for module, key in self._owners):
            raise ConfigError(
                "step: the model has another tensor as '%s' than at the start: "
                "load_state_dict(assign=True), and what else replaces "
                "parameters, belongs before DistributedOptimizer" % self.name)
        if (self.tensor.data_ptr() != self._address
                or self.tensor.stride() != self._values.stride()):
            raise ConfigError(
                "step: the values of '%s' have moved since the start: do not "
                "assign to .data, nor move or convert the model, once a job "
                "has it" % self.name)
        self._check_frozen()
        if self.tensor._version != self._version:
            raise ConfigError(
                "step: '%s' was written to by this program (load_state_dict, "
                "clamp_, another optimizer's step, an Embedding's max_norm), "
                "but values of parameters are those of the ps tasks: load "
                "before the first step, or muster.init a new run; clipping of "
                "weights is not possible" % self.name)

    def _check_frozen(self) -> None:
        if self.tensor.requires_grad == self.is_state:
            raise ConfigError(
                "step: requires_grad of '%s' is %s, and was not at the start: "
                "freeze before DistributedOptimizer, and for another phase "
                "muster.init a new run" %
                (self.name, self.tensor.requires_grad))
        if self.is_state and self.tensor.grad is not None:
            raise ConfigError(
                "step: '%s' is frozen since the start, but has a gradient, "
                "which is in no update: set its .grad to None" % self.name)

    def settle(self) -> None:
        """What is written to the tensor from now on is not of the job."""
        self._version = self.tensor._version

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
        super().__init__(name, module.get_buffer(key), [])
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

    def __init__(self, name: str, tensor: torch.Tensor, owners: Owners,
                 weight_decay: float) -> None:
        super().__init__(name, tensor, owners)
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
    if any(size > 1 and stride == 0
           for size, stride in zip(tensor.shape, tensor.stride())):
        raise ConfigError(what + "has elements that share memory (expand): "
                          "make it a .clone()")


def _addresses(tensor: torch.Tensor) -> torch.Tensor:
    """That of each element."""
    found = torch.tensor(tensor.data_ptr())
    for size, stride in zip(tensor.shape, tensor.stride()):
        found = found.unsqueeze(-1) + torch.arange(size) * (4 * stride)
    return found.flatten()


def _check_apart(tensors: List[ModelTensor]) -> None:
    """Raises ConfigError if two have memory in common."""
    spans = []
    for tensor in tensors:
        values = tensor.tensor.detach()
        if values.numel():
            last = sum((size - 1) * stride for size, stride in zip(
                values.shape, values.stride()))
            spans.append((values.data_ptr(), values.data_ptr() + 4 * last,
                          tensor.name, values))
    # Those that reach as far as the next one begins.
    reach: List[Any] = []
    for span in sorted(spans, key=lambda span: span[:3]):
        reach = [other for other in reach if other[1] >= span[0]]
        for other in reach:
            if torch.isin(_addresses(other[3]), _addresses(span[3])).any():
                raise ConfigError(
                    "DistributedOptimizer: '%s' and '%s' have memory in "
                    "common: make them one Parameter, or .clone() one" %
                    (other[2], span[2]))
        reach.append(span)


def _buffers_of(model: torch.nn.Module) -> List[ModelBuffer]:
    """Those that a state_dict has, shared ones once, but counts, as
    num_batches_tracked, which are each process's own."""
    found: Dict[torch.Tensor, ModelBuffer] = {}
    for prefix, module in model.named_modules():
        _check_averages(_own_name(prefix), module)
        for key, buffer in module.named_buffers(recurse=False):
            if (key not in module._non_persistent_buffers_set
                    and buffer.dtype.is_floating_point
                    and buffer not in found):
                name = _own_name("%s.%s" % (prefix, key) if prefix else key)
                found[buffer] = ModelBuffer(name, module, key)
    return list(found.values())


def _check_averages(name: str, module: torch.nn.Module) -> None:
    if (isinstance(module, torch.nn.modules.batchnorm._BatchNorm)
            and module.momentum is None and module.track_running_stats):
        raise ConfigError(
            "DistributedOptimizer: '%s' has momentum=None, the mean over all "
            "batches, and each worker counts its own alone: give it a "
            "momentum, as 0.1" % (name or type(module).__name__))


def _owners_of(model: torch.nn.Module) -> Dict[torch.Tensor, Owners]:
    owners: Dict[torch.Tensor, Owners] = {}
    for module in model.modules():
        for key, parameter in module.named_parameters(recurse=False):
            owners.setdefault(parameter, []).append((module, key))
    return owners


def _own_name(name: str) -> str:
    """The name without what torch.compile adds."""
    return name.replace("_orig_mod.", "")


def tensors_of(model: torch.nn.Module, groups: List[Dict[str, Any]],
               weight_decay: float) -> List[ModelTensor]:
    """All of `model`, whose optimizer has `groups`. Raises ConfigError that
    names the tensor which cannot be one of a job."""
    optimized = {p for group in groups for p in group["params"]}
    owners = _owners_of(model)
    tensors: List[ModelTensor] = []
    for name, parameter in model.named_parameters():
        name = _own_name(name)
        if not parameter.requires_grad:
            tensors.append(ModelTensor(name, parameter, owners[parameter]))
        elif parameter in optimized:
            tensors.append(ModelParameter(name, parameter, owners[parameter],
                                          weight_decay))
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
    _check_apart(tensors)
    return tensors + _buffers_of(model)
