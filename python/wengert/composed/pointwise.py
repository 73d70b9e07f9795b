"""Functions of single elements that are a line of others."""

import math
from typing import Any

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor

from ._method import floating, method

__all__ = [
    "addcdiv",
    "addcmul",
    "deg2rad",
    "entr",
    "float_power",
    "isneginf",
    "isposinf",
    "lcm",
    "ldexp",
    "lerp",
    "log_ndtr",
    "logaddexp2",
    "logit",
    "mvlgamma",
    "nan_to_num",
    "positive",
    "rad2deg",
    "signbit",
    "sinc",
    "xlog1py",
    "xlogy",
]


@method
def lerp(input: Tensor, end: Any, weight: Any) -> Tensor:
    """`input + weight * (end - input)`; all broadcast.

    From weight 1/2 on it is `end - (1 - weight) * (end - input)`, so that both ends are met exactly.
    """
    end = operand("lerp", end)
    if isinstance(weight, (int, float, complex)):
        near = abs(weight) < 0.5
        return input + weight * (end - input) if near else end + (weight - 1) * (end - input)
    weight = operand("lerp", weight)
    near = weight.detach().abs() < 0.5
    offset = _core.where(near, weight, weight - 1)
    return _core.where(near, input, end) + offset * (end - input)


@method
def addcmul(input: Tensor, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """`input + value * tensor1 * tensor2`; all broadcast."""
    product = operand("addcmul", tensor1) * tensor2
    return input + (product if value == 1 else product * value)


@method
def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
    """`input + value * tensor1 / tensor2`; all broadcast."""
    quotient = operand("addcdiv", tensor1) / tensor2
    return input + (quotient if value == 1 else quotient * value)


@method
def nan_to_num(
    input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """NaN and infinities replaced by numbers; infinities by the largest finite numbers unless told otherwise.

    The gradient of what was replaced is zero.
    """
    if input.is_complex():
        parts = nan_to_num(_core.view_as_real(input), nan, posinf, neginf)
        return _core.view_as_complex(parts)
    if not input.is_floating_point():
        return input.clone()
    from wengert._info import finfo

    limits = finfo(input.dtype)
    posinf = limits.max if posinf is None else posinf
    neginf = limits.min if neginf is None else neginf
    out = input.masked_fill(input.isnan(), float(nan))
    out = out.masked_fill(input == math.inf, float(posinf))
    return out.masked_fill(input == -math.inf, float(neginf))


@method
def ldexp(input: Tensor, other: Any) -> Tensor:
    """`input * 2 ** other`."""
    other = operand("ldexp", other)
    return input * (2.0 ** (other if other.is_floating_point() else other.to(input.dtype)))


@method
def logaddexp2(input: Tensor, other: Any) -> Tensor:
    """`log2(2 ** input + 2 ** other)` without overflow."""
    ln2 = math.log(2.0)
    return (input * ln2).logaddexp(operand("logaddexp2", other) * ln2) / ln2


@method
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """`log(p / (1 - p))`, the inverse of the logistic function, of `input` clamped to `eps` and `1 - eps`.

    Integers become float32.
    """
    p = input if input.is_floating_point() else input.float()
    p = p if eps is None else p.clamp(eps, 1 - eps)
    return p.log() - (-p).log1p()


def _real(x: Tensor) -> Tensor:
    """Integers as float32."""
    return x if x.dtype.is_differentiable else x.float()


def _unmet(input: Tensor, other: Tensor, pole: float) -> Tensor:
    """Where a factor 0 meets a logarithm that is no finite number: at its pole, below it, and at infinity.

    Elsewhere the product needs no care, and its slope in the factor is the logarithm, at 0 too.
    """
    if other.is_complex():
        return (input == 0).logical_and(other == pole)
    return (input == 0).logical_and((other <= pole).logical_or(other == math.inf))


@method
def xlogy(input: Tensor, other: Any) -> Tensor:
    """`input * log(other)`, zero where `input` is zero (NaN where `other` is); there the slope in `input` is the
    logarithm, and 0 where that is not finite.
    """
    other = operand("xlogy", other)
    return input * _real(other).masked_fill(_unmet(input, other, 0), 1.0).log()


@method
def sinc(input: Tensor) -> Tensor:
    """`sin(pi x) / (pi x)`, 1 at zero. (Differentiable to every order away from zero; there the slope is 0.)

    Integers become float32.
    """
    x = (input if input.is_floating_point() else input.float()) * math.pi
    zero = x == 0
    safe = x.masked_fill(zero, 1.0)
    # 1 - x^2 / 6 has value, slope and curvature of the function at zero.
    return _core.where(zero, 1.0 - x * x / 6.0, safe.sin() / safe)


@method
def deg2rad(input: Tensor) -> Tensor:
    """Degrees as radians."""
    return input * (math.pi / 180.0)


@method
def rad2deg(input: Tensor) -> Tensor:
    """Radians as degrees."""
    return input * (180.0 / math.pi)


@method
def float_power(input: Tensor, exponent: Any) -> Tensor:
    """`input ** exponent`, computed in float64, or in complex128 where one of the two is complex."""
    given = exponent if isinstance(exponent, Tensor) else operand("float_power", exponent)
    wide = _core.complex128 if input.is_complex() or given.is_complex() else _core.float64
    if isinstance(exponent, (int, float)):
        return input.to(wide) ** exponent
    return input.to(wide) ** (exponent if isinstance(exponent, complex) else given.to(wide))


@method
def positive(input: Tensor) -> Tensor:
    """The tensor itself, as `+x`."""
    return input


@method
def signbit(input: Tensor) -> Tensor:
    """Whether the sign is negative, that of zeros included; False for NaN."""
    if not input.is_floating_point():
        return input < 0
    return _core.where(input == 0, 1.0 / input, input) < 0


@method
def isposinf(input: Tensor) -> Tensor:
    """Where the elements are infinite and positive."""
    return input == math.inf


@method
def isneginf(input: Tensor) -> Tensor:
    """Where the elements are infinite and negative."""
    return input == -math.inf


@method
def lcm(input: Tensor, other: Any) -> Tensor:
    """Least common multiple of integers, not negative; 0 where either is 0."""
    other = operand("lcm", other)
    divisor = input.gcd(other)
    return (input // divisor.masked_fill(divisor == 0, 1) * other).abs()


@method
def entr(input: Tensor) -> Tensor:
    """`-x * log(x)`, 0 at zero and minus infinity below, the entropy of a probability.

    Its slope at zero is infinite. Integers become float32.
    """
    x = input if input.is_floating_point() else input.float()
    # Where x is 0, the root has the value and the slope.
    zero = x == 0
    at_zero = x.masked_fill(zero.logical_not(), 1.0).sqrt()
    inside = -x * x.masked_fill(x <= 0, 1.0).log()
    return _core.where(zero, at_zero, inside).masked_fill(x < 0, -math.inf)


@method
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension `p`, where `input > (p - 1) / 2`; NaN elsewhere.

    It is `p (p - 1) / 4 * log(pi)` plus `lgamma(x - k / 2)` for `k` from 0 to `p - 1` (T. W. Anderson, An Introduction
    to Multivariate Statistical Analysis, 7.2), so its error is that of the largest of these. Integers become float32.
    """
    if p < 1:
        raise ValueError(f"mvlgamma: p must be at least 1, got {p}")
    x = input if input.is_floating_point() else input.float()
    x = x.masked_fill(x <= (p - 1) / 2, math.nan)
    out = x.lgamma()
    for k in range(1, p):
        out = out + (x - k / 2).lgamma()
    return out + p * (p - 1) / 4 * math.log(math.pi)


@method
def xlog1py(input: Tensor, other: Any) -> Tensor:
    """`input * log(1 + other)`, zero where `input` is zero (NaN where `other` is); there the slope in `input` is the
    logarithm, and 0 where that is not finite.
    """
    other = operand("xlog1py", other)
    return input * _real(other).masked_fill(_unmet(input, other, -1), 0.0).log1p()


@method
def log_ndtr(input: Tensor) -> Tensor:
    """Logarithm of the standard normal distribution function.

    Below -5, where the function itself soon underflows, by its asymptotic series (M. Abramowitz and I. Stegun, 1964,
    26.2.12) in Laplace's continued fraction.
    """
    x = floating("log_ndtr", input)
    low = x < -5.0
    size = (-x).masked_fill(low.logical_not(), 5.0)
    # Phi(-s) = pdf(s) / (s + 1/(s + 2/(s + 3/...)))
    fraction = size
    for k in range(_FRACTIONS, 0, -1):
        fraction = size + k / fraction
    tail = -0.5 * size * size - _HALF_LOG_2_PI - fraction.log()
    return _core.where(low, tail, x.masked_fill(low, 0.0).ndtr().log())


# Steps of the continued fraction that double precision needs from -5 on, and log(2 pi) / 2.
_FRACTIONS = 60
_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
