"""A model's tensors in the steps of a job."""

from typing import Dict, List, Optional

import torch
from torch.autograd.graph import increment_version

from muster._model_tensors import (ModelBuffer, ModelBuffers, ModelParameter,
                                   ModelTensor)


class ModelSteps:
    """What a step wants of a model's tensors, in few calls for all of them: of
    a small model's step this is the most.

    Attributes:
      tensors: all, in the order of the job.
    """

    def __init__(self, parameters: List[ModelTensor],
                 buffers: List[ModelBuffer], weight_decay: float) -> None:
        self._buffers = ModelBuffers(buffers) if buffers else None
        self._parameters = parameters
        self.tensors: List[ModelTensor] = [*parameters, *buffers]
        self._weight_decay = weight_decay
        self._rows = [(p.tensor, p.address, p.strides, not p.is_state)
                      for p in parameters]
        self._owners = [(module._parameters, key, p.tensor)
                        for p in parameters for module, key in p.owners]
        self._copied = [p for p in parameters if p.is_copied]
        self._devices = {t.tensor.device for t in self.tensors
                         if t.tensor.is_cuda}
        self._written = [p.tensor for p in parameters]
        self._versions: List[int] = []

    def receive(self) -> None:
        """Puts into the model what libmuster has written."""
        with torch.no_grad():
            if self._copied:
                torch._foreach_copy_([p.values for p in self._copied],
                                     [p.memory for p in self._copied],
                                     non_blocking=True)
            if self._buffers is not None:
                self._buffers.receive()
        # A graph of the former values must not go backward through these.
        increment_version(self._written)
        # What is written from now on is not of the job.
        self._versions = [tensor._version for tensor in self._written]

    def release(self, index: int) -> None:
        """The values of this parameter may be the next step's from now on,
        before step(): a backward pass that reads them yet is torch's error."""
        if not self._parameters[index].is_copied:
            increment_version(self._written[index])
            self._versions[index] += 1

    def differences(self, early: Dict[int, torch.Tensor]
                    ) -> List[Optional[torch.Tensor]]:
        """What is pushed, one a tensor, as libmuster reads it; None: zeros.
        `early`: parameters whose gradients have left, and what of them did.

        Raises ConfigError for tensors that were changed or replaced."""
        found: List[Optional[torch.Tensor]] = []
        float32, strided = torch.float32, torch.strided
        for (tensor, address, strides, is_trained), version in zip(
                self._rows, self._versions):
            gradient = tensor.grad
            if (tensor._version != version or tensor.data_ptr() != address
                    or tensor.stride() != strides
                    or tensor.requires_grad is not is_trained
                    or not is_trained and gradient is not None):
                self._check()
            # The plain ones of most models without a call.
            if gradient is not None and (
                    gradient.layout is not strided or not gradient.is_cpu
                    or gradient.dtype is not float32
                    or not gradient.is_contiguous()):
                gradient = self._staged(len(found), gradient, early)
            found.append(gradient)
        for parameters, key, tensor in self._owners:
            if parameters.get(key) is not tensor:
                self._check()
        with torch.no_grad():
            self._finish(found, early)
            if self._buffers is not None:
                found.extend(self._buffers.differences())
        return found

    def _staged(self, index: int, gradient: torch.Tensor,
                early: Dict[int, torch.Tensor]) -> torch.Tensor:
        parameter = self._parameters[index]
        assert isinstance(parameter, ModelParameter)
        if index in early:
            return gradient
        with torch.no_grad():
            return parameter.staged(gradient)

    def _finish(self, found: List[Optional[torch.Tensor]],
                early: Dict[int, torch.Tensor]) -> None:
        if self._buffers is not None:
            self._buffers.read()
        for device in self._devices:
            torch.cuda.synchronize(device)
        if self._weight_decay:
            decayed = {i: gradient for i, gradient in enumerate(found)
                       if gradient is not None and i not in early}
            for i, sum_ in zip(decayed, torch._foreach_add(
                    list(decayed.values()),
                    [self._parameters[i].memory for i in decayed],
                    alpha=self._weight_decay) if decayed else ()):
                found[i] = sum_
        for i, gradient in early.items():
            found[i] = gradient

    def decayed(self, index: int, staged: torch.Tensor) -> torch.Tensor:
        """The same of one gradient: with its parameter's decay."""
        if not self._weight_decay:
            return staged
        return torch.add(staged, self._parameters[index].memory,
                         alpha=self._weight_decay)

    def _check(self) -> None:
        for tensor, version in zip(self._parameters, self._versions):
            tensor.check(version)
