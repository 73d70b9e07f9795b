"""The precision in which functions made of several operations run.

An operation of the core accumulates halves in float32, rounds once, and has its precision under autocast in the list of
operations. A function made of several is to behave as one operation does; these decorators say how.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from wengert import _core
from wengert._core import Tensor

__all__ = ["in_float32", "in_given", "in_low", "in_widest", "lowered", "rounded"]

P = ParamSpec("P")
R = TypeVar("R")

_HALVES = (_core.float16, _core.bfloat16)
#: What autocast converts: float64 is the user's own choice.
_ELIGIBLE = (*_HALVES, _core.float32)


def in_float32(function: Callable[P, R]) -> Callable[P, R]:
    """A function that computes with halves in float32 and rounds its results to their type once.

    Under autocast the results stay float32.
    """

    @functools.wraps(function)
    def widened(*args: P.args, **kwargs: P.kwargs) -> R:
        for x in (*args, *kwargs.values()):
            if isinstance(x, Tensor) and x.dtype in _HALVES:
                break
        else:
            return function(*args, **kwargs)
        dtypes = {x.dtype for x in _floats(args, kwargs)}
        out = _run(function, args, kwargs, _HALVES, _core.float32)
        if len(dtypes) > 1 or _core.is_autocast_enabled():
            return out
        return _converted(out, dtypes.pop())

    return widened


def in_low(function: Callable[P, R]) -> Callable[P, R]:
    """A function that autocast runs in the low precision of the region."""

    @functools.wraps(function)
    def lowering(*args: P.args, **kwargs: P.kwargs) -> R:
        low = _core.get_autocast_dtype()
        if low is None:
            return function(*args, **kwargs)
        with _uncast():
            return _run(function, args, kwargs, _ELIGIBLE, low)

    return lowering


def in_widest(function: Callable[P, R]) -> Callable[P, R]:
    """A function that autocast runs in the widest type of its operands."""

    @functools.wraps(function)
    def widening(*args: P.args, **kwargs: P.kwargs) -> R:
        if not _core.is_autocast_enabled():
            return function(*args, **kwargs)
        dtypes = {x.dtype for x in _floats(args, kwargs)}.intersection(_ELIGIBLE)
        widest = dtypes.pop() if len(dtypes) == 1 else _core.float32
        with _uncast():
            return _run(function, args, kwargs, _ELIGIBLE, widest)

    return widening


def in_given(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose result has the type of its first operand under autocast too, where its parts run in float32."""

    @functools.wraps(function)
    def restored(*args: P.args, **kwargs: P.kwargs) -> R:
        out = function(*args, **kwargs)
        x = args[0] if args else None
        if isinstance(x, Tensor) and x.dtype in _HALVES and _core.is_autocast_enabled():
            return _converted(out, x.dtype)
        return out

    return restored


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


def _floats(args: Any, kwargs: dict[str, Any]) -> Iterator[Tensor]:
    """The floating point tensors among arguments."""
    for x in (*args, *kwargs.values()):
        if isinstance(x, Tensor) and x.dtype.is_floating_point:
            yield x


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
