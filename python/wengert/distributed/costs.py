"""What a step on many ranks exchanges and holds, told by one process that simulates the others."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wengert.distributed._everyday.work import wait_for_background
from wengert.distributed._group import _CURRENT, CurrentWorld, Group
from wengert.distributed.traffic import Traffic, count_traffic, record_exchange
from wengert.transforms.axes import Axis, name_axes

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

        Each exchange takes as many rounds as the number of its ranks has binary digits.
        """
        rounds = sum(math.ceil(math.log2(exchange.ranks)) for exchange in self.exchanges)
        return rounds * latency + self.bytes / bandwidth


class SimulatedGroup(Group):
    """A group of which this process is the first rank, and where the others answer what it says itself."""

    def __init__(self, ranks: Sequence[int], name: str = "simulated") -> None:
        self._begin(0, list(ranks), name, math.inf)

    def split(self, color: int, key: int, what: str = "") -> Group:
        """As `Group.split`, with all ranks."""
        return SimulatedGroup(self.ranks, self.name)

    def subgroup(self, ranks: Sequence[int], what: str = "") -> Group:
        """As `Group.subgroup`."""
        return SimulatedGroup([self.ranks[rank] for rank in ranks], self.name)

    def _run(
        self, what: str, name: str, size: int, *args: Any, partners: tuple[int, int] | None = None
    ) -> Any:
        self.check_current(what)
        record_exchange(what, name, size, self.size)
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
    """Runs a function once as rank 0 of so many simulated ranks, and tells what a rank would exchange.

    Args:
        function: a step, with collectives along the named axes, or what `wengert.distributed` has for
            training, which then takes its group with `world()` inside of the function.
        args, kwargs: its arguments.
        axis_size: the number of ranks; or the length of each axis of a mesh by name.
        axis_name: the name of the axis, where that is a number.

    Models wrapped for training, optimisers of `wengert.distributed`, meshes and groups are made inside of the
    function: those that were made before raise, as they know nothing of these ranks. One thread at a time.

    Values are not those of a real run, as all ranks answer what this one says; shapes, the exchanges and the
    memory are.

    Raises:
        ValueError: for no axis, or a length below 1.
        RuntimeError: where the function talks through a group that was made before.

    Example:
        >>> step = lambda x: wg.pmean(x, "data")
        >>> print(wg.distributed.cost(step, wg.ones(1_000_000), axis_size=1024))
             2 x psum of float32[1000000], 7,995,768 bytes
             2 exchanges, 7,995,768 bytes for each rank
    """
    axes = dict(axis_size) if isinstance(axis_size, Mapping) else {axis_name: axis_size}
    if not axes:
        raise ValueError("cost: axis_size= names no axis; give a number of ranks, or the length of each axis")
    for name, size in axes.items():
        if not isinstance(name, str):
            raise TypeError(f"cost: an axis has a text for a name, got {name!r}: {size!r}")
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"cost: an axis has a length of at least 1, got {name!r}: {size!r}")
    everyone = SimulatedGroup(range(math.prod(axes.values())))
    members, step = {}, everyone.size
    for name, size in axes.items():
        step //= size
        group = everyone.subgroup([i * step for i in range(size)])
        members[name] = Axis(size, 0, group.members, group.number)
    wait_for_background()
    # Cycles that are let go of meanwhile would hide what the call makes.
    gc.collect()
    before = _CURRENT[0]
    _CURRENT[0] = CurrentWorld(everyone, None if before.default is None else everyone)
    try:
        with name_axes(members, hiding=True), count_traffic() as traffic:
            function(*args, **kwargs)
            wait_for_background()
    finally:
        wait_for_background()
        _CURRENT[0] = before
    return Cost(traffic.exchanges, traffic.peak, everyone.size)
