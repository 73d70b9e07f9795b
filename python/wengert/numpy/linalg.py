"""The standard's extension for linear algebra: `wengert.linalg` with the standard's parameters."""

from typing import Any, NamedTuple

from wengert import _core, linalg as _linalg
from wengert._arguments import operand
from wengert._core import LinAlgError, Tensor

from ._elementwise import alike
from ._products import matmul, matrix_transpose, tensordot, vecdot
from ._reductions import sum as _sum

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]
__dir__ = __all__.copy


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Returns the triangular factor `L` of symmetric positive definite matrices `L @ L.mT`, or `U` of
    `U.mT @ U`.
    """
    return _linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, axis: int = -1) -> Tensor:
    """Returns the cross product of vectors of length 3 along an axis; the other axes broadcast."""
    return _core._cross(*alike("cross", x1, x2), axis)


def det(x: Tensor, /) -> Tensor:
    """Returns the determinants of square matrices."""
    return _linalg.det(x)


def diagonal(x: Tensor, /, offset: int = 0) -> Tensor:
    """Returns the `offset`-th diagonals of matrices in the last two axes."""
    return operand("diagonal", x).diagonal(offset, -2, -1)


def eigh(x: Tensor, /, UPLO: str = "L") -> Any:
    """Returns the eigenvalues and eigenvectors of symmetric matrices: the pair (eigenvalues, eigenvectors).

    Args:
        UPLO: which triangle is read, `"L"` or `"U"`.
    """
    return _linalg.eigh(x, UPLO)


def eigvalsh(x: Tensor, /, UPLO: str = "L") -> Tensor:
    """Returns the eigenvalues of symmetric matrices, ascending; `UPLO` as for `eigh`."""
    return _linalg.eigvalsh(x, UPLO)


def inv(x: Tensor, /) -> Tensor:
    """Returns the inverses of square matrices."""
    return _linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Returns the norms of matrices in the last two axes; `ord` is `"fro"`, `"nuc"`, 1, 2, `inf`, or one of
    these negative.

    None means `"fro"`.
    """
    return _linalg.matrix_norm(x, "fro" if ord is None else ord, keepdims=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Returns the `n`-th powers of square matrices, those of their inverses where `n` is negative."""
    return _linalg.matrix_power(x, n)


def _relative(x: Tensor, rtol: Any) -> Tensor:
    """What counts as zero of the singular values of each matrix, given relative to the largest one."""
    return operand("rtol", rtol).to(x.real.dtype).unsqueeze(-1)


def matrix_rank(x: Tensor, /, tol: Any = None, *, rtol: Any = None) -> Tensor:
    """Returns the ranks of matrices: how many singular values are above `rtol` times the largest.

    Args:
        tol: above which singular values count, absolutely.
        rtol: a number, or one for each matrix; `max(m, n) * eps` by default.
    """
    if not isinstance(rtol, Tensor):
        return _linalg.matrix_rank(x, tol, rtol=rtol)
    values = svdvals(x).detach()
    return _sum(values > _relative(x, rtol) * values.amax(-1, keepdim=True), axis=-1, dtype=_core.int64)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Returns the products of every element of one vector with every element of another:
    `out[i, j] = x1[i] * x2[j]`.
    """
    x1, x2 = alike("outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise _core.ShapeError(f"outer: two vectors expected, got shapes {x1.shape} and {x2.shape}")
    return x1.unsqueeze(1) * x2


def pinv(x: Tensor, /, rcond: Any = None, *, rtol: Any = None) -> Tensor:
    """Returns the pseudo-inverses of matrices; singular values up to `rtol` times the largest count as zero.

    Args:
        rtol: a number, or one for each matrix; `max(m, n) * eps` by default.
        rcond: NumPy's older name of `rtol`.
    """
    rtol = rcond if rtol is None else rtol
    if not isinstance(rtol, Tensor):
        return _linalg.pinv(x, rtol=rtol)
    u, s, vh = svd(x, full_matrices=False)
    kept = s > _relative(x, rtol) * s.amax(-1, keepdim=True)
    inverse = _core.where(kept, 1 / _core.where(kept, s, 1.0), 0.0)
    return (vh.mH * inverse.unsqueeze(-2)) @ u.mH


class QR(NamedTuple):
    """An orthogonal and an upper triangular factor."""

    Q: Tensor
    R: Tensor


def qr(x: Tensor, /, mode: str = "reduced") -> Any:
    """Returns the factors `Q @ R` of matrices; with `mode="complete"`, `Q` is square; with `mode="r"`, `R`
    alone.

    Raises:
        ValueError: another mode.
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: mode must be 'reduced', 'complete' or 'r', got {mode!r}")
    factors = QR(*_linalg.qr(x, mode))
    return factors.R if mode == "r" else factors


def slogdet(x: Tensor, /) -> Any:
    """Returns the signs of determinants and the logarithms of their sizes: the pair (sign, logabsdet)."""
    return _linalg.slogdet(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Returns the solutions of `x1 @ y = x2`, where leading axes broadcast.

    Args:
        x2: one vector where it has one axis, matrices otherwise.
    """
    x1, x2 = alike("solve", operand("solve", x1), operand("solve", x2))
    if x2.ndim == 1:
        return solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    # Matrices with the same leading axes are no vectors to anyone.
    missing = max(x1.ndim - x2.ndim, 0)
    return _linalg.solve(x1, x2.reshape((1,) * missing + x2.shape))


def svd(x: Tensor, /, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Returns the singular value decomposition `U @ diag(S) @ Vh` of matrices: the triple (U, S, Vh); with
    `compute_uv=False`, `S` alone.
    """
    return _linalg.svd(x, full_matrices) if compute_uv else _linalg.svdvals(x)


def svdvals(x: Tensor, /) -> Tensor:
    """Returns the singular values of matrices, descending."""
    return _linalg.svdvals(x)


cond, eig, eigvals = _linalg.cond, _linalg.eig, _linalg.eigvals
lstsq, multi_dot, tensorinv = _linalg.lstsq, _linalg.multi_dot, _linalg.tensorinv


def tensorsolve(a: Tensor, b: Tensor, axes: Any = None) -> Tensor:
    """Returns the solution of `tensordot(a, x, x.ndim) = b`.

    Args:
        axes: those of `a` that are moved behind the others first.
    """
    return _linalg.tensorsolve(a, b, axes)


def norm(x: Tensor, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Returns the norm of vectors along one axis, of matrices in two, or of all elements.

    Args:
        ord: which norm, see `vector_norm` and `matrix_norm`; the root of the sum of squares by default.
    """
    return _linalg.norm(x, ord, axis, keepdims)


def trace(x: Tensor, /, offset: int = 0, *, dtype: Any = None) -> Tensor:
    """Returns the sums of the `offset`-th diagonals of matrices in the last two axes."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """Returns the norm `sum(|x| ** ord) ** (1 / ord)` of vectors along axes, of all elements by default.

    Args:
        ord: any number, `inf` and `-inf` (extrema of `|x|`), or 0 (the count of what is not zero).
    """
    return operand("vector_norm", x).norm(ord, axis, keepdims)
