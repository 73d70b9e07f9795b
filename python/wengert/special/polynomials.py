"""Orthogonal polynomials, each by its recurrence of three terms (M. Abramowitz and I. Stegun, 1964, 22.7)."""

from collections.abc import Callable

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor
from wengert._precision import rounding_once
from wengert._types import TensorLike

__all__ = [
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
]

# The polynomial of degree 1, and that of degree k + 1 from those of degree k and k - 1.
First = Callable[[Tensor], Tensor]
Next = Callable[[Tensor, int, Tensor, Tensor], Tensor]


@rounding_once
def _polynomial(x: Tensor, n: int | Tensor, first: First, following: Next) -> Tensor:
    """The polynomial of degree `n`, 0 for negative degrees."""
    if not x.is_floating_point():
        x = x.float()
    # Constant polynomials have a derivative too; that of degree 0 has no value for NaN.
    low, none = _core.where(x == x, 1.0, x), _core.where(_core.zeros_like(x, dtype=_core.bool), x, 0.0)
    if isinstance(n, int):
        out = low if n == 0 else none
    else:
        out = _core.where(n == 0, low, none)
    most = n if isinstance(n, int) else int(n.max().item()) if n.numel() else 0
    high = first(x)
    for k in range(1, most + 1):
        if isinstance(n, Tensor):
            out = _core.where(n == k, high, out)
        elif n == k:
            out = high
        low, high = high, following(x, k, high, low)
    return out.clone() if out is x else out


def _twice(x: Tensor, _: int, high: Tensor, low: Tensor) -> Tensor:
    """The recurrence of all Chebyshev polynomials."""
    return 2 * x * high - low


def _shifted(x: Tensor, _: int, high: Tensor, low: Tensor) -> Tensor:
    """That recurrence for polynomials of `2 x - 1`."""
    return 2 * (2 * x - 1) * high - low


def _of(name: str, input: TensorLike, n: int | TensorLike, first: First, following: Next = _twice) -> Tensor:
    """The polynomials called `name`, for degrees that are numbers or tensors."""
    x = operand(name, input)
    if x.is_complex():
        raise TypeError(f"{name}: real numbers expected, got {x.dtype}")
    degrees = int(n) if isinstance(n, (int, float)) else operand(name, n).detach().trunc()
    return _polynomial(x, degrees, first, following)


def chebyshev_polynomial_t(input: TensorLike, n: int | TensorLike) -> Tensor:
    """Returns the Chebyshev polynomial of the first kind `T_n`, which is `cos(n acos(x))` on `[-1, 1]`.

    Differentiable in `input`; integers become float32.

    Args:
        input: where to evaluate.
        n: degrees, a number or a tensor that broadcasts; fractions are cut off, and polynomials of negative
            degree are 0.

    Example:
        >>> wg.special.chebyshev_polynomial_t(wg.tensor([0.5, 2.0]), 3)
        tensor([-1., 26.])
    """
    return _of("chebyshev_polynomial_t", input, n, lambda x: x)


def chebyshev_polynomial_u(input: TensorLike, n: int | TensorLike) -> Tensor:
    """Returns the Chebyshev polynomial of the second kind `U_n`; arguments as `chebyshev_polynomial_t`.

    Example:
        >>> wg.special.chebyshev_polynomial_u(wg.tensor([0.5, 2.0]), 2)
        tensor([ 0., 15.])
    """
    return _of("chebyshev_polynomial_u", input, n, lambda x: 2 * x)


def chebyshev_polynomial_v(input: TensorLike, n: int | TensorLike) -> Tensor:
    """Returns the Chebyshev polynomial of the third kind `V_n`; arguments as `chebyshev_polynomial_t`.

    Example:
        >>> wg.special.chebyshev_polynomial_v(wg.tensor([0.5, 2.0]), 2)
        tensor([-1., 11.])
    """
    return _of("chebyshev_polynomial_v", input, n, lambda x: 2 * x - 1)


def chebyshev_polynomial_w(input: TensorLike, n: int | TensorLike) -> Tensor:
    """Returns the Chebyshev polynomial of the fourth kind `W_n`; arguments as `chebyshev_polynomial_t`.

    Example:
        >>> wg.special.chebyshev_polynomial_w(wg.tensor([0.5, 2.0]), 2)
        tensor([ 1., 19.])
    """
    return _of("chebyshev_polynomial_w", input, n, lambda x: 2 * x + 1)


