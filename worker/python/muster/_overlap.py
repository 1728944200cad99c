"""Gradients that leave in mid-backward."""

import weakref
from typing import Any, Callable, Dict, List, Tuple

import torch

from muster._errors import ConfigError
from muster._model_steps import ModelSteps
from muster._model_tensors import ModelParameter


class EarlyGradients:
    """Those of a step that have left, or are on their way from a GPU, since
    torch had accumulated them; `push` gives one of them to the job, by the
    index of its tensor, if `is_wanted`."""

    def __init__(self, steps: ModelSteps, is_wanted: Callable[[], bool],
                 push: Callable[[int, torch.Tensor], None]) -> None:
        self._steps = steps
        self._is_wanted = is_wanted
        self._push = push
        # By index: the gradient, its version, and what is pushed of it.
        self._seen: Dict[int, Tuple[torch.Tensor, int, torch.Tensor]] = {}
        self._copying: List[Tuple[int, torch.Tensor, Any]] = []
        self._left: Dict[int, torch.Tensor] = {}
        # Its parameters may outlive it.
        own = weakref.ref(self)
        for index, tensor in enumerate(steps.tensors):
            if isinstance(tensor, ModelParameter):
                add = tensor.tensor.register_post_accumulate_grad_hook
                add(_hook(own, index))  # type: ignore[no-untyped-call]

    def on_gradient(self, index: int) -> None:
        """Of a parameter, in the backward pass."""
        if not self._is_wanted():
            return
        parameter = self._steps.tensors[index]
        assert isinstance(parameter, ModelParameter)
        gradient = parameter.tensor.grad
        if index in self._seen:
            raise ConfigError(
                "backward: a second gradient of '%s' before step(), and the "
                "first has left, as overlap=True wants it: accumulate with "
                "overlap=False, or make one backward() a step" % parameter.name)
        assert gradient is not None
        with torch.no_grad():
            staged = parameter.staged(gradient)
            self._seen[index] = (gradient, gradient._version, staged)
            if gradient.is_cuda:
                self._copying.append((index, staged, _event(gradient.device)))
            else:
                self._leave(index, staged)
            while self._copying and self._copying[0][2].query():
                self._leave(*self._copying.pop(0)[:2])

    def _leave(self, index: int, staged: torch.Tensor) -> None:
        self._left[index] = self._steps.decayed(index, staged)
        self._steps.release(index)
        self._push(index, self._left[index])

    def left(self) -> Dict[int, torch.Tensor]:
        """What has left, by index. Raises ConfigError for a gradient that was
        changed since."""
        for index, (gradient, version, _) in self._seen.items():
            tensor = self._steps.tensors[index]
            if tensor.tensor.grad is gradient and gradient._version == version:
                continue
            raise ConfigError(
                "step: the gradient of '%s' was changed or set after the "
                "backward pass had made it (clip_grad_norm_, zero_grad), and "
                "it has left, as overlap=True wants it: with overlap=False it "
                "may be changed" % tensor.name)
        return self._left

    def clear(self) -> None:
        """At the begin of the next step."""
        self._seen.clear()
        self._copying.clear()
        self._left = {}


def _hook(own: "weakref.ref[EarlyGradients]",
          index: int) -> Callable[[torch.Tensor], None]:
    def on_gradient(_tensor: torch.Tensor) -> None:
        gradients = own()
        if gradients is not None:
            gradients.on_gradient(index)
    return on_gradient


def _event(device: torch.device) -> Any:
    """Of the copy that was begun last."""
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(device))
    return event
