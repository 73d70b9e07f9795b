"""What a rank exchanges and holds, told in advance by one process, is what real ranks count."""

import json
from pathlib import Path
from typing import Any

import pytest
import wengert as wg
from distributed.running import run
from wengert import distributed

# Steps with their arguments; a rank and a process that simulates one run the same text.
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
    with distributed.axis("data"), distributed.count_traffic() as traffic:
        step(X)
    print(json.dumps([name, traffic.exchanges, traffic.peak]))
"""
)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_what_is_told_is_counted(count: int, tmp_path: Path) -> None:
    """Every exchange in its order with its bytes; the peak of memory where no thread works beside."""
    space: dict[str, Any] = {}
    exec(STEPS, space)
    ranks = [[json.loads(line) for line in out.splitlines()] for out in run(count, COUNTED, tmp_path)]
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
    assert [exchange.ranks for exchange in both.exchanges] == [2, 4, 4]
    assert both.bytes == 2 * size * 3 // 4 + size


def test_predicted_time() -> None:
    """Rounds of the latency, and the bytes at the bandwidth."""
    told = distributed.cost(lambda x: wg.psum(x, "other"), wg.zeros(1 << 16), axis_size=8, axis_name="other")
    assert told.seconds(latency=1e-6, bandwidth=1e9) == pytest.approx(2 * 3e-6 + told.bytes / 1e9)


def test_rounds_are_those_of_each_exchange() -> None:
    """A mesh that is used unequally."""
    told = distributed.cost(
        lambda x: wg.psum(wg.all_gather(wg.all_gather(x, "b"), "b"), "a"),
        wg.ones(2),
        axis_size={"a": 2, "b": 16},
    )
    assert [(exchange.what, exchange.ranks) for exchange in told.exchanges] == [
        ("all_gather of float32[2]", 16),
        ("all_gather of float32[16, 2]", 16),
        ("psum of float32[16, 16, 2]", 2),
    ]
    assert told.seconds(1.0, 1e30) == pytest.approx(4 + 4 + 1)


def everyday() -> None:
    """A group, and what runs beside the program, of which nobody waits for the last."""
    distributed.init_process_group()
    pair = distributed.new_group([0, 1])
    distributed.all_reduce(wg.ones(100), group=pair)
    distributed.all_reduce(wg.ones(100), group=pair, async_op=True)
    distributed.all_reduce(wg.ones(100), async_op=True)


def test_groups_and_operations_beside_the_program() -> None:
    """Counted with their own number of ranks, each time anew; nothing is left behind."""
    for ranks in (4, 8, 4):
        told = distributed.cost(everyday, axis_size=ranks)
        assert [(exchange.bytes, exchange.ranks) for exchange in told.exchanges] == [
            (400, 2),
            (400, 2),
            (400 * (ranks - 1), ranks),
        ]
        assert not distributed.is_initialized()
        assert distributed.world().size == 1


def test_a_default_group_that_was_there_before() -> None:
    """The simulated ranks take its place."""
    distributed.init_process_group()
    try:
        told = distributed.cost(lambda: distributed.all_reduce(wg.ones(100)), axis_size=8)
        assert distributed.get_world_size() == 1
    finally:
        distributed.destroy_process_group()
    assert told.bytes == 7 * 400


def test_what_was_made_before_is_refused() -> None:
    """It would count nothing."""
    weights = [wg.ones(2, requires_grad=True)]
    group = distributed.world()
    model = distributed.DataParallel(wg.nn.Linear(2, 2))
    optimizer = distributed.optim.ZeroRedundancyOptimizer(weights, wg.optim.SGD, lr=0.1)
    for step in (lambda: model(wg.ones(1, 2)), optimizer.step, group.barrier):
        with pytest.raises(RuntimeError, match="made outside of the function that cost"):
            distributed.cost(step, axis_size=8)
        step()
    with distributed.axis("outer"), pytest.raises(ValueError, match="no axis 'outer'"):
        distributed.cost(lambda: wg.psum(1.0, "outer"), axis_size=8)


REAL = """
@wg.jit
def staged(x):
    return wg.psum(x * 2, "data")

@wg.jit
def entered(x):
    with distributed.axis("data"):
        return wg.psum(x * 2, "data")

def beside(x):
    distributed.init_process_group()
    x = x * 2
    distributed.all_reduce(x, async_op=True).wait()
    distributed.destroy_process_group()
    return x

x = wg.tensor([1.0, 10.0]) * (rank + 1)
for step in (staged, entered, beside):
    told = [distributed.cost(step, x, axis_size=n).bytes for n in (size, 8)]
    with distributed.axis("data"):
        found = step(x).tolist()
    # One rank alone asks; nothing is exchanged.
    if rank == 0:
        told += [distributed.cost(step, x, axis_size=n).bytes for n in (size, 8)]
    with distributed.axis("data"):
        assert step(x).tolist() == found
    print(found, told[:2], told[2:] in ([], told[:2]))
"""


def test_real_exchanges_after_a_cost_and_before(tmp_path: Path) -> None:
    """Neither gets anything of the other."""
    assert run(2, REAL, tmp_path) == ["[6.0, 60.0] [8, 56] True\n" * 3] * 2


def test_what_cannot_be_told() -> None:
    """Lengths that no axis has."""
    with pytest.raises(ValueError, match="names no axis"):
        distributed.cost(lambda: None, axis_size={})
    with pytest.raises(TypeError, match="a text for a name, got 1: 2"):
        distributed.cost(lambda: None, axis_size={1: 2})  # type: ignore[dict-item]
    for size in (0, -1, True, 2.0):
        with pytest.raises(ValueError, match="length of at least 1"):
            distributed.cost(lambda: None, axis_size=size)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no axis 'other'"):
        distributed.cost(lambda: wg.psum(1, "other"), axis_size=2)
    # What raised has left nothing behind.
    with pytest.raises(ValueError, match="no axis 'data'"):
        wg.psum(1, "data")
