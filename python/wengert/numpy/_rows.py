"""How a row of a table becomes a function: a name, NumPy's signature as a lambda, and what it says of
itself."""

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["row"]

F = TypeVar("F", bound=Callable[..., Any])


def row(name: str, function: F, said: Any) -> F:
    """Gives a function its name, in tracebacks and errors too, and its documentation: a text, or that of
    another."""
    made: Any = function
    made.__code__ = made.__code__.replace(co_name=name, co_qualname=name)
    function.__name__ = function.__qualname__ = name
    function.__module__ = "wengert.numpy"
    function.__doc__ = said if isinstance(said, str) else said.__doc__
    return function
