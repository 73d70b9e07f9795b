"""Functions of each element: the methods of `Tensor`, under the standard's names and with its promotion.

One table of each kind. What differs: a number in a 0-d tensor counts as much as a tensor with axes when
dtypes are promoted, and either operand of a function of two may be a Python number.
"""

import math
from collections.abc import Callable
from typing import Any

from wengert import _core
from wengert._arguments import is_beyond_int64, number_beside, operand
from wengert._core import Tensor

from ._dtypes import promoted
from ._rows import row

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

    Numbers alone become tensors of the default dtypes.
    """
    if isinstance(x1, Tensor):
        if isinstance(x2, Tensor):
            if x1.dtype is x2.dtype or (x1.ndim == 0) == (x2.ndim == 0):
                return x1, x2
            dtype = promoted(x1.dtype, x2.dtype)
            return x1.to(dtype), x2.to(dtype)
        if isinstance(x2, (int, float, complex)):
            return x1, number_beside(x2, x1) if is_beyond_int64(x2) else x2
        return alike(name, x1, operand(name, x2, x1))
    if isinstance(x2, Tensor):
        if not isinstance(x1, (int, float, complex)):
            return alike(name, operand(name, x1, x2), x2)
        return number_beside(x1, x2), x2
    if isinstance(x1, (int, float, complex)) and not isinstance(x2, (int, float, complex)):
        return alike(name, x1, operand(name, x2))
    return alike(name, operand(name, x1), x2)


def unary(name: str, method: Callable[..., Tensor]) -> Callable[[Any], Tensor]:
    def function(x: Any, /) -> Tensor:
        return method(x if isinstance(x, Tensor) else operand(name, x))

    return row(name, function, method)


def binary(name: str, method: Callable[..., Tensor]) -> Callable[[Any, Any], Tensor]:
    def function(x1: Any, x2: Any, /) -> Tensor:
        return method(*alike(name, x1, x2))

    return row(name, function, method)


def _part(name: str) -> Callable[[Any], Tensor]:
    def function(x: Any, /) -> Tensor:
        return getattr(operand(name, x), name)

    return row(name, function, getattr(Tensor, name))


abs = unary("abs", Tensor.abs)
acos = unary("acos", Tensor.acos)
acosh = unary("acosh", Tensor.acosh)
asin = unary("asin", Tensor.asin)
asinh = unary("asinh", Tensor.asinh)
atan = unary("atan", Tensor.atan)
atanh = unary("atanh", Tensor.atanh)
bitwise_invert = unary("bitwise_invert", Tensor.bitwise_not)
ceil = unary("ceil", Tensor.ceil)
cos = unary("cos", Tensor.cos)
cosh = unary("cosh", Tensor.cosh)
exp = unary("exp", Tensor.exp)
expm1 = unary("expm1", Tensor.expm1)
floor = unary("floor", Tensor.floor)
isfinite = unary("isfinite", Tensor.isfinite)
isinf = unary("isinf", Tensor.isinf)
isnan = unary("isnan", Tensor.isnan)
log = unary("log", Tensor.log)
log10 = unary("log10", Tensor.log10)
log1p = unary("log1p", Tensor.log1p)
log2 = unary("log2", Tensor.log2)
logical_not = unary("logical_not", Tensor.logical_not)
negative = unary("negative", Tensor.negative)
reciprocal = unary("reciprocal", Tensor.reciprocal)
sign = unary("sign", Tensor.sign)
signbit = unary("signbit", Tensor.signbit)
sin = unary("sin", Tensor.sin)
sinh = unary("sinh", Tensor.sinh)
sqrt = unary("sqrt", Tensor.sqrt)
square = unary("square", Tensor.square)
tan = unary("tan", Tensor.tan)
tanh = unary("tanh", Tensor.tanh)
trunc = unary("trunc", Tensor.trunc)
imag, real = _part("imag"), _part("real")

add = binary("add", Tensor.add)
atan2 = binary("atan2", Tensor.atan2)
bitwise_and = binary("bitwise_and", Tensor.bitwise_and)
bitwise_left_shift = binary("bitwise_left_shift", Tensor.bitwise_left_shift)
bitwise_or = binary("bitwise_or", Tensor.bitwise_or)
bitwise_right_shift = binary("bitwise_right_shift", Tensor.bitwise_right_shift)
bitwise_xor = binary("bitwise_xor", Tensor.bitwise_xor)
copysign = binary("copysign", Tensor.copysign)
divide = binary("divide", Tensor.divide)
equal = binary("equal", Tensor.eq)
floor_divide = binary("floor_divide", Tensor.floor_divide)
greater = binary("greater", Tensor.greater)
greater_equal = binary("greater_equal", Tensor.greater_equal)
hypot = binary("hypot", Tensor.hypot)
less = binary("less", Tensor.less)
less_equal = binary("less_equal", Tensor.less_equal)
logaddexp = binary("logaddexp", Tensor.logaddexp)
logical_and = binary("logical_and", Tensor.logical_and)
logical_or = binary("logical_or", Tensor.logical_or)
logical_xor = binary("logical_xor", Tensor.logical_xor)
maximum = binary("maximum", Tensor.maximum)
minimum = binary("minimum", Tensor.minimum)
multiply = binary("multiply", Tensor.multiply)
nextafter = binary("nextafter", Tensor.nextafter)
not_equal = binary("not_equal", Tensor.not_equal)
pow = binary("pow", Tensor.pow)
remainder = binary("remainder", Tensor.remainder)
subtract = binary("subtract", Tensor.subtract)


def round(x: Tensor, /, decimals: int = 0) -> Tensor:
    """Returns the nearest integers, or numbers of so many decimals, of those equally near the even one; of
    both parts of complex numbers.
    """
    x = operand("round", x)
    if x.is_complex():
        return _core.complex(x.real.round(decimals=decimals), x.imag.round(decimals=decimals))
    return x.round(decimals=decimals)


def positive(x: Tensor, /) -> Tensor:
    """Returns the same numbers, `+x`, as a copy."""
    return operand("positive", x).clone()


def conj(x: Tensor, /) -> Tensor:
    """Returns the complex conjugate; of real numbers a copy."""
    x = operand("conj", x)
    return x.conj() if x.is_complex() else x.clone()


def clip(x: Tensor, /, min: Any = None, max: Any = None, *, a_min: Any = None, a_max: Any = None) -> Tensor:
    """Limits values to `[min, max]`, numbers or tensors that broadcast; the dtype of `x` stays.

    Args:
        a_min, a_max: NumPy's older names of `min` and `max`.
    """
    x, min, max = operand("clip", x), a_min if min is None else min, a_max if max is None else max
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
