"""Stochastic gradient descent with momentum."""

from collections.abc import Iterable
from typing import Any

from wengert import _core
from wengert._core import Tensor

from . import composed
from .optimizer import Optimizer


class SGD(Optimizer):
    """Stochastic gradient descent: `v = momentum v + (1 - dampening) g`, then `p -= lr v` (Sutskever et al.
    2013).

    p is a parameter, g its gradient plus `weight_decay p`. The first v is the gradient g itself. With
    `nesterov` the step is `lr (g + momentum v)`. One fused pass over all parameters of a group.

    Args:
        params: the tensors to train, `(name, tensor)` pairs, or groups with settings of their own; see
            `Optimizer`.
        lr: the learning rate, a number or a tensor of one element.
        momentum: how much of v is kept from step to step, usually 0.9; at 0 steps follow the gradient alone.
        dampening: by how much less than 1 a new gradient counts in v.
        weight_decay: how strongly parameters are pulled towards 0 (L2 penalty): g has this times p in it.
        nesterov: look one step ahead along v; needs momentum, and no dampening.
        maximize: ascend instead of descending.
        foreach: accepted, as `fused`; they change nothing, updates are always fused.
        differentiable: only False; steps are not recorded.

    Raises:
        ValueError: for a negative `lr`, `momentum` or `weight_decay`, `differentiable`, or `nesterov` without
            momentum or with dampening.

    Example:
        >>> w = wg.tensor([1.0], requires_grad=True)
        >>> optimizer = wg.optim.SGD([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.8])
    """

    _records_nothing = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        """Makes the parameter groups."""
        self._never_recorded(differentiable)
        if nesterov and (momentum == 0.0 or dampening != 0.0):
            raise ValueError("SGD: nesterov needs a positive momentum and dampening=0")
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=momentum,
                dampening=dampening,
                weight_decay=weight_decay,
                nesterov=nesterov,
                maximize=maximize,
            ),
        )

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if not self._number("momentum", group["momentum"]) >= 0.0:
            raise ValueError(f"SGD: momentum must not be negative, got {group['momentum']}")

    def _update(self, group: dict[str, Any]) -> None:
        if not _core._optim_sgd(group, self.state):
            composed.sgd(group, self.state)

    def _update_unless(self, group: dict[str, Any], found: Tensor) -> None:
        if not _core._optim_sgd(group, self.state, found) and not found:
            composed.sgd(group, self.state)
