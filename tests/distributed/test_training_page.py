"""The functions of docs/guide/distributed_training.md on ranks: the same bits as under `vmap`."""

import re
from pathlib import Path

from distributed.running import run

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "distributed_training.md"


def _cells(heading: str) -> list[str]:
    """The cells of a section."""
    (section,) = re.findall(
        rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S
    )
    return re.findall(r"^```\{code-cell\} python\n(.*?)^```", section, re.M | re.S)


SHARDED = """
from wengert import distributed as dist
expected, _ = step(parts, x, y)
own = tree_map(lambda p: p[rank].clone(), parts)
with dist.axis("data"):
    found, loss_found = sharded_step(shapes, own, x[rank], y[rank])
for e, f in zip(tree_leaves(expected), tree_leaves(found)):
    assert e[rank].equal(f)

# Each rank has its part of parameters and gradients, and one layer more, whose gradient may be there too.
n, count = 300, 10
layer_bytes = 4 * (n * n + n)
shapes = [{"weight": (n, n), "bias": (n,)} for _ in range(count)]
before = wg.memory.live_bytes()
wide = [{"weight": wg.ones(n * n // size) / n, "bias": wg.zeros(n // size)} for _ in range(count)]
held = wg.memory.live_bytes() - before
assert held == count * layer_bytes // size, (held, layer_bytes)
row = wg.ones(2, n)
with dist.axis("data"):
    gradients = wg.grad(lambda parts: loss(shapes, parts, row, row))
    gradients(wide)
    wg.memory.reset_peak()
    gradients(wide)
peak = wg.memory.peak_bytes() - before
assert peak <= 2 * count * layer_bytes // size + 4 * layer_bytes, (peak / layer_bytes)
print("sharded")
"""

DIVIDED = """
from wengert import distributed as dist
expected, grads = wg.vmap(block_gradients, in_axes=(0, None), axis_name="model")(divided(whole, size), tokens)
own = tree_map(lambda p: p[rank].clone(), divided(whole, size))
with dist.axis("model"):
    value, found = block_gradients(own, tokens)
assert wg.allclose(value, expected[0], rtol=1e-6), (value, expected)
for e, f in zip(tree_leaves(grads), tree_leaves(found)):
    assert wg.allclose(e[rank], f, rtol=1e-4, atol=1e-6)

# Both axes at once: the average over data of gradients of parts.
with dist.mesh({"data": 2, "model": 2}) as groups:
    at = groups["model"].rank
    own = tree_map(lambda p: p[at].clone(), divided(whole, 2))
    batch = tokens + groups["data"].rank
    _, found = block_gradients(own, batch)
    found = wg.pmean(found, "data")
step = wg.vmap(block_gradients, in_axes=(0, None), axis_name="model")
many = [step(divided(whole, 2), tokens + i)[1] for i in range(2)]
for a, b, f in zip(*map(tree_leaves, many), tree_leaves(found)):
    assert wg.allclose((a[at] + b[at]) / 2, f, rtol=1e-4, atol=1e-6)
print("divided")
"""


def _script(cells: list[str], test: str) -> str:
    return "\n".join(cells).replace("print(", "(lambda *_: None)(") + test


def test_fully_sharded_parameters(tmp_path: Path) -> None:
    cells = _cells("Fully sharded parameters")
    assert len(cells) == 2
    assert run(2, _script(cells, SHARDED), tmp_path) == ["sharded\n"] * 2


def test_tensor_parallel_layers(tmp_path: Path) -> None:
    first = _cells("Fully sharded parameters")[0]
    cells = _cells("Tensor-parallel layers")
    assert len(cells) == 2
    assert run(4, _script([first, *cells], DIVIDED), tmp_path) == ["divided\n"] * 4
