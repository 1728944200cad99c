"""A model's parameters and buffers as tensors of a job."""

from typing import Any, Dict, List, Optional, Tuple, cast

import torch

from muster._errors import ConfigError

# Modules that have a parameter, each under a name.
Owners = List[Tuple[torch.nn.Module, str]]


class ModelTensor:
    """One that a step of this process leaves as it is: a frozen parameter.

    `memory` is what libmuster reads and writes: the tensor's own, else float32
    memory of the CPU beside it (`is_copied`)."""

    is_state = True

    def __init__(self, name: str, tensor: torch.Tensor,
                 owners: Owners) -> None:
        _check(name, tensor)
        self.name = name
        self.tensor = tensor
        self.owners = owners
        self.values = tensor.detach()
        self.is_copied = not is_plain(self.values)
        self.memory = beside(self.values) if self.is_copied else self.values
        self.address = self.values.data_ptr()
        self.strides = self.values.stride()

    def check(self, version: int) -> None:
        """Raises ConfigError if the model has other values than those that
        the step came with, of this version, or trains other tensors than at
        the start."""
        if any(module._parameters.get(key) is not self.tensor
               for module, key in self.owners):
            raise ConfigError(
                "step: the model has another tensor as '%s' than at the start: "
                "load_state_dict(assign=True), and what else replaces "
                "parameters, belongs before DistributedOptimizer" % self.name)
        if (self.tensor.data_ptr() != self.address
                or self.tensor.stride() != self.strides):
            raise ConfigError(
                "step: the values of '%s' have moved since the start: do not "
                "assign to .data, nor move or convert the model, once a job "
                "has it" % self.name)
        self._check_frozen()
        if self.tensor._version != version:
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


