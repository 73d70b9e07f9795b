"""Arguments that are to be tensors, and what is raised where they are not."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, ParamSpec, TypeVar

from wengert import _core
from wengert._core import Tensor

__all__ = ["no_tensor", "of_tensors", "operand", "operands"]

P = ParamSpec("P")
R = TypeVar("R")


def operand(function: str, x: Any) -> Tensor:
    """`x` as a tensor.

    Raises:
        TypeError: names the function and what was given, for what is no tensor, number, list of numbers or array.
    """
    if isinstance(x, Tensor):
        return x
    try:
        return _core.as_tensor(x)
    except TypeError:
        raise TypeError(f"{function}: tensors, arrays or numbers expected, got {type(x).__name__}") from None


def operands(function: str, tensors: Any) -> list[Tensor]:
    """The members of a sequence as tensors; raises as `operand` does, and for what is no sequence."""
    if isinstance(tensors, Tensor):
        return list(tensors.unbind(0))
    if not isinstance(tensors, Iterable) or isinstance(tensors, str):
        raise TypeError(f"{function}: a sequence of tensors expected, got {type(tensors).__name__}")
    return [operand(function, x) for x in tensors]


def no_tensor(function: str, name: str, value: Any) -> TypeError:
    """The error for an argument that must be a tensor."""
    return TypeError(
        f"{function}: {name} must be a tensor, got {type(value).__name__}; convert it with wengert.tensor()"
    )


def of_tensors(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose arguments annotated as tensors must be tensors.

    Nothing is looked at unless the call fails: then an argument of another type is named as the reason. The wrapper
    costs 0.1 us, so functions of one short call check for themselves.
    """

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError) as error:
            _blame(function, error, args, kwargs)

    return checked


def _blame(function: Callable[..., Any], error: Exception, args: Any, kwargs: dict[str, Any]) -> NoReturn:
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        raise error from None
    for name, annotation in inspect.get_annotations(function).items():
        value = given.get(name, error)
        is_wanted = annotation is Tensor or (annotation == Tensor | None and value is not None)
        if is_wanted and not isinstance(value, Tensor) and value is not error:
            raise no_tensor(function.__name__, name, value) from None
    raise error
