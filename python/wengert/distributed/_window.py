"""Memory that the ranks of one host share, so that small exchanges are copies and need no message."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

__all__ = ["share_memory"]

# Where files are memory.
_FOLDER = "/dev/shm"
# The most bytes of the memory of a group, and of what a rank shows the others.
_ALL, _ROOM = 1 << 22, 1 << 18
# What the memory has beside the rows, for each rank twice.
_HEAD = 128


def share_memory(communicator: Any) -> mmap.mmap | None:
    """Returns memory, zeros as yet, that all ranks of a communicator share; None where they cannot, for they
    are on several hosts or the host has no room. All of them call it."""
    ranks, first = communicator.Get_size(), communicator.Get_rank() == 0
    room = min(_ROOM, _ALL // 2 // ranks) // _HEAD * _HEAD
    if room == 0:
        return None
    size = 2 * ranks * (_HEAD + room)
    own = _make_file(size) if first else ""
    try:
        name = communicator.bcast(own)
        found = _map_file(name, size) if name else None
        everyone = all(communicator.allgather(found is not None))
    finally:
        if own:
            os.unlink(own)
    return found if everyone else None


def _make_file(size: int) -> str:
    """The name of a new file of so many zeros; "" where there is no memory for it."""
    if not hasattr(os, "posix_fallocate"):
        return ""
    try:
        file, name = tempfile.mkstemp(prefix="wengert-", dir=_FOLDER)
    except OSError:
        return ""
    try:
        # Memory that is not there would end a rank when it writes, without an error.
        os.posix_fallocate(file, 0, size)
    except OSError:
        os.unlink(name)
        return ""
    finally:
        os.close(file)
    return name


def _map_file(name: str, size: int) -> mmap.mmap | None:
    """The memory of a file; None if this host does not have it."""
    try:
        file = os.open(name, os.O_RDWR)
    except OSError:
        return None
    try:
        return mmap.mmap(file, size)
    except (OSError, ValueError):
        return None
    finally:
        os.close(file)
