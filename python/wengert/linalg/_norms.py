"""Norms of vectors and matrices, and what singular values say of a matrix."""

from math import inf
from typing import Any

from wengert import _core
from wengert._arguments import one_of, operand
from wengert._core import Tensor

from ._decompose import eigvalsh, svdvals
from ._solve import _count, _cutoffs, inv

__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]

_MATRIX_NORMS = ("fro", "nuc", inf, -inf, 1, -1, 2, -2)


def vector_norm(
    x: Any,
    ord: float = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = None,
) -> Tensor:
    """Returns the `ord`-norm of the elements along `dim`, or of all: `sum(abs(x) ** ord) ** (1 / ord)`.

    `ord` may be any number; `inf` and `-inf` are the largest and the smallest magnitude, 0 counts what is not
    zero. The gradient at zero is zero.

    Example:
        >>> wg.linalg.vector_norm(wg.tensor([3.0, -4.0]), ord=1)
        tensor(7.)
    """
    x = operand("vector_norm", x)
    x = x if dtype is None else x.to(dtype)
    dim, keepdim = one_of(dim, axis), (keepdim if keepdims is None else keepdims)
    return x.norm(ord, dim, keepdim)


def matrix_norm(
    A: Any,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    keepdims: bool | None = None,
    dtype: Any = None,
) -> Tensor:
    """Returns a norm of the matrices that lie along the two axes `dim`.

    Args:
        ord: `"fro"`, the root of the sum of squares; `"nuc"`, the sum of the singular values; 2 and -2, the
            largest and the smallest of them; 1 and -1, the largest and the smallest sum of magnitudes of a
            column; `inf` and `-inf`, the same of a row.

    Example:
        >>> wg.linalg.matrix_norm(wg.tensor([[1.0, -2.0], [3.0, 4.0]]), ord=1)
        tensor(6.)
    """
    A = operand("matrix_norm", A)
    A = A.to(dtype) if dtype is not None else A if A.dtype.is_differentiable else A.float()
    keepdim = keepdim if keepdims is None else keepdims
    if A.ndim < 2 or len(dim) != 2:
        raise _core.ShapeError(
            f"matrix_norm: two axes of a matrix expected, got dim {dim} of shape {tuple(A.shape)}"
        )
    if ord not in _MATRIX_NORMS:
        raise ValueError(
            f"matrix_norm: ord must be one of 'fro', 'nuc', inf, -inf, 1, -1, 2, -2, got {ord!r}"
        )
    rows, columns = (d % A.ndim for d in dim)
    matrix = A.movedim((rows, columns), (-2, -1))
    if ord == "fro":
        out = matrix.norm(2, (-2, -1))
    elif ord == "nuc":
        out = svdvals(matrix).sum(-1)
    elif abs(ord) == 2:
        out = _extreme(svdvals(matrix), ord)
    else:
        sums = matrix.abs().sum(-2 if abs(ord) == 1 else -1)
        out = _extreme(sums, ord)
    for axis in sorted((rows, columns)) if keepdim else ():
        out = out.unsqueeze(axis)
    return out


def _extreme(sizes: Tensor, ord: float) -> Tensor:
    """The largest, or for a negative order the smallest, along the last axis. A norm of nothing is 0."""
    if ord < 0:
        return sizes.amin(-1)
    return sizes.amax(-1) if sizes.shape[-1] else sizes.sum(-1)


def norm(
    A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, axis: Any = None, dtype: Any = None
) -> Tensor:
    """Returns a vector norm or a matrix norm.

    With neither `ord` nor `dim`, or with one axis, it is `vector_norm`; with two axes, or a matrix and an
    `ord`, `matrix_norm`.

    Example:
        >>> wg.linalg.norm(wg.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(5.)
    """
    A = operand("norm", A)
    dim = one_of(dim, axis)
    if dim is None and ord is None:
        return vector_norm(A, 2, None, keepdim, dtype=dtype)
    if dim is None and A.ndim not in (1, 2):
        raise _core.ShapeError(
            f"norm: with ord and without dim a vector or a matrix is expected, got shape {tuple(A.shape)}"
        )
    pair = (dim is None and A.ndim == 2) or (dim is not None and not isinstance(dim, int) and len(dim) == 2)
    if pair:
        return matrix_norm(
            A, "fro" if ord is None else ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype
        )
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def cond(A: Any, p: Any = None) -> Tensor:
    """Returns the condition number of matrices: the norm of `A` times that of its inverse.

    By default, and for `p` 2 and -2, it is the ratio of the largest and the smallest singular value, and the
    matrices need not be square. Infinite for a singular matrix, 0 for one without elements.

    Example:
        >>> wg.linalg.cond(wg.tensor([[4.0, 0.0], [0.0, 2.0]]))
        tensor(2.)
    """
    A = operand("cond", A)
    if A.ndim > 1 and A.shape[-1] == A.shape[-2] == 0:
        return _core.zeros(A.shape[:-2], dtype=A.abs().dtype, device=A.device)
    if p is None or p in (2, -2):
        values = svdvals(A)
        most, least = values.amax(-1), values.amin(-1)
        return least / most if p == -2 else most / least
    return matrix_norm(A, p) * matrix_norm(inv(A), p)


def matrix_rank(
    A: Any,
    tol: Any = None,
    *,
    atol: Any = None,
    rtol: Any = None,
    hermitian: bool = False,
) -> Tensor:
    """Returns how many singular values are not zero, as int64.

    Args:
        tol, atol: singular values up to this count as zero; a number, or one for each matrix.
        rtol: so do those up to this times the largest; `max(m, n) * eps` by default, 0 where `atol` is given.
        hermitian: whether the matrices are symmetric and eigenvalues do.

    Example:
        >>> wg.linalg.matrix_rank(wg.tensor([[1.0, 2.0], [2.0, 4.0]]))
        tensor(1)
    """
    A = operand("matrix_rank", A).detach()
    values = eigvalsh(A).abs() if hermitian else svdvals(A)
    return _count(values, *_cutoffs(A, atol if tol is None else tol, rtol))
