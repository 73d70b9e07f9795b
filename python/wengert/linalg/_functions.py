"""Functions of square matrices."""

from typing import Any, NamedTuple

from wengert import _core
from wengert._arguments import operand
from wengert._caller import called
from wengert._core import Tensor
from wengert._results import beside

from ._solve import inv

__all__ = ["det", "matrix_exp", "matrix_power", "SignAndLog", "slogdet"]


class SignAndLog(NamedTuple):
    """The sign of a determinant, and the logarithm of its magnitude."""

    sign: Tensor
    logabsdet: Tensor


def det(A: Any) -> Tensor:
    """Returns the determinant of matrices `(..., n, n)`.

    Its gradient is the matrix of cofactors, which is exact for singular matrices too. Saves the matrix.

    Example:
        >>> wg.linalg.det(wg.tensor([[2.0, 1.0], [0.0, 3.0]]))
        tensor(6.)
    """
    return _core._det(operand("det", A))


def slogdet(A: Any) -> SignAndLog:
    """Returns the sign (1, -1 or 0; of complex matrices a number of size 1 or 0) and the logarithm of the
    magnitude of the determinant of matrices `(..., n, n)`.

    The logarithm has the gradient `inv(A).mT`; that of a singular matrix is minus infinity and has none. Saves the LU
    factors.

    Example:
        >>> wg.linalg.slogdet(wg.tensor([[1.0, 0.0], [0.0, -1.0]])).sign
        tensor(-1.)
    """
    A = operand("slogdet", A)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise _core.ShapeError(f"{called()}: square matrices expected, got shape {tuple(A.shape)}")
    packed, _, exchanges = _core._lu(A)
    pivots = packed.diagonal(0, -2, -1)
    own = _core.arange(1, A.shape[-1] + 1, dtype=exchanges.dtype, device=exchanges.device)
    odd = (exchanges != own).sum(-1) % 2
    return SignAndLog(pivots.sign().prod(-1) * (1 - 2 * odd), pivots.abs().log().sum(-1))


def matrix_exp(A: Any) -> Tensor:
    """Returns the exponential `I + A + A^2 / 2 + …` of matrices `(..., n, n)`.

    Scaling and squaring with a Pade approximant of degree 13. The derivative along `E` is a block of the exponential of
    `[[A, E], [0, A]]`. Saves the matrix.

    Source: N. Higham, "The scaling and squaring method for the matrix exponential revisited", 2005.

    Example:
        >>> wg.linalg.matrix_exp(wg.tensor([[0.0, 1.0], [0.0, 0.0]]))
        tensor([[1., 1.],
                [0., 1.]])
    """
    return _core._matrix_exp(operand("matrix_exp", A))


def matrix_power(A: Any, n: int) -> Tensor:
    """Returns the product of `n` factors `A`, by repeated squaring; for a negative `n` of the inverse.

    Raises:
        LinAlgError: `n` is negative and a matrix is singular.

    Example:
        >>> wg.linalg.matrix_power(wg.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
        tensor([[1., 3.],
                [0., 1.]])
    """
    A = operand("matrix_power", A)
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"matrix_power: n must be an integer, got {type(n).__name__}")
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise _core.ShapeError(f"matrix_power: square matrices expected, got shape {tuple(A.shape)}")
    if n == 1:
        return A.clone()
    if n < 0:
        A, n = inv(A), -n
    out = None
    while n:
        if n % 2:
            out = A if out is None else out @ A
        n //= 2
        A = A @ A if n else A
    if out is None:
        return beside(_core.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand(*A.shape).clone(), A)
    return out
