"""The zeta function of Hurwitz, and the incomplete gamma functions under SciPy's names."""

import math

import wengert as wg
from wengert._arguments import operand
from wengert._core import Tensor
from wengert._types import TensorLike

__all__ = ["gammainc", "gammaincc", "zeta"]

# How many terms are added one by one, and `B_2j / (2j)!` for the Bernoulli numbers `B`.
_TERMS = 12
_BERNOULLI = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
)


def gammainc(input: TensorLike, other: TensorLike) -> Tensor:
    """Returns the regularised lower incomplete gamma function `P(a, x)`: `igamma`.

    Example:
        >>> wg.special.gammainc(wg.tensor(1.0), wg.tensor(2.0))  # 1 - exp(-2)
        tensor(0.8647)
    """
    return wg.igamma(input, other)


def gammaincc(input: TensorLike, other: TensorLike) -> Tensor:
    """Returns the regularised upper incomplete gamma function `Q(a, x)`: `igammac`.

    Example:
        >>> wg.special.gammaincc(wg.tensor(1.0), wg.tensor(2.0))  # exp(-2)
        tensor(0.1353)
    """
    return wg.igammac(input, other)


def _positive(x: Tensor, q: Tensor) -> Tensor:
    """The function for `x > 1` and `q > 0`, by Euler-Maclaurin summation: differentiable in both."""
    total = q ** (-x)
    for k in range(1, _TERMS):
        total = total + (q + k) ** (-x)
    end = q + _TERMS
    # Beyond, the tail is nothing beside the first terms, and its factors would overflow.
    s = x.clamp_max(1e4)
    inverse = 1 / end
    factor, rest = s * inverse, end * 0
    for j, b in enumerate(_BERNOULLI):
        rest = rest + b * factor
        factor = factor * ((s + (2 * j + 1)) * inverse) * ((s + (2 * j + 2)) * inverse)
    # The first term as a power of its own, whose derivative in `q` is exact next to `x = 1`.
    return total + end ** (1 - s) / (s - 1) + end ** (-s) * (0.5 + rest)


def zeta(input: TensorLike, other: TensorLike = 1.0) -> Tensor:
    """Returns the zeta function of Hurwitz: the sum of `(k + q) ** -x` over all integers `k >= 0`.

    Differentiable in both arguments, which broadcast, to every order. Infinite for `x = 1`, and at the poles
    `q = 0, -1, ...`; NaN for `x < 1`, and for negative `q` where `x` is no integer. Computed in float64 but
    on GPUs; integers become float32.

    Args:
        input: the exponents `x`.
        other: the offsets `q`; 1 for the zeta function of Riemann.

    Example:
        >>> wg.special.zeta(wg.tensor([2.0, 4.0]), 1.0)
        tensor([1.6449, 1.0823])
    """
    from wengert.distributions.numerics.special import in_double

    x = operand("zeta", input)
    q = operand("zeta", other, x)
    if x.is_complex() or q.is_complex():
        raise TypeError(f"zeta: real numbers expected, got {x.dtype} and {q.dtype}")
    kind = wg.result_type(x, q)
    kind = kind if kind.is_floating_point else wg.float32
    return in_double(_zeta)(*wg.broadcast_tensors(x.to(kind), q.to(kind)))


def _zeta(x: Tensor, q: Tensor) -> Tensor:
    """The function of floating point numbers of one shape."""
    whole = (x == x.detach().floor()) & (x < math.inf)
    below = q <= 0
    # Below 0 the first terms have a negative base: their sum is a difference of two values of this function.
    steps = (-q.detach()).ceil().masked_fill(~below, 0.0)
    exponent = x.masked_fill(x <= 1, 2.0)
    shifted = (q + steps).masked_fill(below & (q == q.detach().floor()), 1.0)
    shifted = shifted.masked_fill(shifted == math.inf, 1.0)
    out = _positive(exponent, shifted)
    if _any(below):
        sign = 1 - 2 * (exponent.detach() % 2)
        fraction = (1 - shifted).masked_fill(~below | ~(shifted < 1), 0.5)
        first = _positive(exponent, fraction) - _positive(exponent, fraction + steps)
        out = wg.where(below, out + sign * first, out)
        out = out.masked_fill(below & ~whole, math.nan)
        out = out.masked_fill(below & (q == q.detach().floor()), math.inf)
    out = out.masked_fill(q == math.inf, 0.0)
    out = out.masked_fill(x == 1, math.inf)
    return out.masked_fill((x < 1) | x.isnan() | q.isnan(), math.nan)


def _any(mask: Tensor) -> bool:
    """Whether a mask holds somewhere; True where its values cannot be looked at."""
    try:
        return bool(mask.detach().any())
    except TypeError:
        return True
