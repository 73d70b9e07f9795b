"""Operations of the core with the arguments that PyTorch gives them besides: factors, roundings, places, types.

And functions of two floating point tensors of the core, of integers as well.
"""

import functools
from collections.abc import Callable
from typing import Any

from wengert import _core
from wengert._arguments import one_of, operand
from wengert._core import Tensor
from wengert._precision import rounding_once

from ._method import method, on_axis

__all__ = ["add", "diff", "div", "round", "sub"]

_add, _sub, _div = Tensor.add, Tensor.sub, Tensor.div
_round, _diff = Tensor.round, Tensor.diff
_NUMBERS = (int, float, complex)


def _times(name: str, other: Any, alpha: Any) -> Any:
    return (other if isinstance(other, _NUMBERS) else operand(name, other)) * alpha


@rounding_once
def _plus(input: Tensor, other: Any, alpha: Any) -> Tensor:
    return _add(input, _times("add", other, alpha))


@rounding_once
def _minus(input: Tensor, other: Any, alpha: Any) -> Tensor:
    return _sub(input, _times("sub", other, alpha))


@method
def add(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Sum `x + y`.

    With `alpha`, `x + alpha * y`.
    """
    return _add(input, other) if alpha == 1 else _plus(input, other, alpha)


@method
def sub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Difference `x - y`.

    With `alpha`, `x - alpha * y`.
    """
    return _sub(input, other) if alpha == 1 else _minus(input, other, alpha)


@method
def div(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Quotient `x / y`; integers give a float.

    Args:
        rounding_mode: `"trunc"` rounds the quotient towards zero, `"floor"` down; quotients of integers are integers
            then, and the gradient is zero.
    """
    if rounding_mode is None:
        return _div(input, other)
    if rounding_mode not in ("trunc", "floor"):
        raise ValueError(f"div: rounding_mode must be None, 'trunc' or 'floor', got {rounding_mode!r}")
    if input.is_complex() or (isinstance(other, Tensor) and other.is_complex()):
        raise TypeError("div: complex quotients have no order and cannot be rounded; leave out rounding_mode")
    floor = input.floor_divide(other)
    if rounding_mode == "floor":
        return floor
    if floor.is_floating_point():
        return _div(input, other).trunc()
    # Towards zero is one more than down where the quotient is negative and has a rest.
    product = floor * other
    return floor + ((product != input) & ((input < 0) ^ (operand("div", other) < 0))).to(floor.dtype)


@method
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Nearest integer, ties to even.

    Args:
        decimals: how many decimal places stay; negative ones round to tens, hundreds and so on.
    """
    if decimals == 0 or (decimals > 0 and not input.is_floating_point() and not input.is_complex()):
        return _round(input)
    if input.is_complex():
        raise TypeError(f"round: decimals = {decimals} of {input.dtype}; round .real and .imag")
    if not input.is_floating_point():
        raise TypeError(f"round: decimals = {decimals} of {input.dtype}; convert with .float() first")
    # Beyond that no float has digits.
    decimals = max(-300, min(decimals, 300))
    if decimals > 0:
        scaled = input * 10.0**decimals
        # What is as large as that has no such decimal places.
        return _core.where(scaled.isfinite(), _round(scaled) / 10.0**decimals, input.detach())
    return _round(input / 10.0**-decimals) * 10.0**-decimals


@method
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Any = None,
    append: Any = None,
    *,
    axis: int | None = None,
) -> Tensor:
    """Differences of neighbours along `dim`, taken `n` times; with `n` 0, the input alone.

    Args:
        prepend: what is put before the input first, of its shape but for `dim`, or a number.
        append: what is put behind it.
    """
    dim = one_of(dim, axis, -1)
    if n == 0 or (prepend is None and append is None):
        return _diff(input, n, dim)
    x, along = on_axis("diff", input, dim)
    ends = []
    for part in (prepend, append):
        part = None if part is None else operand("diff", part, x).to(x.device)
        if part is not None and part.ndim == 0:
            part = part.expand([1 if k == along else m for k, m in enumerate(x.shape)])
        ends.append([] if part is None else [part])
    return _diff(_core.cat([*ends[0], x, *ends[1]], along), n, along)


def _of_integers(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Makes a method of the core call `function` where neither operand is a floating point number."""
    plain = getattr(Tensor, name)

    @functools.wraps(plain)
    def wrapper(input: Tensor, other: Any) -> Tensor:
        if not input.dtype.is_differentiable:
            other = operand(name, other, input)
            if not other.dtype.is_differentiable:
                return function(input, other)
        return plain(input, other)

    setattr(Tensor, name, wrapper)


def _step(x: Tensor, y: Tensor) -> Tensor:
    return y.to(_core.result_type(x, y)).masked_fill(x > 0, 1).masked_fill(x < 0, 0)


_of_integers("atan2", lambda x, y: x.float().atan2(y.float()))
_of_integers("copysign", lambda x, y: x.float().copysign(y.float()))
_of_integers("fmax", Tensor.maximum)
_of_integers("fmin", Tensor.minimum)
_of_integers("heaviside", _step)
