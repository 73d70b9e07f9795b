"""The precision in which functions made of several operations run.

An operation of the core accumulates float16 and bfloat16 in float32, rounds once, and has its precision under
autocast in the list of operations. A function made of several is to behave as one operation does; these
decorators say how.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from wengert import _core
from wengert._core import Tensor

__all__ = ["in_float32", "in_floats", "in_full", "in_low", "in_widest", "lowered", "rounded", "rounding_once"]

P = ParamSpec("P")
R = TypeVar("R")

_HALVES = (_core.float16, _core.bfloat16)
_SIGNED, _UNSIGNED = (
    tuple(getattr(_core, f"{kind}{bits}") for bits in (8, 16, 32, 64)) for kind in ("int", "uint")
)
_DISCRETE = (_core.bool, *_SIGNED, *_UNSIGNED)
#: What autocast converts: float64 is the user's own choice.
_ELIGIBLE = (*_HALVES, _core.float32)


def in_float32(function: Callable[P, R]) -> Callable[P, R]:
    """A function that computes with float16 and bfloat16 in float32 and rounds its results to their type
    once.

    Under autocast the results stay float32.
    """
    return _widened(function, True)


def rounding_once(function: Callable[P, R]) -> Callable[P, R]:
    """A function of single elements that computes with float16 and bfloat16 in float32 and rounds its results
    to their type once.

    That is so under autocast too: its results have the type of its operands.
    """
    return _widened(function, False)


def _widened(function: Callable[P, R], autocast_widens: bool) -> Callable[P, R]:
    """The function in float32 wherever an operand is of a half type."""

    @functools.wraps(function)
    def widened(*args: P.args, **kwargs: P.kwargs) -> R:
        for x in args:
            # Looking at the size is several times faster than comparing types.
            if isinstance(x, Tensor) and x.itemsize == 2 and x.dtype in _HALVES:
                break
        else:
            if not (kwargs and _has_half(kwargs)):
                return function(*args, **kwargs)
        out = _run(function, args, kwargs, _HALVES, _core.float32)
        if autocast_widens and _core.is_autocast_enabled():
            return out
        dtype = _only_dtype(args, kwargs)
        return out if dtype is None else _converted(out, dtype)

    return widened


def in_floats(function: Callable[P, R]) -> Callable[P, R]:
    """A function of floating point numbers: integers and bools among its operands become float32,
    which does not wrap.
    """

    @functools.wraps(function)
    def floating(*args: P.args, **kwargs: P.kwargs) -> R:
        for x in (*args, *kwargs.values()):
            if isinstance(x, Tensor) and not (x.is_floating_point() or x.is_complex()):
                return _run(function, args, kwargs, _DISCRETE, _core.float32)
        return function(*args, **kwargs)

    return floating


def in_low(function: Callable[P, R]) -> Callable[P, R]:
    """A function that autocast runs in the low precision of the region."""
    return _under_autocast(function, _ELIGIBLE, lambda low, *_: low)


def in_widest(function: Callable[P, R]) -> Callable[P, R]:
    """A function that autocast runs in the widest type of its operands."""

    def widest(_: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        dtypes = {x.dtype for x in _floats(args, kwargs)}.intersection(_ELIGIBLE)
        return dtypes.pop() if len(dtypes) == 1 else _core.float32

    return _under_autocast(function, _ELIGIBLE, widest)


def in_full(function: Callable[P, R]) -> Callable[P, R]:
    """A function that autocast runs in float32, the products in it included."""
    return _under_autocast(function, _HALVES, lambda *_: _core.float32)


def _under_autocast(
    function: Callable[P, R], dtypes: tuple[Any, ...], to: Callable[..., Any]
) -> Callable[P, R]:
    """The function with arguments of some types converted, and no casts inside, where autocast is on.

    `to` tells the type, from the low precision of the region and the arguments.
    """

    @functools.wraps(function)
    def cast(*args: P.args, **kwargs: P.kwargs) -> R:
        low = _core.get_autocast_dtype()
        if low is None:
            return function(*args, **kwargs)
        with _uncast():
            return _run(function, args, kwargs, dtypes, to(low, args, kwargs))

    return cast


def lowered(x: Tensor) -> Tensor:
    """The tensor in the low precision of the autocast region; outside of one as it is."""
    low = _core.get_autocast_dtype()
    return x if low is None or x.dtype not in _ELIGIBLE else x.to(low)


def rounded(x: Tensor, dtype: Any) -> Tensor:
    """A result computed in float32 in the type of its operand; under autocast as it is."""
    return x if _core.is_autocast_enabled() else x.to(dtype)


def _uncast() -> Any:
    """A region without casts."""
    from wengert.autograd.autocast import autocast

    return autocast(enabled=False)


def _has_half(kwargs: dict[str, Any]) -> bool:
    """Whether a tensor among keyword arguments is of a half type."""
    return any(isinstance(x, Tensor) and x.dtype in _HALVES for x in kwargs.values())


def _floats(args: Any, kwargs: dict[str, Any]) -> Iterator[Tensor]:
    """The floating point tensors among arguments."""
    for x in (*args, *kwargs.values()):
        if isinstance(x, Tensor) and x.dtype.is_floating_point:
            yield x


def _only_dtype(args: Any, kwargs: dict[str, Any]) -> Any:
    """The dtype of the floating point tensors among arguments; None for several.
    Those without axes follow others.
    """
    dtypes = {x.dtype for x in _floats(args, kwargs) if x.ndim} or {x.dtype for x in _floats(args, kwargs)}
    return dtypes.pop() if len(dtypes) == 1 else None


def _run(function: Callable[..., Any], args: Any, kwargs: Any, dtypes: tuple[Any, ...], to: Any) -> Any:
    """Calls with the tensors of some types converted."""

    def convert(x: Any) -> Any:
        return x.to(to) if isinstance(x, Tensor) and x.dtype in dtypes else x

    return function(*[convert(x) for x in args], **{name: convert(x) for name, x in kwargs.items()})


def _converted(out: Any, dtype: Any) -> Any:
    """The floating point results in another type."""
    if isinstance(out, tuple):
        parts = [_converted(x, dtype) for x in out]
        return type(out)(*parts) if hasattr(out, "_fields") else tuple(parts)
    return out.to(dtype) if isinstance(out, Tensor) and out.dtype.is_floating_point else out
