"""Adam and AdamW."""

from collections.abc import Iterable
from typing import Any

from wengert import _core

from .optimizer import Optimizer


class Adam(Optimizer):
    """Adaptive moments (Kingma and Ba 2014); `amsgrad` after Reddi et al. 2018.

    `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g^2`, then `p -= lr (m / c1) / (sqrt(v / c2) + eps)` with
    `c = 1 - b^t`. Weight decay is added to the gradient. One fused pass over all parameters of a group.

    Raises:
        ValueError: for settings out of range.
    """

    _decoupled = False
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
        maximize: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        """With `decoupled_weight_decay` it is `AdamW`, whose default of `weight_decay` is another one.

        `foreach` and `fused` are accepted and change nothing: updates are always fused.
        """
        self._decoupled = self._decoupled or decoupled_weight_decay
        super().__init__(
            params,
            dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize),
        )

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if not group["eps"] >= 0.0:
            raise ValueError(f"{type(self).__name__}: eps must not be negative, got {group['eps']}")
        for i, beta in enumerate(group["betas"]):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"{type(self).__name__}: betas[{i}] must lie in [0, 1), got {beta}")

    def _update(self, group: dict[str, Any]) -> None:
        _core._optim_adam(group, self.state, self._decoupled)


class AdamW(Adam):
    """Adam with decoupled weight decay: `p -= lr weight_decay p` first (Loshchilov and Hutter 2017)."""

    _decoupled = True

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
        fused: bool | None = None,
    ) -> None:
        """As `Adam`, with `weight_decay=0.01`."""
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)
