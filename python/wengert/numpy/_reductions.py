"""Sums, extrema, moments and scans, with the standard's parameters and dtypes."""

import functools
from collections.abc import Callable
from typing import Any

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor

from ._dtypes import DTYPES, default_float, isdtype

__all__ = [
    "all",
    "any",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

_Axes = int | tuple[int, ...] | None


def _reduced(
    name: str, method: Callable[..., Tensor], x: Any, axis: _Axes, keepdims: bool, **rest: Any
) -> Tensor:
    x = operand(name, x)
    if axis == ():
        # Over no axis means over a new one of length 1.
        return method(x.unsqueeze(-1), -1, **rest)
    return method(x, axis, keepdim=keepdims, **rest) if rest else method(x, axis, keepdims)


@functools.cache
def _wide(dtype: Any, on_gpu: bool) -> Any:
    """The dtype in which integers are summed and multiplied: 64 bits (32 on a GPU), with their sign."""
    if not isdtype(dtype, "integral"):
        return None
    sign = "u" if isdtype(dtype, "unsigned integer") else ""
    return DTYPES.get(f"{sign}int{32 if on_gpu else 64}")


def _accumulated(
    name: str, method: Callable[..., Tensor], x: Any, axis: _Axes, dtype: Any, keepdims: bool
) -> Tensor:
    x = operand(name, x)
    if dtype is None and not x.is_floating_point():
        dtype = _wide(x.dtype, x.is_gpu)
    rest = {} if dtype is None else {"dtype": dtype}
    return _reduced(name, method, x, axis, keepdims, **rest)


def sum(x: Tensor, /, axis: _Axes = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    """Returns the sum over axes, all by default. Integers are added in 64 bits unless a dtype is given."""
    return _accumulated("sum", Tensor.sum, x, axis, dtype, keepdims)


def prod(x: Tensor, /, axis: _Axes = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    """Returns the product over axes, all by default. Integers are multiplied in 64 bits unless a dtype is
    given.
    """
    return _accumulated("prod", Tensor.prod, x, axis, dtype, keepdims)


def max(x: Tensor, /, axis: _Axes = None, *, keepdims: bool = False) -> Tensor:
    """Returns the largest element over axes, all by default; elements that tie share the gradient evenly."""
    return _reduced("max", Tensor.amax, x, axis, keepdims)


def min(x: Tensor, /, axis: _Axes = None, *, keepdims: bool = False) -> Tensor:
    """Returns the smallest element over axes, all by default; elements that tie share the gradient evenly."""
    return _reduced("min", Tensor.amin, x, axis, keepdims)


def mean(x: Tensor, /, axis: _Axes = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    """Returns the arithmetic mean over axes, all by default. Integers and bools become floats of the default
    dtype, unless a dtype is given.
    """
    return _reduced("mean", Tensor.mean, _inexact("mean", x, dtype), axis, keepdims)


def _inexact(name: str, x: Any, dtype: Any = None) -> Tensor:
    """A tensor of a dtype, or of one with fractions."""
    x = operand(name, x)
    if dtype is None and not x.dtype.is_differentiable:
        dtype = default_float()
    return x if dtype is None else x.to(dtype)


def var(
    x: Tensor,
    /,
    axis: _Axes = None,
    dtype: Any = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
) -> Tensor:
    """Returns the variance over axes, all by default: squared deviations from the mean, summed, divided by
    `n - correction`.

    Args:
        ddof: NumPy's name of `correction`.
    """
    x, correction = _inexact("var", x, dtype), correction if ddof is None else ddof
    return _reduced("var", Tensor.var, x, axis, keepdims, correction=correction)


def std(
    x: Tensor,
    /,
    axis: _Axes = None,
    dtype: Any = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
) -> Tensor:
    """Returns the standard deviation over axes, all by default: the square root of `var`.

    Args:
        ddof: NumPy's name of `correction`.
    """
    x, correction = _inexact("std", x, dtype), correction if ddof is None else ddof
    return _reduced("std", Tensor.std, x, axis, keepdims, correction=correction)


def all(x: Tensor, /, axis: _Axes = None, *, keepdims: bool = False) -> Tensor:
    """Tells whether all elements are true (not zero), over axes, all by default."""
    return _reduced("all", Tensor.all, x, axis, keepdims)


def any(x: Tensor, /, axis: _Axes = None, *, keepdims: bool = False) -> Tensor:
    """Tells whether any element is true (not zero), over axes, all by default."""
    return _reduced("any", Tensor.any, x, axis, keepdims)


def count_nonzero(x: Tensor, /, axis: _Axes = None, *, keepdims: bool = False) -> Tensor:
    """Returns the number of elements that are not zero, over axes, all by default."""
    count = _reduced("count_nonzero", lambda x, axis, *_: x.count_nonzero(axis), x, axis, False)
    if not keepdims or axis == ():
        return count
    shape = operand("count_nonzero", x).shape
    axes = range(len(shape)) if axis is None else [axis] if isinstance(axis, int) else axis
    gone = {k % len(shape) for k in axes}
    return count.reshape([1 if k in gone else n for k, n in enumerate(shape)])


def _scanned(
    name: str, method: Callable[..., Tensor], start: int, x: Any, axis: int | None, dtype: Any, initial: bool
) -> Tensor:
    x = operand(name, x)
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{name}: a tensor of shape {x.shape} has several axes; say which with axis=")
        axis = 0
    dtype = dtype or _wide(x.dtype, x.is_gpu)
    x = x.reshape(1) if x.ndim == 0 else x
    # Narrow integers are summed in wider ones, whatever dtype they come in.
    out = method(x, axis) if dtype is None else method(x.to(dtype), axis).to(dtype)
    if not initial:
        return out
    first = list(out.shape)
    first[axis] = 1
    return _core.cat([_core.full(first, start, dtype=out.dtype, device=out.device), out], axis)


def cumulative_sum(
    x: Tensor, /, axis: int | None = None, dtype: Any = None, *, include_initial: bool = False
) -> Tensor:
    """Returns the sum of the elements so far along an axis, which only a vector need not name.

    Args:
        dtype: in which to add; 64 bits for integers by default.
        include_initial: begin with the sum of no elements, 0; the axis is then longer by one.
    """
    return _scanned("cumulative_sum", Tensor.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, axis: int | None = None, dtype: Any = None, *, include_initial: bool = False
) -> Tensor:
    """Returns the product of the elements so far along an axis, which only a vector need not name.

    Args:
        dtype: in which to multiply; 64 bits for integers by default.
        include_initial: begin with the product of no elements, 1; the axis is then longer by one.
    """
    return _scanned("cumulative_prod", Tensor.cumprod, 1, x, axis, dtype, include_initial)


def diff(x: Tensor, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Returns the differences of neighbours along an axis, `n` times.

    Args:
        prepend: what to put before the elements along the axis first.
        append: what to put behind them.
    """
    x = operand("diff", x)
    ends = [None if p is None else operand("diff", p, x) for p in (prepend, append)]
    # A number stands for a slice of it.
    width = [1 if k == axis % x.ndim else n for k, n in enumerate(x.shape)]
    ends = [p if p is None or p.ndim else p.expand(width) for p in ends]
    parts = [p for p in (ends[0], x, ends[1]) if p is not None]
    return (_core.cat(parts, axis) if len(parts) > 1 else parts[0]).diff(n, axis)
