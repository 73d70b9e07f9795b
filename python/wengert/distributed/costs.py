"""What a step on many ranks exchanges and holds, told by one process that pretends to be one of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wengert import _core
from wengert.distributed import _group
from wengert.distributed._group import Group
from wengert.distributed.traffic import Traffic, counted, note
from wengert.transforms.axes import Axis, named

__all__ = ["Cost", "cost"]


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


class Pretended(Group):
    """A group of which this process is rank 0, and where the others answer what it says itself."""

    def __init__(self, size: int, name: str = "pretended") -> None:
        self.rank, self.size, self.name, self.timeout = 0, size, name, math.inf
        self.ranks = list(range(size))

    def split(self, color: int, key: int, what: str = "") -> Group:
        """As `Group.split`, with all ranks."""
        return self

    def _run(
        self, what: str, name: str, size: int, *args: Any, partners: tuple[int, int] | None = None
    ) -> Any:
        note(what, name, size, self.size)
        if name == "allgather":
            own, everyone = (memoryview(buffer).cast("B") for buffer in args)
            for i in range(self.size):
                everyone[i * own.nbytes : (i + 1) * own.nbytes] = own
        elif name == "alltoall":
            memoryview(args[1]).cast("B")[:] = memoryview(args[0]).cast("B")
        elif name == "sendrecv" and partners is not None and partners[1] >= 0:
            sent, received = bytes(args[0]), memoryview(args[3]).cast("B")
            received[:] = sent if len(sent) == received.nbytes else bytes(received.nbytes)


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
    members = {}
    for name, size in axes.items():
        members[name] = Axis(size, 0, _core._Ranks(Pretended(size, name), 0, size))
    everyone = math.prod(axes.values())
    before = list(_group._WORLD)
    _group._WORLD[:] = [Pretended(everyone)]
    try:
        with named(members), counted() as traffic:
            function(*args, **kwargs)
    finally:
        _group._WORLD[:] = before
    return Cost(traffic.exchanges, traffic.peak, everyone)
