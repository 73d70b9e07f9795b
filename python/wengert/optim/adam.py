"""Adam and AdamW."""

import math
from collections.abc import Iterable
from typing import Any

from wengert import _core
from wengert._core import Tensor

from . import composed
from .optimizer import Optimizer


class Adam(Optimizer):
    """Adaptive moments (Kingma and Ba 2014); `amsgrad` after Reddi et al. 2018.

    At step t, with a parameter p, its gradient g, and `betas = (b1, b2)`: `m = b1 m + (1 - b1) g`,
    `v = b2 v + (1 - b2) g^2`, then `p -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)`; m and v begin
    at 0. One fused pass over all parameters of a group.

    Args:
        params: the tensors to train, `(name, tensor)` pairs, or groups with settings of their own; see
            `Optimizer`.
        lr: the learning rate, about the most that an element moves in a step; a number or a tensor of one
            element.
        betas: how much of the mean m and of the mean square v is kept from step to step, both in [0, 1).
        eps: added to the root, so that elements with tiny gradients move little.
        weight_decay: how strongly parameters are pulled towards 0: this times p is added to g.
        amsgrad: divide by the root of the largest v so far.
        foreach: accepted, as `capturable` and `fused`; they change nothing, updates are always fused.
        maximize: ascend instead of descending.
        differentiable: only False; steps are not recorded.
        decoupled_weight_decay: decay as `AdamW` does, also in a single group; the default of `weight_decay`
            stays 0.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = wg.tensor([1.0], requires_grad=True)
        >>> optimizer = wg.optim.Adam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9])
    """

    _records_nothing = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        """Makes the parameter groups."""
        self._never_recorded(differentiable)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            maximize=maximize,
            decoupled_weight_decay=decoupled_weight_decay,
        )
        super().__init__(params, defaults)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        self._between(group, "eps", 0.0, math.inf)
        self._check_betas(group)

    def _update(self, group: dict[str, Any]) -> None:
        decoupled = bool(group["decoupled_weight_decay"])
        if not _core._optim_adam(group, self.state, decoupled):
            composed.adam(group, self.state, decoupled)

    def _update_unless(self, group: dict[str, Any], found: Tensor) -> None:
        decoupled = bool(group["decoupled_weight_decay"])
        if not _core._optim_adam(group, self.state, decoupled, found) and not found:
            composed.adam(group, self.state, decoupled)


class AdamW(Adam):
    """Adam with decoupled weight decay: `p -= lr weight_decay p` first (Loshchilov and Hutter 2017).

    `weight_decay` is 0.01 by default and does not enter the moments. All else as of `Adam`: `params`, `lr`,
    `betas`, `eps`, `amsgrad`, `maximize`; `foreach`, `capturable` and `fused` change nothing,
    `differentiable=True` raises.

    Example:
        >>> w = wg.tensor([1.0], requires_grad=True)
        >>> optimizer = wg.optim.AdamW([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.899])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        """Makes the parameter groups of an `Adam` with `decoupled_weight_decay`."""
        settings = dict(maximize=maximize, differentiable=differentiable, decoupled_weight_decay=True)
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **settings)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes over a state, also one of `Adam`; the decay stays decoupled."""
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
