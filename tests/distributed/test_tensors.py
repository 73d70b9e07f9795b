"""Tensors that travel: every dtype, layout and size, against NumPy on what all ranks have."""

from pathlib import Path

from distributed.running import MESSAGES, run

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
from wengert.distributed import _window
room, files = [], _window._FOLDER
real = os.posix_fallocate, os.open

def fallocate(*args):
    raise OSError("no room")

def refuse(path, *args):
    if path.startswith(files):
        raise OSError("of another host")
    return real[1](path, *args)

# With the third operation: memory for all, no room on the host, a rank of another host.
_group._OFTEN = 3
for where in ("one host", "full", "two hosts"):
    os.posix_fallocate = fallocate if where == "full" else real[0]
    os.open = refuse if where == "two hosts" and rank == 1 else real[1]
    ranks = group.split(0, rank)
    before = set(os.listdir(files))
    for n in (1, 1, 1, 1, 1000, 30_000, 200_000):
        x = wg.arange(n, dtype=wg.float32) * (rank + 1)
        total = wg.distributed._tensors.sum_tensors(x, ranks)
        assert total.equal(wg.arange(n, dtype=wg.float32) * (size * (size + 1) // 2)), (where, n)
    assert not [name for name in set(os.listdir(files)) - before if name.startswith("wengert-")]
    print(where, ranks._window.room > 0, ranks.count, ranks._window.count)
    os.posix_fallocate, os.open = real
"""


def test_few_bytes_go_through_memory_where_ranks_share_it(tmp_path: Path) -> None:
    out = run(3, MEMORY, tmp_path)
    assert out == ["one host True 9 2\nfull False 9 0\ntwo hosts False 9 0\n"] * 3
