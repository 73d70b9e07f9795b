"""The search for the first value that is not finite, in the forward and in the backward."""

from collections.abc import Callable
from typing import Any, NamedTuple

from wengert import _core
from wengert._core import AnomalyError
from wengert.autograd.modes import Region

__all__ = [
    "AnomalyError",
    "Note",
    "Location",
    "detect_anomaly",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "set_detect_anomaly",
]
__dir__ = __all__.copy

# The bits of the core's modes: keep lines, write the log, look at derivatives, raise in the forward.
LOCATIONS, LOG, CHECK, FORWARD = 1, 2, 4, 8
# Ours: says that anomaly detection is on, be it without looking at values.
ENABLED = 16
# All of these. The other bits belong to `ieee_gradients` and `FlopCounter`, which come and go on their own.
TOOLS = LOCATIONS | LOG | CHECK | FORWARD | ENABLED


class Location(NamedTuple):
    """A line of the program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        """As `file:line`."""
        return f"{self.file}:{self.line}"


class Note:
    """A forward value that was made not finite from better operands."""

    # Not a dataclass: their module is slow to import.
    __slots__ = ("index", "location", "op", "operands", "value")

    def __init__(
        self, op: str, location: Location | None, index: tuple[int, ...], value: float, operands: str
    ) -> None:
        """What is kept of the operation."""
        self.op, self.location, self.index = op, location, index
        self.value, self.operands = value, operands

    def __str__(self) -> str:
        """One line."""
        where = f" at {self.location}" if self.location else ""
        at = f" at index {self.index}" if self.index else ""
        return f"{self.op}{where} made {self.value}{at}, where {self.operands}"


def _bits(mode: bool, check_nan: bool, forward: bool) -> int:
    looks = CHECK if check_nan or forward else 0
    return (LOCATIONS | ENABLED | looks | (FORWARD if forward else 0)) if mode else 0


def _set(bits: int) -> int:
    """Sets the bits of anomaly detection, leaving those of `debug()`; returns all bits from before."""
    before = _core._get_debug_modes()
    kept = (LOCATIONS | LOG if before & LOG else 0) | before & ~TOOLS
    if bits and not before & CHECK:
        _core._anomaly_clear()
    _core._debug_modes(kept | bits)
    return before


def restore(before: int) -> None:
    """Puts the bits of the debugging tools back to what they were."""
    _core._debug_modes(before & TOOLS | _core._get_debug_modes() & ~TOOLS)


def is_anomaly_enabled() -> bool:
    """Tells whether anomaly detection is on in this thread: lines are kept, and values looked at unless
    `check_nan=False`.

    Example:
        >>> wg.autograd.anomaly.is_anomaly_enabled()
        False
    """
    return bool(_core._get_debug_modes() & ENABLED)


def is_anomaly_check_nan_enabled() -> bool:
    """Tells whether anomaly detection looks at values in this thread.

    Example:
        >>> with wg.autograd.detect_anomaly(check_nan=False):
        ...     print(wg.autograd.anomaly.is_anomaly_check_nan_enabled())
        False
    """
    return bool(_core._get_debug_modes() & CHECK)


class set_detect_anomaly(Region):
    """Turns anomaly detection on or off in this thread, at once; as a context, until its end.

    See `detect_anomaly` for what it does.

    Example:
        >>> with wg.autograd.anomaly.set_detect_anomaly(True):
        ...     print(wg.autograd.anomaly.is_anomaly_enabled())
        True
    """

    def __init__(self, mode: bool, check_nan: bool = True, forward: bool = False) -> None:
        """On where `mode` is true."""
        self._arguments = (mode, check_nan, forward)
        self._before = _set(_bits(*self._arguments))

    def _again(self) -> "set_detect_anomaly":
        return set_detect_anomaly(*self._arguments)

    def __call__(self, function: Callable[..., Any]) -> Any:
        """Runs `function` with detection on or off; outside of it, nothing changes."""
        restore(self._before)
        return super().__call__(function)

    def __enter__(self) -> "set_detect_anomaly":
        """Begins the region, which already has begun."""
        return self

    def __exit__(self, *exc: Any) -> None:
        """Puts detection back to what it was."""
        restore(self._before)


class detect_anomaly(Region):
    """Finds the first value that is not finite; a context and a decorator, for forward and backward together.

    - Every operation keeps the line of the program that recorded it, and errors of the tape name it.
    - **Gradients and tangents**: the first one that is NaN or infinite raises `AnomalyError`, which tells the
      operation, its line, the index, and the operands and the cotangent there.
    - **Forward values** that an operation makes NaN or infinite from better operands are noted, not raised: a
      mask may take them out later. Where one spoils a gradient after all, the error names the operation that
      made it, its line and operands, and the `where` that masked it.
      `notes` lists them. With `forward=True` the first one raises at once.

    Better means: finite is better than infinite, infinite better than NaN; an infinity that is only handed
    on, as the `-inf` of an attention mask, is no anomaly. It holds in this thread, inside `grad`, `jvp` and
    `vmap` too. Each value is read back and looked at, so it costs several times the time: switch it on to
    find a fault, and off again. A `GradScaler` counts on gradients that overflow now and then; they raise
    here.

    Args:
        check_nan: look at values; without, only lines are kept.
        forward: raise for forward values too.

    Raises:
        AnomalyError: a RuntimeError, see above.

    Example:
        >>> x = wg.tensor([1.0, 0.0], requires_grad=True)
        >>> with wg.autograd.detect_anomaly():
        ...     x.sqrt().sum().backward()
        Traceback (most recent call last):
        wengert.AnomalyError: anomaly in the backward of sqrt at ...
    """

    def __init__(self, check_nan: bool = True, forward: bool = False) -> None:
        """The region does not begin before `with`."""
        self.check_nan = check_nan
        self.forward = forward
        self._before: list[int] = []

    def __new__(cls, check_nan: Any = True, forward: bool = False) -> Any:
        """`@detect_anomaly` without brackets wraps a function."""
        self = super().__new__(cls)
        if callable(check_nan):
            self.__init__()  # type: ignore[misc]
            return self(check_nan)
        return self

    def _again(self) -> "detect_anomaly":
        return detect_anomaly(self.check_nan, self.forward)

    def __enter__(self) -> "detect_anomaly":
        """Begins the region."""
        self._before.append(_set(_bits(True, self.check_nan, self.forward)))
        return self

    def __exit__(self, *exc: Any) -> None:
        """Ends the region."""
        restore(self._before.pop())

    @property
    def notes(self) -> list[Note]:
        """The forward values that were made not finite since detection began: the first 256, in order."""
        return [
            Note(op, None if location is None else Location(*location), tuple(index), value, operands)
            for op, location, index, value, operands in _core._anomaly_notes()
        ]
