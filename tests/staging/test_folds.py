"""Reductions that programs compute together with what they reduce: the same bits as one after another."""

from collections.abc import Callable

import numpy as np
import pytest
import wengert as wg
from hypothesis import given, strategies as st
from wengert import Tensor

SHAPES = [
    ((4096,), (0,)),
    ((70_001,), (0,)),
    ((200_003,), (0,)),
    ((300, 17), (0,)),
    ((300, 17), (1,)),
    ((300, 17), (0, 1)),
    ((5000, 3), (1,)),
    ((3, 5000), (1,)),
    ((3, 5000), (0,)),
    ((9, 1500), (0,)),
    ((2050, 40), (0,)),
    ((131, 700), (0,)),
    ((131, 700), (1,)),
    ((2, 3, 2000), (0, 2)),
    ((6, 50, 600), (1,)),
    ((40, 6, 50), (0, 1)),
    ((1, 4100, 1), (1,)),
    ((64, 1, 64), (0,)),
]

REDUCTIONS: dict[str, Callable[..., Tensor]] = {
    "sum": wg.sum,
    "mean": wg.mean,
    "amax": wg.amax,
    "amin": wg.amin,
}


def bits(x: Tensor) -> bytes:
    """The bits of a tensor without NaN."""
    return x.numpy().tobytes()


def alike(f: Callable[..., tuple[Tensor, ...]], *args: Tensor) -> wg.jit.Staged:
    """Compares a program with the function, at one and two threads."""
    step = wg.jit(f)
    before = wg.get_num_threads()
    try:
        for threads in (1, 2):
            wg.set_num_threads(threads)
            expected = f(*args)
            for _ in range(2):
                found = step(*args)
                assert [x.shape for x in found] == [x.shape for x in expected]
                assert [bits(x) for x in found] == [bits(x) for x in expected]
    finally:
        wg.set_num_threads(before)
    return step


@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", [wg.float32, wg.float64], ids=str)
def test_every_kind_of_reduction(shape, axes, name, dtype):
    rng = np.random.default_rng(0)
    x, y = (wg.tensor(rng.standard_normal(shape), dtype=dtype) for _ in range(2))

    def f(x, y, keepdim):
        return (REDUCTIONS[name]((x * y + x) * 0.5, axes, keepdim=keepdim),)

    step = alike(lambda x, y: f(x, y, False), x, y)
    (group,) = step.fused(x, y)
    assert group == ["mul", "add", "mul", name]
    alike(lambda x, y: f(x, y, True), x, y)


def test_many_short_runs_are_steps_of_their_own():
    x = wg.randn(60, 50, 4)
    step = alike(lambda x: ((x * 2 + 1).sum((0, 2)),), x)
    assert step.fused(x) == [["mul", "add"]]


def test_what_is_folded_has_no_memory():
    x = wg.randn(1_000_000)
    step = wg.jit(lambda x: (x.sin() * x).sum())
    assert step.traces == 0
    step(x)
    assert step.fused(x) == [["sin", "mul", "sum"]]
    wg.memory.reset_peak()
    before = wg.memory.live_bytes()
    step(x)
    assert wg.memory.peak_bytes() - before < 100_000


def test_one_loop_is_folded_too():
    x = wg.randn(5000)
    assert alike(lambda x: (x.square().sum(),), x).fused(x) == [["square", "sum"]]


def test_a_value_that_others_read_is_stored():
    x = wg.randn(70, 70)

    def f(x):
        y = x.exp() + 1
        return y.sum(0), y * 2

    alike(f, x)

    def g(x):
        y = x.exp() + 1
        return y.sum(0), y.reshape(-1)

    alike(g, x)


def test_two_reductions_of_one_group():
    x = wg.randn(70, 70)
    alike(lambda x: ((x * 2 + 1).sum(), (x.exp() - 1).mean(1), (x * x + x).amax()), x)


def test_a_reduction_behind_a_write_reads_what_was_written():
    x, y = wg.randn(5000), wg.randn(5000)

    def f(x, y):
        z = x * 2 + y
        z.mul_(3.0)
        total = z.sum()
        z.add_(1.0)
        return total, z

    alike(f, x, y)

    def g(x, y):
        z = x * 2 + y
        w = z.view(50, 100)
        w[3].fill_(7.0)
        return (z.sum(),)

    alike(g, x, y)


def test_operands_that_are_written_after_the_reduction():
    x, y = wg.randn(5000), wg.randn(5000)

    def f(x, y):
        t = x * 0.3
        s = (t * y).sum()
        t.add_(t)
        return s, t * y

    alike(f, x, y)

    def g(x, y):
        t = x * 0.3
        u = t + 1
        s, m = (u * t).amax(), (t * y).mean()
        t.mul_(y)
        u.sub_(t)
        return s, m, (t - u).sum()

    alike(g, x, y)


def test_gradients_that_accumulate_within_a_group():
    r, x = wg.randn(1000), wg.randn(7, 1000)

    def f(r, x):
        def loss(r, x):
            t = x.tanh()
            return ((t * r + t) * 0.3).mean()

        return wg.grad(loss, argnums=(0, 1))(r, x)

    alike(f, r, x)


def test_a_gated_residual_trains_alike():
    def losses(staged):
        wg.manual_seed(0)
        layer, scale = wg.nn.Linear(64, 64), wg.nn.Parameter(wg.full((64,), 0.5))
        optimizer = wg.optim.SGD([*layer.parameters(), scale], lr=0.5)

        def train(x):
            optimizer.zero_grad()
            h = layer(x).tanh()
            loss = (h * scale + h).mul(0.3).var(1).mean()
            loss.backward()
            optimizer.step()
            return loss

        step, x = wg.jit(train) if staged else train, wg.randn(128, 64)
        return [step(x).item() for _ in range(20)], scale.tolist()

    assert losses(True) == losses(False)


def test_gradients_of_losses():
    x, w = wg.randn(500, 30), wg.randn(30)

    def f(x, w):
        def loss(w):
            return ((x * w).tanh() ** 2).mean() + (w.abs() + x.sigmoid()).sum(1).max()

        return wg.grad(loss)(w), loss(w)

    alike(f, x, w)


def test_special_numbers():
    x = wg.randn(20_000)
    x[7777] = float("inf")
    alike(lambda x: ((x * 2 - 1).amax(), (x * 2 - 1).sum(), (x + 1).mean()), x)
    x[7778] = float("nan")
    found = wg.jit(lambda x: ((x * 2 - 1).amax(), (x * 2 - 1).sum()))
    for _ in range(2):
        assert all(bool(y.isnan()) for y in found(x))


def test_results_larger_than_the_cache():
    x = wg.randn(5_000_000)

    def f(x):
        y = x * 0.5
        return (y * y + 1).sum(), y, x - 1

    alike(f, x)


@given(
    shape=st.lists(st.sampled_from([1, 2, 3, 24, 25, 64, 511, 512, 1025, 4100]), min_size=1, max_size=3),
    kept=st.integers(0, 7),
    name=st.sampled_from(sorted(REDUCTIONS)),
)
def test_any_shape(shape, kept, name):
    if np.prod(shape) > 600_000:
        shape = shape[:1]
    axes = tuple(i for i in range(len(shape)) if not kept >> i & 1) or (0,)
    x = wg.tensor(np.random.default_rng(len(shape)).standard_normal(shape), dtype=wg.float32)
    alike(lambda x: (REDUCTIONS[name](x * 3 - x.square(), axes),), x)
