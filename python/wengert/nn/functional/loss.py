"""Losses as functions, of an `input` x and a `target` t.

`reduction` is "mean" (over all elements, unless a function says otherwise), "sum" or "none", which returns a
loss for each element, everywhere.
"""

import math
from collections.abc import Callable

import wengert as wg
from wengert import _core
from wengert._arguments import check_real, of_tensors
from wengert._caller import warn
from wengert._core import Tensor
from wengert._precision import in_float32, in_floats
from wengert._values import check_within, extremes, not_negative

from .reduction import reduce_losses, reduced

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
]


def _weighted(op: str, loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Losses with a factor each; the mean is divided by the sum of the factors."""
    _check_weight(op, loss, weight)
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else reduce_losses(loss, reduction)


def _check_weight(op: str, loss: Tensor, weight: Tensor) -> None:
    if weight.shape != loss.shape:
        raise wg.ShapeError(
            f"{op}: weight of shape {tuple(weight.shape)}, expected {tuple(loss.shape)} as the input"
        )


def _check_class_weight(op: str, input: Tensor, weight: Tensor | None, ignore_index: int) -> None:
    if ignore_index is True or ignore_index is False:
        raise TypeError(f"{op}: ignore_index is a class, got {ignore_index}; size_average is a keyword")
    if weight is None or input.ndim == 0:
        return
    classes = input.shape[min(input.ndim - 1, 1)]
    if tuple(weight.shape) != (classes,):
        raise wg.ShapeError(
            f"{op}: weight of shape {tuple(weight.shape)}, expected ({classes},), one for each class of the "
            f"input of shape {tuple(input.shape)}"
        )
    check_real(op, weight=weight)


def _same_shapes(op: str, input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        shapes = f"{op}: input of shape {tuple(input.shape)} and target of shape {tuple(target.shape)}"
        try:
            wg.broadcast_shapes(input.shape, target.shape)
        except wg.ShapeError:
            raise wg.ShapeError(f"{shapes} do not match; reshape one of them") from None
        warn(f"{shapes} only match by broadcasting, which is rarely meant; reshape one of them")


@reduced
@of_tensors
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Returns `logsumexp(x) - x[target]`, fused; its gradient is softmax minus target.

    Args:
        input: logits `(N, C)`, `(C,)` or `(N, C, d...)`.
        target: class indices `(N,)`, `()` or `(N, d...)`, integers; or probabilities shaped as the logits.
        weight: `(C,)`, a factor per class; the mean over class indices is divided by the sum of their
            factors.
        ignore_index: targets of this index count nothing, neither in the sum nor in the mean.
        reduction: "mean", "sum" or "none".
        label_smoothing: the share of the target spread evenly over the classes (Szegedy et al. 2015).

    Raises:
        ShapeError: if the shapes do not fit.
        IndexError: for a class index out of range.
        TypeError: for a bool target.
        ValueError: for an `ignore_index` that is a class beside probabilities, and settings out of range.

    Example:
        >>> wg.nn.functional.cross_entropy(wg.tensor([[2.0, 0.0, 0.0]]), wg.tensor([0]))
        tensor(0.2395)
    """
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"cross_entropy: label_smoothing is between 0 and 1, got {label_smoothing}")
    _check_class_weight("cross_entropy", input, weight, ignore_index)
    if ignore_index >= 0 and target.dtype.is_floating_point:
        raise ValueError(
            f"cross_entropy: ignore_index = {ignore_index} names a class, but the targets are "
            "probabilities; leave it out, or give rows without a target the probability 0 everywhere"
        )
    return _core._cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


@reduced
@of_tensors
@in_float32
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Returns `-x[target]` of log-probabilities `input`; shapes, `weight`, `ignore_index`, `reduction` and
    errors as in `cross_entropy`.

    Example:
        >>> wg.nn.functional.nll_loss(wg.tensor([[-0.5, -1.0]]), wg.tensor([1]))
        tensor(1.)
    """
    _check_class_weight("nll_loss", input, weight, ignore_index)
    if input.ndim:
        classes = input.shape[min(input.ndim - 1, 1)]
        if input.ndim == 1 and target.shape == (1,):
            target = target.reshape(())
        target = not_negative("nll_loss", "target", target, classes, "classes", ignore_index)
    return _core._nll_loss(input, target, weight, ignore_index, reduction)


@reduced
@of_tensors
@in_floats
@in_float32
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Returns `max(x, 0) - x t + log(1 + exp(-|x|))`, stable for any logit; shapes must be equal.

    x is the `input`, t the `target`, from 0 to 1. `weight` is a factor for each loss, `pos_weight` one for
    the part of positive targets, `-t log(sigmoid(x))`; both broadcast. `reduction` is "mean", "sum" or
    "none".

    Example:
        >>> wg.nn.functional.binary_cross_entropy_with_logits(wg.tensor([0.0]), wg.tensor([1.0]))
        tensor(0.6931)
    """
    return _core._bce_with_logits(input, target, weight, pos_weight, reduction)


