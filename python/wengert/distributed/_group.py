"""A group of ranks that exchange bytes: an MPI communicator behind five methods.

Whoever wants numbers added or tensors gathered asks the operations of the core, which know dtypes and call
these methods with flat buffers. So every dtype travels, and sums have the order of the core's own kernels.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["Group", "mpi", "world"]


def mpi() -> Any:
    """Returns the module `mpi4py.MPI`, which starts MPI when it is first imported.

    Raises:
        ImportError: where mpi4py or an MPI library is missing.
    """
    try:
        return importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            'wengert.distributed needs mpi4py and an MPI library: pip install "wengert[mpi]" brings both '
            f"({error})"
        ) from error


class Group:
    """The ranks of an MPI communicator; every method is called by all of them, in the same order.

    Args:
        communicator: of mpi4py; the group owns it.
    """

    def __init__(self, communicator: Any) -> None:
        self._communicator = communicator
        self.rank: int = communicator.Get_rank()
        self.size: int = communicator.Get_size()

    def all_gather(self, sent: Any, received: Any, what: str = "all_gather") -> None:
        """Fills `received` with the `sent` bytes of all ranks, one after the other."""
        self._communicator.Allgather(sent, received)

    def all_to_all(self, sent: Any, received: Any, what: str = "all_to_all") -> None:
        """Sends part `i` of `sent` to rank `i`; fills part `i` of `received` from rank `i`. Parts are equal."""
        self._communicator.Alltoall(sent, received)

    def exchange(self, sent: Any, to: int, received: Any, source: int, what: str = "exchange") -> None:
        """Sends `sent` to the rank `to` and fills `received` from the rank `source`; -1 is no rank."""
        null = mpi().PROC_NULL
        to, source = (null if rank < 0 else rank for rank in (to, source))
        self._communicator.Sendrecv(sent, to, 0, received, source, 0)

    def broadcast(self, buffer: Any, root: int, what: str = "broadcast") -> None:
        """Fills `buffer` with that of the rank `root`."""
        self._communicator.Bcast(buffer, root)

    def barrier(self) -> None:
        """Returns when all ranks have called it."""
        self._communicator.Barrier()

    def split(self, color: int, key: int) -> Group:
        """Returns the group of the ranks with the same `color`, in the order of `key`."""
        return Group(self._communicator.Split(color, key))


_WORLD: list[Group] = []


def world() -> Group:
    """Returns the group of all ranks that `mpirun` started; one rank where a program runs by itself."""
    if not _WORLD:
        _WORLD.append(Group(mpi().COMM_WORLD.Dup()))
    return _WORLD[0]
