"""Factors as LAPACK packs them, under PyTorch's older names, and approximations of low rank.

`wengert.composed.packed` has the methods, and what they say of themselves.
"""

from typing import Any, NamedTuple

from wengert import _core
from wengert._arguments import operand, operands
from wengert._core import Tensor
from wengert._precision import in_full

from ._checked import lu_factor_ex
from ._decompose import (
    _check_pivot,
    _order,
    lu_factor,
    qr,
    svd,
)
from ._solve import solve_triangular

__all__ = [
    "geqrf",
    "lu",
    "lu_unpack",
    "ormqr",
    "pca_lowrank",
    "svd_lowrank",
    "triangular_solve",
]


class Reflections(NamedTuple):
    """`R` in the upper triangle, the vectors of the reflections below it, and their factors."""

    a: Tensor
    tau: Tensor


class Triangular(NamedTuple):
    """The solution, and a copy of the matrix."""

    solution: Tensor
    cloned_coefficient: Tensor


class Unpacked(NamedTuple):
    """`A = P L U`."""

    P: Tensor
    L: Tensor
    U: Tensor


def lu(A: Any, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """Returns what the method `lu` does."""
    _check_pivot("lu", pivot)
    return tuple(lu_factor_ex(A)) if get_infos else tuple(lu_factor(A))


def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Unpacked:
    """Returns the `P`, `L` and `U` that `lu_factor` packed, with `A = P L U`.

    Args:
        LU_data: the factors, `(..., m, n)`.
        LU_pivots: the row exchanges, `(..., min(m, n))`, counted from 1.
        unpack_data: whether to return `L` `(..., m, k)` and `U` `(..., k, n)`; otherwise they are empty.
        unpack_pivots: whether to return `P` `(..., m, m)`; otherwise it is empty.

    Example:
        >>> wg.lu_unpack(*wg.linalg.lu_factor(wg.tensor([[1.0, 2.0], [2.0, 2.0]]))).L
        tensor([[1.0, 0.0],
                [0.5, 1.0]])
    """
    packed = operand("lu_unpack", LU_data)
    m, n = _matrix("lu_unpack", packed)
    k = min(m, n)
    empty = _core.zeros(0, dtype=packed.dtype, device=packed.device)
    permutation, lower, upper = empty, empty, empty
    if unpack_pivots:
        pivots = operand("lu_unpack", LU_pivots)
        # Rows behind the last pivot stay where they are.
        rest = _core.arange(k + 1, m + 1, dtype=pivots.dtype, device=pivots.device)
        pivots = _core.cat([pivots, rest.expand(*pivots.shape[:-1], m - k)], -1)
        rows = _core.arange(0, m, dtype=_core.int64, device=packed.device)
        permutation = (_order(pivots).unsqueeze(-2) == rows.unsqueeze(-1)).to(packed.dtype)
    if unpack_data:
        lower = packed.narrow(-1, 0, k).tril(-1) + _core.eye(m, k, dtype=packed.dtype, device=packed.device)
        upper = packed.narrow(-2, 0, k).triu()
    return Unpacked(permutation, lower, upper)


def _matrix(name: str, x: Tensor) -> tuple[int, int]:
    """The lengths of the last two axes; raises where there are fewer."""
    if x.ndim < 2:
        raise _core.ShapeError(f"{name}: matrices expected, got shape {tuple(x.shape)}")
    return x.shape[-2], x.shape[-1]


def triangular_solve(
    b: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Triangular:
    """Returns what the method does."""
    A, b = operands("triangular_solve", (A, b))
    turned, is_upper = (A.mT, not upper) if transpose else (A, upper)
    return Triangular(solve_triangular(turned, b, upper=is_upper, unitriangular=unitriangular), A.clone())


@in_full
def geqrf(input: Any) -> Reflections:
    """Returns what the method does."""
    given = operand("geqrf", input)
    m, n = _matrix("geqrf", given)
    given = given if given.dtype.is_differentiable else given.float()
    rest, columns, factors = given, [], []
    top: list[Tensor] = []
    for i in range(min(m, n)):
        x = rest.narrow(-1, 0, 1)
        vector, tau, corner = _reflection(x)
        after = rest.narrow(-1, 1, n - i - 1)
        after = after - tau.conj() * (vector @ (vector.mH @ after))
        columns.append(
            _core.cat([*[row.narrow(-1, 0, 1) for row in top], corner, vector.narrow(-2, 1, m - i - 1)], -2)
        )
        top = [row.narrow(-1, 1, n - i - 1) for row in top] + [after.narrow(-2, 0, 1)]
        rest = after.narrow(-2, 1, m - i - 1)
        factors.append(tau.squeeze(-1))
    if n > m:
        columns.append(_core.cat(top, -2) if top else rest)
    packed = _core.cat(columns, -1) if columns else given
    taus = _core.cat(factors, -1) if factors else given.new_zeros((*given.shape[:-2], 0))
    return Reflections(packed, taus)


def _reflection(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The vector, with 1 in front, and factor of the reflection that leaves of a column its first element,
    and that.

    Nothing is reflected where the others are zero already (and the first one is real).
    """
    first, others = x.narrow(-2, 0, 1), x.narrow(-2, 1, x.shape[-2] - 1)
    real = first.real
    tail = (others.abs() ** 2).sum(-2, keepdim=True)
    done = tail == 0
    if x.is_complex():
        done = done.logical_and(first.imag == 0)
    size = ((first.abs() ** 2) + tail).masked_fill(done, 1.0).sqrt()
    corner = _core.where(real < 0, size, -size)
    corner = _core.where(done, first, corner.to(x.dtype))
    divisor = (first - corner).masked_fill(done, 1.0)
    tau = ((corner - first) / corner.masked_fill(done, 1.0)).masked_fill(done, 0.0)
    vector = _core.cat([_core.ones_like(first), others / divisor], -2)
    return vector, tau, corner


@in_full
def ormqr(input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Tensor:
    """Returns what the method does."""
    a, tau, x = operands("ormqr", (input, tau, other))
    m, n = _matrix("ormqr", a)
    if tau.ndim < 1 or tau.shape[-1] > min(m, n) or x.ndim < 2 or x.shape[-2 if left else -1] != m:
        raise _core.ShapeError(
            f"ormqr: reflections of shape {tuple(a.shape)} with factors {tuple(tau.shape)} do not fit "
            f"matrices of shape {tuple(x.shape)}; expected at most one factor per column, and {m} "
            f"{'rows' if left else 'columns'}"
        )
    if not left:
        return ormqr(a, tau, x.mH, True, not transpose).mH
    vectors = a.tril(-1) + _core.eye(m, n, dtype=a.dtype, device=a.device)
    order = range(tau.shape[-1])
    for i in order if transpose else reversed(order):
        v = vectors.narrow(-1, i, 1)
        factor = tau.narrow(-1, i, 1).unsqueeze(-1)
        x = x - (factor.conj() if transpose else factor) * (v @ (v.mH @ x))
    return x


def svd_lowrank(A: Any, q: int = 6, niter: int = 2, M: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """Returns `U`, `S` and `V` with `U diag(S) V'` close to `A` (less `M`), of rank `q` at most.

    The range of `A` is found by its products with `q` random vectors and `niter` rounds of subspace iteration
    (N. Halko, P. Martinsson, J. Tropp, "Finding structure with randomness", 2009, algorithms 4.4 and 5.1).

    Args:
        A: matrices `(..., m, n)`.
        q: the number of singular values, at most `min(m, n)`; a little more than the rank that is wanted.
        niter: rounds of subspace iteration, which add digits where singular values decay slowly.
        M: what is subtracted from `A`; broadcasts with it.

    Returns:
        `U` `(..., m, q)`, `S` `(..., q)` in descending order, and `V` `(..., n, q)`.

    Raises:
        ValueError: for `q` or `niter` out of range.

    Example:
        >>> wg.svd_lowrank(wg.ones(4, 3), q=1)[1]
        tensor([3.4641])
    """
    x = operand("svd_lowrank", A)
    m, n = _matrix("svd_lowrank", x)
    x = x if M is None else x - operand("svd_lowrank", M, x)
    if not 0 <= q <= min(m, n):
        raise ValueError(f"svd_lowrank: q must be between 0 and {min(m, n)}, got {q}")
    if niter < 0:
        raise ValueError(f"svd_lowrank: niter must not be negative, got {niter}")
    basis = qr(x @ _core.randn(n, q, dtype=x.dtype, device=x.device)).Q
    for _ in range(niter):
        basis = qr(x @ qr(x.mH @ basis).Q).Q
    u, s, vh = svd(basis.mH @ x, False)
    return basis @ u, s, vh.mH


def pca_lowrank(
    A: Any, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the principal components of the rows of matrices `(..., m, n)`: `svd_lowrank` of `A` less the
    mean of its rows.

    Args:
        A: one observation per row.
        q: the number of components, at most `min(m, n)`; by default 6, or that.
        center: whether to subtract the means.
        niter: see `svd_lowrank`.

    Returns:
        `U`, `S` and `V`: the columns of `V` are the components, and `S**2 / (m - 1)` their variances.

    Raises:
        ValueError: for `q` or `niter` out of range.

    Example:
        >>> wg.pca_lowrank(wg.tensor([[0.0, 1.0], [2.0, 1.0]]), q=1)[1]
        tensor([1.4142])
    """
    x = operand("pca_lowrank", A)
    m, n = _matrix("pca_lowrank", x)
    count = min(6, m, n) if q is None else q
    if not 0 <= count <= min(m, n):
        raise ValueError(f"pca_lowrank: q must be between 0 and {min(m, n)}, got {q}")
    return svd_lowrank(x - x.mean(-2, keepdim=True) if center else x, count, niter)
