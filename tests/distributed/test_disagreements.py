"""Ranks that do different things at the same time: who does what, and where, is said by all of them alike."""

from pathlib import Path

import pytest
from distributed.running import MESSAGES, failing, run

# One script, so that one start serves all cases: each disagreement is noticed before anything is sent, and
# the group remains of use.
CASES = """
def differ(first, second):
    try:
        (first if rank == 0 else second)()
    except RuntimeError as error:
        print(str(error).replace(__file__, "it"))
    else:
        print("nothing")

one, x = bytearray(8), wg.ones(2, 3)
with distributed.axis("i") as group:
    group.barrier()
    differ(lambda: wg.psum(x, "i"), lambda: wg.all_gather(x, "i"))
    differ(lambda: wg.psum(x, "i"), lambda: wg.psum(x.double(), "i"))
    differ(lambda: wg.psum(x, "i"), lambda: wg.psum(x.T, "i"))
    square = wg.ones(2, 2, 1)
    differ(lambda: wg.all_to_all(square, "i", 0, 1), lambda: wg.all_to_all(square, "i", 1, 1))
    along = lambda axis: lambda: wg.psum_scatter(square, "i", scatter_dimension=axis)
    differ(along(0), along(1))
    group.barrier()
differ(distributed.axis("a").__enter__, distributed.axis("b").__enter__)
two = lambda *names: distributed.mesh(dict(zip(names, (2, 1)))).__enter__
differ(two("a", "b"), two("b", "a"))
differ(lambda: group.broadcast(one, 0), lambda: group.broadcast(one, 1))
differ(group.barrier, lambda: group.split(0, 0))
differ(group.barrier, lambda: group.all_gather(bytearray(100_000), bytearray(100_000 * size)))
differ(lambda: group.exchange(one, 1, one, -1), lambda: group.exchange(one, -1, one, -1))
differ(lambda: group.exchange(one, -1, one, -1), lambda: group.exchange(one, -1, one, 0))
# What agrees is done.
differ(lambda: group.exchange(one, 1, one, -1), lambda: group.exchange(one, -1, one, 0))
differ(group.barrier,
       group.barrier)
"""

EXPECTED = """\
the ranks disagree about their collective operation 2:
  rank 0: psum of float32[2, 3], at it, line 14, in <lambda>
  rank 1: all_gather of float32[2, 3], at it, line 14, in <lambda>
the ranks disagree about their collective operation 3:
  rank 0: psum of float32[2, 3], at it, line 15, in <lambda>
  rank 1: psum of float64[2, 3], at it, line 15, in <lambda>
the ranks disagree about their collective operation 4:
  rank 0: psum of float32[2, 3], at it, line 16, in <lambda>
  rank 1: psum of float32[3, 2], at it, line 16, in <lambda>
the ranks disagree about their collective operation 5:
  rank 0: all_to_all of float32[2, 2, 1] from axis 0 to axis 1, at it, line 18, in <lambda>
  rank 1: all_to_all of float32[2, 2, 1] from axis 1 to axis 1, at it, line 18, in <lambda>
the ranks disagree about their collective operation 6:
  rank 0: psum_scatter of float32[2, 2, 1], at it, line 19, in <lambda>
  rank 1: psum_scatter of float32[2, 2, 1] along axis 1, at it, line 19, in <lambda>
the ranks disagree about their collective operation 2:
  rank 0: axis 'a' of mesh({'a': 2}), at it, line 5, in differ
  rank 1: axis 'b' of mesh({'b': 2}), at it, line 5, in differ
the ranks disagree about their collective operation 3:
  rank 0: axis 'a' of mesh({'a': 2, 'b': 1}), at it, line 5, in differ
  rank 1: axis 'b' of mesh({'b': 2, 'a': 1}), at it, line 5, in differ
the ranks disagree about their collective operation 8:
  rank 0: broadcast of 8 bytes from rank 0, at it, line 25, in <lambda>
  rank 1: broadcast of 8 bytes from rank 1, at it, line 25, in <lambda>
the ranks disagree about their collective operation 9:
  rank 0: barrier, at it, line 5, in differ
  rank 1: split, at it, line 26, in <lambda>
the ranks disagree about their collective operation 10:
  rank 0: barrier, at it, line 5, in differ
  rank 1: all_gather of 200000 bytes, at it, line 27, in <lambda>
rank 0 sends to rank 1, which does not expect it:
  ranks 0, 1: exchange of 8 bytes, at it, line 28, in <lambda>
rank 1 expects something of rank 0, which sends it nothing:
  ranks 0, 1: exchange of 8 bytes, at it, line 29, in <lambda>
nothing
nothing
"""


