"""Tensors on a GPU travel by way of the host, and come back: one GPU for all ranks."""

from pathlib import Path
from typing import Any

import pytest
from distributed.running import run
from distributed.test_parallel import check_overlap
from distributed.training import ran

SETTINGS: dict[str, Any] = {"limit": 120.0, "WENGERT_GPU": "software"}

# Values and gradients equal those on the host; programs do the same again.
COLLECTIVES = """
with distributed.axis("i"):
    x = wg.arange(6.0).reshape(2, 3) * (rank + 1)
    ring = [(i, (i + 1) % size) for i in range(size)]
    functions = {
        "psum": lambda x: wg.psum(x, "i"),
        "pmax": lambda x: wg.pmax(x, "i"),
        "all_gather": lambda x: wg.all_gather(x, "i", axis=1),
        "psum_scatter": lambda x: wg.psum_scatter(x, "i"),
        "all_to_all": lambda x: wg.all_to_all(x, "i", 0, 1),
        "ppermute": lambda x: wg.ppermute(x, "i", ring),
        "pbroadcast": lambda x: wg.pbroadcast(x, "i", size - 1),
    }
    for name, function in functions.items():
        here, there = function(x), function(x.to("gpu"))
        assert there.is_gpu and there.cpu().equal(here), name
        here, there = (wg.grad(lambda x: (function(x) ** 2).sum())(x.to(d)) for d in ("cpu", "gpu"))
        assert there.is_gpu and there.cpu().equal(here), name
        again = wg.jit(function)
        assert again(x.to("gpu")).cpu().equal(function(x)) and again(x.to("gpu")).cpu().equal(function(x)), name
print("all of it")
"""

# PyTorch's functions write where the tensors are.
EVERYDAY = """
distributed.init_process_group()
x = wg.tensor([[1.0, 2.0], [3.0, 4.0]], device="gpu") * (rank + 1)
t = x.clone()
distributed.all_reduce(t)
assert t.is_gpu and t.cpu().equal(wg.tensor([[3.0, 6.0], [9.0, 12.0]]))
t = x.clone()
distributed.all_reduce(t.T, distributed.ReduceOp.MAX)
distributed.broadcast(t, src=1)
assert t.is_gpu and t.cpu().equal(wg.tensor([[2.0, 4.0], [6.0, 8.0]]))
found = [wg.zeros(2, 2, device="gpu") for _ in range(size)]
distributed.all_gather(found, x)
assert [f.cpu()[1, 1].item() for f in found] == [4.0, 8.0]
one = wg.zeros(1, 2, device="gpu")
distributed.reduce_scatter_tensor(one, x)
assert one.is_gpu and one.cpu().equal(wg.tensor([[3.0, 6.0], [9.0, 12.0]])[rank : rank + 1])
both = wg.zeros(2, 2, device="gpu")
distributed.all_to_all_single(both, x, async_op=True).wait()
assert both.cpu().equal(wg.tensor([[1.0, 2.0], [2.0, 4.0]] if rank == 0 else [[3.0, 4.0], [6.0, 8.0]]))
distributed.all_to_all_single(both, x, [1, 1], [1, 1])
assert both.is_gpu and both.cpu()[1, 0].item() == (2.0 if rank == 0 else 6.0)
print("all of it")
"""


@pytest.mark.parametrize("text", [COLLECTIVES, EVERYDAY], ids=["collectives", "everyday"])
def test_exchanges(tmp_path: Path, text: str) -> None:
    assert run(2, text, tmp_path, **SETTINGS) == ["all of it\n"] * 2


def test_training(tmp_path: Path) -> None:
    assert ran(2, "on_gpu", tmp_path, **SETTINGS) == ["the same 2\n"] * 2


def test_gradients_travel_during_backward(tmp_path: Path) -> None:
    """They come from the GPU, are added and go back while backward has more for it to do."""
    check_overlap(2, tmp_path, **SETTINGS, DEVICE="gpu")
