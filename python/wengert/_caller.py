"""Who called: the function that an error speaks of, and the line that a warning belongs to.

The core names the operation that failed. Where a function of this package is made of several operations, the
user never wrote that name; the frames of the call tell which function was called.
"""

import sys
import warnings
from types import FrameType

from wengert import _core

__all__ = ["called", "warn"]

# Modules of functions that are made of several operations, and what stands between these and their callers. A
# frame of any other code, also of transforms, modules and optimisers, is a caller.
_FAMILIES = tuple(
    f"wengert.{part}"
    for part in "_ composed. fft. linalg. masked. nn.functional. numpy. scipy. special".split()
)


def called() -> str | None:
    """The outermost public function of this package that leads here without other code between.

    None where there is none.
    """
    found = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _module(frame).startswith(_FAMILIES):
        name = frame.f_code.co_name
        # Functions in functions and methods of classes have a dot in their full names.
        if frame.f_code.co_qualname == name and _is_public(name):
            found = name
        frame = frame.f_back
    return found


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_public(name: str) -> bool:
    if name.startswith("_"):
        return False
    homes = ("", ".nn.functional", ".linalg", ".fft", ".numpy", ".scipy.special")
    packages = (sys.modules.get(f"wengert{home}") for home in homes)
    return any(hasattr(place, name) for place in (_core.Tensor, *packages))


def warn(text: str) -> None:
    """A warning at the innermost line outside of this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _module(frame).partition(".")[0] == "wengert":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)
