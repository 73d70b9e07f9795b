"""States that cannot be saved raise on all ranks, which go on together; nothing is left of them."""

import sys
from pathlib import Path

import wengert as wg
import wengert.distributed as dist
from wengert.distributed import checkpoint

rank, folder = dist.world().rank, Path(sys.argv[1]) / "run"
x = wg.arange(3.0)


def attempt(state, **settings):
    try:
        checkpoint.save(state, folder / "step-1", **settings)
        print("saved")
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        print(type(error).__name__, str(error).replace(str(folder), "run"))
    if rank == 0:
        assert not (folder / "step-1.unfinished").exists()


plain = checkpoint.save_file


def full(*_):
    raise OSError(28, "no space left")


if rank == 1:
    checkpoint.save_file = full
attempt({"x": x, "y": x + 1})
checkpoint.save_file = plain
attempt({"x": x if rank == 0 else {1, 2}})
attempt({"x": x} if rank == 0 else {"x": x, "more": x + 1})
attempt({"x": x.to(wg.float64 if rank else wg.float32)})
for rows, begin in [(x, 0), (x, 4 * rank), (x, 3 * rank - 1), (x.to(wg.int64) if rank else x, 3 * rank)]:
    attempt({"rows": checkpoint.Shard(rows, begin)})
attempt({"rows": checkpoint.Shard(wg.ones(3, 2 + rank), 3 * rank)})
attempt({"rows": checkpoint.Shard(x, 0)} if rank else {})
attempt({"x": x}, keep=0)
attempt({"x": x}, keep=1.5)
# A rank may have no rows.
attempt({"rows": checkpoint.Shard(x[: 3 - 3 * rank], 0)})
assert checkpoint.load(folder / "step-1")["rows"].whole().equal(x)
