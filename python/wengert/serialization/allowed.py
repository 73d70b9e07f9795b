"""Classes and functions that a program allows files to name, beside plain data."""

import contextlib
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals"]

Names = dict[tuple[str, str], Any]
# By the module and the name under which a file knows them: for good, and inside of `with` blocks of this
# thread.
_ALLOWED: Names = {}
_INSIDE: ContextVar[Names | None] = ContextVar("_INSIDE", default=None)


def _all() -> Names:
    return {**_ALLOWED, **(_INSIDE.get() or {})}


def allowed(module: str, name: str) -> Any:
    """What the program allows under this name; None if nothing."""
    return _all().get((module, name))


def is_allowed(thing: Any) -> bool:
    """Whether the program allows files to call this."""
    return any(thing is one for one in _all().values())


def _named(thing: Any) -> tuple[tuple[str, str], Any]:
    if isinstance(thing, tuple) and len(thing) == 2 and isinstance(thing[1], str):
        module, _, name = thing[1].rpartition(".")
        return (module, name), thing[0]
    home, own = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not callable(thing) or not isinstance(home, str) or not isinstance(own, str):
        raise TypeError(
            "add_safe_globals: classes and functions expected, or pairs of one and its name in the file, got "
            f"{thing!r}"
        )
    return (home, own), thing


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Allows files that `load` reads to name these classes and functions, and to call them.

    A file chooses their arguments, so allow only what does no harm with any.

    Args:
        safe_globals: classes and functions, or pairs `(class, "module.name")` of one and the name that files
            have for it.

    Raises:
        TypeError: for what is neither.

    Example:
        >>> import fractions
        >>> wg.serialization.add_safe_globals([fractions.Fraction])
        >>> wg.serialization.get_safe_globals()
        [<class 'fractions.Fraction'>]
        >>> wg.serialization.clear_safe_globals()
    """
    _ALLOWED.update([_named(thing) for thing in safe_globals])


def get_safe_globals() -> list[Any]:
    """Returns what files may name and call, beside plain data.

    Example:
        >>> wg.serialization.get_safe_globals()
        []
    """
    return list(_all().values())


def clear_safe_globals() -> None:
    """Allows files nothing but plain data again.

    Example:
        >>> wg.serialization.clear_safe_globals()
    """
    _ALLOWED.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: Iterable[Any]) -> Iterator[None]:
    """Allows files to name these inside of a `with` block, in this thread, as `add_safe_globals` does for
    good.

    Example:
        >>> import fractions, io
        >>> file = io.BytesIO()
        >>> wg.save(fractions.Fraction(1, 3), file)
        >>> _ = file.seek(0)
        >>> with wg.serialization.safe_globals([fractions.Fraction]):
        ...     print(wg.load(file))
        1/3
    """
    token = _INSIDE.set({**(_INSIDE.get() or {}), **dict(_named(thing) for thing in safe_globals)})
    try:
        yield
    finally:
        _INSIDE.reset(token)
