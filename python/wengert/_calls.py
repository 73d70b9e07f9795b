"""Calls of functions that follow from methods, with a first argument that is no tensor yet, or an `out`.

Other calls do not come here: the builtins of the core hand them on to the method.
"""

import functools
from collections.abc import Callable
from typing import Any

from wengert._arguments import compared, first_beside
from wengert._core import Tensor

__all__ = ["general"]

# Comparisons, each with the one that exchanges its arguments: for a number on the left.
_REFLECTED = {"eq": "eq", "equal": "equal", "ge": "le", "gt": "lt", "le": "ge", "lt": "gt", "ne": "ne"}
# Comparisons whose result depends on the order of the arguments.
_CLOSE = ("allclose", "isclose")


@functools.cache
def _selection() -> type:
    """What a mask selects inside `vmap`, whose methods the functions are too."""
    from wengert.transforms.selection import Selection

    return Selection


def general(
    name: str, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> Any:
    """Calls the method with its first argument, `input`, made a tensor, and stores the result in `out`.

    Raises:
        TypeError: there is no first argument, or `out` is not what the result is.
        ShapeError: `out` has another shape than the result.
    """
    kwargs = dict(kwargs or {})
    out = kwargs.pop("out", None)
    if not args:
        if "input" not in kwargs:
            raise TypeError(f"{name}() missing 1 required positional argument: 'input'")
        args = (kwargs.pop("input"),)
    result = _result(name, method, args[0], args[1:], kwargs)
    return result if out is None else _store(name, out, result)


def _result(
    name: str, method: Callable[..., Any], input: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if isinstance(input, Tensor):
        return method(input, *args, **kwargs)
    if name.endswith("_"):
        raise TypeError(
            f"{name}: input must be a tensor, got {type(input).__name__}; convert it with wengert.tensor()"
        )
    if isinstance(input, _selection()):
        return getattr(input, name)(*args, **kwargs)
    other = args[0] if args else kwargs.get("other")
    if name in _REFLECTED and isinstance(other, Tensor) and isinstance(input, int):
        # The tensor compares with an integer that its dtype need not hold.
        return getattr(other, _REFLECTED[name])(input)
    if name in _CLOSE and isinstance(other, Tensor):
        input, other = compared(name, input, other)
        args, kwargs = (other, *args[1:]), {k: v for k, v in kwargs.items() if k != "other"}
    else:
        input = first_beside(name, input, args, kwargs)
    return method(input, *args, **kwargs)


def _store(name: str, out: Any, result: Any) -> Any:
    """Writes `result` into `out`, one tensor or several, and returns `out`."""
    if isinstance(result, bool):
        raise TypeError(f"{name}: the result is a Python bool, which no tensor receives; leave it out")
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{name}: out must be {len(result)} tensors, as the result is")
        for target, value in zip(out, result, strict=True):
            _store(name, target, value)
        return out
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}: out must be a tensor, got {type(out).__name__}")
    out._store(name, result)
    return out
