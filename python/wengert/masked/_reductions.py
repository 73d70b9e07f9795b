"""Reductions of the elements that a mask selects."""

from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert._precision import in_float32
from wengert._types import Dims, DTypeLike, TensorLike

from ._selection import counted, filled, lowest, prepared

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "prod",
    "std",
    "sum",
    "var",
]


def sum(
    input: TensorLike,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the sum of the elements that count, 0 of none.

    Args:
        input: a tensor.
        dim: the axes; all by default. So in the functions below.
        keepdim: whether reduced axes stay, with length 1.
        dtype: what the input is converted to first.
        mask: true where an element counts; broadcasts to the input.

    Raises:
        TypeError: the mask is no tensor of bools.
        ShapeError: it does not broadcast to the input.

    Example:
        >>> wg.masked.sum(wg.tensor([1.0, 2.0]), mask=wg.tensor([True, False]))
        tensor(1.)
    """
    return filled("sum", prepared("sum", input, dtype), mask, 0).sum(dim, keepdim=keepdim)


def prod(
    input: TensorLike,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the product of the elements that count, 1 of none; arguments and errors are those of `sum`.

    Example:
        >>> wg.masked.prod(wg.tensor([2.0, 3.0, 0.0]), mask=wg.tensor([True, True, False]))
        tensor(6.)
    """
    return filled("prod", prepared("prod", input, dtype), mask, 1).prod(dim, keepdim=keepdim)


def amax(
    input: TensorLike,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the largest element that counts, the lowest number of the dtype of none; arguments and errors
    are those of `sum`.

    Example:
        >>> wg.masked.amax(wg.tensor([2.0, 3.0]), mask=wg.tensor([True, False]))
        tensor(2.)
    """
    x = prepared("amax", input, dtype)
    return filled("amax", x, mask, lowest(x)).amax(dim, keepdim=keepdim)


def amin(
    input: TensorLike,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the smallest element that counts, the largest number of the dtype of none; arguments and errors
    are those of `sum`.

    Example:
        >>> wg.masked.amin(wg.tensor([2.0, 1.0]), mask=wg.tensor([True, False]))
        tensor(2.)
    """
    x = prepared("amin", input, dtype)
    return filled("amin", x, mask, lowest(x, True)).amin(dim, keepdim=keepdim)


def argmax(
    input: TensorLike,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the position of the first of the largest elements that count, along `dim` or in the flattened
    tensor; arguments and errors are those of `sum`. Where none counts it is 0.

    Example:
        >>> wg.masked.argmax(wg.tensor([2.0, 3.0]), mask=wg.tensor([True, False]))
        tensor(0)
    """
    return _position("argmax", prepared("argmax", input, dtype), dim, keepdim, mask, True)


def argmin(
    input: TensorLike,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the position of the first of the smallest elements that count, as `argmax`.

    Example:
        >>> wg.masked.argmin(wg.tensor([2.0, 1.0]), mask=wg.tensor([True, False]))
        tensor(0)
    """
    return _position("argmin", prepared("argmin", input, dtype), dim, keepdim, mask, False)


def _position(
    name: str, x: Tensor, dim: int | None, keepdim: bool, mask: Tensor | None, largest: bool
) -> Tensor:
    x = filled(name, x.detach(), mask, lowest(x, not largest))
    if mask is None:
        return x.argmax(dim, keepdim=keepdim) if largest else x.argmin(dim, keepdim=keepdim)
    # An extreme that counts may equal what the others are filled with.
    best = x.amax(dim, keepdim=True) if largest else x.amin(dim, keepdim=True)
    hit = ((x == best) | (x != x)).logical_and(mask).to(_core.int32)
    return hit.argmax(dim, keepdim=keepdim)


@in_float32
def mean(
    input: TensorLike,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the mean of the elements that count, NaN of none; arguments and errors are those of `sum`.
    Integers become float32.

    Example:
        >>> wg.masked.mean(wg.tensor([1.0, 3.0, 8.0]), mask=wg.tensor([True, True, False]))
        tensor(2.)
    """
    x = prepared("mean", input, dtype, True)
    return filled("mean", x, mask, 0).sum(dim, keepdim=keepdim) / counted("mean", x, dim, keepdim, mask)


def var(
    input: TensorLike,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the variance of the elements that count. Integers become float32.

    Args:
        input: a tensor.
        dim: the axes; all by default.
        unbiased: whether `correction` is 1 (the default) rather than 0.
        correction: what is subtracted from the number of elements that count.
        keepdim: whether reduced axes stay, with length 1.
        dtype: what the input is converted to first.
        mask: true where an element counts; broadcasts to the input.

    Raises:
        TypeError: the mask is no tensor of bools.
        ValueError: for both `unbiased` and `correction`.

    Example:
        >>> wg.masked.var(wg.tensor([1.0, 3.0, 8.0]), mask=wg.tensor([True, True, False]))
        tensor(2.)
    """
    return _variance("var", input, mask, dim, unbiased, correction, keepdim, dtype)


@in_float32
def std(
    input: TensorLike,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the standard deviation of the elements that count; arguments and errors are those of `var`. Its
    gradient at 0 is 0.

    Example:
        >>> wg.masked.std(wg.tensor([1.0, 3.0, 8.0]), correction=0, mask=wg.tensor([True, True, False]))
        tensor(1.)
    """
    square = _variance("std", input, mask, dim, unbiased, correction, keepdim, dtype)
    flat = square.detach() == 0
    return square.masked_fill(flat, 1.0).sqrt().masked_fill(flat, 0.0)


@in_float32
def _variance(
    name: str,
    input: TensorLike,
    mask: Tensor | None,
    dim: Dims,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool,
    dtype: DTypeLike | None,
) -> Tensor:
    if unbiased is not None and correction is not None:
        raise ValueError(f"{name}: unbiased and correction say the same; give one of them")
    less = correction if correction is not None else 0 if unbiased is False else 1
    x = prepared(name, input, dtype, True)
    count = counted(name, x, dim, True, mask)
    centred = filled(name, x - filled(name, x, mask, 0).sum(dim, keepdim=True) / count, mask, 0)
    size = centred.abs() if centred.is_complex() else centred
    squares = size.square().sum(dim, keepdim=True)
    out = squares / (count.real - less).clamp(min=0)
    if keepdim:
        return out
    axes = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    return out.squeeze(tuple(axes)) if x.ndim else out


def norm(
    input: TensorLike,
    ord: float = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the `ord`-norm of the elements that count, as vectors: `linalg.vector_norm`.

    Args:
        input: a tensor.
        ord: any number, `inf` and `-inf` for the extremes of the magnitudes, 0 for the number of elements not
            zero.
        dim: the axes; all by default.
        keepdim: whether reduced axes stay, with length 1.
        dtype: what the input is converted to first.
        mask: true where an element counts; broadcasts to the input.

    Returns:
        The norm; of no elements 0, or infinity for a negative `ord`.

    Raises:
        TypeError: the mask is no tensor of bools.

    Example:
        >>> wg.masked.norm(wg.tensor([3.0, 4.0, 9.0]), mask=wg.tensor([True, True, False]))
        tensor(5.)
    """
    x = prepared("norm", input, dtype, True)
    x = filled("norm", x, mask, float("inf") if ord < 0 else 0)
    return x.norm(ord, dim, keepdim)


def logsumexp(
    input: TensorLike,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns `log(sum(exp(input)))` over the elements that count, minus infinity of none; arguments and
    errors are those of `sum`.

    Example:
        >>> wg.masked.logsumexp(wg.tensor([1.0, 8.0]), mask=wg.tensor([True, False]))
        tensor(1.)
    """
    x = prepared("logsumexp", input, dtype, True)
    return filled("logsumexp", x, mask, float("-inf")).logsumexp(dim, keepdim)


def median(
    input: TensorLike,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the median along `dim` of the elements that count, the lower one of two; NaN of none.

    Args:
        input: a floating point tensor.
        dim: the axis.
        keepdim: whether it stays, with length 1.
        dtype: what the input is converted to first.
        mask: true where an element counts; broadcasts to the input.

    Raises:
        TypeError: for integers, and a mask that is no tensor of bools.

    Example:
        >>> wg.masked.median(wg.tensor([1.0, 3.0, 8.0]), mask=wg.tensor([True, True, False]))
        tensor(1.)
    """
    x = prepared("median", input, dtype)
    if not x.is_floating_point():
        raise TypeError(
            f"median: a floating point tensor expected, got {x.dtype}; convert with .float() first"
        )
    found: Tensor = filled("median", x, mask, float("nan")).nanmedian(dim, keepdim=keepdim).values
    return found
