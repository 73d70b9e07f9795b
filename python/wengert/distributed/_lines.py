"""The line of a user's program at which a thread is: what messages about ranks name."""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["here", "line_of", "speaking_for"]

_LIBRARIES = tuple(
    {sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, "<frozen"}
)
_local = threading.local()


@contextlib.contextmanager
def speaking_for(line: str) -> Iterator[None]:
    """While it lasts, this thread works for that line of the program."""
    before = getattr(_local, "line", None)
    _local.line = line
    try:
        yield
    finally:
        _local.line = before


def here() -> str:
    """The line that called into this package."""
    line: str | None = getattr(_local, "line", None)
    return line or line_of(sys._getframe(1))


def line_of(frame: FrameType | None) -> str:
    """The innermost line of `frame` and its callers that is in no library."""
    first = frame
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_LIBRARIES):
            return _named(frame)
        frame = frame.f_back
    return "no line of Python" if first is None else _named(first)


def _named(frame: FrameType) -> str:
    path = frame.f_code.co_filename
    with contextlib.suppress(ValueError, OSError):
        path = min(path, os.path.relpath(path), key=len) if os.path.isabs(path) else path
    function = frame.f_code.co_qualname if sys.version_info >= (3, 11) else frame.f_code.co_name
    inside = "" if function == "<module>" else f", in {function}"
    return f"{path}, line {frame.f_lineno}{inside}"
