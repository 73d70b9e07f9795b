"""Functions of each element: the methods of `Tensor`, under the standard's names and with its promotion.

One table of each kind. What differs: a number in a 0-d tensor counts as much as a tensor with axes when dtypes are
promoted, and either operand of a function of two may be a Python number.
"""

import math
from collections.abc import Callable
from typing import Any

from wengert import _core
from wengert._arguments import is_beyond_int64, number_beside, operand
from wengert._core import Tensor

from ._dtypes import promoted

__all__ = ["clip", "conj", "positive", "round"]

# The standard's name, and the method where that has another.
UNARY = {
    **{
        name: name
        for name in """
        abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log10 log1p
        log2 logical_not negative reciprocal sign signbit sin sinh sqrt square tan tanh trunc
        """.split()
    },
    "bitwise_invert": "bitwise_not",
}
BINARY = {
    **{
        name: name
        for name in """
        add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide floor_divide
        greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum
        multiply nextafter not_equal pow remainder subtract
        """.split()
    },
    "equal": "eq",
}


def alike(name: str, x1: Any, x2: Any) -> tuple[Tensor, Any]:
    """Two operands with the dtypes that make the methods promote as the standard does.

    Raises:
        TypeError: neither is a tensor.
    """
    if isinstance(x1, Tensor):
        if isinstance(x2, Tensor) and x1.dtype is not x2.dtype and (x1.ndim == 0) != (x2.ndim == 0):
            dtype = promoted(x1.dtype, x2.dtype)
            return x1.to(dtype), x2.to(dtype)
        return x1, number_beside(x2, x1) if is_beyond_int64(x2) else x2
    if isinstance(x2, Tensor):
        if not isinstance(x1, (int, float, complex)):
            return alike(name, operand(name, x1), x2)
        return number_beside(x1, x2), x2
    if isinstance(x1, (int, float, complex)) and isinstance(x2, (int, float, complex)):
        raise TypeError(
            f"{name}: at least one tensor expected, got {type(x1).__name__} and {type(x2).__name__}"
        )
    return alike(name, operand(name, x1), operand(name, x2))


def _unary(name: str, method: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def function(x: Tensor, /) -> Tensor:
        return method(x if isinstance(x, Tensor) else operand(name, x))

    return _named(function, name, method)


def _binary(name: str, method: Callable[[Tensor, Any], Tensor]) -> Callable[..., Tensor]:
    def function(x1: Any, x2: Any, /) -> Tensor:
        return method(*alike(name, x1, x2))

    return _named(function, name, method)


def _named(
    function: Callable[..., Tensor], name: str, method: Callable[..., Tensor]
) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "wengert.numpy"
    function.__doc__ = method.__doc__
    return function


for _table, _made in ((UNARY, _unary), (BINARY, _binary)):
    for _name, _method in _table.items():
        globals()[_name] = _made(_name, getattr(Tensor, _method))
        __all__.append(_name)


def _part(name: str) -> Callable[..., Tensor]:
    def function(x: Tensor, /) -> Tensor:
        return getattr(operand(name, x), name)

    return _named(function, name, getattr(Tensor, name))


for _name in ("imag", "real"):
    globals()[_name] = _part(_name)
    __all__.append(_name)


def round(x: Tensor, /) -> Tensor:
    """The nearest integers, of those equally near the even one; of both parts of complex numbers."""
    x = operand("round", x)
    return _core.complex(x.real.round(), x.imag.round()) if x.is_complex() else x.round()


def positive(x: Tensor, /) -> Tensor:
    """The same numbers, `+x`, as a copy."""
    return operand("positive", x).clone()


def conj(x: Tensor, /) -> Tensor:
    """The complex conjugate; of real numbers a copy."""
    x = operand("conj", x)
    return x.conj() if x.is_complex() else x.clone()


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Values limited to `[min, max]`, numbers or tensors that broadcast; the dtype of `x` stays."""
    x = operand("clip", x)
    if min is None and max is None:
        return x.clone()
    bounds = [b.to(x.dtype) if isinstance(b, Tensor) else b for b in (min, max)]
    if not x.dtype.is_differentiable:
        bounds = [_within(b, towards) for b, towards in zip(bounds, (math.ceil, math.floor), strict=True)]
    return x.clamp(*bounds)


def _within(bound: Any, towards: Any) -> Any:
    """A bound of integers as an integer, one that is beyond all of them included."""
    if not isinstance(bound, float):
        return bound
    return towards(bound) if math.isfinite(bound) else int(math.copysign(2**64, bound))
