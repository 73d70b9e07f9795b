"""Functions of each element: the methods of `Tensor`, under the standard's names and with its promotion.

One table of each kind. What differs: a number in a 0-d tensor counts as much as a tensor with axes when dtypes are
promoted, and either operand of a function of two may be a Python number.
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar

from wengert import _core
from wengert._arguments import is_beyond_int64, number_beside, operand
from wengert._core import Tensor

from ._dtypes import promoted

F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]


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


def _unary(name: str, method: Callable[..., Tensor]) -> Callable[[Any], Tensor]:
    def function(x: Any, /) -> Tensor:
        return method(x if isinstance(x, Tensor) else operand(name, x))

    return _named(function, name, method)


def _binary(name: str, method: Callable[..., Tensor]) -> Callable[[Any, Any], Tensor]:
    def function(x1: Any, x2: Any, /) -> Tensor:
        return method(*alike(name, x1, x2))

    return _named(function, name, method)


def _named(function: F, name: str, method: Any) -> F:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "wengert.numpy"
    function.__doc__ = method.__doc__
    return function


def _part(name: str) -> Callable[[Any], Tensor]:
    def function(x: Any, /) -> Tensor:
        return getattr(operand(name, x), name)

    return _named(function, name, getattr(Tensor, name))


abs = _unary("abs", Tensor.abs)
acos = _unary("acos", Tensor.acos)
acosh = _unary("acosh", Tensor.acosh)
asin = _unary("asin", Tensor.asin)
asinh = _unary("asinh", Tensor.asinh)
atan = _unary("atan", Tensor.atan)
atanh = _unary("atanh", Tensor.atanh)
bitwise_invert = _unary("bitwise_invert", Tensor.bitwise_not)
ceil = _unary("ceil", Tensor.ceil)
cos = _unary("cos", Tensor.cos)
cosh = _unary("cosh", Tensor.cosh)
exp = _unary("exp", Tensor.exp)
expm1 = _unary("expm1", Tensor.expm1)
floor = _unary("floor", Tensor.floor)
isfinite = _unary("isfinite", Tensor.isfinite)
isinf = _unary("isinf", Tensor.isinf)
isnan = _unary("isnan", Tensor.isnan)
log = _unary("log", Tensor.log)
log10 = _unary("log10", Tensor.log10)
log1p = _unary("log1p", Tensor.log1p)
log2 = _unary("log2", Tensor.log2)
logical_not = _unary("logical_not", Tensor.logical_not)
negative = _unary("negative", Tensor.negative)
reciprocal = _unary("reciprocal", Tensor.reciprocal)
sign = _unary("sign", Tensor.sign)
signbit = _unary("signbit", Tensor.signbit)
sin = _unary("sin", Tensor.sin)
sinh = _unary("sinh", Tensor.sinh)
sqrt = _unary("sqrt", Tensor.sqrt)
square = _unary("square", Tensor.square)
tan = _unary("tan", Tensor.tan)
tanh = _unary("tanh", Tensor.tanh)
trunc = _unary("trunc", Tensor.trunc)
imag, real = _part("imag"), _part("real")

add = _binary("add", Tensor.add)
atan2 = _binary("atan2", Tensor.atan2)
bitwise_and = _binary("bitwise_and", Tensor.bitwise_and)
bitwise_left_shift = _binary("bitwise_left_shift", Tensor.bitwise_left_shift)
bitwise_or = _binary("bitwise_or", Tensor.bitwise_or)
bitwise_right_shift = _binary("bitwise_right_shift", Tensor.bitwise_right_shift)
bitwise_xor = _binary("bitwise_xor", Tensor.bitwise_xor)
copysign = _binary("copysign", Tensor.copysign)
divide = _binary("divide", Tensor.divide)
equal = _binary("equal", Tensor.eq)
floor_divide = _binary("floor_divide", Tensor.floor_divide)
greater = _binary("greater", Tensor.greater)
greater_equal = _binary("greater_equal", Tensor.greater_equal)
hypot = _binary("hypot", Tensor.hypot)
less = _binary("less", Tensor.less)
less_equal = _binary("less_equal", Tensor.less_equal)
logaddexp = _binary("logaddexp", Tensor.logaddexp)
logical_and = _binary("logical_and", Tensor.logical_and)
logical_or = _binary("logical_or", Tensor.logical_or)
logical_xor = _binary("logical_xor", Tensor.logical_xor)
maximum = _binary("maximum", Tensor.maximum)
minimum = _binary("minimum", Tensor.minimum)
multiply = _binary("multiply", Tensor.multiply)
nextafter = _binary("nextafter", Tensor.nextafter)
not_equal = _binary("not_equal", Tensor.not_equal)
pow = _binary("pow", Tensor.pow)
remainder = _binary("remainder", Tensor.remainder)
subtract = _binary("subtract", Tensor.subtract)


def round(x: Tensor, /) -> Tensor:
    """Returns the nearest integers, of those equally near the even one; of both parts of complex numbers."""
    x = operand("round", x)
    return _core.complex(x.real.round(), x.imag.round()) if x.is_complex() else x.round()


def positive(x: Tensor, /) -> Tensor:
    """Returns the same numbers, `+x`, as a copy."""
    return operand("positive", x).clone()


def conj(x: Tensor, /) -> Tensor:
    """Returns the complex conjugate; of real numbers a copy."""
    x = operand("conj", x)
    return x.conj() if x.is_complex() else x.clone()


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Limits values to `[min, max]`, numbers or tensors that broadcast; the dtype of `x` stays."""
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
