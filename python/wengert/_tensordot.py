"""Products summed over any axes of two tensors."""

import math
from typing import Any

from wengert import _core
from wengert._arguments import operands
from wengert._core import Tensor
from wengert._precision import in_widest
from wengert.composed._method import on_axis

__all__ = ["tensordot"]


def _of_one_length(a: Tensor, i: int, b: Tensor, j: int) -> tuple[Tensor, Tensor]:
    """Two tensors whose axes `i` and `j` are summed over together: one of length 1 stands for any length."""
    n, m = a.shape[i], b.shape[j]
    if n == m:
        return a, b
    if 1 not in (n, m):
        raise _core.ShapeError(
            f"tensordot: axis {i} of shape {tuple(a.shape)} and axis {j} of shape {tuple(b.shape)} differ "
            "in length"
        )
    return (a, b.sum(j, keepdim=True)) if n == 1 else (a.sum(i, keepdim=True), b)


def _summed_axes(a: Tensor, b: Tensor, dims: Any) -> tuple[list[int], list[int]]:
    """The axes of both that `tensordot` sums over, counted from the front."""
    if isinstance(dims, Tensor) and dims.ndim < 3:
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise ValueError(f"tensordot: dims cannot be negative, got {dims}")
        if dims > min(a.ndim, b.ndim):
            raise _core.ShapeError(
                f"tensordot: at most {min(a.ndim, b.ndim)} axes can be summed over, got dims = {dims}"
            )
        return list(range(a.ndim - dims, a.ndim)), list(range(dims))
    if not isinstance(dims, (list, tuple)) or len(dims) != 2:
        raise TypeError(f"tensordot: dims is a number of axes, or a pair of lists of axes, got {dims!r}")
    left, right = (
        [on_axis("tensordot", x, i)[1] for i in ([axes] if isinstance(axes, int) else axes)]
        for x, axes in zip((a, b), dims)
    )
    if len(left) != len(right):
        raise ValueError(f"tensordot: as many axes expected of both, got dims {dims}")
    return left, right


@in_widest
def tensordot(a: Any, b: Any, dims: Any = 2) -> Tensor:
    """Sums products over `dims` axes (the last of `a`, the first of `b`), or over the pairs of axes given.

    Raises:
        IndexError: an axis that a tensor has not.
        ShapeError: axes of different lengths, more of them than there are.
        TypeError: `dims` that is neither a number nor a pair of lists.
        ValueError: a negative number, lists of different lengths, an axis twice.

    Example:
        >>> wg.tensordot(wg.ones(2, 3), wg.ones(3, 4), dims=1).shape
        (2, 4)
    """
    a, b = operands("tensordot", (a, b))
    left, right = _summed_axes(a, b, dims)
    for i, j in zip(left, right):
        a, b = _of_one_length(a, i, b, j)
    rest_a = [i for i in range(a.ndim) if i not in left]
    rest_b = [i for i in range(b.ndim) if i not in right]
    shape = [a.shape[i] for i in rest_a] + [b.shape[i] for i in rest_b]
    rows = a.permute(*rest_a, *left) if a.ndim else a
    columns = b.permute(*right, *rest_b) if b.ndim else b
    inner = math.prod(a.shape[i] for i in left)
    outer_a, outer_b = math.prod(a.shape[i] for i in rest_a), math.prod(b.shape[i] for i in rest_b)
    return (rows.reshape(outer_a, inner) @ columns.reshape(inner, outer_b)).reshape(shape)
