"""The axes that have names where a program runs: what `psum` and its kin ask, and rules keep for later.

Read next: `transforms/axes.py`.
"""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

__all__ = ["AXES", "use_axes"]

#: By name, innermost last.
AXES: contextvars.ContextVar[dict[str, Any]] = contextvars.ContextVar("wengert_axes", default={})  # noqa: B039


@contextlib.contextmanager
def use_axes(axes: dict[str, Any]) -> Iterator[None]:
    """While it lasts, these are the axes that have names, and no others."""
    token = AXES.set(axes)
    try:
        yield
    finally:
        AXES.reset(token)
