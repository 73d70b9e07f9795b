"""What ranks exchange: counted as it happens, or told in advance by one process that pretends to be a rank."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wengert import _core, memory
from wengert.transforms.axes import Axis, named

__all__ = ["Cost", "Traffic", "cost", "counted"]

# What counts now, innermost last.
_COUNTING: list[Traffic] = []


@dataclass
class Traffic:
    """The exchanges of a rank, in order: what each was, and the bytes that it sends or gets from others."""

    exchanges: list[tuple[str, int]] = field(default_factory=list)
    #: The most bytes of tensors on the host that were alive at once, beyond those at the start.
    peak: int = 0

    @property
    def bytes(self) -> int:
        """Bytes on the wire, for one rank."""
        return sum(size for _, size in self.exchanges)

    def __str__(self) -> str:
        """A line for each kind of exchange, the largest first, and the sum."""
        count: Counter[str] = Counter()
        size: Counter[str] = Counter()
        for what, moved in self.exchanges:
            count[what] += 1
            size[what] += moved
        lines = [f"{count[what]:6} x {what}, {moved:,} bytes" for what, moved in size.most_common()]
        return "\n".join([*lines, f"{len(self.exchanges):6} exchanges, {self.bytes:,} bytes for each rank"])


@dataclass
class Cost(Traffic):
    """What one call of a function costs a rank."""

    #: The number of ranks.
    axis_size: int = 1

    def seconds(self, latency: float, bandwidth: float) -> float:
        """Predicts the time that exchanges take if nothing hides them: a model, not a measurement.

        Args:
            latency: seconds of an exchange without bytes between two ranks.
            bandwidth: bytes per second that a rank sends or receives.

        Each exchange of a group takes as many rounds as its size has binary digits.
        """
        rounds = math.ceil(math.log2(self.axis_size)) if self.axis_size > 1 else 0
        return len(self.exchanges) * rounds * latency + self.bytes / bandwidth


def note(what: str, kind: str, size: int, ranks: int) -> None:
    """Counts an exchange of a buffer of `size` bytes that ends at all ranks of a group."""
    if ranks > 1 and _COUNTING:
        moved = size * (ranks - 1) // ranks if kind in ("allgather", "alltoall") else size
        for traffic in _COUNTING:
            traffic.exchanges.append((what, moved))


@contextlib.contextmanager
def counted() -> Iterator[Traffic]:
    """Counts what this rank exchanges while it lasts; begins `memory.reset_peak` anew for its peak.

    Example:
        >>> with wg.distributed.axis("data"), wg.distributed.counted() as traffic:
        ...     total = wg.psum(wg.ones(1000), "data")
        >>> traffic.bytes  # on one rank there is nobody to talk to
        0
    """
    traffic = Traffic()
    _COUNTING.append(traffic)
    memory.reset_peak()
    before = memory.live_bytes()
    try:
        yield traffic
    finally:
        _COUNTING[:] = [other for other in _COUNTING if other is not traffic]
        traffic.peak = memory.peak_bytes() - before


class Pretended:
    """A group of which this process is rank 0, and where the others answer what it says itself."""

    def __init__(self, size: int, name: str = "pretended") -> None:
        self.rank, self.size, self.name, self.timeout = 0, size, name, math.inf
        self.ranks = list(range(size))

    def all_gather(self, sent: Any, received: Any, what: str = "") -> None:
        """As `Group.all_gather`."""
        own, everyone = memoryview(sent).cast("B"), memoryview(received).cast("B")
        for i in range(self.size):
            everyone[i * own.nbytes : (i + 1) * own.nbytes] = own
        note(what or "all_gather", "allgather", everyone.nbytes, self.size)

    def all_to_all(self, sent: Any, received: Any, what: str = "") -> None:
        """As `Group.all_to_all`."""
        memoryview(received).cast("B")[:] = memoryview(sent).cast("B")
        note(what or "all_to_all", "alltoall", memoryview(sent).nbytes, self.size)

    def exchange(self, sent: Any, to: int, received: Any, source: int, what: str = "") -> None:
        """As `Group.exchange`."""
        size = memoryview(received).nbytes
        if source >= 0:
            own = bytes(sent)
            memoryview(received).cast("B")[:] = own if len(own) == size else bytes(size)
        note(what or "exchange", "sendrecv", max(size, memoryview(sent).nbytes), self.size)

    def broadcast(self, buffer: Any, root: int, what: str = "") -> None:
        """As `Group.broadcast`."""
        note(f"{what or 'broadcast'} from rank {root}", "bcast", memoryview(buffer).nbytes, self.size)

    def barrier(self, what: str = "") -> None:
        """As `Group.barrier`."""
        note(what or "barrier", "barrier", 0, self.size)

    def split(self, color: int, key: int, what: str = "") -> Pretended:
        """As `Group.split`, with all ranks."""
        return self


def cost(
    function: Callable[..., Any],
    *args: Any,
    axis_size: int | Mapping[str, int],
    axis_name: str = "data",
    **kwargs: Any,
) -> Cost:
    """Runs a function once as rank 0 of so many ranks that do not exist, and tells what a rank would exchange.

    Args:
        function: a step, with collectives along the named axes, or what `wengert.distributed` has for
            training, which then takes its group with `world()` inside of the function.
        args, kwargs: its arguments.
        axis_size: the number of ranks; or the length of each axis of a mesh by name.
        axis_name: the name of the axis, where that is a number.

    Values are not those of a real run, as all ranks answer what this one says; shapes, the exchanges and the
    memory are.

    Example:
        >>> step = lambda x: wg.pmean(x, "data")
        >>> print(wg.distributed.cost(step, wg.ones(1_000_000), axis_size=1024))
             2 x psum of float32[1000000], 7,995,768 bytes
             2 exchanges, 7,995,768 bytes for each rank
    """
    axes = dict(axis_size) if isinstance(axis_size, Mapping) else {axis_name: axis_size}
    for name, size in axes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"cost: an axis has a length of at least 1, got {name!r}: {size!r}")
    from wengert.distributed import _group

    members = {}
    for name, size in axes.items():
        members[name] = Axis(size, 0, _core._Ranks(Pretended(size, name), 0, size))
    everyone = math.prod(axes.values())
    before = list(_group._WORLD)
    _group._WORLD[:] = [Pretended(everyone)]  # type: ignore[list-item]
    try:
        with named(members), counted() as traffic:
            function(*args, **kwargs)
    finally:
        _group._WORLD[:] = before
    return Cost(traffic.exchanges, traffic.peak, everyone)