@reduced
@of_tensors
@in_float32
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Returns `-t log p - (1 - t) log(1 - p)` of probabilities; logarithms are cut off at -100, as in
    PyTorch.

    p is the `input`, t the `target`, of one shape; `weight`, which broadcasts to it, multiplies the losses;
    `reduction` is "mean", "sum" or "none". Where a logarithm is cut off, its slope is 1e12, so that a
    probability of exactly 0 or 1 that is wrong still moves; in float16 that may be infinite.

    Raises:
        ShapeError: the shapes differ.
        ValueError: probabilities or targets outside of 0 to 1, on the CPU and outside of `vmap` and `jvp`.

    Example:
        >>> wg.nn.functional.binary_cross_entropy(wg.tensor([0.5]), wg.tensor([1.0]))
        tensor(0.6931)
    """
    if input.shape != target.shape:
        raise wg.ShapeError(
            f"binary_cross_entropy: target has shape {tuple(target.shape)}, expected {tuple(input.shape)} as "
            "the input"
        )
    check_within("binary_cross_entropy", "input", input, 0, 1)
    check_within("binary_cross_entropy", "target", target, 0, 1)
    loss = -(target * _bounded_log(input, Tensor.log) + (1.0 - target) * _bounded_log(-input, Tensor.log1p))
    return reduce_losses(loss if weight is None else loss * weight, reduction)


def _bounded_log(x: Tensor, log: Callable[[Tensor], Tensor]) -> Tensor:
    """`log` of a probability, or `log1p` of what it is less than 1, which is accurate for small
    differences."""
    # The logarithm never sees 0, where a line takes its place.
    p = x.detach() if log is Tensor.log else 1.0 + x.detach()
    tiny = p <= 3.7835e-44 if p.dtype == wg.float64 else p <= 0.0
    slope = min(1e12, wg.finfo(p.dtype).max)
    line = (x - x.detach()) * slope - 100.0
    return wg.where(tiny, line, log(wg.where(tiny, wg.full_like(p, 0.5), x)).clamp(min=-100.0))


@reduced
@of_tensors
@in_floats
@in_float32
def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Returns `t (log t - x)` of log-probabilities `input` x and probabilities `target` t, with `log_target`
    their logarithms.

    `reduction` is "mean", "sum", "none", or "batchmean", which divides the sum by the first axis, as the
    mathematics does.

    Example:
        >>> wg.nn.functional.kl_div(wg.tensor([0.5, 0.5]).log(), wg.tensor([1.0, 0.0]), reduction="sum")
        tensor(0.6931)
    """
    if log_target:
        loss = target.exp() * (target - input)
    else:
        # 1 log 1 stands for 0 log 0, whose slope is infinite; the logarithm of a negative target is NaN.
        safe = wg.where((target >= 0) & (target <= 0), wg.ones_like(target), target)
        loss = wg.xlogy(safe, safe) - target * input
    if reduction == "batchmean":
        return loss.sum() / (input.shape[0] if input.ndim else 1)
    return reduce_losses(loss, reduction)


@reduced
@of_tensors
@in_float32
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Returns `(x - t)^2` of `input` x and `target` t, with `weight` times a factor per element, by whose sum
    the mean is divided.

    `reduction` is "mean", "sum" or "none". Warns where the shapes only match by broadcasting.

    Example:
        >>> wg.nn.functional.mse_loss(wg.tensor([1.0, 2.0]), wg.tensor([1.0, 4.0]))
        tensor(2.)
    """
    _same_shapes("mse_loss", input, target)
    if input.is_complex() or target.is_complex():
        raise TypeError("mse_loss: complex numbers have no order to minimise; take (x - t).abs().square()")
    loss = (input - target).square()
    return (
        reduce_losses(loss, reduction) if weight is None else _weighted("mse_loss", loss, weight, reduction)
    )


@reduced
@of_tensors
@in_float32
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Returns `|x - t|` of `input` x and `target` t; its derivative at 0 is 0. With `weight` times a factor
    per element, by whose sum the mean is divided.

    `reduction` is "mean", "sum" or "none". Warns where the shapes only match by broadcasting.

    Example:
        >>> wg.nn.functional.l1_loss(wg.tensor([1.0, 2.0]), wg.tensor([1.0, 4.0]))
        tensor(1.)
    """
    _same_shapes("l1_loss", input, target)
    loss = (input - target).abs()
    return reduce_losses(loss, reduction) if weight is None else _weighted("l1_loss", loss, weight, reduction)


