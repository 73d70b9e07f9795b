"""What programs ask of `torch.jit`: marks that change nothing, and compilers of source code, of which there
is none.

`script` returns what it is given; what is about files of programs raises and says
what to do instead.
"""

import builtins
import warnings
from collections.abc import Callable
from typing import Any, Final, TypeVar, get_origin

from wengert._arguments import refusing

__all__ = [
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]
__dir__ = __all__.copy

F = TypeVar("F", bound=Callable[..., Any])
V = TypeVar("V")


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


_refused = refusing(
    "jit",
    "Python's source is not compiled here; "
    "call the function or module itself, and save parameters by wengert.save(module.state_dict(), path)",
)


_warned: list[str] = []


def _warn_once(name: str, stacklevel: int = 3) -> None:
    if name not in _warned:
        _warned.append(name)
        warnings.warn(
            f"{name}: operations run as they are called; the function is returned as it is",
            stacklevel=stacklevel,
        )


def script(obj: F, *args: Any, **kwargs: Any) -> F:
    """Returns the function, class or module `obj` as it is, and warns once: source code is not compiled.

    Its meaning is the same; what a compiled module has beside it, such as `save`, is not there.

    Args:
        obj: a function, class or module; further arguments are accepted.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     length = wg.jit.script(len)
        >>> length([1, 2])
        2
    """
    _warn_once("jit.script")
    return obj


def script_if_tracing(fn: F) -> F:
    """Returns the function `fn`: nothing is traced.

    Example:
        >>> wg.jit.script_if_tracing(len)([1, 2])
        2
    """
    return fn


def script_method(fn: F) -> F:
    """Returns the method `fn`.

    Example:
        >>> wg.jit.script_method(len)([1, 2])
        2
    """
    return fn


def annotate(the_type: Any, the_value: V) -> V:
    """Returns `the_value`, of which a program says that it has the type `the_type`.

    Example:
        >>> wg.jit.annotate(list[int], [])
        []
    """
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Tells whether `obj` is a member of the class `target_type`, or of one of several.

    Example:
        >>> wg.jit.isinstance(3, int)
        True
    """
    return builtins.isinstance(obj, get_origin(target_type) or target_type)


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls `func` at once and returns its result, which `wait` hands on.

    Example:
        >>> wg.jit.wait(wg.jit.fork(len, [1, 2]))
        2
    """
    return func(*args, **kwargs)


def wait(future: Any) -> Any:
    """Returns what `fork` returned.

    Example:
        >>> wg.jit.wait(wg.jit.fork(len, [1, 2]))
        2
    """
    return future


def freeze(mod: V, *args: Any, **kwargs: Any) -> V:
    """Returns the module `mod`.

    Example:
        >>> wg.jit.freeze(wg.nn.ReLU())
        ReLU()
    """
    return mod


def optimize_for_inference(mod: V, *args: Any, **kwargs: Any) -> V:
    """Returns the module `mod`.

    Example:
        >>> wg.jit.optimize_for_inference(wg.nn.ReLU())
        ReLU()
    """
    return mod


class ScriptFunction:
    """The class of compiled functions, of which there are none: for `isinstance`."""


class ScriptModule:
    """The class of compiled modules, of which there are none: for `isinstance`."""


@_refused('wg.nn.ReLU(), "model.pt"')
def save(m: Any, f: Any, *args: Any, **kwargs: Any) -> None:
    """Raises NotImplementedError: programs are not written to files.

    Args:
        m: a module.
        f: a file.
    """


@_refused('"model.pt"')
def load(f: Any, *args: Any, **kwargs: Any) -> None:
    """Raises NotImplementedError: programs are not read from files.

    Args:
        f: a file.
    """


@_refused("len, ([1],)")
def trace(func: Any, *args: Any, **kwargs: Any) -> None:
    """Raises NotImplementedError: programs are not traced to be saved."""


@_refused("wg.nn.ReLU(), {}")
def trace_module(mod: Any, inputs: Any, *args: Any, **kwargs: Any) -> None:
    """Raises NotImplementedError: programs are not traced to be saved.

    Args:
        mod: a module.
        inputs: its inputs, by method.
    """
