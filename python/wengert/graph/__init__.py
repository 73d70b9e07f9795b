"""Pictures of the tape: which operations a gradient passes, what they keep, how large it is on its way."""

from .draw import Drawing, draw
from .record import record

__all__ = ["Drawing", "draw", "record"]
__dir__ = __all__.copy
