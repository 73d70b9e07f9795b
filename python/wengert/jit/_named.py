"""Arguments that settings of `jit` name, by number or by name."""

import inspect
from typing import Any

__all__ = ["named"]


def named(function: Any, setting: str, given: Any) -> frozenset[int | str]:
    """The numbers and the names of the arguments that a setting gives by one of them.

    Raises:
        TypeError: it is neither a number (or a name) nor several.
        ValueError: the function has no such argument.
    """
    kind, what = (str, "name") if setting.endswith("names") else (int, "number")
    one = isinstance(given, str) or not hasattr(given, "__iter__")
    items = [given] if one else list(given)
    if any(not isinstance(x, kind) or isinstance(x, bool) for x in items):
        raise TypeError(f"jit: {setting} is the {what} of an argument, or several, got {given!r}")
    if not items:
        return frozenset()
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return frozenset(items)
    names = [x.name for x in parameters if x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)]
    others = {x.name for x in parameters if x.kind == x.KEYWORD_ONLY}
    rest = inspect.Parameter.VAR_POSITIONAL if kind is int else inspect.Parameter.VAR_KEYWORD
    found: set[int | str] = set(items)
    for x in items:
        if isinstance(x, int) and -len(names) <= x < len(names):
            found -= {x}
            found |= {names[x], x % len(names)}
        elif x in names:
            found.add(names.index(x))
        elif x not in others and all(y.kind != rest for y in parameters):
            listed = ", ".join([*names, *sorted(others)]) or "none"
            raise ValueError(
                f"jit: {setting}={given!r}, and the function has no argument {x!r}; it has {listed}"
            )
    return frozenset(found)
