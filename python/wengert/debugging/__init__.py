"""Tools that explain gradients: `debug()` regions, `why` a gradient is what it is, the chain rule with numbers."""

from wengert.debugging.session import Line, debug
from wengert.debugging.trace import Trace, trace_backward
from wengert.debugging.why import Why, why

__all__ = ["Line", "Trace", "Why", "debug", "trace_backward", "why"]
