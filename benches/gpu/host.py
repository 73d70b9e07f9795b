"""What passes between host and GPU: launches, numbers, tensors. Measured by the clock of the host."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import wengert as wg

from .rows import Sizes, normal

#: Operations of a chain.
CHAIN = 100


@dataclass(frozen=True)
class Cost:
    """One cost."""

    name: str
    #: For these sizes a call, and the bytes that it moves (0: it is about latency).
    make: Callable[[Sizes], tuple[Callable[[], Any], int]]
    gate: str = ""
    goal: str = ""
    #: What is measured happens so often in a call.
    each: int = 1


def chain(sizes: Sizes) -> tuple[Callable[[], Any], int]:
    """Additions of four numbers, each of the result of the last."""
    x = wg.ones(4, device="gpu")

    def call() -> None:
        y = x
        for _ in range(CHAIN):
            y = y + x

    return call, 0


def number(sizes: Sizes) -> tuple[Callable[[], Any], int]:
    """A sum, and its value."""
    x = wg.ones(4, device="gpu")
    return lambda: x.sum().item(), 0


def upload(sizes: Sizes) -> tuple[Callable[[], Any], int]:
    """A tensor to the GPU."""
    x = wg.tensor(normal(sizes.bytes // 4))
    return lambda: x.to("gpu"), sizes.bytes


def download(sizes: Sizes) -> tuple[Callable[[], Any], int]:
    """A tensor to the host."""
    x = wg.ones(sizes.bytes // 4, device="gpu")
    return lambda: x.cpu(), sizes.bytes


COSTS = [
    Cost("dispatch: an operation from Python to its end, in a chain", chain, "15 us", "8 us", CHAIN),
    Cost("a number read back", number, "150 us", "60 us"),
    Cost("transfer from host to GPU", upload, "6 GB/s", "20 GB/s"),
    Cost("transfer from GPU to host", download, "6 GB/s", "20 GB/s"),
]
