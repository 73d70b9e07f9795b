"""Tools that explain gradients: `debug()` regions, `why` a gradient is what it is, the chain rule with
numbers."""

from wengert.debugging._numbers import Passage
from wengert.debugging._reasons import Reason
from wengert.debugging._session import Line, Pull, Walk, debug
from wengert.debugging._trace import Trace, TraceRow, trace_backward
from wengert.debugging._why import Use, Why, why

__all__ = [
    "Line",
    "Passage",
    "Pull",
    "Reason",
    "Trace",
    "TraceRow",
    "Use",
    "Walk",
    "Why",
    "debug",
    "trace_backward",
    "why",
]
