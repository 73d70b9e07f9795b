"""Factorisations and solutions that report failure in a tensor instead of raising.

`info` is int32 with one number per matrix: 0, or the order of the minor or pivot that is at fault, as LAPACK
counts from 1. What cannot be computed is NaN, and has no gradient; the other matrices of a batch are not
concerned.
"""

import contextlib
from typing import Any, NamedTuple

from wengert import _core
from wengert._arguments import operand, operands
from wengert._core import LinAlgError, Tensor
from wengert._info import finfo

from ._decompose import _check_pivot, cholesky, zero_pivot
from ._solve import inv, solve

__all__ = ["cholesky_ex", "inv_ex", "lu_factor_ex", "solve_ex"]


class CholeskyChecked(NamedTuple):
    """The factor, and where there is none."""

    L: Tensor
    info: Tensor


class InverseChecked(NamedTuple):
    """The inverse, and where there is none."""

    inverse: Tensor
    info: Tensor


class SolutionChecked(NamedTuple):
    """The solution, and where the matrix has none."""

    result: Tensor
    info: Tensor


class LuChecked(NamedTuple):
    """The factors, the row exchanges, and which pivot is zero."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False) -> CholeskyChecked:
    """Returns `cholesky(A)`, and for each matrix `(..., n, n)` 0 or the order of the leading minor that is
    not positive.

    Args:
        A: symmetric (Hermitian) matrices.
        upper: whether the upper triangle is read, and the factor is upper triangular.
        check_errors: whether to raise, as `cholesky` does.

    Returns:
        The factor, NaN where there is none, and the int32 tensor `info` `(...)`. Where only rounding decides
        whether a matrix is singular, others of its batch that are as close to it may be reported with it.

    Raises:
        LinAlgError: with `check_errors`, a matrix is not positive definite.

    Example:
        >>> wg.linalg.cholesky_ex(wg.tensor([[[4.0]], [[-1.0]]])).info
        tensor([0, 1], dtype=int32)
    """
    A = operand("cholesky_ex", A)
    try:
        factor = cholesky(A, upper=upper)
    except LinAlgError:
        if check_errors:
            raise
    else:
        return CholeskyChecked(factor, _no_fault(A))
    # Rounding may differ from that of the factorisation: then what is almost singular is at fault, or all
    # are.
    eps = A.shape[-1] * finfo(A.dtype).eps
    for slack in (0.0, eps, 30 * eps, 1000 * eps):
        info = _first_minor(A.detach(), upper, slack)
        with contextlib.suppress(LinAlgError):
            return CholeskyChecked(_marked(cholesky(_replaced(A, info), upper=upper), info), info)
    info = _first_minor(A.detach(), upper, 1.0)
    return CholeskyChecked(_marked(cholesky(_replaced(A, info), upper=upper), info), info)


def inv_ex(A: Any, *, check_errors: bool = False) -> InverseChecked:
    """Returns `inv(A)`, and for each matrix `(..., n, n)` 0 or the number of the first pivot that is zero.

    With `check_errors`, a singular matrix raises as in `inv`.

    Returns:
        The inverse, NaN where there is none, and the int32 tensor `info` `(...)`.

    Raises:
        LinAlgError: with `check_errors`, a matrix is singular.

    Example:
        >>> wg.linalg.inv_ex(wg.tensor([[[4.0]], [[0.0]]])).info
        tensor([0, 1], dtype=int32)
    """
    A = operand("inv_ex", A)
    try:
        return InverseChecked(inv(A), _no_fault(A))
    except LinAlgError:
        if check_errors:
            raise
    info = _first_pivot(A)
    return InverseChecked(_marked(inv(_replaced(A, info)), info), info)


def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> SolutionChecked:
    """Returns `solve(A, B)`, and for each matrix `(..., n, n)` 0 or the number of the first pivot that is
    zero.

    Args:
        A: square matrices.
        B: right-hand sides, as in `solve`.
        left: whether it is `A X = B` rather than `X A = B`.
        check_errors: whether to raise for a singular matrix, as `solve` does.

    Returns:
        The solution, NaN where there is none, and the int32 tensor `info` `(...)`.

    Raises:
        LinAlgError: with `check_errors`, a matrix is singular.

    Example:
        >>> wg.linalg.solve_ex(wg.tensor([[[4.0]], [[0.0]]]), wg.ones(2, 1)).info
        tensor([0, 1], dtype=int32)
    """
    A, B = operands("solve_ex", (A, B))
    try:
        return SolutionChecked(solve(A, B, left=left), _no_fault(A))
    except LinAlgError:
        if check_errors:
            raise
    info = _first_pivot(A)
    found = solve(_replaced(A, info), B, left=left)
    vectors = found.ndim == A.ndim - 1
    marked = _marked(found.unsqueeze(-1) if vectors else found, info)
    return SolutionChecked(marked.squeeze(-1) if vectors else marked, info)


def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> LuChecked:
    """Returns what `lu_factor(A)` does, and for each matrix `(..., m, n)` 0 or the number of the first pivot
    that is zero.

    Args:
        A: the matrices.
        pivot: must be true.
        check_errors: whether to raise where a pivot is zero.

    Returns:
        The factors, which every matrix has, the row exchanges, and the int32 tensor `info` `(...)`.

    Raises:
        LinAlgError: with `check_errors`, a pivot is zero.
        ValueError: `pivot` is false.

    Example:
        >>> wg.linalg.lu_factor_ex(wg.tensor([[1.0, 1.0], [1.0, 1.0]])).info
        tensor(2, dtype=int32)
    """
    _check_pivot("lu_factor_ex", pivot)
    packed, _, exchanges = _core._lu(operand("lu_factor_ex", A))
    info = zero_pivot(packed)
    if check_errors and (info != 0).any():
        raise LinAlgError(
            f"lu_factor_ex: pivot {int(info.max())} of the LU factorisation of a matrix is zero; leave "
            "check_errors out to go on"
        )
    return LuChecked(packed, exchanges, info)


def _no_fault(A: Tensor) -> Tensor:
    """Zeros, one per matrix; inside `vmap` one per example, as the others."""
    return (A.detach() != A.detach()).any(-1).any(-1).to(_core.int32) * 0


def _first_pivot(A: Tensor) -> Tensor:
    return zero_pivot(_core._lu(A.detach())[0])


def _first_minor(A: Tensor, upper: bool, slack: float) -> Tensor:
    """The order of the first leading minor that is not positive, or 0, by elimination without exchanges."""
    wide = A.mH if upper else A
    if A.device == "cpu":
        wide = wide.to(_core.complex128 if A.is_complex() else _core.float64)
    scale = wide.diagonal(0, -2, -1).real.abs().amax(-1, keepdim=False) * slack
    info = (scale != scale).to(_core.int32) * 0
    for k in range(A.shape[-1]):
        pivot = wide.select(-1, 0).select(-1, 0).real
        bad = (pivot > scale).logical_not()
        info = _core.where((info == 0).logical_and(bad), k + 1, info)
        column = wide.select(-1, 0).narrow(-1, 1, wide.shape[-1] - 1).unsqueeze(-1)
        safe = pivot.masked_fill(bad, 1.0).unsqueeze(-1).unsqueeze(-1)
        rest = wide.narrow(-1, 1, wide.shape[-1] - 1).narrow(-2, 1, wide.shape[-1] - 1)
        wide = rest - column @ column.mH / safe
    return info.to(_core.int32)


def _replaced(A: Tensor, info: Tensor) -> Tensor:
    """The matrices, with the identity for those at fault."""
    eye = _core.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    return _core.where((info == 0).unsqueeze(-1).unsqueeze(-1), A, eye)


def _marked(x: Tensor, info: Tensor) -> Tensor:
    """Matrices, with NaN for those at fault."""
    nan = _core.tensor(float("nan"), dtype=x.dtype, device=x.device)
    return _core.where((info == 0).unsqueeze(-1).unsqueeze(-1), x, nan)
