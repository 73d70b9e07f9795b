"""The methods of groups on three ranks: which bytes arrive."""

import pytest
import wengert.distributed as dist
from mpi4py import MPI

rank, size = dist.world().rank, dist.world().size
mine = dist.Group(MPI.COMM_WORLD.Dup(), name="mine", timeout=5.0)
other = dist.ProcessGroup(MPI.COMM_WORLD.Dup(), name="other", timeout=6.0)
assert (mine.name, mine.timeout, other.name, other.timeout) == ("mine", 5.0, "other", 6.0)
own, every = bytes([rank]), bytearray(size)
mine.all_gather(own, every, what="ranks")
assert every == bytes(range(size))
got = bytearray(size)
mine.all_to_all(bytes(range(10 * rank, 10 * rank + size)), got, what="tens")
assert got == bytes(10 * r + rank for r in range(size))
got = bytearray(1)
mine.exchange(own, (rank + 1) % size, got, (rank - 1) % size, what="ring")
assert got == bytes([(rank - 1) % size])
mine.exchange(own, 1 if rank == 0 else -1, got, 0 if rank == 1 else -1)
assert got == bytes([0]) if rank == 1 else got == bytes([(rank - 1) % size])
large = bytearray(300_000)
large[:] = bytes([rank]) * 300_000
mine.broadcast(large, 2, what="much")
assert large == bytes([2]) * 300_000
whole = bytearray(size * 300_000)
mine.all_gather(bytes([rank]) * 300_000, whole)
assert whole == b"".join(bytes([r]) * 300_000 for r in range(size))
mine.barrier(what="end")
for method, lengths in ((mine.all_gather, (4, 4)), (mine.all_to_all, (4, 5)), (mine.all_to_all, (4, 4))):
    with pytest.raises(ValueError, match=f"{lengths[0]} bytes"):
        method(bytes(lengths[0]), bytearray(lengths[1]))
back = mine.subgroup([2, 1, 0], what="backwards")
assert (back.rank, back.ranks, back.number != mine.number) == (2 - rank, [2, 1, 0], True)
with dist.mesh({"i": size}) as groups, dist.mesh({"i": size}) as again:
    assert groups["i"] is again["i"]
pair = mine.split(0 if rank < 2 else 1, -rank, what="pairs")
assert (pair.size, pair.ranks) == ((2, [1, 0]) if rank < 2 else (1, [2]))
