"""What the families share: making a function a method, and arguments along an axis."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from wengert import _core
from wengert._arguments import axis_of, operand
from wengert._core import Tensor
from wengert._types import TensorLike

__all__ = ["method", "on_axis", "positions_like"]

F = TypeVar("F", bound=Callable[..., Any])


def method(function: F) -> F:
    """Makes a function a method of `Tensor`, which has none of that name.

    Returns the function of the package that follows from the method, and takes arrays and an `out` too.
    """
    made: F = _core._method(function, _signature(inspect.unwrap(function)))
    return made


def _signature(function: Any) -> str:
    """The parameters of a method as a builtin shows them:
    `($self, dim=None)`. `inspect.signature` is slower."""
    code, defaults = function.__code__, function.__defaults__ or ()
    named = code.co_varnames[: code.co_argcount]
    values: dict[str, Any] = dict(zip(named[len(named) - len(defaults) :], defaults, strict=True))
    only = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    values |= function.__kwdefaults__ or {}
    rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount :]
    listed = [f"{name}={values[name]!r}" if name in values else name for name in named[1:]]
    if code.co_flags & inspect.CO_VARARGS:
        listed.append(f"*{rest[0]}")
    elif only:
        listed.append("*")
    listed += [f"{name}={values[name]!r}" if name in values else name for name in only]
    return f"({', '.join(['$self', *listed])})"


def on_axis(name: str, x: Tensor, dim: int) -> tuple[Tensor, int]:
    """A tensor with at least one axis, and the axis counted from the front; raises as `axis_of`."""
    return (x if x.ndim else x.reshape(1)), axis_of(name, dim, max(x.ndim, 1))


def positions_like(x: Tensor, count: int) -> Tensor:
    """`0, 1, …, count - 1` where `x` lies, in the integer type that indices have there."""
    return _core.arange(0, count, dtype=index_dtype(x), device=x.device)


def index_dtype(x: Tensor) -> Any:
    """The integer type that indices have on the device of `x`."""
    return _core.int32 if x.is_gpu else _core.int64


def floating(name: str, x: TensorLike) -> Tensor:
    """A floating point tensor from anything that is one or an array of numbers.

    Raises:
        TypeError: integers and bools, which `float()` converts.
    """
    x = operand(name, x)
    if not x.is_floating_point():
        raise TypeError(
            f"{name}: a floating point tensor expected, got {x.dtype}; convert with .float() first"
        )
    return x
