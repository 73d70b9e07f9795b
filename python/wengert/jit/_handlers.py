"""Whether the code of a function handles errors itself."""

import contextlib
import dis
import types
from collections.abc import Mapping
from typing import Any, cast

from ._witness import root

__all__ = ["handles"]

# Steps before a call that compute nothing.
_PREPARING = ("PUSH_NULL", "KW_NAMES", "PRECALL")


def handles(code: types.CodeType, variables: Mapping[str, Any]) -> bool:
    """Whether the code has a handler of errors: `try`, or a `with` that may keep an error back.

    Those of this package (`autocast`, `no_grad`, ...) never do. A `with` is known as one of them where it
    calls a global name, or an attribute of a module under such a name; of Python 3.14, none is.

    Args:
        code: the code of a function.
        variables: its globals.
    """
    steps = list(dis.get_instructions(code))
    known = handlers = 0
    for i, step in enumerate(steps):
        if step.opname == "PUSH_EXC_INFO":
            if steps[i + 1].opname != "WITH_EXCEPT_START":
                return True
            handlers += 1
        elif step.opname == "BEFORE_WITH" and not step.is_jump_target:
            # Where steps jump to, it may be the value of another expression.
            known += _lets_errors_pass(_called(steps[:i], variables))
    return known != handlers


def _lets_errors_pass(made: Any) -> bool:
    """Whether what a function or class makes for a `with` is known to keep no error back."""
    module = made.__module__ if isinstance(made, type) else getattr(made, "__globals__", {}).get("__name__")
    return made is contextlib.nullcontext or (isinstance(module, str) and root(module) == "wengert")


def _called(steps: list[dis.Instruction], variables: Mapping[str, Any]) -> Any:
    """What the last of these steps calls, if that is a global name or an attribute of a module."""
    if not steps or steps[-1].opname != "CALL" or (call := _span(steps[-1])) is None:
        return None
    # The steps of the call: those of its part of the source.
    first = len(steps)
    while first and (part := _span(steps[first - 1])) and call[0] <= part[0] and part[1] <= call[1]:
        first -= 1
    # What begins where the call begins is the function: a name, its attributes, and nothing computed of them.
    parts = [
        step
        for step in steps[first:]
        if (part := _span(step)) and part[0] == call[0] and step.opname not in _PREPARING
    ]
    if parts[0].opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
        return None
    found = variables.get(parts[0].argval)
    for step in parts[1:-1]:
        if step.opname not in ("LOAD_ATTR", "LOAD_METHOD") or not isinstance(found, types.ModuleType):
            return None
        found = getattr(found, step.argval, None)
    return found


def _span(step: dis.Instruction) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Where a step's part of the source begins and ends: lines and columns."""
    at = step.positions
    if at is None or None in at:
        return None
    lineno, end_lineno, column, end_column = cast("tuple[int, int, int, int]", tuple(at))
    return (lineno, column), (end_lineno, end_column)
