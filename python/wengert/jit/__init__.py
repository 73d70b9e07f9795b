"""Functions that run as programs of kernels; and what programs ask of `torch.jit`.

The module itself is the decorator: `wengert.jit(f)` is `wengert.jit.stage(f)`.
"""

import builtins
import functools
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar, overload

from wengert.nn.module import Module

from . import scripts
from ._function import Staged
from ._lowered import Compiled, Lowered, ShapeDtypeStruct, eval_shape, make_graph
from ._named import named
from ._shown import Cost, CostRow, Memory, Program, ProgramStep
from .scripts import *

__all__ = [
    "compile",
    "stage",
    "Staged",
    "Compiled",
    "Cost",
    "CostRow",
    "Lowered",
    "Memory",
    "Program",
    "ProgramStep",
    "ShapeDtypeStruct",
    "eval_shape",
    "make_graph",
]
__all__ += scripts.__all__

_MOST_TRACES = 8

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


@overload
def compile(model: F, **settings: Any) -> F: ...
@overload
def compile(model: None = None, **settings: Any) -> Callable[[F], F]: ...
def compile(model: Any = None, **settings: Any) -> Any:
    """Returns the function, staged as by `wengert.jit`; a module itself, whose `forward` is staged.

    A whole step, with the module's backward and the optimiser in it, gains more than the module alone. Copies
    are staged, too; what is read from a pickle is not.

    Args:
        model: a function or a module; without one, a decorator is returned.
        settings: those of `wengert.jit`; PyTorch's (`mode`, `backend`, `fullgraph`, `dynamic`, `options`)
            change nothing, but for `disable=True`, which returns the function as it is.

    Raises:
        TypeError: for what cannot be called, and for other settings.

    Example:
        >>> @wg.compile
        ... def double(x):
        ...     return 2 * x
        >>> double(wg.ones(2))
        tensor([2., 2.])
    """
    own = {name: x for name, x in settings.items() if name not in _OF_PYTORCH}
    _check(own)
    if model is None:
        return functools.partial(compile, **settings)
    if settings.get("disable"):
        return model
    if not callable(model):
        raise TypeError(f"compile: a function or a module expected, got {type(model).__name__}")
    if builtins.isinstance(model, Module):
        model.forward = stage(model.forward, **own)  # type: ignore[method-assign]
        return model
    return stage(model, **own)


def stage(
    function: Callable[P, R],
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
    donate_argnames: str | Iterable[str] = (),
    max_traces: int | None = None,
    check: bool = False,
) -> Staged[P, R]:
    """Returns the function, which runs once as Python and then as a program of the kernels that it ran.

    This is what `wengert.jit(function)` does, as a decorator too. A program has the bits of the function, in
    what it returns and in what it changes: gradients, parameters, buffers, random numbers. It is made anew
    for arguments of other shapes or dtypes, other numbers and texts, and where what the function reads beside
    its arguments has changed. A truth value or an integer that decides what follows is checked at each call.
    Calls of optimisers, schedules, gradient scalers and averaged models stay calls. What cannot be repeated
    (values that leave as floats or arrays, tensors kept elsewhere) runs as Python, as
    it would without; `why()` says what it was.

    Args:
        function: takes and returns trees of tensors and other values.
        static_argnums, static_argnames: arguments, by number or name, whose objects say themselves which are
            equal (by `__eq__` and `__hash__`): equal ones have one program. All other arguments that are no
            tensors are compared by value or by identity, so numbers, texts and functions need no mention.
        donate_argnums, donate_argnames: arguments, by number or name, that the call may use up. The memory of
            their tensors is free for results as soon as the program has read it for the last time (unless a
            view or another object has it, too), and any later use of these tensors raises RuntimeError; an
            error in the call may cost them, too. Tensors that require gradients are left alone, as are those
            that the function returns, all of a call whose results have a history, and of calls inside of a
            transform or of another jitted function.
        max_traces: so often the function is written down for arguments of one kind, before it stays Python:
            8 times, or as often as a function that is jitted already says.
        check: for debugging: every call of a program also runs the function as Python, on what the call
            found, and compares the bits of results, arguments, parameters, buffers, gradients, random numbers
            and of all that optimisers and schedules keep. A difference raises RuntimeError, which names the
            first. What is left is what the function leaves. A call takes the time of both, and the memory of
            three copies of all these tensors. Steps of optimisers run twice; what they write elsewhere, such
            as a list to which a hook appends, is not taken back.

    Raises:
        TypeError: for what cannot be called, for a `max_traces` that is no integer, a `check` that is no
            bool, and numbers or names of arguments that are none.
        ValueError: for a `max_traces` below 1, and for arguments that the function does not have.

    Example:
        >>> @wg.jit
        ... def f(x):
        ...     return (x * 2).sin()
        >>> f(wg.zeros(2))
        tensor([0., 0.])
        >>> f.operations(wg.zeros(2))
        ['mul', 'sin']
    """
    if not callable(function):
        raise TypeError(f"jit: a function expected, got {type(function).__name__}")
    if max_traces is not None:
        if builtins.isinstance(max_traces, bool) or not builtins.isinstance(max_traces, int):
            raise TypeError(f"jit: max_traces is an integer, got {max_traces!r}")
        if max_traces < 1:
            raise ValueError(f"jit: max_traces is at least 1, got {max_traces}")
    if not builtins.isinstance(check, bool):
        raise TypeError(f"jit: check is True or False, got {check!r}")
    static = named(function, "static_argnums", static_argnums)
    static |= named(function, "static_argnames", static_argnames)
    donated = named(function, "donate_argnums", donate_argnums)
    donated |= named(function, "donate_argnames", donate_argnames)
    if builtins.isinstance(function, Staged):
        most, checks = max_traces or function._max_traces, check or function._check
        is_same = (most, checks) == (function._max_traces, function._check)
        static, donated = static | function._static, donated | function._donated
        is_same = is_same and (static, donated) == (function._static, function._donated)
        return function if is_same else Staged(function._function, most, checks, static, donated)
    return Staged(function, max_traces or _MOST_TRACES, check, static, donated)


# What `torch.compile` has, too.
_OF_PYTORCH = {"mode", "backend", "fullgraph", "dynamic", "options", "disable"}
_SETTINGS = {
    *("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "max_traces", "check"),
}


class _Decorator(types.ModuleType):
    """A module that can be called, as `jax.jit` is."""

    def __call__(self, function: Any = None, **settings: Any) -> Any:
        _check(settings)
        if function is None:
            return functools.partial(stage, **settings)
        return stage(function, **settings)


def _check(settings: dict[str, Any]) -> None:
    if unknown := sorted(settings.keys() - _SETTINGS):
        raise TypeError(f"jit: unexpected argument {unknown[0]!r}; expected {', '.join(sorted(_SETTINGS))}")


sys.modules[__name__].__class__ = _Decorator


def __dir__() -> list[str]:
    """What is public."""
    return __all__
