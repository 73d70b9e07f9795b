"""Methods of factors as LAPACK packs them; `wengert.linalg._packed` has the functions, and loads at the first
call."""

from typing import Any

from wengert._core import Tensor

from ._method import method

__all__ = ["geqrf", "lu", "lu_solve", "ormqr", "orgqr", "triangular_solve"]


@method
def lu(input: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """Returns the LU factors of matrices `(..., m, n)` and the row exchanges, as `linalg.lu_factor` does.

    Args:
        pivot: must be true.
        get_infos: whether to return the number of the first zero pivot of each matrix, or 0, as a third
            tensor.

    Raises:
        LinAlgError: without `get_infos`, a pivot is zero.
        ValueError: `pivot` is false.

    Example:
        >>> wg.lu(wg.tensor([[2.0, 1.0], [1.0, 3.0]]))[1]
        tensor([1, 2], dtype=int32)
    """
    from wengert.linalg import _packed

    return _packed.lu(input, pivot, get_infos)


@method
def lu_solve(input: Tensor, LU_data: Any, LU_pivots: Any) -> Tensor:
    """Returns `X` with `A X = input`, where `LU_data` and `LU_pivots` are `lu_factor(A)`; see
    `linalg.lu_solve`.

    Example:
        >>> factors, pivots = wg.lu(wg.tensor([[2.0, 0.0], [0.0, 4.0]]))
        >>> wg.lu_solve(wg.tensor([[2.0], [8.0]]), factors, pivots)
        tensor([[1.],
                [2.]])
    """
    from wengert.linalg import lu_solve as solve

    return solve(LU_data, LU_pivots, input)


@method
def triangular_solve(
    input: Tensor, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    """Returns `X` with `A X = input` of triangular matrices, and a copy of `A`; see
    `linalg.solve_triangular`.

    Args:
        A: the matrices, `(..., n, n)`, of which one triangle is read.
        upper: whether it is the upper triangle.
        transpose: whether the system is that of the transpose of `A`.
        unitriangular: whether the diagonal counts as ones.

    Example:
        >>> wg.triangular_solve(wg.tensor([[4.0]]), wg.tensor([[2.0]])).solution
        tensor([[2.]])
    """
    from wengert.linalg import _packed

    return _packed.triangular_solve(input, A, upper, transpose, unitriangular)


@method
def geqrf(input: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the QR factorisation of matrices `(..., m, n)` as `R` and the reflections whose product is `Q`.

    Column `i` of the first result, `a`, has the elements of `R` down to the diagonal, and below it those of
    the vector `v` of reflection `I - tau[i] v v'`, whose element on the diagonal is 1;
    `linalg.householder_product` multiplies them, and `ormqr` applies them. Signs are LAPACK's (Golub and Van
    Loan, Matrix Computations, 5.1).

    Example:
        >>> a, tau = wg.geqrf(wg.tensor([[3.0], [4.0]]))
        >>> a[0, 0], tau
        (tensor(-5.), tensor([1.6]))
    """
    from wengert.linalg import _packed

    return _packed.geqrf(input)


@method
def ormqr(input: Tensor, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Tensor:
    """Returns `Q other`, or `other Q` if not `left`, where `Q` `(..., m, m)` is the product of the
    reflections that `geqrf` returns.

    Args:
        tau: the factors, `(..., k)`; `input` has the vectors below its diagonal, `(..., m, n)` with `k <= n`.
        other: the matrices, `(..., m, p)`, or `(..., p, m)` if not `left`.
        left: on which side `Q` stands.
        transpose: whether `Q` is to be its adjoint.

    Raises:
        ShapeError: for shapes that do not fit.

    Example:
        >>> a, tau = wg.geqrf(wg.tensor([[3.0], [4.0]]))
        >>> wg.ormqr(a, tau, wg.tensor([[3.0], [4.0]]), transpose=True)[0, 0].round()
        tensor(-5.)
    """
    from wengert.linalg import _packed

    return _packed.ormqr(input, tau, other, left, transpose)


@method
def orgqr(input: Tensor, tau: Any) -> Tensor:
    """Returns the first columns of the product of reflections; LAPACK's name of `linalg.householder_product`.

    Example:
        >>> wg.orgqr(wg.tensor([[1.0], [0.0]]), wg.tensor([2.0]))
        tensor([[-1.],
                [ 0.]])
    """
    from wengert.linalg import householder_product

    return householder_product(input, tau)