def shifted_chebyshev_polynomial_t(input: TensorLike, n: int | TensorLike) -> Tensor:
    """Returns `chebyshev_polynomial_t` of `2 x - 1`, for numbers between 0 and 1.

    Example:
        >>> wg.special.shifted_chebyshev_polynomial_t(wg.tensor([0.5, 1.0]), 2)
        tensor([-1.,  1.])
    """
    return _of("shifted_chebyshev_polynomial_t", input, n, lambda x: 2 * x - 1, _shifted)


def shifted_chebyshev_polynomial_u(input: TensorLike, n: int | TensorLike) -> Tensor:
    """Returns `chebyshev_polynomial_u` of `2 x - 1`, for numbers between 0 and 1.

    Example:
        >>> wg.special.shifted_chebyshev_polynomial_u(wg.tensor([0.5, 1.0]), 2)
        tensor([-1.,  3.])
    """
    return _of("shifted_chebyshev_polynomial_u", input, n, lambda x: 2 * (2 * x - 1), _shifted)


def shifted_chebyshev_polynomial_v(input: TensorLike, n: int | TensorLike) -> Tensor:
    """Returns `chebyshev_polynomial_v` of `2 x - 1`, for numbers between 0 and 1.

    Example:
        >>> wg.special.shifted_chebyshev_polynomial_v(wg.tensor([0.5, 1.0]), 2)
        tensor([-1.,  1.])
    """
    return _of("shifted_chebyshev_polynomial_v", input, n, lambda x: 2 * (2 * x - 1) - 1, _shifted)


def shifted_chebyshev_polynomial_w(input: TensorLike, n: int | TensorLike) -> Tensor:
    """Returns `chebyshev_polynomial_w` of `2 x - 1`, for numbers between 0 and 1.

    Example:
        >>> wg.special.shifted_chebyshev_polynomial_w(wg.tensor([0.5, 1.0]), 2)
        tensor([-1.,  5.])
    """
    return _of("shifted_chebyshev_polynomial_w", input, n, lambda x: 2 * (2 * x - 1) + 1, _shifted)


def hermite_polynomial_h(input: TensorLike, n: int | TensorLike) -> Tensor:
    """Returns the physicists' Hermite polynomial `H_n`; arguments as `chebyshev_polynomial_t`.

    Example:
        >>> wg.special.hermite_polynomial_h(wg.tensor([0.5, 1.0]), 2)
        tensor([-1.,  2.])
    """
    return _of(
        "hermite_polynomial_h", input, n, lambda x: 2 * x, lambda x, k, high, low: 2 * x * high - 2 * k * low
    )


def hermite_polynomial_he(input: TensorLike, n: int | TensorLike) -> Tensor:
    """Returns the probabilists' Hermite polynomial `He_n`; arguments as `chebyshev_polynomial_t`.

    Example:
        >>> wg.special.hermite_polynomial_he(wg.tensor([0.0, 2.0]), 2)
        tensor([-1.,  3.])
    """
    return _of("hermite_polynomial_he", input, n, lambda x: x, lambda x, k, high, low: x * high - k * low)


def laguerre_polynomial_l(input: TensorLike, n: int | TensorLike) -> Tensor:
    """Returns the Laguerre polynomial `L_n`; arguments as `chebyshev_polynomial_t`.

    Example:
        >>> wg.special.laguerre_polynomial_l(wg.tensor([0.0, 2.0]), 2)
        tensor([ 1., -1.])
    """
    return _of(
        "laguerre_polynomial_l",
        input,
        n,
        lambda x: 1 - x,
        lambda x, k, high, low: ((2 * k + 1 - x) * high - k * low) / (k + 1),
    )


def legendre_polynomial_p(input: TensorLike, n: int | TensorLike) -> Tensor:
    """Returns the Legendre polynomial `P_n`; arguments as `chebyshev_polynomial_t`.

    Example:
        >>> wg.special.legendre_polynomial_p(wg.tensor([0.0, 1.0]), 2)
        tensor([-0.5,  1.0])
    """
    return _of(
        "legendre_polynomial_p",
        input,
        n,
        lambda x: x,
        lambda x, k, high, low: ((2 * k + 1) * x * high - k * low) / (k + 1),
    )
