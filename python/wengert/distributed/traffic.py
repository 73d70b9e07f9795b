"""What ranks exchange, counted as it happens. Read next: `costs.py`, where it is told in advance."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from wengert import _core, memory

__all__ = ["Exchange", "Traffic", "count_traffic"]


class Exchange(NamedTuple):
    """One exchange of a rank with others."""

    #: The operation, and the dtype and shape of its tensor.
    what: str
    #: That the rank sends, or gets.
    bytes: int
    #: How many ranks take part.
    ranks: int


# What counts now, innermost last.
_COUNTING: list[Traffic] = []


@dataclass
class Traffic:
    """The exchanges of a rank, in order: what each was, and the bytes that it sends or gets from others."""

    exchanges: list[Exchange] = field(default_factory=list)
    #: The most bytes of tensors on the host that were alive at once, beyond those at the start.
    peak: int = 0

    @property
    def bytes(self) -> int:
        """Bytes on the wire, for one rank."""
        return sum(exchange.bytes for exchange in self.exchanges)

    def __str__(self) -> str:
        """A line for each kind of exchange, the largest first, and the sum."""
        count: Counter[str] = Counter()
        size: Counter[str] = Counter()
        for what, moved, _ in self.exchanges:
            count[what] += 1
            size[what] += moved
        lines = [f"{count[what]:6} x {what}, {moved:,} bytes" for what, moved in size.most_common()]
        return "\n".join([*lines, f"{len(self.exchanges):6} exchanges, {self.bytes:,} bytes for each rank"])


def record_exchange(what: str, kind: str, size: int, ranks: int) -> None:
    """Counts an exchange after which all ranks of a group have `size` bytes; a split is none."""
    if ranks > 1 and _COUNTING and kind != "Split":
        moved = size * (ranks - 1) // ranks if kind in ("allgather", "alltoall") else size
        for traffic in _COUNTING:
            traffic.exchanges.append(Exchange(what, moved, ranks))


@contextlib.contextmanager
def count_traffic() -> Iterator[Traffic]:
    """Counts what this rank exchanges while it lasts; begins `memory.reset_peak` anew for its peak.

    Example:
        >>> with wg.distributed.axis("data"), wg.distributed.count_traffic() as traffic:
        ...     total = wg.psum(wg.ones(1000), "data")
        >>> traffic.bytes  # on one rank there is nobody to talk to
        0
    """
    traffic = Traffic()
    _COUNTING.append(traffic)
    _core._observe_exchanges(True)
    before = 0
    try:
        memory.reset_peak()
        before = memory.live_bytes()
        yield traffic
    finally:
        _core._observe_exchanges(False)
        _COUNTING[:] = [other for other in _COUNTING if other is not traffic]
        traffic.peak = memory.peak_bytes() - before
