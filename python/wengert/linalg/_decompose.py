"""Factorisations, with named parts."""

from typing import Any, NamedTuple

from wengert import _core
from wengert._arguments import operand
from wengert._core import LinAlgError, Tensor
from wengert._precision import in_full

__all__ = [
    "cholesky",
    "eig",
    "Eigen",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "lu",
    "lu_factor",
    "lu_solve",
    "LuFactors",
    "LuParts",
    "qr",
    "QrParts",
    "svd",
    "SvdParts",
    "svdvals",
]


class QrParts(NamedTuple):
    """`A = Q R`."""

    Q: Tensor
    R: Tensor


class LuParts(NamedTuple):
    """`A = P L U`."""

    P: Tensor
    L: Tensor
    U: Tensor


class LuFactors(NamedTuple):
    """`L` and `U` in one matrix, and the row exchanges."""

    LU: Tensor
    pivots: Tensor


class Eigen(NamedTuple):
    """`A V = V diag(w)`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SvdParts(NamedTuple):
    """`A = U diag(S) Vh`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(A: Any, *, upper: bool = False) -> Tensor:
    """Returns the lower triangular `L` with `A = L L'` of symmetric positive definite matrices `(..., n, n)`.

    Of complex matrices `L'` is the adjoint, here and in what follows. Only the lower triangle is read; with
    `upper`, only the upper one, and the result is `L'`. The gradient is symmetric: that along symmetric
    matrices. Saves the factor.

    Raises:
        LinAlgError: a matrix is not positive definite; names the minor that is not positive.

    Source: I. Murray, "Differentiation of the Cholesky decomposition", 2016.

    Example:
        >>> wg.linalg.cholesky(wg.tensor([[4.0, 2.0], [2.0, 2.0]]))
        tensor([[2., 0.],
                [1., 1.]])
    """
    A = operand("cholesky", A)
    if upper and A.ndim >= 2:
        return _core._cholesky(A.mH).mH
    return _core._cholesky(A)


