"""Memory that the ranks of one host share, so that small exchanges are copies and need no message."""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from typing import Any

__all__ = ["share_memory"]

# Where files are memory.
_FOLDER = "/dev/shm"
# Bytes of the memory of a group, and the most that a rank shows the others.
_ALL, _ROOM = 1 << 22, 1 << 18
# What the memory has beside the rows, for each rank twice.
_HEAD = 128


def share_memory(communicator: Any) -> mmap.mmap | None:
    """Returns memory, zeros as yet, that all ranks of a communicator share; None where they cannot, for they
    are on several hosts or the host has no room. All of them call it."""
    ranks, name, file = communicator.Get_size(), "", -1
    room = min(_ROOM, _ALL // 2 // ranks) // _HEAD * _HEAD
    size = 2 * ranks * (_HEAD + room)
    if communicator.Get_rank() == 0 and hasattr(os, "posix_fallocate"):
        with contextlib.suppress(OSError):
            file, name = tempfile.mkstemp(prefix="wengert-", dir=_FOLDER)
            # Memory that is not there would end a rank when it writes, without an error.
            os.posix_fallocate(file, 0, size)
    found = None
    name = communicator.bcast(name)
    with contextlib.suppress(OSError, ValueError):
        file = file if file >= 0 or not name else os.open(name, os.O_RDWR)
        found = mmap.mmap(file, size)
    if file >= 0:
        os.close(file)
    everyone = all(communicator.allgather(found is not None))
    if name and communicator.Get_rank() == 0:
        os.unlink(name)
    return found if everyone else None