class ModelParameter(ModelTensor):
    """One that a ps task's update rule changes."""

    is_state = False
    _staging: Optional[torch.Tensor] = None

    def staged(self, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient as it is pushed: where it lies, else copied; from a GPU
        not before that is synchronized."""
        if gradient.layout is not torch.strided:
            raise ConfigError(
                "step: the gradient of '%s' is sparse, and a ps applies dense "
                "ones: make its layer with sparse=False" % self.name)
        if is_plain(gradient):
            return gradient
        if self._staging is None:
            self._staging = beside(gradient)
        return self._staging.copy_(gradient, non_blocking=True)


class ModelBuffers:
    """Those that forward passes change, as batch norm's averages, in place or
    by another tensor: so they have memory of the job's beside them, of all in
    one."""

    def __init__(self, buffers: List["ModelBuffer"]) -> None:
        size = sum(buffer.tensor.numel() for buffer in buffers)
        is_pinned = any(buffer.tensor.is_cuda for buffer in buffers)
        self._places = [(b.module._buffers, b.key) for b in buffers]
        # What the job has, what the model got of it, and what it has now.
        self._memory, self._before, self._now, self._difference = (
            torch.zeros(size, pin_memory=is_pinned) for _ in range(4))
        self._memories, self._befores, self._nows, self._differences = (
            _parts(flat, buffers) for flat in (
                self._memory, self._before, self._now, self._difference))
        # Those of which the model has less than the job.
        self._short = [(memory, before, b.tensor.dtype) for memory, before, b
                       in zip(self._memories, self._befores, buffers)
                       if b.tensor.dtype is not torch.float32]
        for buffer, memory in zip(buffers, self._memories):
            buffer.memory = memory.copy_(buffer.values)

    def _tensors(self) -> List[torch.Tensor]:
        # None of them is None, as it was one when the job began.
        return [cast(torch.Tensor, buffers[key])
                for buffers, key in self._places]

    def receive(self) -> None:
        """Takes what libmuster has written."""
        self._before.copy_(self._memory)
        for memory, before, dtype in self._short:
            before.copy_(memory.to(dtype))
        torch._foreach_copy_(self._tensors(), self._memories,
                             non_blocking=True)

    def read(self) -> None:
        """Takes what the model has now; from a GPU not before that is
        synchronized."""
        torch._foreach_copy_(self._nows, self._tensors(), non_blocking=True)

    def differences(self) -> List[torch.Tensor]:
        """What has changed between the two."""
        torch.sub(self._now, self._before, out=self._difference)
        # Of infinities, as in masks, too.
        self._difference.masked_fill_(self._now == self._before, 0)
        return self._differences


class ModelBuffer(ModelTensor):
    """One of them."""

    def __init__(self, name: str, module: torch.nn.Module, key: str) -> None:
        super().__init__(name, module.get_buffer(key), [])
        self.module = module
        self.key = key


def _parts(flat: torch.Tensor, like: List["ModelBuffer"]) -> List[torch.Tensor]:
    """Of the shapes of those."""
    parts = torch.split_with_sizes(
        flat, [buffer.tensor.numel() for buffer in like])
    return [part.view(buffer.tensor.shape)
            for part, buffer in zip(parts, like)]


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether libmuster can use it where it lies."""
    return (tensor.is_cpu and tensor.dtype is torch.float32
            and tensor.is_contiguous())


def beside(tensor: torch.Tensor) -> torch.Tensor:
    """A copy that libmuster can use; of a tensor on a GPU, pinned."""
    memory = torch.empty(tensor.shape, dtype=torch.float32,
                         pin_memory=tensor.is_cuda)
    return memory.copy_(tensor)


def _check(name: str, tensor: torch.Tensor) -> None:
    what = "DistributedOptimizer: '%s' " % name
    if torch.nn.parameter.is_lazy(tensor):
        raise ConfigError(what + "has no shape yet: give the model a batch "
                          "first, or layers that are not lazy")
    if tensor.device.type not in ("cpu", "cuda"):
        raise ConfigError(what + "is on '%s', and models on the CPU or CUDA "
                          "are trained: move the model there (model.cpu())" %
                          tensor.device)
    if tensor.layout is not torch.strided:
        raise ConfigError(what + "is no dense tensor (%s)" % tensor.layout)
    if tensor.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise ConfigError(what + "is %s, and ps tasks have float32: wanted "
                          "that, float16 or bfloat16 (model.float())" %
                          tensor.dtype)
    if any(size > 1 and stride == 0
           for size, stride in zip(tensor.shape, tensor.stride())):
        raise ConfigError(what + "has elements that share memory (expand): "
                          "make it a .clone()")


def _addresses(tensor: torch.Tensor) -> torch.Tensor:
    """That of each element."""
    found = torch.tensor(tensor.data_ptr())
    for size, stride in zip(tensor.shape, tensor.stride()):
        found = found.unsqueeze(-1) + (
            torch.arange(size) * (tensor.element_size() * stride))
    return found.flatten()


def _check_apart(tensors: List[ModelTensor]) -> None:
    """Raises ConfigError if two have memory in common."""
    spans = []
    for tensor in tensors:
        values = tensor.tensor.detach()
        if values.numel():
            last = sum((size - 1) * stride for size, stride in zip(
                values.shape, values.stride()))
            spans.append((values.data_ptr(), values.data_ptr() +
                          values.element_size() * last, tensor.name, values))
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


def tensors_of(model: torch.nn.Module, groups: List[Dict[str, Any]]
               ) -> Tuple[List[ModelTensor], List[ModelBuffer]]:
    """The parameters and buffers of `model`, whose optimizer has `groups`.
    Raises ConfigError that names the tensor which cannot be one of a job."""
    optimized = {p for group in groups for p in group["params"]}
    owners = _owners_of(model)
    tensors: List[ModelTensor] = []
    for name, parameter in model.named_parameters():
        name = _own_name(name)
        if not parameter.requires_grad:
            tensors.append(ModelTensor(name, parameter, owners[parameter]))
        elif parameter in optimized:
            tensors.append(ModelParameter(name, parameter, owners[parameter]))
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
    return tensors, _buffers_of(model)
