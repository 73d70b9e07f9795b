"""Functions of single elements that are a line of others."""

import math

from wengert import _core
from wengert._arguments import of_tensors, operand
from wengert._core import Tensor
from wengert._precision import in_float32, in_widest, rounding_once
from wengert._types import Operand, TensorLike

from ._method import method

__all__ = [
    "addcdiv",
    "addcmul",
    "deg2rad",
    "float_power",
    "imag",
    "isneginf",
    "isposinf",
    "lcm",
    "ldexp",
    "lerp",
    "logaddexp2",
    "logit",
    "mvlgamma",
    "nan_to_num",
    "polygamma",
    "positive",
    "rad2deg",
    "real",
    "signbit",
]


def real(input: TensorLike) -> Tensor:
    """Returns the real part; of a real tensor the tensor itself.

    Example:
        >>> wg.real(wg.tensor([1 + 2j]))
        tensor([1.])
    """
    return operand("real", input).real


def imag(input: TensorLike) -> Tensor:
    """Returns the imaginary part of a complex tensor. Real ones raise TypeError.

    Example:
        >>> wg.imag(wg.tensor([1 + 2j]))
        tensor([2.])
    """
    return operand("imag", input).imag


def polygamma(n: int, input: TensorLike) -> Tensor:
    """Returns the derivative of order `n` of the digamma function, `n` from 0 to 20.

    NaN or infinite at integers that are not positive.

    Example:
        >>> wg.polygamma(1, wg.tensor([1.0, 2.0]))
        tensor([1.6449, 0.6449])
    """
    return operand("polygamma", input).polygamma(n)


def _reals(name: str, x: Tensor) -> Tensor:
    """Floating point numbers; integers become float32.

    Raises:
        TypeError: complex numbers, whose imaginary parts would be lost.
    """
    if x.is_complex():
        raise TypeError(
            f"{name}: not defined for {x.dtype.name}; act on .real and .imag, or on view_as_real(x)"
        )
    return x if x.is_floating_point() else x.float()


@method
@rounding_once
def lerp(input: Tensor, end: TensorLike, weight: TensorLike) -> Tensor:
    """Returns `input + weight * (end - input)`; all broadcast.

    From weight 1/2 on it is `end - (1 - weight) * (end - input)`, so that both ends are met exactly.

    Example:
        >>> wg.lerp(wg.tensor(0.0), wg.tensor(10.0), 0.3)
        tensor(3.)
    """
    end = operand("lerp", end, input)
    if isinstance(weight, (int, float, complex)):
        near = abs(weight) < 0.5
        return input + weight * (end - input) if near else end + (weight - 1) * (end - input)
    weight = operand("lerp", weight, input)
    nearer = weight.detach().abs() < 0.5
    offset = _core.where(nearer, weight, weight - 1)
    return _core.where(nearer, input, end) + offset * (end - input)


@method
@in_widest
@in_float32
def addcmul(input: Tensor, tensor1: TensorLike, tensor2: Operand, *, value: float = 1) -> Tensor:
    """Returns `input + value * tensor1 * tensor2`; all broadcast. For integers `value` loses its fraction.

    Example:
        >>> wg.addcmul(wg.tensor(1.0), wg.tensor(2.0), wg.tensor(3.0), value=0.5)
        tensor(4.)
    """
    first = operand("addcmul", tensor1, input)
    if isinstance(value, float) and not input.is_floating_point():
        factors = (input, first, operand("addcmul", tensor2, input))
        value = value if any(x.dtype.is_differentiable for x in factors) else int(value)
    return input + (first if value == 1 else first * value) * tensor2


@method
@in_widest
@in_float32
def addcdiv(input: Tensor, tensor1: TensorLike, tensor2: Operand, *, value: float = 1) -> Tensor:
    """Returns `input + value * tensor1 / tensor2`; all broadcast.

    Example:
        >>> wg.addcdiv(wg.tensor(1.0), wg.tensor(2.0), wg.tensor(4.0))
        tensor(1.5)
    """
    first = operand("addcdiv", tensor1, input)
    return input + (first if value == 1 else first * value) / tensor2


@method
def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Replaces NaN and infinities by numbers: NaN by 0, infinities by the largest finite ones
    where None is given.

    The gradient of what was replaced is zero.

    Example:
        >>> wg.nan_to_num(wg.tensor([float("nan"), 1.0]))
        tensor([0., 1.])
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
    out = input.masked_fill(input.isnan(), 0.0 if nan is None else float(nan))
    out = out.masked_fill(input == math.inf, float(posinf))
    return out.masked_fill(input == -math.inf, float(neginf))


@method
@in_float32
def ldexp(input: Tensor, other: TensorLike) -> Tensor:
    """Returns `input * 2 ** other`.

    Example:
        >>> wg.ldexp(wg.tensor(3.0), wg.tensor(4))
        tensor(48.)
    """
    other = operand("ldexp", other, input)
    # Powers of 2 in the type of the result, which holds the larger ones.
    kind = _core.result_type(input, other)
    return input * 2.0 ** other.to(kind if kind.is_differentiable else _core.float32)


