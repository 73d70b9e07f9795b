"""Optimisers from before deep learning: resilient propagation, and averaged stochastic gradient descent."""

import math
from collections.abc import Iterable
from typing import Any

from .stepwise import Elementwise

__all__ = ["ASGD", "Rprop"]


class Rprop(Elementwise):
    """Each element has a step of its own, which grows while its gradient keeps its sign, and shrinks when
    that changes (Riedmiller and Braun 1993; after a change the element waits for one step). The size of
    gradients does not matter.

    Args:
        params: as of `SGD`.
        lr: the first step of every element.
        etas: the factors of a step where the sign changed, below 1, and where it stayed, above 1.
        step_sizes: the least and the greatest step.
        capturable: accepted, as `foreach`; they change nothing.
        maximize: ascend instead of descending.
        differentiable: only False; steps are not recorded.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = wg.tensor([1.0], requires_grad=True)
        >>> optimizer = wg.optim.Rprop([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        """Makes the parameter groups."""
        self._never_recorded(differentiable)
        super().__init__(params, dict(lr=lr, etas=etas, step_sizes=step_sizes, maximize=maximize))

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        down, up = group["etas"]
        if not 0.0 < down < 1.0 < up:
            raise ValueError(f"Rprop: etas are a factor between 0 and 1 and one above 1, got {group['etas']}")
        low, high = group["step_sizes"]
        if not 0.0 <= low <= high:
            raise ValueError(f"Rprop: step_sizes are a least and a greatest step, got {group['step_sizes']}")

    def _rule(self, group: dict[str, Any]) -> tuple[str, dict[str, float]]:
        return "Rprop", {"prev": 0.0, "step_size": float(group["lr"])}

    def _numbers(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        return *group["etas"], *group["step_sizes"]


class ASGD(Elementwise):
    """`p = (1 - lambd eta) p - eta g` with `eta = lr / (1 + lambd lr t)^alpha` at step t (Polyak and Juditsky
    1992).

    p is a parameter, g its gradient. The average is the state's `ax`, apart from p. A rate that changes acts
    one step later.

    Args:
        params: as of `SGD`, also `weight_decay` and `maximize`.
        lr: the first rate.
        lambd: how strongly parameters decay, and how fast the rate falls.
        alpha: the exponent with which the rate falls.
        t0: the number of steps after which averaging begins; before, `ax` is the parameter itself.
        foreach: accepted, as `capturable`; they change nothing.
        differentiable: only False; steps are not recorded.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = wg.tensor([1.0], requires_grad=True)
        >>> optimizer = wg.optim.ASGD([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.8])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        """Makes the parameter groups."""
        self._never_recorded(differentiable)
        defaults = dict(lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, maximize=maximize)
        super().__init__(params, defaults)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        self._between(group, "lambd", 0.0, math.inf)

    def _rule(self, group: dict[str, Any]) -> tuple[str, dict[str, float]]:
        return "Asgd", {"ax": 0.0}

    def _numbers(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        lr, lambd, t = float(group["lr"]), group["lambd"], state["step"]
        eta, weight = float(state.get("eta", lr)), float(state.get("mu", 1.0))
        state["eta"] = lr / (1.0 + lambd * lr * t) ** group["alpha"]
        state["mu"] = 1.0 / max(1.0, t - group["t0"])
        return eta, 1.0 - lambd * eta, weight
