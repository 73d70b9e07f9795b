"""The standard's extension for linear algebra."""

from typing import Any

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor
from wengert.composed.products import cross as _cross

from ._elementwise import alike
from ._products import matmul, matrix_transpose, tensordot, vecdot
from ._reductions import sum as _sum

__all__ = [
    "cross",
    "diagonal",
    "matmul",
    "matrix_transpose",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of length 3 along an axis; the other axes broadcast."""
    return _cross(*alike("cross", x1, x2), axis)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The `offset`-th diagonals of matrices in the last two axes."""
    return operand("diagonal", x).diagonal(offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sums of the `offset`-th diagonals of matrices in the last two axes."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of every element of one vector with every element of another: `out[i, j] = x1[i] * x2[j]`."""
    x1, x2 = alike("outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise _core.ShapeError(f"outer: two vectors expected, got shapes {x1.shape} and {x2.shape}")
    return x1.unsqueeze(1) * x2


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """The norm `sum(|x| ** ord) ** (1 / ord)` of vectors along axes, of all elements by default.

    Args:
        ord: any number, `inf` and `-inf` (extrema of `|x|`), or 0 (the count of what is not zero).
    """
    return operand("vector_norm", x).norm(ord, axis, keepdims)
