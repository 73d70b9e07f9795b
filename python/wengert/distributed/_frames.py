"""What every rank sends first in every operation: a hash of what it is about to do, and few bytes themselves.

All frames of a group have one length, so ranks that are about to do different things can still compare them.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

__all__ = ["agree", "frame", "taken"]

# In front: a hash of 8 bytes and two partners of 4 each; what fits is behind them.
_HEAD = 16
_CARRIES = ("allgather", "alltoall", "bcast")


def _length(ranks: int) -> int:
    """Bytes of a frame among so many ranks, each of which gets those of all."""
    return max(64, min(2048, (1 << 16) // ranks // 8 * 8))


@functools.lru_cache(1024)
def _hashed(what: str, name: str, size: int) -> bytes:
    return blake2b(f"{what}\n{name}\n{size}".encode(), digest_size=8).digest()


def frame(
    ranks: int, what: str, name: str, size: int, partners: tuple[int, int] | None, args: Sequence[Any]
) -> bytes:
    """The frame of an operation of MPI with these arguments, the first of which is what it sends."""
    length = _length(ranks)
    head = _hashed(what, name, size) + struct.pack("ii", *(partners or (-1, -1)))
    if name in _CARRIES and (sent := memoryview(args[0])).nbytes <= length - _HEAD:
        head += sent
    return head.ljust(length, b"\0")


def agree(length: int, frames: bytearray, partners: tuple[int, int] | None) -> bool:
    """Whether all ranks are about to do the same, and those that send and get expect each other."""
    words = memoryview(frames).cast("Q")[:: length // 8].tolist()
    if words.count(words[0]) < len(words):
        return False
    if partners is None:
        return True
    numbers = memoryview(frames).cast("i")
    pairs = list(zip(*(numbers[i :: length // 4].tolist() for i in (2, 3)), strict=True))
    return all(
        (to < 0 or pairs[to][1] == rank) and (source < 0 or pairs[source][0] == rank)
        for rank, (to, source) in enumerate(pairs)
    )


def taken(length: int, frames: bytearray, name: str, rank: int, args: Sequence[Any]) -> bool:
    """Writes what has arrived in the frames of all ranks; false if that did not fit into them."""
    if name not in _CARRIES or memoryview(args[0]).nbytes > length - _HEAD:
        return name == "barrier"
    if name == "bcast":
        buffer, begin = memoryview(args[0]).cast("B"), args[1] * length + _HEAD
        buffer[:] = frames[begin : begin + len(buffer)]
        return True
    received = memoryview(args[1]).cast("B")
    count = len(frames) // length
    n = len(received) // count
    begin = _HEAD + (rank * n if name == "alltoall" else 0)
    for i in range(count):
        received[i * n : (i + 1) * n] = frames[begin : begin + n]
        begin += length
    return True
