"""Tensors on a GPU travel by way of the host, and come back."""

from pathlib import Path

from distributed.running import run

SCRIPT = """
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


def test_two_ranks(tmp_path: Path) -> None:
    """Values and gradients equal those on the host; programs do the same again."""
    assert run(2, SCRIPT, tmp_path, limit=120.0, WENGERT_GPU="software") == ["all of it\n"] * 2
