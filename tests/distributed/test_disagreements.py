"""Ranks that do different things at the same time: who does what, and where, is said by all of them alike."""

from pathlib import Path

from distributed.running import failing, run

# One script, so that one start serves all cases: each disagreement is noticed before anything is sent, and
# the group remains of use.
CASES = """
from wengert.distributed import debug, is_debugging

def differ(first, second):
    try:
        (first if rank == 0 else second)()
    except RuntimeError as error:
        print(str(error).replace(__file__, "it"))
    else:
        print("nothing")

one, two = bytearray(8), bytearray(8 * size)
x = wg.ones(2, 3)
assert is_debugging()
with distributed.axis("i") as group:
    differ(lambda: wg.psum(x, "i"), lambda: wg.all_gather(x, "i"))
    differ(lambda: wg.psum(x, "i"), lambda: wg.psum(x.double(), "i"))
    differ(lambda: wg.psum(x, "i"), lambda: wg.psum(x.T, "i"))
differ(lambda: group.broadcast(one, 0), lambda: group.broadcast(one, 1))
differ(group.barrier, lambda: group.split(0, 0))
differ(group.barrier, lambda: group.all_gather(bytearray(100_000), bytearray(100_000 * size)))
differ(lambda: group.exchange(one, 1, one, -1), lambda: group.exchange(one, -1, one, -1))
differ(lambda: group.exchange(one, -1, one, -1), lambda: group.exchange(one, -1, one, 0))
# What agrees is done.
differ(lambda: group.exchange(one, 1, one, -1), lambda: group.exchange(one, -1, one, 0))
differ(group.barrier,
       group.barrier)
with debug(False):
    assert not is_debugging()
    group.barrier()
assert is_debugging()
"""

EXPECTED = """\
the ranks disagree about their collective operation 1:
  rank 0: psum of float32[2, 3], at it, line 17, in <lambda>
  rank 1: all_gather of float32[2, 3], at it, line 17, in <lambda>
the ranks disagree about their collective operation 2:
  rank 0: psum of float32[2, 3], at it, line 18, in <lambda>
  rank 1: psum of float64[2, 3], at it, line 18, in <lambda>
the ranks disagree about their collective operation 3:
  rank 0: psum of float32[2, 3], at it, line 19, in <lambda>
  rank 1: psum of float32[3, 2], at it, line 19, in <lambda>
the ranks disagree about their collective operation 4:
  rank 0: broadcast of 8 bytes from rank 0, at it, line 20, in <lambda>
  rank 1: broadcast of 8 bytes from rank 1, at it, line 20, in <lambda>
the ranks disagree about their collective operation 5:
  rank 0: barrier, at it, line 7, in differ
  rank 1: split, at it, line 21, in <lambda>
the ranks disagree about their collective operation 6:
  rank 0: barrier, at it, line 7, in differ
  rank 1: all_gather of 200000 bytes, at it, line 22, in <lambda>
rank 0 sends to rank 1, which does not expect it:
  ranks 0, 1: exchange of 8 bytes, at it, line 23, in <lambda>
rank 1 expects something of rank 0, which sends it nothing:
  ranks 0, 1: exchange of 8 bytes, at it, line 24, in <lambda>
nothing
nothing
"""


def test_all_ranks_say_who_does_what_and_where(tmp_path: Path) -> None:
    assert run(2, CASES, tmp_path) == [EXPECTED] * 2


def test_numbers_of_ranks_are_those_of_the_world(tmp_path: Path) -> None:
    ran = failing(
        4,
        """odd = group.split(rank % 2, rank)
assert (odd.rank, odd.size, odd.ranks) == (rank // 2, 2, [rank % 2, rank % 2 + 2])
odd.barrier()
if rank % 2 == 1:
    odd.barrier("first") if rank == 1 else odd.barrier("second")
group.barrier()
""",
        tmp_path,
    )
    assert ran.code == 1
    assert ran.err.count("Traceback") == 1
    assert f"  rank 1: first, at {tmp_path}/script.py, line 6\n" in ran.err
    assert f"  rank 3: second, at {tmp_path}/script.py, line 6\n" in ran.err


def test_without_comparing_the_timeout_says_it(tmp_path: Path) -> None:
    ran = failing(
        2,
        """other = group.split(0, rank)
group.timeout = other.timeout = 1.0
if rank == 0:
    group.barrier()
else:
    other.barrier()
""",
        tmp_path,
        WENGERT_DISTRIBUTED_DEBUG="0",
    )
    assert ran.code == 1
    assert "TimeoutError: barrier: rank 1 did not come within 1 s. The ranks of the group:\n" in ran.err
    assert (
        f"  rank 0: waiting in barrier, operation 2 of this group, at {tmp_path}/script.py, line 5\n"
        in ran.err
    )
    assert (
        f"  rank 1: waiting in barrier, at {tmp_path}/script.py, line 7, after 1 operation of this" in ran.err
    )


def test_what_mpi_finds_by_itself_is_an_error_with_advice(tmp_path: Path) -> None:
    ran = failing(
        2,
        "group.timeout = 5\ngroup.broadcast(bytearray(1000 if rank == 0 else 10), 0)\n",
        tmp_path,
        WENGERT_DISTRIBUTED_DEBUG="0",
    )
    assert ran.code == 1
    assert "RuntimeError: broadcast of 10 bytes from rank 0: MPI says: " in ran.err
    assert "wengert.distributed.debug() compares them" in ran.err
