"""Products of vectors and matrices, under the names of the array API standard and of `torch.linalg`."""

from typing import Any

from wengert import _core, _tensordot
from wengert._arguments import one_of, operand, operands
from wengert._core import Tensor
from wengert._precision import in_float32, in_low
from wengert.composed.products import chain_matmul
from wengert.composed.shaping import powers_of

__all__ = [
    "cross",
    "diagonal",
    "matmul",
    "matrix_transpose",
    "multi_dot",
    "outer",
    "tensordot",
    "trace",
    "vander",
    "vecdot",
]


def matmul(x1: Any, x2: Any) -> Tensor:
    """Returns the matrix product; see `wengert.matmul`.

    Example:
        >>> wg.linalg.matmul(wg.tensor([[1.0, 2.0]]), wg.tensor([[3.0], [4.0]]))
        tensor([[11.]])
    """
    a, b = operands("matmul", (x1, x2))
    return a.matmul(b)


def cross(x1: Any, x2: Any, *, dim: int = -1, axis: int | None = None) -> Tensor:
    """Returns the cross product of vectors of length 3 along `dim`; the other axes broadcast.

    Raises:
        ShapeError: the two have different numbers of axes, or do not fit.

    Example:
        >>> wg.linalg.cross(wg.tensor([1.0, 0.0, 0.0]), wg.tensor([0.0, 1.0, 0.0]))
        tensor([0., 0., 1.])
    """
    a, b = operands("cross", (x1, x2))
    return a.cross(b, one_of(dim, axis, -1))


def outer(x1: Any, x2: Any) -> Tensor:
    """Returns the outer product of two vectors: `out[i, j] = x1[i] * x2[j]`.

    Example:
        >>> wg.linalg.outer(wg.tensor([1.0, 2.0]), wg.tensor([3.0, 4.0]))
        tensor([[3., 4.],
                [6., 8.]])
    """
    a, b = operands("outer", (x1, x2))
    return a.outer(b)


@in_low
@in_float32
def vecdot(x1: Any, x2: Any, *, dim: int = -1, axis: int | None = None) -> Tensor:
    """Returns the inner products of the vectors along `dim`, `sum(conj(x1) * x2)`; the other axes broadcast.

    Example:
        >>> wg.linalg.vecdot(wg.tensor([[1.0, 2.0], [3.0, 4.0]]), wg.tensor([1.0, 1.0]))
        tensor([3., 7.])
    """
    a, b = operands("vecdot", (x1, x2))
    return (a.conj() * b).sum(one_of(dim, axis, -1))


def tensordot(x1: Any, x2: Any, *, axes: Any = 2) -> Tensor:
    """Sums products over `axes` axes (the last of `x1`, the first of `x2`), or over the pairs of axes given.

    Example:
        >>> wg.linalg.tensordot(wg.ones(2, 3), wg.ones(3, 4), axes=1).shape
        (2, 4)
    """
    return _tensordot.tensordot(x1, x2, axes)


def matrix_transpose(x: Any) -> Tensor:
    """Exchanges the last two axes.

    Example:
        >>> wg.linalg.matrix_transpose(wg.tensor([[1.0, 2.0]]))
        tensor([[1.],
                [2.]])
    """
    x = operand("matrix_transpose", x)
    if x.ndim < 2:
        raise _core.ShapeError(f"matrix_transpose: at least two axes expected, got shape {tuple(x.shape)}")
    return x.mT


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Returns the diagonal of two axes, the last ones by default, as a view with the diagonal as last axis.

    Example:
        >>> wg.linalg.diagonal(wg.tensor([[1.0, 2.0], [3.0, 4.0]]), offset=1)
        tensor([2.])
    """
    return operand("diagonal", A).diagonal(offset, dim1, dim2)


def trace(x: Any, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Returns the sum of the diagonal of the last two axes.

    Example:
        >>> wg.linalg.trace(wg.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor(5.)
    """
    x = operand("trace", x)
    return diagonal(x if dtype is None else x.to(dtype), offset=offset).sum(-1)


def multi_dot(tensors: Any) -> Tensor:
    """Returns the product of several matrices in the order that needs the fewest multiplications; the first
    and the last may be vectors, a row and a column.

    Example:
        >>> wg.linalg.multi_dot([wg.ones(1, 3), wg.ones(3, 2), wg.ones(2, 1)])
        tensor([[6.]])
    """
    factors = operands("multi_dot", tensors)
    if len(factors) < 2:
        raise ValueError(f"multi_dot: at least two tensors expected, got {len(factors)}")
    row, column = factors[0].ndim == 1, factors[-1].ndim == 1
    if row:
        factors[0] = factors[0].unsqueeze(0)
    if column:
        factors[-1] = factors[-1].unsqueeze(1)
    out = chain_matmul(*factors)
    out = out.squeeze(-1) if column else out
    return out.squeeze(0) if row else out


def vander(x: Any, *, N: int | None = None) -> Tensor:
    """Returns the powers `x ** 0, …, x ** (N - 1)` of every element, along a new last axis; by default `N` is
    the length of the last axis of `x`.

    They are cumulative products, so derivatives at 0 are exact.

    Example:
        >>> wg.linalg.vander(wg.tensor([2.0, 3.0]), N=3)
        tensor([[1., 2., 4.],
                [1., 3., 9.]])
    """
    x = operand("vander", x)
    if x.ndim < 1:
        raise _core.ShapeError("vander: at least one axis expected, got shape ()")
    return powers_of(x, x.shape[-1] if N is None else N)
