"""Functions of single elements that are a line of others."""

from collections.abc import Callable
from typing import NamedTuple

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor, broadcast_tensors
from wengert._types import TensorLike

from ._method import method

__all__ = ["fill", "frexp", "igamma", "igammac", "rsub"]


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
def rsub(input: Tensor, other: TensorLike, *, alpha: float = 1) -> Tensor:
    """Returns `other - alpha * input`; both broadcast.

    Example:
        >>> wg.rsub(wg.tensor([1.0, 2.0]), 10, alpha=2)
        tensor([8., 6.])
    """
    return operand("rsub", other, input).sub(input, alpha=alpha)


@method
def fill(input: Tensor, value: Tensor | complex) -> Tensor:
    """Returns a tensor of the shape and dtype of `input` with one value everywhere.

    Args:
        value: a number, or a tensor without axes, through which gradients flow.

    Example:
        >>> wg.fill(wg.tensor([1.0, 2.0]), 7)
        tensor([7., 7.])
    """
    if isinstance(value, Tensor) and value.ndim:
        raise ValueError(f"fill: a number or a tensor without axes expected, got shape {tuple(value.shape)}")
    return input.clone().fill_(value)


def _incomplete(name: str, a: Tensor, other: TensorLike) -> Tensor:
    """An incomplete gamma function of two tensors in the dtype that they meet in."""
    from wengert.distributions.numerics import incomplete

    x = operand(name, other, a)
    kind = _core.result_type(a, x)
    kind = kind if kind.is_differentiable else _core.float32
    a, x = broadcast_tensors(_reals(name, a.to(kind)), _reals(name, x.to(kind)))
    function: Callable[[Tensor, Tensor], Tensor] = getattr(incomplete, name)
    return function(a, x)


@method
def igamma(input: Tensor, other: TensorLike) -> Tensor:
    """Returns the regularised lower incomplete gamma function `P(a, x)` of `a = input` and `x = other`: the
    distribution function at `x` of a gamma variate of shape `a` and rate 1.

    Differentiable in both to every order. Computed in float64 but on GPUs, with a relative error of about
    1e-13; integers become float32. NaN where one is negative.

    Example:
        >>> wg.igamma(wg.tensor(1.0), wg.tensor(2.0))  # 1 - exp(-2)
        tensor(0.8647)
    """
    return _incomplete("gammainc", input, other)


@method
def igammac(input: Tensor, other: TensorLike) -> Tensor:
    """Returns the regularised upper incomplete gamma function `Q(a, x) = 1 - P(a, x)`; see `igamma`.

    It loses no digits where it is small because `x` is large. For shapes below 1e-3, where it is nearly 0 for
    every `x`, the relative error grows to about 1e-16 over the shape.

    Example:
        >>> wg.igammac(wg.tensor(1.0), wg.tensor(2.0))  # exp(-2)
        tensor(0.1353)
    """
    return _incomplete("gammaincc", input, other)


class Frexp(NamedTuple):
    """Mantissas and exponents."""

    mantissa: Tensor
    exponent: Tensor


@method
def frexp(input: Tensor) -> Frexp:
    """Splits numbers into a mantissa of magnitude from 1/2 to 1 and a power of 2:
    `x = mantissa * 2 ** exponent`.

    Returns:
        The named tuple `(mantissa, exponent)`, the exponent of int32. Zeros, infinities and NaN are their own
        mantissa, with the exponent 0. The mantissa has the derivative of `x / 2 ** exponent`.

    Raises:
        TypeError: for integers and complex numbers.

    Example:
        >>> mantissa, exponent = wg.frexp(wg.tensor([1.0, -10.0]))
        >>> mantissa, exponent
        (tensor([ 0.500, -0.625]), tensor([1, 4], dtype=int32))
    """
    if not input.is_floating_point():
        raise TypeError(
            f"frexp: a floating point tensor expected, got {input.dtype}; convert with .float() first"
        )
    size = input.detach().abs()
    size = size if size.itemsize > 2 else size.float()
    plain = (size == 0) | ~size.isfinite()
    size = size.masked_fill(plain, 1.0)
    exponent = size.log2().floor() + 1
    # The rounded logarithm may be that of the next power, and a power may be no normal number: two factors.
    half = (exponent / 2).floor()
    scaled = size * _core.exp2(-half) * _core.exp2(half - exponent)
    exponent = exponent - (scaled < 0.5).to(size.dtype)
    exponent = exponent.masked_fill(plain, 0.0)
    half = (exponent / 2).floor()
    kind = size.dtype
    mantissa = (input.to(kind) * _core.exp2(-half) * _core.exp2(half - exponent)).to(input.dtype)
    return Frexp(mantissa, exponent.to(_core.int32))
