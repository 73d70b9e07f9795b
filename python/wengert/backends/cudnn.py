"""Switches of cuDNN, which is not here: they can be set, and change nothing."""

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["allow_tf32", "benchmark", "deterministic", "enabled", "flags", "is_available", "version"]
__dir__ = __all__.copy

# Results are the same bits every time, whatever these say.
enabled = False
benchmark = False
deterministic = True
allow_tf32 = False


def is_available() -> bool:
    """Tells whether cuDNN is here: False.

    Example:
        >>> wg.backends.cudnn.is_available()
        False
    """
    return False


def version() -> int | None:
    """Returns the version of cuDNN: None.

    Example:
        >>> wg.backends.cudnn.version()
    """
    return None


@contextlib.contextmanager
def flags(**_: Any) -> Iterator[None]:
    """Sets switches inside of a `with` block, where they change nothing.

    Example:
        >>> with wg.backends.cudnn.flags(enabled=False):
        ...     print(wg.ones(1))
        tensor([1.])
    """
    yield