@method
@rounding_once
def logaddexp2(input: Tensor, other: TensorLike) -> Tensor:
    """Returns `log2(2 ** input + 2 ** other)` without overflow.

    Example:
        >>> wg.logaddexp2(wg.tensor(3.0), wg.tensor(3.0))
        tensor(4.)
    """
    ln2, other = math.log(2.0), operand("logaddexp2", other, input)
    kind = _core.result_type(input, other)
    kind = kind if kind.is_differentiable else _core.float32
    input, other = input.to(kind), other.to(kind)
    # The larger one is taken out, as the product with log(2) rounds.
    top = input.maximum(other).detach().nan_to_num(0.0, 0.0, 0.0)
    return ((input - top) * ln2).logaddexp((other - top) * ln2) / ln2 + top


@method
@of_tensors
@in_float32
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """Returns `log(p / (1 - p))`, the inverse of the logistic function, of `input` clamped to `eps` and `1 - eps`.

    Integers become float32.

    Example:
        >>> wg.logit(wg.tensor(0.5))
        tensor(0.)
    """
    low, high = (-math.inf, math.inf) if eps is None else (eps, 1 - eps)
    return _reals("logit", input)._logit(low, high)


@method
def deg2rad(input: Tensor) -> Tensor:
    """Converts degrees to radians.

    Example:
        >>> wg.deg2rad(wg.tensor(180.0))
        tensor(3.1416)
    """
    return input * (math.pi / 180.0)


@method
def rad2deg(input: Tensor) -> Tensor:
    """Converts radians to degrees.

    Example:
        >>> wg.rad2deg(wg.tensor(0.5))
        tensor(28.6479)
    """
    return input * (180.0 / math.pi)


@method
def float_power(input: Tensor, exponent: TensorLike) -> Tensor:
    """Returns `input ** exponent`, computed in float64, or in complex128 where one of the two is complex.

    Example:
        >>> wg.float_power(wg.tensor([2, 3]), 2)
        tensor([4., 9.], dtype=float64)
    """
    base = input.to(_core.complex128 if input.is_complex() else _core.float64)
    if isinstance(exponent, (int, float, complex)):
        return base**exponent
    given = operand("float_power", exponent, base)
    wide = _core.complex128 if base.is_complex() or given.is_complex() else _core.float64
    return base.to(wide) ** given.to(wide)


@method
def positive(input: Tensor) -> Tensor:
    """Returns the tensor itself, as `+x`.

    Example:
        >>> wg.positive(wg.tensor([1.0, -2.0]))
        tensor([ 1., -2.])
    """
    return input


@method
def signbit(input: Tensor) -> Tensor:
    """Tells whether the sign is negative, that of zeros included; False for NaN.

    Example:
        >>> wg.signbit(wg.tensor([-0.0, 1.0]))
        tensor([ True, False])
    """
    if not input.is_floating_point():
        return input < 0
    return _core.where(input == 0, 1.0 / input, input) < 0


@method
def isposinf(input: Tensor) -> Tensor:
    """Tells where the elements are infinite and positive.

    Example:
        >>> wg.isposinf(wg.tensor([float("inf"), 1.0]))
        tensor([ True, False])
    """
    return input == math.inf


@method
def isneginf(input: Tensor) -> Tensor:
    """Tells where the elements are infinite and negative.

    Example:
        >>> wg.isneginf(wg.tensor([float("-inf"), 1.0]))
        tensor([ True, False])
    """
    return input == -math.inf


@method
def lcm(input: Tensor, other: TensorLike) -> Tensor:
    """Returns the least common multiple of integers, not negative; 0 where either is 0.

    Example:
        >>> wg.lcm(wg.tensor(4), wg.tensor(6))
        tensor(12)
    """
    other = operand("lcm", other)
    divisor = input.gcd(other)
    return (input // divisor.masked_fill(divisor == 0, 1) * other).abs()


@method
@rounding_once
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """Returns the logarithm of the multivariate gamma function of dimension `p`, where `input > (p - 1) / 2`; NaN
    elsewhere.

    It is `p (p - 1) / 4 * log(pi)` plus `lgamma(x - k / 2)` for `k` from 0 to `p - 1` (T. W. Anderson, An Introduction
    to Multivariate Statistical Analysis, 7.2), so its error is that of the largest of these. Integers become float32.

    Example:
        >>> wg.mvlgamma(wg.tensor(3.0), 2)
        tensor(1.5502)
    """
    if p < 1:
        raise ValueError(f"mvlgamma: p must be at least 1, got {p}")
    x = _reals("mvlgamma", input)
    x = x.masked_fill(x <= (p - 1) / 2, math.nan)
    halves = _core.arange(0, p, dtype=x.dtype, device=x.device) / 2
    return (x.unsqueeze(-1) - halves).lgamma().sum(-1) + p * (p - 1) / 4 * math.log(math.pi)