def _huber(distance: Tensor, delta: float) -> Tensor:
    """With `c` the distance clamped to `delta`, both branches are `c (d - c / 2)`: smooth at 0 and at the
    seam."""
    near = distance.clamp(-delta, delta)
    return near * (distance - 0.5 * near)


@reduced
@of_tensors
@in_float32
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Returns `d^2 / 2` where `|d| <= delta`, else `delta (|d| - delta / 2)` with `d = input - target` (Huber
    1964), with `weight` times a factor per element.

    `reduction` is "mean", "sum" or "none"; the mean is divided by the number of elements also with weights,
    as in PyTorch.

    Example:
        >>> wg.nn.functional.huber_loss(wg.tensor([0.5, 3.0]), wg.tensor([0.0, 0.0]), reduction="none")
        tensor([0.125, 2.500])
    """
    if delta <= 0:
        raise ValueError(f"huber_loss: delta must be positive, got {delta}")
    _same_shapes("huber_loss", input, target)
    loss = _huber(input - target, delta)
    if weight is not None:
        _check_weight("huber_loss", loss, weight)
        loss = loss * weight
    return reduce_losses(loss, reduction)


@reduced
@of_tensors
@in_float32
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Returns the Huber loss of `input` and `target` divided by `beta`; the absolute error for `beta = 0`.

    With `d = input - target` it is `d^2 / (2 beta)` where `|d| < beta`, else `|d| - beta / 2`. `reduction` is
    "mean", "sum" or "none".

    Example:
        >>> wg.nn.functional.smooth_l1_loss(wg.tensor([0.5, 3.0]), wg.tensor([0.0, 0.0]), reduction="none")
        tensor([0.125, 2.500])
    """
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    if beta == 0:
        return l1_loss(input, target, reduction)
    _same_shapes("smooth_l1_loss", input, target)
    return reduce_losses(_huber(input - target, beta) / beta, reduction)


@reduced
@of_tensors
@in_floats
@in_float32
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """Returns `exp(x) - t x` of log-rates `input` x and counts `target` t, or without `log_input`
    `x - t log(x + eps)` of rates.

    `full` adds Stirling's term `t log t - t + log(2 pi t) / 2` for t > 1; `reduction` is "mean", "sum" or
    "none".

    Example:
        >>> wg.nn.functional.poisson_nll_loss(wg.tensor([0.0]), wg.tensor([2.0]))
        tensor(1.)
    """
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        large = target > 1
        safe = wg.where(large, target, wg.ones_like(target))
        stirling = wg.xlogy(safe, safe) - safe + 0.5 * (2.0 * math.pi * safe).log()
        loss = loss + wg.where(large, stirling, wg.zeros_like(stirling))
    return reduce_losses(loss, reduction)


@of_tensors
@in_floats
@in_float32
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Returns `(log var + (x - t)^2 / var) / 2`, with `var` at least `eps`; the bound passes gradients on.

    Args:
        input: means x, of any shape.
        target: values t, of a shape that broadcasts with it.
        var: variances of the shape of `input`, of that shape without its last axis, or with any axes of
            length 1; or one number for all.
        full: add the constant `log(2 pi) / 2`.
        eps: the least variance.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError: another shape of `var`.
        ValueError: a negative variance, on the CPU and outside of `vmap` and `jvp`.

    Example:
        >>> wg.nn.functional.gaussian_nll_loss(wg.tensor([1.0]), wg.tensor([3.0]), wg.tensor([1.0]))
        tensor(2.)
    """
    if not isinstance(var, Tensor):
        var = _core.full((), float(var), dtype=input.dtype, device=input.device).expand(input.shape)
    shape = tuple(input.shape)
    if tuple(var.shape) != shape and shape and tuple(var.shape) == shape[:-1]:
        var = var.unsqueeze(-1)
    if var.ndim != len(shape) or any(n not in (1, wanted) for n, wanted in zip(var.shape, shape)):
        raise wg.ShapeError(
            f"gaussian_nll_loss: var of shape {tuple(var.shape)}, expected {shape} as the input, with axes "
            f"of length 1 for what is shared, or without the last axis, {shape[:-1]}"
        )
    found = extremes(var)
    if found is not None and found[0] < 0:
        raise ValueError(f"gaussian_nll_loss: variances must not be negative, got {found[0]:g}")
    bounded = var + (var.detach().clamp(min=eps) - var.detach())
    loss = 0.5 * (bounded.log() + (input - target).square() / bounded)
    return reduce_losses(loss + 0.5 * math.log(2.0 * math.pi) if full else loss, reduction)
