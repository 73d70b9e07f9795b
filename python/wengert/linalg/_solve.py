"""Systems of equations, inverses, least squares."""

from math import prod
from typing import Any, NamedTuple

from wengert import _core
from wengert._arguments import operand, operands
from wengert._core import Tensor
from wengert._info import finfo
from wengert._precision import in_full

from ._decompose import check_driver, svdvals

__all__ = ["inv", "LeastSquares", "lstsq", "pinv", "solve", "solve_triangular", "tensorinv", "tensorsolve"]


class LeastSquares(NamedTuple):
    """What `lstsq` returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def _is_vector(A: Tensor, B: Tensor) -> bool:
    """Whether right-hand sides are vectors: one axis, or a batch of them that fits the matrices."""
    return B.ndim == 1 or (B.ndim == A.ndim - 1 and tuple(B.shape) == tuple(A.shape[:-1]))


def solve(A: Any, B: Any, *, left: bool = True) -> Tensor:
    """Returns `X` with `A X = B`, or `X A = B` if not `left`, for matrices `A` of `(..., n, n)`.

    `B` is `(..., n, k)`, or a vector `(n,)`, or a batch of vectors with exactly the batch of `A`; batches
    broadcast. VJP: `G_B = solve(A', G)` with the same LU factors, and `G_A = -G_B X'`. Saves `A`, its factors
    and the solution.

    Raises:
        LinAlgError: a matrix is singular: a pivot of its LU factorisation is zero.

    Example:
        >>> wg.linalg.solve(wg.tensor([[2.0, 0.0], [0.0, 4.0]]), wg.tensor([2.0, 2.0]))
        tensor([1.0, 0.5])
    """
    A, B = operands("solve", (A, B))
    vector = _is_vector(A, B)
    if vector:
        B = B.unsqueeze(-1 if left else -2)
    X = _core._solve(A, B, False) if left else _core._solve(A, B.mH, True).mH
    return X.squeeze(-1 if left else -2) if vector else X


def solve_triangular(
    A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Returns `X` with `A X = B`, or `X A = B` if not `left`, where one triangle of `A` `(..., n, n)` is
    read.

    Args:
        upper: whether it is the upper triangle.
        unitriangular: whether the diagonal counts as ones and is not read.

    A zero on the diagonal gives infinities, not an error. Batches broadcast. The gradient of `A` is zero
    where `A` is not read. Saves `A` and the solution.

    Example:
        >>> wg.linalg.solve_triangular(wg.tensor([[2.0, 0.0], [1.0, 1.0]]), wg.tensor([[2.0], [3.0]]), upper=False)
        tensor([[1.],
                [2.]])
    """
    A, B = operands("solve_triangular", (A, B))
    if left:
        return _core._triangular_solve(A, B, upper, unitriangular)
    return _core._triangular_solve(A.mT, B.mT, not upper, unitriangular).mT


def inv(A: Any) -> Tensor:
    """Returns the inverse of matrices `(..., n, n)`. VJP: `-X' G X'`; saves the matrix, its LU factors and
    the inverse.

    Raises:
        LinAlgError: a matrix is singular: a pivot of its LU factorisation is zero.

    Example:
        >>> wg.linalg.inv(wg.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.50, 0.00],
                [0.00, 0.25]])
    """
    return _core._inv(operand("inv", A))


