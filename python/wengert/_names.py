"""Other names of arguments: those that PyTorch's functions and methods have where the core's differ.

One table. `_functions.py` reads it for functions, whose keywords cost nothing there; methods of the table are replaced
by ones that know the names, but for those that are called so often that a tenth of a microsecond matters.
"""

import functools
from collections.abc import Callable
from typing import Any

from wengert._core import Tensor

__all__ = ["known", "renamed"]

# Per method, PyTorch's name of an argument and ours. A star: all positional arguments in one.
_NAMES = {
    "broadcast_to": {"size": "*"},
    "dot": {"tensor": "other"},
    "expand": {"size": "*"},
    "flip": {"dims": "*", "axis": "*"},
    "heaviside": {"values": "other"},
    "matmul": {"tensor2": "other"},
    "max": {"other": "dim"},
    "min": {"other": "dim"},
    "permute": {"dims": "*"},
    "pow": {"exponent": "other"},
    "repeat": {"repeats": "*"},
    "reshape": {"shape": "*"},
    "split": {"split_size_or_sections": "split_size"},
    "swapaxes": {"dim0": "axis0", "dim1": "axis1"},
    "tile": {"dims": "*"},
    "uniform_": {"from": "low", "to": "high"},
    "view": {"size": "*"},
}

# Methods that stay the core's own.
_HOT = frozenset("dot expand matmul max min permute pow reshape view".split())


def known(name: str) -> bool:
    """Whether some argument of a method has another name."""
    return name in _NAMES


def renamed(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of the method `name` under the names it has."""
    names = _NAMES[name]
    for given in [key for key in kwargs if key in names]:
        own = names[given]
        if own == "*":
            if args:
                raise TypeError(f"{name}: {given} is given by position and by name; give it once")
            value = kwargs.pop(given)
            args = (value,)
        elif own in kwargs:
            raise TypeError(f"{name}: {given} and {own} are names of one argument; give one of them")
        else:
            kwargs[own] = kwargs.pop(given)
    return args, kwargs


def _with_names(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def wrapper(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            return method(self, *args)
        args, kwargs = renamed(name, args, kwargs)
        return method(self, *args, **kwargs)

    return wrapper


for _name in _NAMES:
    if _name not in _HOT:
        setattr(Tensor, _name, _with_names(_name, getattr(Tensor, _name)))
