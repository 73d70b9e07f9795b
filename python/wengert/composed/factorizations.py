"""Linear algebra as methods, under PyTorch's names; `wengert.linalg` has it all."""

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor
from wengert._types import TensorLike
from wengert.linalg import _decompose, _functions, _solve

from ._method import method

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "inverse",
    "logdet",
    "matrix_exp",
    "matrix_power",
    "pinverse",
    "qr",
    "slogdet",
    "svd",
]


@method
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Returns the triangular factor of symmetric positive definite matrices; see `linalg.cholesky`.

    Example:
        >>> wg.cholesky(wg.tensor([[4.0, 2.0], [2.0, 2.0]]))
        tensor([[2., 0.],
                [1., 1.]])
    """
    return _decompose.cholesky(input, upper=upper)


@method
def cholesky_solve(input: Tensor, input2: TensorLike, upper: bool = False) -> Tensor:
    """Returns `X` with `A X = input`, where `input2` is the factor `L` of `A = L L'`, or `L'` if `upper`.

    Example:
        >>> wg.cholesky_solve(wg.tensor([[4.0], [2.0]]), wg.tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor([[1.],
                [2.]])
    """
    factor = operand("cholesky_solve", input2)
    lower = factor.mH if upper else factor
    y = _core._triangular_solve(lower, input, False, False)
    return _core._triangular_solve(lower.mH, y, True, False)


@method
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """Returns the inverse of `A = L L'`, where `input` is `L`, or `L'` if `upper`.

    Example:
        >>> wg.cholesky_inverse(wg.tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor([[0.25, 0.00],
                [0.00, 1.00]])
    """
    n = input.shape[-1] if input.ndim else 0
    return cholesky_solve(_core.eye(n, dtype=input.dtype, device=input.device), input, upper)


@method
def det(input: Tensor) -> Tensor:
    """Returns the determinant; see `linalg.det`.

    Example:
        >>> wg.det(wg.tensor([[2.0, 1.0], [0.0, 3.0]]))
        tensor(6.)
    """
    return _functions.det(input)


@method
def slogdet(input: Tensor) -> _functions.SignAndLog:
    """Returns the sign and the logarithm of the magnitude of the determinant; see `linalg.slogdet`.

    Example:
        >>> wg.slogdet(wg.tensor([[2.0, 0.0], [0.0, -3.0]])).sign
        tensor(-1.)
    """
    return _functions.slogdet(input)


@method
def logdet(input: Tensor) -> Tensor:
    """Returns the logarithm of the determinant; NaN where that is negative, minus infinity where it is zero.

    Of complex matrices it is complex; its imaginary part is the angle of the determinant, in `[-pi, pi]`.

    Example:
        >>> wg.logdet(wg.tensor([[1.0, 0.0], [0.0, -1.0]]))
        tensor(nan)
    """
    sign, logarithm = _functions.slogdet(input)
    if sign.is_complex():
        return _core.complex(logarithm, sign.angle())
    return logarithm.masked_fill(sign < 0, float("nan"))


@method
def inverse(input: Tensor) -> Tensor:
    """Returns the inverse; see `linalg.inv`.

    Example:
        >>> wg.inverse(wg.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.50, 0.00],
                [0.00, 0.25]])
    """
    return _solve.inv(input)


@method
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Returns the Moore-Penrose inverse; singular values up to `rcond` times the largest count as zero. See
    `linalg.pinv`.

    Example:
        >>> wg.pinverse(wg.tensor([[2.0, 0.0], [0.0, 0.0]]))
        tensor([[0.5, 0.0],
                [0.0, 0.0]])
    """
    return _solve.pinv(input, rtol=rcond)


@method
def matrix_exp(input: Tensor) -> Tensor:
    """Returns the exponential of matrices; see `linalg.matrix_exp`.

    Example:
        >>> wg.matrix_exp(wg.tensor([[0.0, 1.0], [0.0, 0.0]]))
        tensor([[1., 1.],
                [0., 1.]])
    """
    return _functions.matrix_exp(input)


@method
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Returns the product of `n` factors; see `linalg.matrix_power`.

    Example:
        >>> wg.matrix_power(wg.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
        tensor([[1., 3.],
                [0., 1.]])
    """
    return _functions.matrix_power(input, n)


@method
def qr(input: Tensor, some: bool = True) -> _decompose.QrParts:
    """Returns `Q` and `R`; with `some=False`, `Q` is square. See `linalg.qr`.

    Example:
        >>> q, r = wg.qr(wg.tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> wg.allclose(q @ r, wg.tensor([[3.0, 1.0], [4.0, 2.0]]), atol=1e-6)
        True
    """
    return _decompose.qr(input, "reduced" if some else "complete")


@method
def svd(input: Tensor, some: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Returns `U`, the singular values and `V` (not its transpose, which `linalg.svd` returns); with
    `some=False`, `U` and `V` are square.

    Example:
        >>> wg.svd(wg.tensor([[3.0, 0.0], [0.0, 4.0]]))[1]
        tensor([4., 3.])
    """
    u, s, vh = _decompose.svd(input, not some)
    return u, s, vh.mH
