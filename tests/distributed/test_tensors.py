"""Tensors that travel: every dtype, layout and size, against NumPy on what all ranks have."""

from pathlib import Path

from distributed.running import MESSAGES, run
from wengert.distributed import _group

SUMS = """
import numpy as np
from wengert.distributed._tensors import gather_tensors, sum_tensors

def parts(dtype, shape):
    # What each rank has, known to all.
    drawn = [np.random.default_rng(r).uniform(-3, 3, shape) for r in range(size)]
    return [wg.tensor(d).to(dtype) for d in drawn]

dtypes = [wg.float32, wg.float64, wg.float16, wg.bfloat16, wg.complex64, wg.int64, wg.int8, wg.bool]
for dtype in dtypes:
    for shape in [(), (0,), (1,), (7,), (3, 5), (4, 0, 2)]:
        every = parts(dtype, shape)
        both = gather_tensors(every[rank], group)
        assert both.dtype == dtype and tuple(both.shape) == (size, *shape), (dtype, shape)
        assert both.equal(wg.stack(every)), (dtype, shape)
        if dtype != wg.bool:
            total = sum_tensors(every[rank], group)
            assert total.dtype == dtype and total.equal(wg.stack(every).sum(0, dtype=dtype)), (dtype, shape)
every = parts(wg.float32, (6, 4))
assert sum_tensors(every[rank].T[1:], group).equal(wg.stack(every).mT[:, 1:].sum(0))
print("all of it")
"""


def test_sums_and_gathers(tmp_path: Path) -> None:
    for count, sharing_from in ((1, "1"), (2, "1"), (2, MESSAGES), (3, "1")):
        folder = tmp_path / f"{count} {sharing_from}"
        folder.mkdir()
        assert run(count, SUMS, folder, SHARING_FROM=sharing_from) == ["all of it\n"] * count


MEMORY = """
import contextlib, tempfile
from wengert.distributed import _window
from wengert.distributed._tensors import sum_tensors

real, made = (os.posix_fallocate, os.open, tempfile.mkstemp, _window._FOLDER), []

def fallocate(*args):
    raise OSError("no room")

def refuse(path, *args):
    if str(path).startswith(real[3]):
        raise OSError("of another host")
    return real[1](path, *args)

def noted(**kwargs):
    found = real[2](**kwargs)
    made.append(found[1])
    return found

# In the third operation: memory for all, no room on the host, a rank of another host, no such folder.
_group._OFTEN = 3
tempfile.mkstemp = noted
for where in ("one host", "full", "two hosts", "no folder"):
    os.posix_fallocate = fallocate if where == "full" else real[0]
    _window._FOLDER = "/none" if where == "no folder" else real[3]
    ranks = group.split(0, rank)
    for n in (1, 1, 1, 1, 1000, 30_000, 200_000):
        os.open = refuse if where == "two hosts" and rank == 1 else real[1]
        x = wg.arange(n, dtype=wg.float32) * (rank + 1)
        total = sum_tensors(x, ranks)
        os.open = real[1]
        assert total.equal(wg.arange(n, dtype=wg.float32) * (size * (size + 1) // 2)), (where, n)
    assert not any(os.path.exists(name) for name in made)
    print(where, ranks._window.room > 0, ranks.count, ranks._window.count)
# Of the first three, and of the world that was split.
assert len(made) == 4 * (rank == 0)

# One of the ranks is looked at, so that its operations go through Python.
_window._FOLDER = real[3]
shared = group.split(0, rank)
for dtype in (wg.float32, wg.float16, wg.complex64, wg.int64):
    for x in (wg.ones(5, dtype=dtype), wg.ones((2, 3), dtype=dtype).T, wg.ones(0, dtype=dtype)):
        for looked_at in (False, True):
            with distributed.count_traffic() if looked_at and rank == 1 else contextlib.nullcontext():
                assert sum_tensors(x, shared).equal(x * size), (dtype, x.shape)
                joined = wg._core._sum_joined([x, x], shared.members)
                assert joined.equal(wg.cat([x.flatten(), x.flatten()]) * size), (dtype, x.shape)
                everyone = wg.distributed._tensors.gather_tensors(x, shared)
                assert everyone.equal(wg.stack([x] * size))
print(shared._window.count > (20 if rank == 1 else 40))
"""


def test_few_bytes_go_through_memory_where_ranks_share_it(tmp_path: Path) -> None:
    out = run(3, MEMORY, tmp_path)
    lines = ["one host True 9 2", "full False 9 0", "two hosts False 9 0", "no folder False 9 0", "True", ""]
    assert out == ["\n".join(lines)] * 3


SWITCH = """
import numpy as np
from functools import reduce

def own(r, n):
    return np.arange(size * n).reshape(size, n) % 97 - 40.0 * r

def collective(kind, at=None):
    return lambda ranks, x: wg._core._collective(x, kind, at, ranks.members)

def gathered(ranks, x):
    found = bytearray(x.nbytes * size)
    ranks.all_gather(x.numpy().tobytes(), found)
    return wg.tensor(np.frombuffer(found).reshape(size, *x.shape))

def parted(ranks, x):
    # A part of this group, whose members speak in turn.
    return wg._core._collective(x, "sum", None, ranks.split(0, -rank).members)

operations = {
    "sum": (collective("sum"), lambda every: sum(every)),
    "max": (collective("max"), lambda every: reduce(np.maximum, every)),
    "gather": (collective("gather", 0), np.stack),
    "scatter": (collective("sum_scatter", 0), lambda every: sum(every)[rank]),
    "all to all": (collective("all_to_all", (0, 0)), lambda every: np.stack([x[rank] for x in every])),
    "permute": (collective("permute", [(0, 1), (1, 0)]), lambda every: every[1 - rank] if rank < 2 else 0 * every[0]),
    "broadcast": (collective("broadcast", 1), lambda every: every[1]),
    "joined": (lambda ranks, x: wg._core._sum_joined([x], ranks.members).reshape(x.shape), sum),
    "bytes": (gathered, np.stack),
    "split": (parted, sum),
}
for name, (operation, meaning) in operations.items():
    for n in (0, 1, 700, 20_000):
        every = [own(r, n) for r in range(size)]
        ranks = group.split(0, rank)
        for _ in range(OFTEN - 1):
            ranks.barrier()
        for i in range(3):
            shares = ranks._window.room > 0
            assert shares == (i > 0), (name, n, i)
            assert np.array_equal(operation(ranks, wg.tensor(every[rank])).numpy(), meaning(every)), (name, n, i)
# Ranks that disagree stay with messages, and agree later.
ranks = group.split(0, rank)
for _ in range(OFTEN - 1):
    ranks.barrier()
try:
    ranks.barrier(f"of {rank}")
except RuntimeError:
    print(ranks._window.room, end=" ")
ranks.barrier()
print(ranks._window.room > 0)
"""


def test_from_messages_to_memory(tmp_path: Path) -> None:
    """Whatever the operation is in which ranks begin to share memory, it has its result, and so have the next."""
    often = str(_group._OFTEN)
    for count in (2, 3):
        folder = tmp_path / str(count)
        folder.mkdir()
        out = run(count, SWITCH.replace("OFTEN", often), folder, SHARING_FROM=often)
        assert out == ["0 True\n"] * count
