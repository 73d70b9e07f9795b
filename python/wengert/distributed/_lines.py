"""The line of a user's program at which a thread is: what messages about ranks name."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["NOWHERE", "Line", "caller_line", "is_library", "line_of", "format_line", "on_behalf_of"]

_LIBRARIES = tuple(
    {sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, "<frozen"}
)
_local = threading.local()


#: A file, a line and a function; what to say of it is found when it is said.
Line = tuple[str, int, str]
NOWHERE: Line = ("", 0, "")


@contextlib.contextmanager
def on_behalf_of(line: Line) -> Iterator[None]:
    """While it lasts, this thread works for that line of the program."""
    before = getattr(_local, "line", None)
    _local.line = line
    try:
        yield
    finally:
        _local.line = before


def caller_line() -> Line:
    """The line that called into this package."""
    return getattr(_local, "line", None) or line_of(sys._getframe(1))


def line_of(frame: FrameType | None) -> Line:
    """The innermost line of `frame` and its callers that is in no library."""
    first = frame
    while frame is not None:
        if not is_library(frame.f_code.co_filename):
            break
        frame = frame.f_back
    frame = frame or first
    return NOWHERE if frame is None else (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def format_line(line: Line) -> str:
    """The line in words."""
    path, number, function = line
    if not path:
        return "no line of Python"
    return f"{_short(path)}, line {number}" + ("" if function == "<module>" else f", in {function}")


@functools.cache
def is_library(path: str) -> bool:
    return path.startswith(_LIBRARIES)


@functools.cache
def _short(path: str) -> str:
    with contextlib.suppress(ValueError, OSError):
        return min(path, os.path.relpath(path), key=len) if os.path.isabs(path) else path
    return path
