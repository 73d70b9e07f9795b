"""Optimisers that divide by the root of past squares: Adagrad, Adadelta, RMSprop, Adamax, NAdam and RAdam."""

import math
from collections.abc import Iterable
from typing import Any

from .stepwise import Elementwise

__all__ = ["Adadelta", "Adagrad", "Adamax", "NAdam", "RAdam", "RMSprop"]


class Adagrad(Elementwise):
    """`s += g^2`, then `p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)` at step t (Duchi et al. 2011).

    p is a parameter, g its gradient; s begins at `initial_accumulator_value`. `lr_decay` lowers the rate from
    step to step, `eps` keeps the quotient finite. `params`, `lr`, `weight_decay` and `maximize` as of `SGD`;
    `foreach` and `fused` are accepted and change nothing, `differentiable=True` raises.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = wg.tensor([1.0], requires_grad=True)
        >>> optimizer = wg.optim.Adagrad([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        """Makes the parameter groups."""
        self._never_recorded(differentiable)
        defaults = dict(
            lr=lr,
            lr_decay=lr_decay,
            eps=eps,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            maximize=maximize,
        )
        super().__init__(params, defaults)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        for name in ("lr_decay", "eps", "initial_accumulator_value"):
            self._between(group, name, 0.0, math.inf)

    def _rule(self, group: dict[str, Any]) -> tuple[str, dict[str, float]]:
        return "Adagrad", {"sum": group["initial_accumulator_value"]}

    def _numbers(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        return float(group["lr"]) / (1.0 + (state["step"] - 1) * group["lr_decay"]), group["eps"]


class Adadelta(Elementwise):
    """`s = rho s + (1 - rho) g^2`, `d = sqrt(a + eps) / sqrt(s + eps) g`, `p -= lr d`,
    `a = rho a + (1 - rho) d^2` (Zeiler 2012).

    p is a parameter, g its gradient; s and a, the mean squares of gradients and of steps, begin at 0. `rho`
    in [0, 1] is how much of them is kept, `eps` sets the size of the first steps. `params`, `lr`,
    `weight_decay` and `maximize` as of `SGD`; `foreach` and `capturable` are accepted and change nothing,
    `differentiable=True` raises.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = wg.tensor([1.0], requires_grad=True)
        >>> optimizer = wg.optim.Adadelta([w], lr=1.0)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9968])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        """Makes the parameter groups."""
        self._never_recorded(differentiable)
        super().__init__(params, dict(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize))

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if not 0.0 <= group["rho"] <= 1.0:
            raise ValueError(f"Adadelta: rho must lie in [0, 1], got {group['rho']}")
        self._between(group, "eps", 0.0, math.inf)

    def _rule(self, group: dict[str, Any]) -> tuple[str, dict[str, float]]:
        return "Adadelta", {"square_avg": 0.0, "acc_delta": 0.0}

    def _numbers(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        return float(group["lr"]), group["rho"], 1.0 - group["rho"], group["eps"]


class RMSprop(Elementwise):
    """`s = alpha s + (1 - alpha) g^2`, then `p -= lr g / (sqrt(s) + eps)` (Hinton 2012, lecture 6e).

    p is a parameter, g its gradient; s begins at 0, `alpha` is how much of it is kept, `eps` keeps the
    quotient finite. `centered` subtracts the square of the mean gradient from s (Graves 2013). With
    `momentum` the quotients are accumulated, `b = momentum b + g / (sqrt(s) + eps)`, and `p -= lr b`.
    `params`, `lr`, `weight_decay` and `maximize` as of `SGD`; `foreach` and `capturable` are accepted and
    change nothing, `differentiable=True` raises.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = wg.tensor([1.0], requires_grad=True)
        >>> optimizer = wg.optim.RMSprop([w], lr=0.01)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        """Makes the parameter groups."""
        self._never_recorded(differentiable)
        defaults = dict(
            lr=lr,
            alpha=alpha,
            eps=eps,
            weight_decay=weight_decay,
            momentum=momentum,
            centered=centered,
            maximize=maximize,
        )
        super().__init__(params, defaults)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        for name in ("alpha", "eps", "momentum"):
            self._between(group, name, 0.0, math.inf)

    def _rule(self, group: dict[str, Any]) -> tuple[str, dict[str, float]]:
        names = {"square_avg": 0.0}
        if group["centered"]:
            names["grad_avg"] = 0.0
        if group["momentum"]:
            names["momentum_buffer"] = 0.0
        kinds = ("RmsProp", "RmsPropMomentum"), ("RmsPropCentered", "RmsPropBoth")
        return kinds[bool(group["centered"])][bool(group["momentum"])], names

    def _numbers(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        return float(group["lr"]), group["alpha"], 1.0 - group["alpha"], group["eps"], group["momentum"]


class _Moments(Elementwise):
    """Optimisers with two moments and settings `lr, betas, eps, weight_decay`."""

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        self._between(group, "eps", 0.0, math.inf)
        self._check_betas(group)


class Adamax(_Moments):
    """Adam with the largest past gradient in place of the root: `m = b1 m + (1 - b1) g`,
    `u = max(b2 u, |g| + eps)`, `p -= lr / (1 - b1^t) m / u` at step t (Kingma and Ba 2014).

    p is a parameter, g its gradient, `betas` is (b1, b2): how much of m and u is kept; `eps` keeps u above 0.
    `params`, `lr`, `weight_decay` and `maximize` as of `Adam`; `foreach` and `capturable` are accepted and
    change nothing, `differentiable=True` raises.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = wg.tensor([1.0], requires_grad=True)
        >>> optimizer = wg.optim.Adamax([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        """Makes the parameter groups."""
        self._never_recorded(differentiable)
        super().__init__(
            params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize)
        )

    def _rule(self, group: dict[str, Any]) -> tuple[str, dict[str, float]]:
        return "Adamax", {"exp_avg": 0.0, "exp_inf": 0.0}

    def _numbers(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        beta1, beta2 = group["betas"]
        return float(group["lr"]) / (1.0 - beta1 ** state["step"]), 1.0 - beta1, beta2, group["eps"]


class NAdam(_Moments):
    """Adam with Nesterov's momentum (Dozat 2016).

    With m, v, b1, b2, g and t as of `Adam`, psi = `momentum_decay`, `mu(t) = b1 (1 - 0.96^(t psi) / 2)` and
    M(t), the product of all mu up to t: `p -= lr ((1 - mu(t)) / (1 - M(t)) g + mu(t + 1) / (1 - M(t + 1)) m)
    / (sqrt(v / (1 - b2^t)) + eps)`.

    `params`, `lr`, `betas`, `eps`, `weight_decay`, `maximize` and `decoupled_weight_decay` (decay as `AdamW`
    does) as of `Adam`; `foreach` and `capturable` are accepted and change nothing, `differentiable=True`
    raises.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = wg.tensor([1.0], requires_grad=True)
        >>> optimizer = wg.optim.NAdam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.8944])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        """Makes the parameter groups."""
        self._never_recorded(differentiable)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
        )
        super().__init__(params, defaults)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        self._between(group, "momentum_decay", 0.0, math.inf)

    def _rule(self, group: dict[str, Any]) -> tuple[str, dict[str, float]]:
        return "Nadam", {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def _numbers(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        (beta1, beta2), lr = group["betas"], float(group["lr"])
        t, psi = state["step"], group["momentum_decay"]
        now, after = (beta1 * (1.0 - 0.5 * 0.96 ** (k * psi)) for k in (t, t + 1))
        product = state["mu_product"] = float(state.get("mu_product", 1.0)) * now
        rates = lr * (1.0 - now) / (1.0 - product), lr * after / (1.0 - product * after)
        return *rates, 1.0 - beta1, beta2, 1.0 - beta2**t, group["eps"]


class RAdam(_Moments):
    """Adam that rectifies the variance of its first steps (Liu et al. 2019).

    With m, v, b1, b2 and t as of `Adam`, `r = 2 / (1 - b2) - 1` and `r(t) = r - 2 t b2^t / (1 - b2^t)`, steps
    are `lr m / (1 - b1^t)` while `r(t) <= 5`, and later that times
    `sqrt((r(t) - 4) (r(t) - 2) r / ((r - 4) (r - 2) r(t))) sqrt(1 - b2^t) / (sqrt(v) + eps)`.

    `params`, `lr`, `betas`, `eps`, `weight_decay`, `maximize` and `decoupled_weight_decay` (decay as `AdamW`
    does) as of `Adam`; `foreach` and `capturable` are accepted and change nothing, `differentiable=True`
    raises.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = wg.tensor([1.0], requires_grad=True)
        >>> optimizer = wg.optim.RAdam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.8])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        """Makes the parameter groups."""
        self._never_recorded(differentiable)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
        )
        super().__init__(params, defaults)

    def _rule(self, group: dict[str, Any]) -> tuple[str, dict[str, float]]:
        return "Radam", {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def _numbers(self, group: dict[str, Any], state: dict[str, Any]) -> tuple[float, ...]:
        (beta1, beta2), t = group["betas"], state["step"]
        rate, most, weight = float(group["lr"]) / (1.0 - beta1**t), 2.0 / (1.0 - beta2) - 1.0, 1.0 - beta2**t
        now = most - 2.0 * t * beta2**t / weight
        rectified = 0.0
        if now > 5.0:
            ratio = (now - 4.0) * (now - 2.0) * most / ((most - 4.0) * (most - 2.0) * now)
            rectified = math.sqrt(ratio * weight)
        return rate, 1.0 - beta1, beta2, rectified, group["eps"]
