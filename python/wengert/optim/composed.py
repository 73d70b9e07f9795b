"""The steps of SGD and Adam in tensor operations, for parameters inside `vmap` and `jvp`, where a value is no
memory that one pass over all parameters could write.
"""

from collections.abc import Iterator
from typing import Any

import wengert as wg
from wengert._core import Tensor

__all__ = ["adam", "sgd"]


def _given(group: dict[str, Any]) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The parameters that have gradients, their numbers, and these gradients, whose sign is that of a
    minimisation. Real and imaginary parts of complex ones are numbers of their own.
    """
    for param in group["params"]:
        if param.grad is None:
            continue
        p, g = param, param.grad.detach()
        if p.dtype.is_complex:
            p, g = wg.view_as_real(p), wg.view_as_real(g)
        yield param, p, -g if group["maximize"] else g


@wg.no_grad()
def sgd(group: dict[str, Any], state: dict[Tensor, Any]) -> None:
    """A step of `SGD`."""
    momentum, decay = group["momentum"], group["weight_decay"]
    for param, p, g in _given(group):
        if decay:
            g = g + decay * p.detach()
        if momentum:
            entry = state.setdefault(param, {})
            before = entry.get("momentum_buffer")
            v = g if before is None else momentum * before + (1 - group["dampening"]) * g
            entry["momentum_buffer"] = v
            g = g + momentum * v if group["nesterov"] else v
        p.sub_(group["lr"] * g)


@wg.no_grad()
def adam(group: dict[str, Any], state: dict[Tensor, Any], decoupled: bool) -> None:
    """A step of `Adam`, or of `AdamW` if the decay is decoupled."""
    beta1, beta2 = group["betas"]
    for param, p, g in _given(group):
        if group["weight_decay"] and not decoupled:
            g = g + group["weight_decay"] * p.detach()
        entry = state.setdefault(param, {})
        step = entry["step"] = int(entry.get("step", 0)) + 1
        m, v = entry.get("exp_avg"), entry.get("exp_avg_sq")
        m = (0 if m is None else beta1 * m) + (1 - beta1) * g
        v = (0 if v is None else beta2 * v) + (1 - beta2) * g * g
        entry["exp_avg"], entry["exp_avg_sq"] = m, v
        if group["amsgrad"]:
            before = entry.get("max_exp_avg_sq")
            v = entry["max_exp_avg_sq"] = v if before is None else wg.maximum(before, v)
        root = (v / (1 - beta2**step)).sqrt()
        move = (m / (1 - beta1**step)) / (root + group["eps"])
        p.sub_(group["lr"] * (move + group["weight_decay"] * p.detach() if decoupled else move))