def _cutoffs(A: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """Bounds of what counts as zero: absolute, and relative to the largest singular value. Tensors with axes,
    a number for each matrix, stay tensors."""
    if rtol is None:
        given = atol is not None and (isinstance(atol, Tensor) or atol != 0)
        rtol = 0.0 if given else max(A.shape[-2:]) * finfo(A.dtype).eps
    return _bound(0.0 if atol is None else atol), _bound(rtol)


def _bound(given: Any) -> Any:
    return given.detach() if isinstance(given, Tensor) and given.ndim else float(given)


def _has_eps(A: Tensor) -> bool:
    """Whether numbers of this dtype are rounded."""
    return A.is_floating_point() or A.is_complex()


def pinv(
    A: Any,
    *,
    atol: Any = None,
    rtol: Any = None,
    rcond: Any = None,
    hermitian: bool = False,
) -> Tensor:
    """Returns the Moore-Penrose inverse `(..., n, m)` of matrices `(..., m, n)`, by singular values.

    Args:
        atol: singular values up to this count as zero; a number, or one for each matrix.
        rtol: so do those up to this times the largest; `max(m, n) * eps` by default, 0 where `atol` is given.
        rcond: another name of `rtol`.
        hermitian: whether the matrices are symmetric (Hermitian), of which the lower triangle is read.

    The derivative is that at constant rank. Saves the matrix and the inverse.

    Source: G. Golub, V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems
    whose variables separate", 1973.

    Example:
        >>> wg.linalg.pinv(wg.tensor([[2.0], [0.0]]))
        tensor([[0.5, 0.0]])
    """
    A = operand("pinv", A)
    if A.ndim < 2 or not _has_eps(A):
        return _core._pinv(A, 0.0, 0.0)
    if hermitian:
        A = _mirrored(A)
    absolute, relative = _cutoffs(A, atol, rcond if rtol is None else rtol)
    if not isinstance(absolute, Tensor) and not isinstance(relative, Tensor):
        return _core._pinv(A, absolute, relative)
    # One matrix after the other, each with its own bounds.
    batch = tuple(A.shape[:-2])
    rows = [_core.as_tensor(x).expand(batch).reshape(-1).tolist() for x in (absolute, relative)]
    matrices = A.reshape(-1, *A.shape[-2:])
    inverses = [_core._pinv(matrices[i], *bounds) for i, bounds in enumerate(zip(*rows))]
    if not inverses:
        return A.mH.clone()
    return _core.stack(inverses, 0).reshape(*batch, A.shape[-1], A.shape[-2])


def _mirrored(A: Tensor) -> Tensor:
    """Hermitian matrices from their lower triangles."""
    if A.shape[-1] != A.shape[-2]:
        raise _core.ShapeError(
            f"pinv: square matrices expected where hermitian=True, got shape {tuple(A.shape)}"
        )
    lower, diagonal = A.tril(-1), A.tril() - A.tril(-1)
    return lower + lower.mH + (diagonal + diagonal.mH) / 2


@in_full
def lstsq(A: Any, B: Any, rcond: float | None = None, *, driver: str | None = None) -> LeastSquares:
    """Returns the `X` `(..., n, k)` of least norm among those that make `|A X - B|` least, for `A` of
    `(..., m, n)`.

    Args:
        B: right-hand sides `(..., m, k)`, or vectors as in `solve`.
        rcond: singular values up to this times the largest count as zero; `max(m, n) * eps` by default.
        driver: "gels", "gelsy", "gelsd", "gelss" or None; there is one algorithm, which takes matrices of any
            rank.

    Returns:
        solution; residuals, the squared lengths of `A X - B` (empty unless `m > n`); rank (int64);
        singular_values. The derivative is that at constant rank.

    Raises:
        ShapeError: shapes that do not fit.
        ValueError: another driver.

    Example:
        >>> wg.linalg.lstsq(wg.tensor([[1.0], [1.0]]), wg.tensor([[1.0], [3.0]])).solution
        tensor([[2.]])
    """
    check_driver("lstsq", driver, ("gels", "gelsy", "gelsd", "gelss"))
    A, B = operands("lstsq", (A, B))
    if A.ndim < 2 or B.ndim < 1 or B.shape[-1 if _is_vector(A, B) else -2] != A.shape[-2]:
        raise _core.ShapeError(
            f"lstsq: a matrix of shape {tuple(A.shape)} does not fit right-hand sides of shape "
            f"{tuple(B.shape)}: as many rows expected"
        )
    atol, rtol = _cutoffs(A, None, rcond) if _has_eps(A) else (0.0, 0.0)
    vector = _is_vector(A, B)
    right = B.unsqueeze(-1) if vector else B
    factor = _balance(A)
    balanced = A * factor
    solution = _core._pinv(balanced, atol, rtol) @ right * factor
    values = svdvals(balanced)
    rank = _count(values, atol, rtol)
    if A.shape[-2] > A.shape[-1]:
        residuals = (A @ solution - right).abs().square().sum(-2)
        residuals = residuals.squeeze(-1) if vector else residuals
    else:
        residuals = _core.zeros(0, dtype=solution.dtype, device=solution.device)
    values = values / factor.squeeze(-1)
    return LeastSquares(solution.squeeze(-1) if vector else solution, residuals, rank, values)


def _balance(A: Tensor) -> Tensor:
    """Powers of two, shape `(..., 1, 1)`, that bring a very small or very large matrix near one, so that its
    inverse stays within the dtype.
    """
    if A.numel() == 0:
        return _core.ones((*A.shape[:-2], 1, 1), dtype=A.abs().dtype, device=A.device)
    far = 2.0**511 if A.dtype.itemsize // (2 if A.dtype.is_complex else 1) == 8 else 2.0**63
    largest = A.detach().abs().amax((-2, -1), keepdim=True)
    one = _core.ones_like(largest)
    return _core.where(largest < 1 / far, one * far, _core.where(largest > far, one / far, one))


def _count(values: Tensor, atol: Any, rtol: Any) -> Tensor:
    """How many singular values are more than zero."""
    if values.shape[-1] == 0:
        return (values > 0).sum(-1)
    atol, rtol = (x.unsqueeze(-1) if isinstance(x, Tensor) else x for x in (atol, rtol))
    least = (values.amax(-1, keepdim=True) * rtol).clamp(min=atol)
    return (values > least).sum(-1)


def tensorsolve(A: Any, B: Any, dims: Any = None) -> Tensor:
    """Returns `X` with `tensordot(A, X, X.ndim) = B`: `A` is a square matrix in whose rows the axes of `B`
    are one.

    Args:
        dims: axes of `A` that go to its end first.

    Example:
        >>> wg.linalg.tensorsolve(wg.eye(4).reshape(2, 2, 4), wg.ones(2, 2))
        tensor([1., 1., 1., 1.])
    """
    A, B = operands("tensorsolve", (A, B))
    if dims is not None:
        moved = [d % A.ndim for d in dims]
        A = A.permute(*(i for i in range(A.ndim) if i not in moved), *moved)
    shape = tuple(A.shape[B.ndim :])
    if prod(shape) != prod(A.shape[: B.ndim]) or tuple(A.shape[: B.ndim]) != tuple(B.shape):
        raise _core.ShapeError(
            f"tensorsolve: a tensor of shape {tuple(A.shape)} is no square matrix for right-hand sides of "
            f"shape {tuple(B.shape)}"
        )
    n = prod(shape)
    return solve(A.reshape(n, n), B.reshape(n)).reshape(shape)


def tensorinv(A: Any, ind: int = 2) -> Tensor:
    """Returns the inverse for `tensordot(A, …, ind)`: the first `ind` axes of `A` are the rows of a square
    matrix.

    Example:
        >>> wg.linalg.tensorinv(wg.eye(4).reshape(2, 2, 4), ind=2).shape
        (4, 2, 2)
    """
    A = operand("tensorinv", A)
    front, back = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if ind < 1 or prod(front) != prod(back):
        raise _core.ShapeError(
            f"tensorinv: the first {ind} axes of shape {tuple(A.shape)} and the others make no square matrix"
        )
    n = prod(front)
    return inv(A.reshape(n, n)).reshape(*back, *front)
