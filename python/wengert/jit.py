"""What programs ask of `torch.jit`: marks that change nothing, and compilers of source code, of which there is none.

Operations run as they are called. `script` and `trace` raise and say what to do instead.
"""

import warnings
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar, overload

__all__ = [
    "Final",
    "compile",
    "export",
    "ignore",
    "is_scripting",
    "is_tracing",
    "script",
    "trace",
    "unused",
]

F = TypeVar("F", bound=Callable[..., Any])


def is_scripting() -> bool:
    """Tells whether this code is being compiled: False.

    Example:
        >>> wg.jit.is_scripting()
        False
    """
    return False


def is_tracing() -> bool:
    """Tells whether this code is being traced: False.

    Example:
        >>> wg.jit.is_tracing()
        False
    """
    return False


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Returns the function that it decorates, with or without arguments in between.

    Args:
        drop: the function, or a setting that changes nothing; so do others.

    Example:
        >>> @wg.jit.ignore
        ... def twice(x):
        ...     return 2 * x
        >>> twice(3)
        6
    """
    return drop if callable(drop) else lambda function: function


def unused(fn: F) -> F:
    """Returns the function `fn`.

    Example:
        >>> wg.jit.unused(len)([1, 2])
        2
    """
    return fn


def export(fn: F) -> F:
    """Returns the function `fn`.

    Example:
        >>> wg.jit.export(len)([1, 2])
        2
    """
    return fn


def _refused(name: str) -> NoReturn:
    raise NotImplementedError(
        f"jit.{name}: Python's source is not compiled here; call the function or module itself, and save parameters "
        "by wengert.save(module.state_dict(), path)"
    )


def script(obj: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: source code is not compiled.

    Example:
        >>> try:
        ...     wg.jit.script(len)
        ... except NotImplementedError as error:
        ...     print(str(error).split(";")[0])
        jit.script: Python's source is not compiled here
    """
    _refused("script")


def trace(func: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: programs are not traced to be saved.

    Example:
        >>> try:
        ...     wg.jit.trace(len, ([1],))
        ... except NotImplementedError as error:
        ...     print(str(error).split(";")[0])
        jit.trace: Python's source is not compiled here
    """
    _refused("trace")


_warned: list[bool] = []


@overload
def compile(model: F, **settings: Any) -> F: ...
@overload
def compile(model: None = None, **settings: Any) -> Callable[[F], F]: ...
def compile(model: Any = None, **settings: Any) -> Any:
    """Returns the function or module as it is, and warns once: operations run as they are called.

    Args:
        model: a function or a module; without one, a decorator is returned.
        settings: PyTorch's (`mode`, `backend`, `fullgraph`, …), which change nothing.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     length = wg.compile(len, mode="default")
        >>> length([1, 2])
        2
    """
    if not _warned:
        _warned.append(True)
        warnings.warn(
            "compile: operations run as they are called; the function is returned as it is", stacklevel=2
        )
    return model if model is not None else lambda function: function


def __dir__() -> list[str]:
    """What is public."""
    return __all__