def qr(A: Any, mode: str = "reduced") -> QrParts:
    """Returns `Q` with orthonormal columns and the upper triangular `R` with `A = Q R`, of matrices
    `(..., m, n)`.

    Args:
        mode: `"reduced"` gives `Q` of `(m, k)` and `R` of `(k, n)` with `k = min(m, n)`; `"complete"` a
            square `Q` and `R` of `(m, n)`; `"r"` the reduced `R` alone, with an empty `Q`.

    The signs are LAPACK's; of complex matrices `R` has a real diagonal. Derivatives need the first `k`
    columns to be independent. A complete `Q` has `m - n` columns that may be any basis of what is left: only
    what does not depend on the choice has a derivative. Saves `Q` and `R`.

    Example:
        >>> [f.shape for f in wg.linalg.qr(wg.ones(3, 2))]
        [(3, 2), (2, 2)]
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: mode must be 'reduced', 'complete' or 'r', got {mode!r}")
    q, r = _core._qr(operand("qr", A), mode == "complete")
    return QrParts(_core.zeros(0, dtype=q.dtype, device=q.device) if mode == "r" else q, r)


def lu_factor(A: Any, *, pivot: bool = True) -> LuFactors:
    """Returns the LU factorisation of matrices `(..., m, n)` for `lu_solve`: `L`, without its diagonal of
    ones, below `U`.

    `pivots` (int32, `(..., min(m, n))`) are the row exchanges as LAPACK counts them: row `i` and row
    `pivots[i] - 1`. Derivatives need the first `min(m, n)` columns to be independent. Saves the factors and
    the order of the rows. Inside `vmap`, where values cannot be read, singular matrices are factorised too.

    Raises:
        LinAlgError: a pivot is zero, so that `lu_solve` would divide by it; `lu_factor_ex` returns the
            factors and says which one it is.
        ValueError: `pivot` is false: without exchanges of rows the factors are not accurate.

    Example:
        >>> wg.linalg.lu_factor(wg.tensor([[2.0, 1.0], [1.0, 3.0]])).LU
        tensor([[2.0, 1.0],
                [0.5, 2.5]])
    """
    _check_pivot("lu_factor", pivot)
    packed, _, exchanges = _core._lu(operand("lu_factor", A))
    try:
        singular = not packed.detach().diagonal(0, -2, -1).all()
    except TypeError:  # values that differ between the examples of a batch
        singular = False
    if singular:
        raise LinAlgError(
            f"lu_factor: pivot {int(zero_pivot(packed).max())} of the LU factorisation of a matrix is zero, "
            "so the matrix is singular; lu_factor_ex returns its factors"
        )
    return LuFactors(packed, exchanges)


def zero_pivot(packed: Tensor) -> Tensor:
    """The number of the first zero on the diagonal, or 0."""
    zero = packed.detach().diagonal(0, -2, -1) == 0
    if zero.shape[-1] == 0:
        return zero.any(-1).to(_core.int32)
    return _core.where(zero.any(-1), zero.to(_core.int32).argmax(-1).to(_core.int32) + 1, 0).to(_core.int32)


def _check_pivot(name: str, pivot: bool) -> None:
    if not pivot:
        raise ValueError(f"{name}: pivot must be True: without row exchanges the factors are not accurate")


def lu(A: Any, *, pivot: bool = True) -> LuParts:
    """Returns the permutation `P` `(m, m)`, `L` `(m, k)` with ones on its diagonal and `U` `(k, n)` with
    `A = P L U`, where `k = min(m, n)`; see `lu_factor`.

    Example:
        >>> wg.linalg.lu(wg.tensor([[1.0, 2.0], [2.0, 2.0]])).U
        tensor([[2., 2.],
                [0., 1.]])
    """
    _check_pivot("lu", pivot)
    packed, order, _ = _core._lu(operand("lu", A))
    m, n = packed.shape[-2:]
    k = min(m, n)
    rows = _core.arange(0, m, dtype=order.dtype, device=packed.device)
    permutation = (order.unsqueeze(-2) == rows.unsqueeze(-1)).to(packed.dtype)
    lower = packed.narrow(-1, 0, k).tril(-1) + _core.eye(m, k, dtype=packed.dtype, device=packed.device)
    return LuParts(permutation, lower, packed.narrow(-2, 0, k).triu())


def _order(pivots: Tensor) -> Tensor:
    """The permutation that the exchanges make of the rows."""
    n = pivots.shape[-1]
    # The dtype of indices where they lie.
    dtype = _core.int64 if pivots.device == "cpu" else _core.int32
    pivots = pivots.to(dtype) - 1
    order = _core.arange(0, n, dtype=dtype, device=pivots.device).expand(*pivots.shape) + pivots * 0
    for i in range(n):
        here = _core.full_like(pivots.narrow(-1, 0, 1), i)
        there = pivots.narrow(-1, i, 1)
        first, second = order.gather(-1, here), order.gather(-1, there)
        order = order.scatter(-1, there, first).scatter(-1, here, second)
    return order


def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """Returns `X` with `A X = B`, from `lu_factor(A)`: square factors `(..., n, n)`, right-hand sides
    `(..., n, k)`.

    With `left=False` it is `X A = B`, with `adjoint` the transpose of `A`, conjugated where it is complex.
    Batches broadcast. Gradients reach `LU` and `B`.

    Example:
        >>> factors, pivots = wg.linalg.lu_factor(wg.tensor([[2.0, 0.0], [0.0, 4.0]]))
        >>> wg.linalg.lu_solve(factors, pivots, wg.tensor([[2.0], [8.0]]))
        tensor([[1.],
                [2.]])
    """
    factors, right = operand("lu_solve", LU), operand("lu_solve", B)
    if not left:
        return lu_solve(factors, pivots, right.mH, adjoint=not adjoint).mH
    order = _order(operand("lu_solve", pivots))
    index = order.unsqueeze(-1)
    if adjoint:
        y = _core._triangular_solve(factors.mH, right, False, False)
        y = _core._triangular_solve(factors.mH, y, True, True)
        return _rows(y, index.argsort(-2))
    y = _core._triangular_solve(factors, _rows(right, index), False, True)
    return _core._triangular_solve(factors, y, True, False)


def _rows(x: Tensor, index: Tensor) -> Tensor:
    """The rows of `x` that a column of indices names; batches broadcast."""
    from wengert._functions import broadcast_shapes

    batch = broadcast_shapes(tuple(x.shape[:-2]), tuple(index.shape[:-2]))
    x = x.expand(*batch, *x.shape[-2:])
    return x.gather(-2, index.expand(*x.shape))


def eigh(A: Any, UPLO: str = "L") -> Eigen:
    """Returns the eigenvalues `(..., n)` in ascending order and eigenvectors, the columns of `(..., n, n)`,
    of symmetric matrices.

    Complex matrices are Hermitian, and their eigenvalues real. One triangle is read: the lower one
    (`UPLO="L"`) or the upper one (`"U"`). The gradient is symmetric. Eigenvectors are determined up to their
    sign, or their phase; only functions that do not depend on it have a derivative. Eigenvalues that differ
    by no more than `n * eps` times the largest count as equal; between their vectors no derivative flows, so
    that functions of the eigenvalues alone have the right one. Saves both results.

    Raises:
        LinAlgError: an element is not finite.

    Example:
        >>> wg.linalg.eigh(wg.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        tensor([1., 2.])
    """
    if UPLO not in ("L", "U", "l", "u"):
        raise ValueError(f"eigh: UPLO must be 'L' or 'U', got {UPLO!r}")
    A = operand("eigh", A)
    return Eigen(*_core._eigh(A.mH if UPLO in "Uu" and A.ndim >= 2 else A))


def eigvalsh(A: Any, UPLO: str = "L") -> Tensor:
    """Returns the eigenvalues of symmetric matrices in ascending order; see `eigh`.

    Example:
        >>> wg.linalg.eigvalsh(wg.tensor([[2.0, 1.0], [1.0, 2.0]]))
        tensor([1., 3.])
    """
    return eigh(A, UPLO).eigenvalues


def eig(A: Any) -> Eigen:
    """Returns the eigenvalues `(..., n)` and eigenvectors of length 1, the columns of `(..., n, n)`, of any
    square matrices.

    Both are complex, of real matrices as well, whose eigenvalues are real or come in conjugate pairs.
    Eigenvalues are in no particular order. Eigenvectors are determined up to a factor of size 1; only
    functions that do not depend on it have a derivative. Equal eigenvalues are as in `eigh`. Saves both
    results.

    Raises:
        LinAlgError: an element is not finite; or, from a derivative, the eigenvectors are no basis.

    Source: M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
    differentiation", 2008; the lengths of the vectors as in C. Boeddeker et al., "On the computation of
    complex-valued gradients with application to statistically optimum beamforming", 2017.

    Example:
        >>> wg.linalg.eig(wg.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
        tensor([0.+1.j, 0.-1.j])
    """
    return Eigen(*_core._eig(operand("eig", A)))


def eigvals(A: Any) -> Tensor:
    """Returns the eigenvalues of square matrices, complex and in no particular order; see `eig`.

    Example:
        >>> wg.linalg.eigvals(wg.tensor([[0.0, -1.0], [1.0, 0.0]])).abs()
        tensor([1., 1.])
    """
    return eig(A).eigenvalues


def check_driver(name: str, driver: str | None, known: tuple[str, ...]) -> None:
    """Raises for a driver that is none of LAPACK's for this task."""
    if driver is not None and driver not in known:
        raise ValueError(f"{name}: driver must be one of {', '.join(known)} or None, got {driver!r}")


def svd(A: Any, full_matrices: bool = True, *, driver: str | None = None) -> SvdParts:
    """Returns `A = U diag(S) Vh` of matrices `(..., m, n)`, with singular values in descending order.

    Args:
        full_matrices: whether `U` is `(m, m)` and `Vh` `(n, n)`; otherwise they have `k = min(m, n)` columns
            and rows.
        driver: "gesvd", "gesvdj", "gesvda" or None; there is one algorithm, divide and conquer on a
            bidiagonal matrix.

    Singular values are real; those that are small beside the largest have its rounding errors. Vectors are
    determined up to a common sign, or phase, and only functions that do not depend on it have a derivative.
    Singular values that differ by no more than `max(m, n) * eps` times the largest count as equal; between
    their vectors no derivative flows but that of `U @ Vh`. Saves all results.

    Raises:
        LinAlgError: an element is not finite.
        ValueError: another driver.

    Example:
        >>> wg.linalg.svd(wg.tensor([[3.0, 0.0], [0.0, 4.0]])).S
        tensor([4., 3.])
    """
    check_driver("svd", driver, ("gesvd", "gesvdj", "gesvda"))
    u, s, vh = _core._svd(operand("svd", A))
    if full_matrices:
        u, vh = _completed(u), _completed(vh.mH).mH
    return SvdParts(u, s, vh)


def _completed(u: Tensor) -> Tensor:
    """Orthonormal columns, with those of a basis of the rest behind them."""
    m, k = u.shape[-2:]
    if m == k:
        return u
    q, _ = _core._qr(u, True)
    return _core.cat([u, q.narrow(-1, k, m - k)], -1)


def svdvals(A: Any, *, driver: str | None = None) -> Tensor:
    """Returns the singular values in descending order; see `svd`.

    Example:
        >>> wg.linalg.svdvals(wg.tensor([[3.0, 0.0], [0.0, -4.0]]))
        tensor([4., 3.])
    """
    return svd(A, False, driver=driver).S


@in_full
def householder_product(A: Any, tau: Any) -> Tensor:
    """Returns the first `n` columns of the product of reflections `I - tau[i] v v'`, where `v` is column `i`
    of `A` `(..., m, n)` below its diagonal, with a 1 on it; LAPACK's `orgqr`.

    Example:
        >>> wg.linalg.householder_product(wg.tensor([[1.0], [0.0]]), wg.tensor([2.0]))
        tensor([[-1.],
                [ 0.]])
    """
    A, tau = operand("householder_product", A), operand("householder_product", tau)
    if A.ndim < 2 or A.shape[-2] < A.shape[-1] or tau.ndim < 1 or tau.shape[-1] > A.shape[-1]:
        raise _core.ShapeError(
            f"householder_product: tall matrices and at most one tau per column expected, got shapes "
            f"{tuple(A.shape)} and {tuple(tau.shape)}"
        )
    eye = _core.eye(*A.shape[-2:], dtype=A.dtype, device=A.device)
    vectors = A.tril(-1) + eye
    q = eye + 0 * A.detach()
    for i in reversed(range(tau.shape[-1])):
        v = vectors.narrow(-1, i, 1)
        q = q - tau.narrow(-1, i, 1).unsqueeze(-1) * (v @ (v.mH @ q))
    return q
