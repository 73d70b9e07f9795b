"""Products that stand in the standard's namespace itself and in its extension `linalg`."""

from typing import Any

from wengert._arguments import operand
from wengert._core import ShapeError, Tensor
from wengert._functions import tensordot as _tensordot

from ._elementwise import alike

# The identity in a build without complex dtypes.
_conjugate = getattr(Tensor, "conj", lambda x: x)

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Returns the matrix product; vectors are rows or columns, leading axes broadcast.

    Raises:
        ShapeError: shapes that do not multiply, numbers.
    """
    return operand("matmul", x1).matmul(operand("matmul", x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Returns the last two axes exchanged."""
    return operand("matrix_transpose", x).mT


def tensordot(x1: Tensor, x2: Tensor, /, axes: Any = 2) -> Tensor:
    """Sums products over `axes` axes (the last of `x1`, the first of `x2`), or over the pairs of axes
    given."""
    return _tensordot(*alike("tensordot", x1, x2), axes)


def vecdot(x1: Tensor, x2: Tensor, /, axis: int = -1) -> Tensor:
    """Returns the product of vectors along an axis of both, the first conjugated; the other axes broadcast.

    Raises:
        ShapeError: vectors of different lengths.
    """
    x1, x2 = alike("vecdot", operand("vecdot", x1), operand("vecdot", x2))
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError(f"vecdot: axis {axis} of shapes {x1.shape} and {x2.shape} differs in length")
    rows, columns = _conjugate(x1).moveaxis(axis, -1).unsqueeze(-2), x2.moveaxis(axis, -1).unsqueeze(-1)
    return (rows @ columns).squeeze((-2, -1))
