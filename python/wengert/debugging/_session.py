"""`debug()` regions: what a thread recorded, what left the tape, and what each backward walk did."""

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from wengert import _core
from wengert.autograd.anomaly import LOCATIONS, LOG, Location, restore
from wengert.autograd.modes import Region
from wengert.debugging._numbers import Cotangent, Passage

__all__ = ["Line", "Pull", "Walk", "current", "debug", "watch"]

# Backward walks that a region remembers.
WALKS = 8

Value = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Line:
    """A recorded operation, or a value that left the tape (`entry` is None, `what` says how)."""

    entry: int | None
    what: str
    location: Location | None
    inputs: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Pull:
    """One reverse rule of a walk: for each input that it sent a gradient to, how the cotangent came
    through."""

    entry: int
    op: str
    location: Location | None
    passages: tuple[tuple[Value, Passage], ...]
    # Inputs whose derivative is zero by the rule itself: nothing was sent.
    silent: tuple[Value, ...]


@dataclass
class Walk:
    """One backward walk: where it began, whether it added to `.grad`, its rules in order."""

    roots: tuple[Value, ...]
    accumulates: bool
    pulls: list[Pull] = field(default_factory=list)


class _Records:
    """What the core tells of backward walks."""

    def __init__(self) -> None:
        self.walks: deque[Walk] = deque(maxlen=WALKS)

    def began(self, roots: list[Value], accumulates: bool) -> None:
        self.walks.append(Walk(tuple(roots), accumulates))

    def pulled(self, node: _core.Node, cotangents: tuple[Any, ...], gradients: tuple[Any, ...]) -> None:
        if not self.walks:
            return
        cotangent = Cotangent(node.op, node.op_class, cotangents)
        sent, silent = [], []
        for (to, position), gradient in zip(
            node.next_functions, (*gradients, *[None] * len(node.next_functions))
        ):
            if to is None:
                continue
            value = (to.sequence_nr, position)
            if gradient is None:
                silent.append(value)
            else:
                sent.append((value, cotangent.through(gradient)))
        location = None if node.location is None else Location(*node.location)
        self.walks[-1].pulls.append(Pull(node.sequence_nr, node.op, location, tuple(sent), tuple(silent)))


class debug(Region):
    """A region of this thread in which the tape keeps what is needed to explain gradients; a context and a
    decorator.

    - Every operation keeps the line of the program that recorded it: errors of the tape name it,
      `grad_fn.location` too.
    - A log notes each recorded operation and each recorded value that leaves the tape: `detach()`, `.data`,
      `item()`, `numpy()`, operations under `no_grad` or without a derivative. `lines` lists it.
    - Each backward walk notes, per reverse rule, how much of the cotangent came through. `wengert.why` reads
      this.

    It keeps numbers, no tensors and no graphs: about a kilobyte per operation, of the last eight walks.
    Backward reads every gradient, which takes about a tenth of a millisecond per operation: switch it on to
    look at a step or two. What was kept can be read until the next region.

    Args:
        limit: operations that the log remembers, from 0 on; older ones give way.

    Raises:
        ValueError: for a limit that is negative or no int64.
        TypeError: for one that is no integer.

    Example:
        >>> w = wg.ones(2, requires_grad=True)
        >>> with wg.debug():
        ...     loss = (w.detach() * 3 + w * 0).sum()
        ...     loss.backward()
        >>> report = wg.why(w)
        >>> report.status
        'zero'
    """

    def __init__(self, limit: int = 1_000_000) -> None:
        """The region does not begin before `with`."""
        if callable(limit):
            raise TypeError("debug: write @debug() with brackets to wrap a function")
        if not isinstance(limit, int):
            raise TypeError(f"debug: limit is an integer, got {type(limit).__name__}")
        if not 0 <= limit < 2**63:
            raise ValueError(f"debug: limit must lie in [0, 2^63), got {limit}")
        self.limit = limit
        self._records = _Records()
        self._log = _core._Log(limit, self._records.began, self._records.pulled)
        self._before: list[int] = []

    def _again(self) -> "debug":
        return debug(self.limit)

    def __enter__(self) -> "debug":
        """Begins the region."""
        self._before.append(_core._debug_modes(_core._get_debug_modes() | LOCATIONS | LOG))
        self._log.begin()
        _thread.last = self
        return self

    def __exit__(self, *exc: Any) -> None:
        """Ends the region."""
        self._log.end()
        restore(self._before.pop())

    @property
    def lines(self) -> list[Line]:
        """What was recorded and what left the tape, in order."""
        lines, _ = self._log.lines()
        return [
            Line(entry, what, None if location is None else Location(*location), tuple(inputs))
            for entry, what, location, inputs in lines
        ]

    @property
    def is_open(self) -> bool:
        """Whether the region has begun and not ended."""
        return bool(self._before)

    @property
    def dropped(self) -> int:
        """How many lines gave way because of `limit`."""
        return int(self._log.lines()[1])

    @property
    def walks(self) -> list[Walk]:
        """The last backward walks, oldest first."""
        return list(self._records.walks)


class watch(debug):
    """A region for one walk of a tool, which is not the thread's last region afterwards."""

    def __enter__(self) -> "watch":
        """Begins the region."""
        last = current()
        super().__enter__()
        _thread.last = last
        return self


class _Thread(threading.local):
    last: debug | None = None


_thread = _Thread()


def current() -> debug | None:
    """The region of this thread that is open or was the last to be."""
    return _thread.last
