"""Optimisers of matrices: Adafactor keeps means of rows and columns, Muon makes steps orthogonal."""

import math
from collections.abc import Iterable
from typing import Any

import wengert as wg
from wengert._core import Tensor

from .stepwise import Stepwise, zeros

__all__ = ["Adafactor", "Muon"]


class Adafactor(Stepwise):
    """Adam without first moments, the second ones estimated from means of rows and columns (Shazeer and Stern
    2018).

    Squares of the gradient g of a parameter p are kept as a column r and a row c of means over the last two
    axes, `v = r c / mean(r)`; those of vectors as they are. At step t means move by `t^beta2_decay`. The step
    is `max(eps[1], rms(p)) min(lr, 1 / sqrt(t))` times `u / max(1, rms(u) / d)` with `u = g / sqrt(v)` and
    rms the root of the mean square.

    Args:
        params: as of `SGD`, real ones.
        lr: the most that the relative size of a step is.
        beta2_decay: the exponent of t above, not positive: the further below 0, the longer means remember.
        eps: the least root of v (None: the machine epsilon of the dtype), and the least scale of a parameter.
        d: the root mean square that u is clipped to, 1 or more.
        weight_decay: p is multiplied by `1 - lr weight_decay` first.
        foreach: accepted; it changes nothing.
        maximize: ascend instead of descending.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = wg.tensor([1.0], requires_grad=True)
        >>> optimizer = wg.optim.Adafactor([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        """Makes the parameter groups."""
        super().__init__(
            params,
            dict(lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay, maximize=maximize),
        )

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        self._check_real(group)
        if group["beta2_decay"] > 0.0:
            raise ValueError(f"Adafactor: beta2_decay must not be positive, got {group['beta2_decay']}")
        least, scale = group["eps"]
        if (least is not None and least < 0.0) or scale < 0.0:
            raise ValueError(f"Adafactor: eps must not be negative, got {group['eps']}")
        if not group["d"] >= 1.0:
            raise ValueError(f"Adafactor: d must be 1 or more, got {group['d']}")

    def _decayed(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> Tensor:
        # The step's scale is that of the parameter before it decays, so the step decays it.
        return g

    def _squares(self, p: Tensor, g: Tensor, state: dict[str, Any], move: float, least: float) -> Tensor:
        """The estimate of the mean square of each element's gradient."""
        squares = g * g
        if g.ndim < 2:
            return zeros(state, "variance", p).lerp_(squares, move)
        for name, axis in (("row_var", -1), ("col_var", -2)):
            mean = squares.mean(axis, keepdim=True)
            zeros(state, name, mean).lerp_(mean, move)
        rows, columns = state["row_var"], state["col_var"]
        return (rows @ columns).div_(rows.mean(-2, keepdim=True).clamp_(min=least))

    def _step_of(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if p.numel() == 0:
            return
        least, scale = group["eps"]
        least = wg.finfo(p.dtype).eps if least is None else least
        t, values = state["step"], p.detach()
        rms = lambda x: math.sqrt(float(x.square().mean()))
        size = max(scale, rms(values)) * min(group["lr"], 1.0 / math.sqrt(t))
        if group["weight_decay"]:
            p.mul_(1.0 - group["lr"] * group["weight_decay"])
        squares = self._squares(p, g, state, t ** group["beta2_decay"], least)
        update = g / squares.clamp(min=least * least).sqrt_()
        p.add_(update, alpha=-size / max(1.0, rms(update) / group["d"]))


def _orthogonal(x: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """A matrix with the singular vectors of `x` and singular values near 1, by a quintic Newton-Schulz
    iteration."""
    a, b, c = coefficients
    is_tall = x.shape[0] > x.shape[1]
    x = x.mT if is_tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.mT
        x = x * a + (gram * b + (gram @ gram) * c) @ x
    return x.mT if is_tall else x


class Muon(Stepwise):
    """Momentum whose steps are made orthogonal, for the matrices inside of a network (Jordan et al. 2024).

    `m = momentum m + (1 - momentum) g` with the gradient g; with `nesterov` the step starts from
    `(1 - momentum) g + momentum m`, else from m. Its singular values are brought near 1 by `ns_steps` of the
    iteration `x = a x + (b xx' + c (xx')^2) x`, in the parameter's dtype. Vectors, embeddings and the last
    layer want another optimiser.

    Args:
        params: as of `SGD`, real matrices.
        lr: the learning rate.
        weight_decay: parameters are multiplied by `1 - lr weight_decay` first.
        momentum: how much of m is kept from step to step.
        nesterov: look one step ahead along m.
        ns_coefficients: a, b and c.
        eps: the least norm that a step is divided by before the iteration.
        ns_steps: how many iterations there are.
        adjust_lr_fn: "original" (also None) multiplies the rate by `sqrt(max(1, rows / columns))`,
            "match_rms_adamw" by `0.2 sqrt(max(rows, columns))`, so that steps are as long as AdamW's.

    Raises:
        ValueError: for a parameter that is no matrix, or settings out of range.

    Example:
        >>> w = wg.eye(2).requires_grad_()
        >>> optimizer = wg.optim.Muon([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.shape
        (2, 2)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        """Makes the parameter groups."""
        defaults = dict(
            lr=lr,
            weight_decay=weight_decay,
            momentum=momentum,
            nesterov=nesterov,
            ns_coefficients=ns_coefficients,
            eps=eps,
            ns_steps=ns_steps,
            adjust_lr_fn=adjust_lr_fn,
        )
        super().__init__(params, defaults)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        self._check_real(group)
        self._between(group, "momentum", 0.0, math.inf)
        if group["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                f"Muon: adjust_lr_fn must be None, 'original' or 'match_rms_adamw', got "
                f"{group['adjust_lr_fn']!r}"
            )
        for i, p in enumerate(group["params"]):
            if p.ndim != 2:
                raise ValueError(
                    f"Muon: parameter {i} of shape {tuple(p.shape)} is no matrix; give it to another "
                    "optimiser, such as AdamW"
                )

    def _decayed(self, p: Tensor, g: Tensor, group: dict[str, Any]) -> Tensor:
        p.mul_(1.0 - group["lr"] * group["weight_decay"])
        return g

    def _step_of(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        rows, columns = p.shape
        momentum = group["momentum"]
        mean = zeros(state, "momentum_buffer", p).lerp_(g, 1.0 - momentum)
        start = g + (mean - g) * momentum if group["nesterov"] else mean
        step = _orthogonal(start, group["ns_coefficients"], group["ns_steps"], group["eps"])
        if group["adjust_lr_fn"] == "match_rms_adamw":
            factor = 0.2 * math.sqrt(max(rows, columns))
        else:
            factor = math.sqrt(max(1.0, rows / max(columns, 1)))
        p.add_(step, alpha=-group["lr"] * factor)
