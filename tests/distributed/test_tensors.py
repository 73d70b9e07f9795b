"""Tensors that travel: every dtype, layout and size, against NumPy on what all ranks have."""

from pathlib import Path

from distributed.running import run

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
    for count in (1, 2, 3):
        folder = tmp_path / str(count)
        folder.mkdir()
        assert run(count, SUMS, folder) == ["all of it\n"] * count
