"""Optimisers that divide by the root of past squares: Adagrad, Adadelta, RMSprop, Adamax, NAdam and RAdam."""

import math
from collections.abc import Iterable
from typing import Any

from wengert._core import Tensor

from .stepwise import Stepwise, zeros

__all__ = ["Adadelta", "Adagrad", "Adamax", "NAdam", "RAdam", "RMSprop"]


class Adagrad(Stepwise):
    """`s += g^2`, then `p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)` (Duchi et al. 2011).

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
        """`initial_accumulator_value` is where `s` begins. `foreach`, `fused` and
        `differentiable=False` are accepted and change nothing.
        """
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

    def _step_of(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        rate = group["lr"] / (1.0 + (state["step"] - 1) * group["lr_decay"])
        total = zeros(state, "sum", p, group["initial_accumulator_value"]).addcmul_(g, g)
        p.addcdiv_(g, total.sqrt().add_(group["eps"]), value=-rate)


class Adadelta(Stepwise):
    """`s = rho s + (1 - rho) g^2`, `d = sqrt(a + eps) / sqrt(s + eps) g`, `p -= lr d`, `a = rho a + (1 - rho) d^2`
    (Zeiler 2012).

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
        """`foreach`, `capturable` and `differentiable=False` are accepted and change nothing."""
        self._never_recorded(differentiable)
        super().__init__(params, dict(lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize))

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if not 0.0 <= group["rho"] <= 1.0:
            raise ValueError(f"Adadelta: rho must lie in [0, 1], got {group['rho']}")
        self._between(group, "eps", 0.0, math.inf)

    def _step_of(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        rho, eps = group["rho"], group["eps"]
        squares = zeros(state, "square_avg", p).mul_(rho).addcmul_(g, g, value=1.0 - rho)
        steps = zeros(state, "acc_delta", p)
        delta = (steps + eps).sqrt_().div_((squares + eps).sqrt_()).mul_(g)
        steps.mul_(rho).addcmul_(delta, delta, value=1.0 - rho)
        p.add_(delta, alpha=-group["lr"])


class RMSprop(Stepwise):
    """`s = alpha s + (1 - alpha) g^2`, then `p -= lr g / (sqrt(s) + eps)` (Hinton 2012, lecture 6e).

    `centered` subtracts the square of the mean gradient from `s` (Graves 2013). With `momentum` the quotients are
    accumulated, `b = momentum b + g / (sqrt(s) + eps)`, and `p -= lr b`.

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
        """`foreach`, `capturable` and `differentiable=False` are accepted and change nothing."""
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

    def _step_of(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        alpha = group["alpha"]
        squares = zeros(state, "square_avg", p).mul_(alpha).addcmul_(g, g, value=1.0 - alpha)
        if group["centered"]:
            mean = zeros(state, "grad_avg", p).lerp_(g, 1.0 - alpha)
            squares = squares - mean * mean
        root = squares.sqrt().add_(group["eps"])
        if group["momentum"]:
            moved = zeros(state, "momentum_buffer", p).mul_(group["momentum"]).addcdiv_(g, root)
            p.add_(moved, alpha=-group["lr"])
        else:
            p.addcdiv_(g, root, value=-group["lr"])


class _Moments(Stepwise):
    """Optimisers with two moments and settings `lr, betas, eps, weight_decay`."""

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        self._between(group, "eps", 0.0, math.inf)
        self._check_betas(group)

    def _first(self, p: Tensor, g: Tensor, state: dict[str, Any], beta: float) -> Tensor:
        """The mean of gradients."""
        return zeros(state, "exp_avg", p).lerp_(g, 1.0 - beta)

    def _second(self, p: Tensor, g: Tensor, state: dict[str, Any], beta: float) -> Tensor:
        """The mean of their squares."""
        return zeros(state, "exp_avg_sq", p).mul_(beta).addcmul_(g, g, value=1.0 - beta)


class Adamax(_Moments):
    """Adam with the largest past gradient in place of the root: `u = max(b2 u, |g| + eps)`,
    `p -= lr / (1 - b1^t) m / u` (Kingma and Ba 2014).

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
        """`foreach`, `capturable` and `differentiable=False` are accepted and change nothing."""
        self._never_recorded(differentiable)
        super().__init__(
            params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize)
        )

    def _step_of(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        mean = self._first(p, g, state, beta1)
        largest = zeros(state, "exp_inf", p)
        largest.copy_((largest * beta2).maximum(g.abs().add_(group["eps"])))
        p.addcdiv_(mean, largest, value=-group["lr"] / (1.0 - beta1 ** state["step"]))


class NAdam(_Moments):
    """Adam with Nesterov's momentum (Dozat 2016).

    With `mu(t) = b1 (1 - 0.96^(t psi) / 2)` and its products M(t), `p -= lr ((1 - mu(t)) / (1 - M(t)) g + mu(t + 1) /
    (1 - M(t + 1)) m) / (sqrt(v / (1 - b2^t)) + eps)`; psi is `momentum_decay`.

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
        """`decoupled_weight_decay` decays as AdamW does. `foreach`, `capturable` and
        `differentiable=False` are accepted and change nothing.
        """
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

    def _step_of(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        t, psi = state["step"], group["momentum_decay"]
        now, after = (beta1 * (1.0 - 0.5 * 0.96 ** (k * psi)) for k in (t, t + 1))
        product = state["mu_product"] = float(state.get("mu_product", 1.0)) * now
        mean, squares = self._first(p, g, state, beta1), self._second(p, g, state, beta2)
        root = (squares / (1.0 - beta2**t)).sqrt_().add_(group["eps"])
        p.addcdiv_(g, root, value=-group["lr"] * (1.0 - now) / (1.0 - product))
        p.addcdiv_(mean, root, value=-group["lr"] * after / (1.0 - product * after))


class RAdam(_Moments):
    """Adam that rectifies the variance of its first steps (Liu et al. 2019).

    With `r = 2 / (1 - b2) - 1` and `r(t) = r - 2 t b2^t / (1 - b2^t)`, steps are `lr m / (1 - b1^t)` while `r(t) <= 5`,
    and later that times `sqrt((r(t) - 4) (r(t) - 2) r / ((r - 4) (r - 2) r(t))) sqrt(1 - b2^t) / (sqrt(v) + eps)`.

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
        """`decoupled_weight_decay` decays as AdamW does. `foreach`, `capturable` and
        `differentiable=False` are accepted and change nothing.
        """
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

    def _step_of(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        t = state["step"]
        mean, squares = self._first(p, g, state, beta1), self._second(p, g, state, beta2)
        step = -group["lr"] / (1.0 - beta1**t)
        most, weight = 2.0 / (1.0 - beta2) - 1.0, 1.0 - beta2**t
        now = most - 2.0 * t * beta2**t / weight
        if now <= 5.0:
            p.add_(mean, alpha=step)
            return
        rectified = (now - 4.0) * (now - 2.0) * most / ((most - 4.0) * (most - 2.0) * now)
        p.addcdiv_(mean, squares.sqrt().add_(group["eps"]), value=step * math.sqrt(rectified * weight))
