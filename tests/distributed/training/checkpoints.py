"""Writes a state, or reads what other numbers of ranks wrote."""

import os
from pathlib import Path

import wengert as wg
import wengert.distributed as dist
from wengert.distributed import checkpoint

rank, size = dist.world().rank, dist.world().size

folder = Path(os.environ["RUN"])
x = wg.arange(24.0).reshape(12, 2)
tied = wg.arange(6).reshape(2, 3)
state = {
    "model": {"a.weight": tied, "b.weight": tied, "bias": wg.ones(3).bfloat16(), "none": wg.empty(0, 2)},
    "optimizer": {
        "state": {0: {"step": 3, "mean": x.T}},
        "groups": [{"betas": (0.9, 0.1 + 0.2), "lr": float("inf")}],
    },
    "step": 7,
    "name": "run",
    "on": True,
    "nothing": None,
}


def shard(count, at):
    return checkpoint.Shard(x[12 // count * at : 12 // count * (at + 1)], 12 // count * at)


def check(found):
    rows = found.pop("rows")
    assert list(found) == list(state)
    assert found["model"].keys() == state["model"].keys()
    for name, value in state["model"].items():
        read = found["model"][name]
        assert read.dtype == value.dtype
        assert read.shape == value.shape
        assert read.equal(value)
    entry = found["optimizer"]["state"][0]
    assert entry["step"] == 3
    assert entry["mean"].equal(x.T)
    assert found["optimizer"]["groups"] == state["optimizer"]["groups"]
    assert [found[name] for name in ("step", "name", "on", "nothing")] == [7, "run", True, None]
    assert rows.whole().equal(x)
    assert rows.rows(5 * rank, 5 * rank + 3).equal(x[5 * rank : 5 * rank + 3])
    assert rows.rows(4, 4).shape == (0, 2)


if "WRITE" in os.environ:
    path = folder / f"step-{size}"
    checkpoint.save({**state, "rows": shard(size, rank)}, path, process_group=dist.world())
    check(checkpoint.load(path))
    try:
        checkpoint.save(state, path)
    except FileExistsError as error:
        print(str(error).split("; ")[1])
else:
    for path in sorted(folder.iterdir()):
        check(checkpoint.load(path))
    print(checkpoint.latest(folder).name)
