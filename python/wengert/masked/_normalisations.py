"""Normalisations and running sums along an axis, of the elements that a mask selects."""

from typing import Any

from wengert._core import Tensor
from wengert._precision import in_float32
from wengert._types import DTypeLike, TensorLike

from ._reductions import norm
from ._selection import filled, prepared

__all__ = ["cumprod", "cumsum", "log_softmax", "logaddexp", "normalize", "softmax", "softmin"]


def softmax(
    input: TensorLike, dim: int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the softmax along `dim` of the elements that count, 0 for the others; NaN where none counts.

    Args:
        input: a tensor.
        dim: the axis. So in the functions below.
        dtype: what the input is converted to first.
        mask: true where an element counts; broadcasts to the input.

    Raises:
        TypeError: the mask is no tensor of bools.
        ShapeError: it does not broadcast to the input.

    Example:
        >>> wg.masked.softmax(wg.tensor([1.0, 1.0, 8.0]), 0, mask=wg.tensor([True, True, False]))
        tensor([0.5, 0.5, 0.0])
    """
    return filled("softmax", prepared("softmax", input, dtype, True), mask, float("-inf")).softmax(dim)


def log_softmax(
    input: TensorLike, dim: int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the logarithm of `softmax`, minus infinity where an element does not count; arguments and
    errors are those of `softmax`.

    Example:
        >>> wg.masked.log_softmax(wg.tensor([1.0, 8.0]), 0, mask=wg.tensor([True, False]))
        tensor([  0., -inf])
    """
    return filled(
        "log_softmax", prepared("log_softmax", input, dtype, True), mask, float("-inf")
    ).log_softmax(dim)


def softmin(
    input: TensorLike, dim: int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the softmax of the negated elements; arguments and errors are those of `softmax`.

    Example:
        >>> wg.masked.softmin(wg.tensor([1.0, 1.0, 0.0]), 0, mask=wg.tensor([True, True, False]))
        tensor([0.5, 0.5, 0.0])
    """
    return (-filled("softmin", prepared("softmin", input, dtype, True), mask, float("inf"))).softmax(dim)


@in_float32
def normalize(
    input: TensorLike,
    ord: float,
    dim: Any,
    *,
    eps: float = 1e-12,
    dtype: DTypeLike | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the elements that count over their norm along `dim`, 0 for the others.

    Args:
        input: a tensor.
        ord: the order of the norm, as in `norm`.
        dim: the axis, or several.
        eps: the least that is divided by.
        dtype: what the input is converted to first.
        mask: true where an element counts; broadcasts to the input.

    Raises:
        TypeError: the mask is no tensor of bools.

    Example:
        >>> wg.masked.normalize(wg.tensor([3.0, 4.0, 9.0]), 2, 0, mask=wg.tensor([True, True, False]))
        tensor([0.6, 0.8, 0.0])
    """
    x = prepared("normalize", input, dtype, True)
    kept = filled("normalize", x, mask, 0)
    return kept / norm(x, ord, dim, keepdim=True, mask=mask).clamp(min=eps)


def cumsum(
    input: TensorLike, dim: int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the running sums along `dim`, to which the others add nothing; arguments and errors are those
    of `softmax`.

    Example:
        >>> wg.masked.cumsum(wg.tensor([1.0, 2.0, 3.0]), 0, mask=wg.tensor([True, False, True]))
        tensor([1., 1., 4.])
    """
    return filled("cumsum", prepared("cumsum", input, dtype), mask, 0).cumsum(dim)


def cumprod(
    input: TensorLike, dim: int, *, dtype: DTypeLike | None = None, mask: Tensor | None = None
) -> Tensor:
    """Returns the running products along `dim`, which the others leave as they are; arguments and errors are
    those of `softmax`.

    Example:
        >>> wg.masked.cumprod(wg.tensor([1.0, 2.0, 3.0]), 0, mask=wg.tensor([True, False, True]))
        tensor([1., 1., 3.])
    """
    return filled("cumprod", prepared("cumprod", input, dtype), mask, 1).cumprod(dim)


def logaddexp(
    input: TensorLike,
    other: TensorLike,
    *,
    dtype: DTypeLike | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Returns `log(exp(input) + exp(other))` of the elements that count, minus infinity where neither does.

    Args:
        input: a tensor.
        other: a tensor; the two broadcast.
        dtype: what both are converted to first.
        input_mask: true where an element of `input` counts.
        other_mask: true where an element of `other` counts.

    Raises:
        TypeError: a mask is no tensor of bools.

    Example:
        >>> wg.masked.logaddexp(wg.tensor([1.0]), wg.tensor([8.0]), other_mask=wg.tensor([False]))
        tensor([1.])
    """
    x, y = (prepared("logaddexp", each, dtype, True) for each in (input, other))
    low = float("-inf")
    return filled("logaddexp", x, input_mask, low).logaddexp(filled("logaddexp", y, other_mask, low))
