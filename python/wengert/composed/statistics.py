"""Moments, extremes and integrals."""

from typing import Any, NamedTuple

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor
from wengert._precision import in_float32, rounded
from wengert._types import Dims, DTypeLike, TensorLike
from wengert._values import check_within

from ._method import floating, method, on_axis

__all__ = [
    "aminmax",
    "corrcoef",
    "cov",
    "cumulative_trapezoid",
    "dist",
    "nanmean",
    "nansum",
    "std_mean",
    "trapezoid",
    "trapz",
    "var_mean",
]


class MinMax(NamedTuple):
    """The smallest and the largest element."""

    min: Tensor
    max: Tensor


@method
def aminmax(input: Tensor, *, dim: Dims = None, keepdim: bool = False) -> MinMax:
    """Returns the smallest and the largest element, of all or along `dim`; ties share the gradient evenly.

    Example:
        >>> wg.aminmax(wg.tensor([3.0, 1.0, 2.0]))
        MinMax(min=tensor(1.), max=tensor(3.))
    """
    return MinMax(input.amin(dim, keepdim=keepdim), input.amax(dim, keepdim=keepdim))


@method
def var_mean(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns variance and mean along `dim`, or of all elements; see `var`.

    Example:
        >>> wg.var_mean(wg.tensor([1.0, 3.0]))
        (tensor(2.), tensor(2.))
    """
    # As for the methods of the core, a bool in the first place is `unbiased`.
    axes = None if isinstance(dim, bool) and unbiased is None else dim
    return input.var(dim, unbiased, keepdim, correction=correction), input.mean(axes, keepdim=keepdim)


@method
def std_mean(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns standard deviation and mean along `dim`, or of all elements; see `std`.

    Example:
        >>> wg.std_mean(wg.tensor([1.0, 3.0]), correction=0)
        (tensor(1.), tensor(2.))
    """
    # As for the methods of the core, a bool in the first place is `unbiased`.
    axes = None if isinstance(dim, bool) and unbiased is None else dim
    return input.std(dim, unbiased, keepdim, correction=correction), input.mean(axes, keepdim=keepdim)


@method
def nansum(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Returns the sum of the elements that are not NaN, computed in `dtype` if that is given.

    Example:
        >>> wg.nansum(wg.tensor([1.0, float("nan")]))
        tensor(1.)
    """
    input = input if dtype is None else input.to(dtype)
    kept = input.masked_fill(input.isnan(), 0.0) if input.dtype.is_differentiable else input
    return kept.sum(dim, keepdim=keepdim)


@method
@in_float32
def nanmean(
    input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Returns the mean of the elements that are not NaN, computed in `dtype` if that is given;
    NaN where there are none.

    Example:
        >>> wg.nanmean(wg.tensor([1.0, float("nan"), 3.0]))
        tensor(2.)
    """
    x = floating("nanmean", input if dtype is None else input.to(dtype))
    there = x.isnan().logical_not().to(x.dtype)
    return nansum(x, dim, keepdim) / there.sum(dim, keepdim=keepdim)


@method
def dist(input: Tensor, other: TensorLike, p: float = 2.0) -> Tensor:
    """Returns the `p`-norm of the difference of all elements; the two broadcast.

    Example:
        >>> wg.dist(wg.tensor([0.0, 0.0]), wg.tensor([3.0, 4.0]))
        tensor(5.)
    """
    other = operand("dist", other, input)
    kind = _core.result_type(input, other)
    kind = kind if kind.is_differentiable else _core.float32
    if kind not in (_core.float16, _core.bfloat16):
        return (input.to(kind) - other.to(kind)).norm(p)
    return rounded((input.float() - other.float()).norm(p), kind)


@method
@in_float32
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: TensorLike | None = None,
    aweights: TensorLike | None = None,
) -> Tensor:
    """Returns the covariance matrix of variables in rows, observed in columns. Integers become float32.

    Args:
        correction: what is subtracted from the number of observations.
        fweights: how often each observation counts, integers.
        aweights: how much each observation weighs.

    Returns:
        A matrix; of one variable its variance, without axes.

    Raises:
        TypeError: `fweights` that are no integers.
        ValueError: a negative weight.

    Example:
        >>> wg.cov(wg.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])
    """
    x = operand("cov", input)
    x = x if x.dtype.is_differentiable else x.float()
    if x.ndim > 2:
        raise _core.ShapeError(f"cov: at most two axes expected, got shape {tuple(x.shape)}")
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    count = rows.shape[1]
    weights = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            given = operand("cov", given, x)
            if tuple(given.shape) != (count,):
                raise _core.ShapeError(f"cov: {name} of shape {tuple(given.shape)} for {count} observations")
            if name == "fweights" and given.dtype.is_differentiable:
                raise TypeError(
                    f"cov: fweights must be integers, got {given.dtype}; aweights are any weights"
                )
            check_within("cov", name, given, 0, float("inf"))
            weights = given.to(x.dtype) if weights is None else weights * given.to(x.dtype)
    if weights is None:
        mean = rows.mean(1, keepdim=True)
        degrees: Any = max(float(count) - correction, 0.0)
        scaled = centred = rows - mean
    else:
        total = weights.sum()
        mean = (rows * weights).sum(1, keepdim=True) / total
        centred = rows - mean
        scaled = centred * weights
        spread = (
            total if aweights is None else (weights * operand("cov", aweights, x).to(x.dtype)).sum() / total
        )
        degrees = total - correction * (1.0 if aweights is None else spread)
    out = scaled @ centred.mH / degrees
    return out.reshape(()) if out.numel() == 1 else out


@method
@in_float32
def corrcoef(input: Tensor) -> Tensor:
    """Returns the matrix of correlation coefficients of variables in rows, observed in columns;
    of one variable a number.

    Example:
        >>> wg.corrcoef(wg.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])
    """
    c = cov(input)
    if c.ndim == 0:
        return c / c
    deviation = c.diagonal().real.sqrt()
    out = c / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    # Rounding may lead out of the unit circle; of complex numbers it stays.
    return out if out.is_complex() else out.clamp(-1, 1)


def _pieces(name: str, y: TensorLike, x: TensorLike | None, dx: float, dim: int) -> Tensor:
    """The areas between neighbouring points."""
    y = operand(name, y)
    if y.ndim == 0:
        raise _core.ShapeError(f"{name}: at least one axis expected, got a number")
    # Floating point numbers do not wrap where they are added.
    y = y if y.dtype.is_differentiable else y.float()
    _, dim = on_axis(name, y, dim)
    length = y.shape[dim]
    count = max(length - 1, 0)
    means = (y.narrow(dim, length - count, count) + y.narrow(dim, 0, count)) / 2
    if x is None:
        return means * dx
    widths = operand(name, x, y)
    if not (widths.dtype.is_differentiable or widths.is_gpu):
        widths = widths.to(_core.int64)
    if widths.ndim == 1:
        shape = [1] * y.ndim
        shape[dim] = -1
        return means * widths.diff().reshape(shape)
    return means * widths.diff(dim=dim)


def trapezoid(y: TensorLike, x: TensorLike | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """Returns the integral of `y` along `dim` by the trapezoidal rule, at points `x` or at steps of `dx`.

    Example:
        >>> wg.trapezoid(wg.tensor([0.0, 1.0, 4.0]))
        tensor(3.)
    """
    return _pieces("trapezoid", y, x, dx, dim).sum(dim)


trapz = trapezoid


def cumulative_trapezoid(
    y: TensorLike, x: TensorLike | None = None, *, dx: float = 1.0, dim: int = -1
) -> Tensor:
    """Returns the integrals of `y` up to each point but the first, by the trapezoidal rule.

    Example:
        >>> wg.cumulative_trapezoid(wg.tensor([0.0, 1.0, 4.0]))
        tensor([0.5, 3.0])
    """
    return _pieces("cumulative_trapezoid", y, x, dx, dim).cumsum(dim)
