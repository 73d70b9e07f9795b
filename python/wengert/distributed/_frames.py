"""What every rank says first in every operation: a hash of what it is about to do, and few bytes themselves.

Ranks that are about to do different things can still compare what they say. It goes through memory that they
share, if they are on one host (`_window.py`), or else by MPI, in frames of one length.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from wengert import _core

__all__ = ["Frames", "SharedFrames"]

# In front: a hash of 8 bytes and two partners of 4 each; what fits is behind them.
_HEAD = 16


def _length(ranks: int) -> int:
    """Bytes of a frame among so many ranks, each of which gets those of all."""
    return max(64, min(2048, (1 << 16) // ranks // 8 * 8))


@functools.lru_cache(1024)
def _hashed(what: str, name: str, size: int) -> bytes:
    return blake2b(f"{what}\n{name}\n{size}".encode(), digest_size=8).digest()


def _bytes_of(buffer: Any) -> Any:
    return memoryview(buffer).cast("B")


class SharedFrames:
    """The frames of ranks that share memory.

    Args:
        window: where they meet.
        rank, ranks: which this one is, of how many.
    """

    def __init__(self, window: _core._Window, rank: int, ranks: int) -> None:
        self.rank, self.ranks, self.room = rank, ranks, window.room
        self._window = window
        #: Whether all ranks have entered, and whether they are about to do the same.
        self.Test, self.agree = window.Test, window.agree

    def enter(
        self, what: str, name: str, size: int, partners: tuple[int, int] | None, args: Sequence[Any]
    ) -> None:
        """Says what this rank is about to do: an operation of MPI with these arguments, of which the first is
        what it sends."""
        to, source = partners or (-1, -1)
        sent = _bytes_of(args[0]) if self._carries(name, args) else None
        self._window.enter(what, name, size, to, source, sent)

    def _carries(self, name: str, args: Sequence[Any]) -> bool:
        return name in ("allgather", "alltoall", "bcast") and memoryview(args[0]).nbytes <= self.room

    def read(self, rank: int, start: int, into: Any) -> None:
        """Fills `into` with what a rank sends, from byte `start` on."""
        self._window.read(rank, start, into)

    def take(self, name: str, args: Sequence[Any]) -> bool:
        """Writes what the frames of all ranks carry; false if it did not fit into them."""
        if not self._carries(name, args):
            return name == "barrier"
        if name == "bcast":
            self.read(args[1], 0, _bytes_of(args[0]))
            return True
        received = _bytes_of(args[1])
        n = len(received) // self.ranks
        for i in range(self.ranks):
            self.read(i, self.rank * n if name == "alltoall" else 0, received[i * n : (i + 1) * n])
        return True


class Frames(SharedFrames):
    """The frames of ranks that talk by MPI.

    Args:
        communicator: their communicator.
    """

    def __init__(self, communicator: Any) -> None:
        self.rank, self.ranks = communicator.Get_rank(), communicator.Get_size()
        self._length = _length(self.ranks)
        self.room = self._length - _HEAD
        self._communicator = communicator
        self._frames = memoryview(b"")

    def enter(
        self, what: str, name: str, size: int, partners: tuple[int, int] | None, args: Sequence[Any]
    ) -> None:
        """As `SharedFrames.enter`."""
        frame = _hashed(what, name, size) + struct.pack("ii", *(partners or (-1, -1)))
        if self._carries(name, args):
            frame += _bytes_of(args[0])
        self._frame = frame.ljust(self._length, b"\0")
        self._frames = memoryview(bytearray(self._length * self.ranks))
        self.Test = self._communicator.Iallgather(self._frame, self._frames).Test

    def agree(self) -> bool:
        """Whether all ranks are about to do the same, and those that send and get expect each other."""
        words = self._frames.cast("Q")[:: self._length // 8].tolist()
        if words.count(words[0]) < len(words):
            return False
        numbers = self._frames.cast("i")
        pairs = list(zip(*(numbers[i :: self._length // 4].tolist() for i in (2, 3)), strict=True))
        return all(
            (to < 0 or pairs[to][1] == rank) and (source < 0 or pairs[source][0] == rank)
            for rank, (to, source) in enumerate(pairs)
        )

    def read(self, rank: int, start: int, into: Any) -> None:
        """As `SharedFrames.read`."""
        begin = rank * self._length + _HEAD + start
        into[:] = self._frames[begin : begin + len(into)]
