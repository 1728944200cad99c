"""torch.optim's optimizers as update rules of the ps tasks."""

import math
from typing import Any, Callable, Dict, List, NamedTuple, Tuple, Type

import torch

from muster._errors import ConfigError

# Settings that no rule has, with the value that each may have.
_REFUSED: Dict[str, Any] = {
    "dampening": 0, "centered": False, "lr_decay": 0, "maximize": False,
    "amsgrad": False, "differentiable": False}


class Rule(NamedTuple):
    """An update rule, with what a worker does itself."""
    name: str
    attributes: Dict[str, Any]
    # The part of a parameter that is added to its gradient.
    weight_decay: float


_Attributes = Dict[str, Any]


def _sgd(settings: Dict[str, Any]) -> Tuple[str, _Attributes]:
    if settings["momentum"] == 0:
        return "sgd", {}
    return "momentum", {"momentum": float(settings["momentum"]),
                        "nesterov": bool(settings["nesterov"])}


def _adam(settings: Dict[str, Any]) -> Tuple[str, _Attributes]:
    beta1, beta2 = settings["betas"]
    return "adam", {"beta1": float(beta1), "beta2": float(beta2),
                    "epsilon": float(settings["eps"])}


def _adamw(settings: Dict[str, Any]) -> Tuple[str, _Attributes]:
    return "adamw", dict(_adam(settings)[1],
                         weight_decay=settings["weight_decay"])


def _adagrad(settings: Dict[str, Any]) -> Tuple[str, _Attributes]:
    return "adagrad", {
        "epsilon": settings["eps"],
        "initial_accumulator_value": settings["initial_accumulator_value"]}


def _rmsprop(settings: Dict[str, Any]) -> Tuple[str, _Attributes]:
    return "rmsprop", {"decay": settings["alpha"], "epsilon": settings["eps"],
                       "momentum": settings["momentum"]}


_RULES: Dict[Type[torch.optim.Optimizer], Callable[
    [Dict[str, Any]], Tuple[str, _Attributes]]] = {
        torch.optim.SGD: _sgd, torch.optim.Adam: _adam,
        torch.optim.AdamW: _adamw, torch.optim.Adagrad: _adagrad,
        torch.optim.RMSprop: _rmsprop}

# What a rule is made of, but the rate.
_SETTINGS = ("momentum", "nesterov", "betas", "eps", "alpha",
             "initial_accumulator_value", "weight_decay",
             "decoupled_weight_decay")
_ALL = _SETTINGS + tuple(_REFUSED)


def settings_of(groups: List[Dict[str, Any]]) -> List[Any]:
    """What the groups have alike, but the rate: another value later is no
    setting of the rule.

    Raises ConfigError for groups that differ."""
    found = [[group.get(name) for name in _ALL] for group in groups]
    for other in found[1:]:
        for name, first, second in zip(_ALL, found[0], other):
            if first != second:
                raise ConfigError(
                    "DistributedOptimizer: groups of parameters differ in %s "
                    "(%s and %s), and a job has one update rule: give them "
                    "the same" % (name, first, second))
    return found[0]


def rate_of(groups: List[Dict[str, Any]]) -> float:
    """The learning rate of all groups. Raises ConfigError if they differ, or
    it is none."""
    rates = {float(group["lr"]) for group in groups}
    if len(rates) > 1:
        raise ConfigError(
            "DistributedOptimizer: groups of parameters differ in lr (%s), "
            "and a job has one learning rate: give them the same" %
            " and ".join("%g" % rate for rate in sorted(rates)))
    rate = rates.pop()
    if not 0 <= rate < math.inf:
        raise ConfigError("DistributedOptimizer: lr is %g: wanted 0 or more" %
                          rate)
    return rate


def check_unchanged(groups: List[Dict[str, Any]], start: List[Any]) -> None:
    """Raises ConfigError that names what differs from `start`, which is of
    settings_of."""
    for name, before, now in zip(_ALL, start, settings_of(groups)):
        if before != now:
            raise ConfigError(
                "step: %s of the optimizer is %s and was %s at the start, and "
                "only lr may change%s" %
                (name, now, before, ": OneCycleLR and CyclicLR want "
                 "cycle_momentum=False" if name in ("momentum", "betas")
                 else ""))


def rule_of(optimizer: torch.optim.Optimizer) -> Rule:
    """The rule that does what `optimizer` does. Raises ConfigError that names
    the class, or the setting, that no rule has."""
    kind = type(optimizer)
    make = _RULES.get(kind)
    if make is None:
        raise ConfigError(
            "DistributedOptimizer: no update rule of a ps does what %s does: "
            "take one of torch.optim's %s" %
            (kind.__name__, ", ".join(sorted(c.__name__ for c in _RULES))))
    settings_of(optimizer.param_groups)
    group = optimizer.param_groups[0]
    for name, wanted in _REFUSED.items():
        if group.get(name, wanted) != wanted:
            raise ConfigError(
                "DistributedOptimizer: %s(%s=%s): no update rule of a ps has "
                "it: leave it out" % (kind.__name__, name, group[name]))
    if group.get("decoupled_weight_decay"):
        make = _adamw
    name, attributes = make(group)
    # A scheduler that was made before has changed `lr` already.
    rate = float(group.get("initial_lr", rate_of(optimizer.param_groups)))
    if not rate > 0:
        raise ConfigError(
            "DistributedOptimizer: %s(lr=%g): wanted more than 0; a scheduler "
            "may begin at 0" % (kind.__name__, rate))
    attributes["learning_rate"] = rate
    decay = 0.0 if make is _adamw else float(group["weight_decay"])
    return Rule(name, attributes, decay)
