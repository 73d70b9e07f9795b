"""What a rank exchanges and holds, told in advance by one process, is what real ranks count."""

import json
from pathlib import Path
from typing import Any

import pytest
import wengert as wg
from distributed.running import run
from wengert import distributed

# Steps with their arguments; a rank and a process that pretends to be one run the same text.
STEPS = """
import json
import wengert as wg
from wengert import distributed

def collectives(x):
    for _ in range(2):
        x = wg.pmean(x.tanh(), "data") + wg.psum(x[:3, :3], "data").sum()
    parts = wg.psum_scatter(x, "data", tiled=True)
    x = wg.all_gather(parts, "data", tiled=True) * wg.pbroadcast(x, "data", 0)
    return wg.ppermute(x, "data", [(i, (i + 1) % wg.axis_size("data")) for i in range(wg.axis_size("data"))])

def differentiated(x):
    return wg.grad(lambda x: (collectives(x) ** 2).sum())(x)

def data_parallel(x):
    wg.manual_seed(0)
    net = wg.nn.Sequential(wg.nn.Linear(60, 200), wg.nn.BatchNorm1d(200), wg.nn.ReLU(), wg.nn.Linear(200, 60))
    model = distributed.DataParallel(net, bucket_cap_mb=0.02)
    for _ in range(2):
        model(x).square().mean().backward()

def zero(x):
    wg.manual_seed(0)
    net = wg.nn.Linear(60, 60)
    optimizer = distributed.optim.ZeroRedundancyOptimizer(net.parameters(), wg.optim.Adam, lr=0.1)
    net(x).square().mean().backward()
    optimizer.step()

STEPS = {f.__name__: f for f in (collectives, differentiated, data_parallel, zero)}
X = wg.arange(12 * 60.0).reshape(12, 60).sin()
"""

COUNTED = (
    STEPS
    + """
for name, step in STEPS.items():
    with distributed.axis("data"), distributed.counted() as traffic:
        step(X)
    print(json.dumps([name, traffic.exchanges, traffic.peak]))
"""
)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_what_is_told_is_counted(count: int, tmp_path: Path) -> None:
    """Every exchange in its order with its bytes; the peak of memory where no thread works beside."""
    space: dict[str, Any] = {}
    exec(STEPS, space)
    ranks = [
        [json.loads(line) for line in out.splitlines()]
        for out in run(count, COUNTED, tmp_path, WENGERT_DISTRIBUTED_DEBUG="0")
    ]
    for i, (name, step) in enumerate(space["STEPS"].items()):
        told = distributed.cost(step, space["X"], axis_size=count)
        assert told.axis_size == count
        for rank, lines in enumerate(ranks):
            found, exchanges, peak = lines[i]
            assert found == name
            assert [tuple(one) for one in exchanges] == told.exchanges, (name, rank)
            if name in ("collectives", "differentiated"):
                assert peak == told.peak, (name, rank)


def test_bytes_of_each_exchange() -> None:
    """The formulas: of n bytes a sum moves 2 n (r - 1) / r, a gather (r - 1) n, a message n."""
    x, ranks = wg.zeros(1 << 16), 8
    size = x.nbytes
    formulas = {
        "psum": (lambda x: wg.psum(x, "data"), 2 * size * (ranks - 1) // ranks),
        "all_gather": (lambda x: wg.all_gather(x, "data"), size * (ranks - 1)),
        "psum_scatter": (lambda x: wg.psum_scatter(x, "data", tiled=True), size * (ranks - 1) // ranks),
        "all_to_all": (lambda x: wg.all_to_all(x, "data", 0, 0, tiled=True), size * (ranks - 1) // ranks),
        "ppermute": (lambda x: wg.ppermute(x, "data", [(0, 1), (1, 0)]), size),
        "pbroadcast": (lambda x: wg.pbroadcast(x, "data", 3), size),
    }
    for name, (function, moved) in formulas.items():
        told = distributed.cost(function, x, axis_size=ranks)
        assert told.bytes == moved, name
        assert name in str(told)
        assert f"{moved:,} bytes for each rank" in str(told)
    assert distributed.cost(lambda x: wg.psum(x, "data"), x, axis_size=1).exchanges == []
    both = distributed.cost(lambda x: wg.psum(x, ("a", "b")), x, axis_size={"a": 4, "b": 2})
    assert both.axis_size == 8
    assert both.bytes == 2 * size * 3 // 4 + size


def test_predicted_time() -> None:
    """Rounds of the latency, and the bytes at the bandwidth."""
    told = distributed.cost(lambda x: wg.psum(x, "other"), wg.zeros(1 << 16), axis_size=8, axis_name="other")
    assert told.seconds(latency=1e-6, bandwidth=1e9) == pytest.approx(2 * 3e-6 + told.bytes / 1e9)


def test_what_cannot_be_told() -> None:
    """Lengths that no axis has."""
    for size in (0, -1, True, 2.0):
        with pytest.raises(ValueError, match="length of at least 1"):
            distributed.cost(lambda: None, axis_size=size)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no axis 'other'"):
        distributed.cost(lambda: wg.psum(1, "other"), axis_size=2)
    # What raised has left nothing behind.
    with pytest.raises(ValueError, match="no axis 'data'"):
        wg.psum(1, "data")