@pytest.mark.parametrize("sharing_from", ["1", MESSAGES])
def test_all_ranks_say_who_does_what_and_where(tmp_path: Path, sharing_from: str) -> None:
    assert run(2, CASES, tmp_path, SHARING_FROM=sharing_from) == [EXPECTED] * 2


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


def test_sizes_and_long_descriptions(tmp_path: Path) -> None:
    text = """
def wrong(action):
    try:
        action()
    except RuntimeError as error:
        print(str(error).partition(", at ")[0], len(str(error)) < 1000)

wrong(lambda: group.broadcast(bytearray(1000 if rank == 0 else 10), 0, "sent"))
wrong(lambda: group.barrier("long " * 600 + str(rank)))
wrong(lambda: group.barrier(f"two\\nlines {rank}"))
group.barrier("long " * 600)
"""
    out = run(2, text, tmp_path)
    assert out[0].splitlines() == [
        "the ranks disagree about their collective operation 1:",
        "  rank 0: sent from rank 0, 1000 bytes True",
        "the ranks disagree about their collective operation 2:",
        f"  rank 0: {'long ' * 24}... (dd69f88d) True",
        "the ranks disagree about their collective operation 3:",
        "  rank 0: two lines 0 True",
    ]


MANY = """
def differ(*actions):
    try:
        actions[rank]()
    except RuntimeError as error:
        print(str(error).partition(":")[0])
    else:
        print("nothing")

ring = [(i, (i + 1) % size) for i in range(size)]
with distributed.axis("i") as group:
    for first, second in (
        (lambda: wg.psum(wg.ones(100_000), "i"), lambda: wg.psum(wg.ones(150_000), "i")),
        (lambda: wg.psum(wg.ones(100_000), "i"), lambda: wg.psum(wg.ones(10), "i")),
        (lambda: wg.psum(wg.ones(2), "i"), lambda: wg.psum(wg.ones(1000), "i")),
        (lambda: wg.pbroadcast(wg.ones(100_000), "i", 0), lambda: wg.pbroadcast(wg.ones(100_000), "i", 1)),
        (lambda: wg.pmax(wg.ones(2), "i"), lambda: wg.psum(wg.ones(2), "i")),
        (lambda: wg.all_to_all(wg.ones(size), "i", 0, 0), lambda: wg.all_to_all(wg.ones(size, 1), "i", 0, 0)),
        (lambda: wg.ppermute(wg.ones(2), "i", ring), lambda: wg.ppermute(wg.ones(4), "i", ring)),
        (lambda: wg.ppermute(wg.ones(2), "i", ring), lambda: wg.ppermute(wg.ones(2), "i", ring[:1])),
        (lambda: wg.ppermute(wg.ones(2), "i", ring[:1]), lambda: wg.ppermute(wg.ones(2), "i", ring)),
        (lambda: wg.ppermute(wg.ones(2), "i", ring), group.barrier),
    ):
        differ(*[first] * (size - 1), second)
    assert float(wg.psum(wg.ones(()), "i")) == size
"""


def test_large_and_small_ones_of_several_ranks(tmp_path: Path) -> None:
    """MPI itself never meets buffers that do not fit, and the group remains of use."""
    for ranks in (2, 4):
        for out in run(ranks, MANY, tmp_path):
            lines = out.splitlines()
            assert len(lines) == 10
            assert all(line.startswith(("the ranks disagree about", "rank ")) for line in lines), lines


SIZES = """
for n in (1, 2, 11, 12, 13, 500, 677, 678, 1015, 1016, 1017, 2031, 2032, 2033, 70_000):
    own = bytes([rank + 1] * n)
    every = bytearray(n * size)
    group.all_gather(own, every)
    assert every == b"".join(bytes([r + 1] * n) for r in range(size)), n
    every = bytearray(n * size)
    group.all_to_all(b"".join(bytes([10 * rank + i] * n) for i in range(size)), every)
    assert every == b"".join(bytes([10 * r + rank] * n) for r in range(size)), n
    got = bytearray(own)
    group.broadcast(got, size - 1)
    assert got == bytes([size] * n), n
    got = bytearray(n)
    group.exchange(own, (rank + 1) % size, got, (rank - 1) % size)
    assert got == bytes([(rank - 1) % size + 1] * n), n
group.all_gather(b"", bytearray())
"""


def test_bytes_that_fit_into_a_frame_and_that_do_not(tmp_path: Path) -> None:
    for ranks in (2, 3):
        run(ranks, SIZES, tmp_path)
