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

__all__ = ["Frames", "MessageFrames", "SharedFrames"]

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


class Frames:
    """The frames of an operation: those that all ranks show."""

    def __init__(self, rank: int, ranks: int, room: int) -> None:
        #: Which rank this one is, of how many; the bytes that a frame carries.
        self.rank, self.ranks, self.room = rank, ranks, room

    def enter(
        self, what: str, name: str, size: int, partners: tuple[int, int] | None, args: Sequence[Any]
    ) -> None:
        """Says what this rank is about to do: an operation of MPI with these arguments, of which the first is
        what it sends."""
        raise NotImplementedError

    def Test(self) -> bool:
        """Whether all ranks have entered, as a request of MPI says it."""
        raise NotImplementedError

    def agree(self) -> bool:
        """Whether all ranks are about to do the same, and those that send and get expect each other."""
        raise NotImplementedError

    def read(self, rank: int, start: int, into: Any) -> None:
        """Fills `into` with what the frame of a rank carries, from byte `start` on."""
        raise NotImplementedError

    def carries(self, name: str, args: Sequence[Any]) -> bool:
        """Whether a frame carries what an operation sends."""
        return name in ("allgather", "alltoall", "bcast") and memoryview(args[0]).nbytes <= self.room

    def take(self, name: str, args: Sequence[Any]) -> bool:
        """Writes what the frames of all ranks carry; false if it did not fit into them."""
        if not self.carries(name, args):
            return name == "barrier"
        if name == "bcast":
            self.read(args[1], 0, _bytes_of(args[0]))
            return True
        received = _bytes_of(args[1])
        n = len(received) // self.ranks
        for i in range(self.ranks):
            self.read(i, self.rank * n if name == "alltoall" else 0, received[i * n : (i + 1) * n])
        return True


class SharedFrames(Frames):
    """Frames in memory that all ranks share.

    Args:
        window: where they meet.
    """

    def __init__(self, window: _core._Window, rank: int, ranks: int) -> None:
        super().__init__(rank, ranks, window.room)
        self._window = window

    def enter(
        self, what: str, name: str, size: int, partners: tuple[int, int] | None, args: Sequence[Any]
    ) -> None:
        """As `Frames.enter`."""
        to, source = partners or (-1, -1)
        shows = self.carries(name, args) and (name != "bcast" or args[1] == self.rank)
        self._window.enter(what, name, size, to, source, _bytes_of(args[0]) if shows else None)

    def Test(self) -> bool:
        """As `Frames.Test`."""
        return self._window.Test()

    def agree(self) -> bool:
        """As `Frames.agree`."""
        return self._window.agree()

    def read(self, rank: int, start: int, into: Any) -> None:
        """As `Frames.read`."""
        self._window.read(rank, start, into)


class MessageFrames(Frames):
    """Frames of one length that travel by MPI.

    Args:
        communicator: that of the ranks.
    """

    def __init__(self, communicator: Any) -> None:
        ranks = communicator.Get_size()
        self._length = _length(ranks)
        super().__init__(communicator.Get_rank(), ranks, self._length - _HEAD)
        self._communicator = communicator

    def enter(
        self, what: str, name: str, size: int, partners: tuple[int, int] | None, args: Sequence[Any]
    ) -> None:
        """As `Frames.enter`."""
        frame = _hashed(what, name, size) + struct.pack("ii", *(partners or (-1, -1)))
        if self.carries(name, args):
            frame += _bytes_of(args[0])
        self._partners = partners
        self._frame = frame.ljust(self._length, b"\0")
        self._frames = memoryview(bytearray(self._length * self.ranks))
        self._request = self._communicator.Iallgather(self._frame, self._frames)

    def Test(self) -> bool:
        """As `Frames.Test`."""
        return bool(self._request.Test())

    def agree(self) -> bool:
        """As `Frames.agree`."""
        words = self._frames.cast("Q")[:: self._length // 8].tolist()
        if words.count(words[0]) < len(words):
            return False
        if self._partners is None:
            return True
        numbers = self._frames.cast("i")
        pairs = list(zip(*(numbers[i :: self._length // 4].tolist() for i in (2, 3)), strict=True))
        return all(
            (to < 0 or pairs[to][1] == rank) and (source < 0 or pairs[source][0] == rank)
            for rank, (to, source) in enumerate(pairs)
        )

    def read(self, rank: int, start: int, into: Any) -> None:
        """As `Frames.read`."""
        begin = rank * self._length + _HEAD + start
        into[:] = self._frames[begin : begin + len(into)]
