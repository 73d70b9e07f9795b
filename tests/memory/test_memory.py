"""Memory: deep and wide graphs, long trainings, what each operation keeps, and that everything is given
back."""

import gc
import os
import sys
from collections.abc import Callable

import numpy as np
import pytest
import wengert as wg
from support import array
from wengert import nn
from wengert.utils.checkpoint import checkpoint


def live() -> int:
    """Bytes in tensors of this process."""
    gc.collect()
    return wg.memory.live_bytes()


def resident() -> int:
    """Bytes of this process in physical memory."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_million_operations_deep() -> None:
    start = live()
    x = wg.tensor([1.0], requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + x
    y.backward()
    assert x.grad.item() == 1_000_001.0
    del y
    x.grad = None
    del x
    assert live() <= start


def test_a_deep_graph_is_freed_without_backward() -> None:
    start = live()
    x = wg.tensor([1.0], requires_grad=True)
    y = x
    for _ in range(300_000):
        y = y * x
    del y, x
    assert live() <= start


def test_wide_graphs() -> None:
    x = wg.ones(8, requires_grad=True)
    parts = [x * float(i) for i in range(5000)]
    wg.stack(parts).sum().backward()
    assert x.grad.tolist() == [float(sum(range(5000)))] * 8
    parts = [x * float(i) for i in range(5000)]
    total = sum(parts[1:], parts[0])
    (g,) = wg.autograd.grad(total.sum(), [x])
    assert g.tolist() == [float(sum(range(5000)))] * 8


def step(w: wg.Tensor, data: wg.Tensor) -> None:
    """One step of training."""
    loss = (data @ w).tanh().square().mean()
    loss.backward()
    with wg.no_grad():
        w -= 0.01 * w.grad
    w.grad = None


@pytest.mark.parametrize(
    ("measure", "slack"),
    [
        (live, 0),
        pytest.param(
            resident,
            4 << 20,
            marks=pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells of a process"),
        ),
    ],
    ids=["tensors", "process"],
)
def test_ten_thousand_steps_do_not_grow(measure: Callable[[], int], slack: int) -> None:
    w = wg.ones(8, 4, requires_grad=True)
    data = wg.tensor(np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32))
    for _ in range(200):
        step(w, data)
    before = measure()
    for _ in range(10_000):
        step(w, data)
    assert measure() <= before + slack


def test_transforms_do_not_grow() -> None:
    f = wg.vmap(wg.grad(lambda x, w: (x @ w).tanh().sum()), in_dims=(0, None))
    x, w = wg.ones(4, 3), wg.ones(3, 2)
    for _ in range(20):
        f(x, w)
        wg.hessian(lambda x: x.square().sum())(wg.ones(3))
    before = live()
    for _ in range(500):
        f(x, w)
        wg.hessian(lambda x: x.square().sum())(wg.ones(3))
    assert live() == before


N = 4096  # elements; float32 makes them 16 KiB


def kept(f: object, *leaves: wg.Tensor) -> int:
    """Bytes that stay alive between forward and backward, besides inputs and output."""
    before = live()
    out = f(*leaves)
    own = out.nbytes
    return live() - before - own


SAVED = {
    # What is kept besides the operands, which the caller holds anyway, and the output itself.
    "add": (lambda x, y: x + y, 0),
    "sub": (lambda x, y: x - y, 0),
    "mul": (lambda x, y: x * y, 0),
    "neg": (lambda x, y: -x, 0),
    "sum": (lambda x, y: x.sum(), 0),
    "tanh": (lambda x, y: x.tanh(), 0),
    "relu": (lambda x, y: x.relu(), 0),
    "reshape": (lambda x, y: x.reshape(64, 64).mT, -4 * N),
    "chain_of_adds": (lambda x, y: ((x + y) + y) + y, 0),
    "chain_of_tanh": (lambda x, y: x.tanh().tanh().tanh(), 2 * 4 * N),
    "mul_of_tanh": (lambda x, y: x.tanh() * y, 4 * N),
    "tanh_of_mul": (lambda x, y: (x * y).tanh(), 0),
    "exp_of_sum": (lambda x, y: (x + y).exp(), 0),
    "log_of_sum": (lambda x, y: (x + y + 3).log(), 4 * N),
    "softmax": (lambda x, y: x.reshape(64, 64).softmax(-1), 0),
    "compare": (lambda x, y: wg.where(x > 0, x, y), N),
}


@pytest.mark.parametrize("name", list(SAVED))
def test_what_each_operation_keeps(name: str) -> None:
    f, expected = SAVED[name]
    leaves = [wg.full((N,), v, requires_grad=True) for v in (0.5, 0.25)]
    f(*leaves)
    # A thread that an earlier test left may free memory meanwhile: what the operation keeps, it keeps always.
    got = min((kept(f, *leaves) for _ in range(3)), key=lambda found: abs(found - expected))
    assert abs(got - expected) <= 1024, f"{name} keeps {got} bytes, expected {expected}"


def test_outputs_that_nobody_reads_are_not_kept() -> None:
    x = wg.full((N,), 0.5, requires_grad=True)
    before = live()
    y = (x + 1) + 1
    assert live() - before <= 4 * N + 1024
    del y


def test_backward_frees_what_was_saved() -> None:
    x = wg.full((N,), 0.5, requires_grad=True)
    before = live()
    y = x.tanh().tanh().tanh().sum()
    assert live() - before >= 3 * 4 * N
    y.backward()
    assert live() - before <= 4 * N + 1024  # the gradient
    y2 = x.tanh().tanh().sum()
    y2.backward(retain_graph=True)
    assert live() - before >= 3 * 4 * N
    del y2
    assert live() - before <= 4 * N + 1024


def test_no_grad_keeps_nothing() -> None:
    x = wg.full((N,), 0.5, requires_grad=True)
    before = live()
    with wg.no_grad():
        y = x.tanh().tanh().tanh()
    assert live() - before <= 4 * N + 1024
    assert not y.requires_grad


def test_checkpoints_keep_inputs_only() -> None:
    def block(x: wg.Tensor) -> wg.Tensor:
        for _ in range(10):
            x = x.tanh()
        return x

    x = wg.full((N,), 0.5, requires_grad=True)
    before = live()
    plain = block(block(x)).sum()
    held = live() - before
    del plain
    inner = checkpoint(block, checkpoint(block, x, use_reentrant=False), use_reentrant=False).sum()
    assert live() - before <= held / 8
    inner.backward()
    assert x.grad is not None


def test_repeated_exceptions_do_not_leak() -> None:
    x = wg.full((N,), 0.5, requires_grad=True)

    def fails(x: wg.Tensor) -> wg.Tensor:
        y = x.tanh().exp()
        return y @ wg.ones(3, 3)

    def attempt() -> None:
        for transform in (fails, wg.grad(fails), wg.vmap(fails), lambda x: wg.jvp(fails, (x,), (x,))):
            with pytest.raises(ValueError):
                transform(x.detach().requires_grad_().reshape(1, -1))

    attempt()
    before = live()
    for _ in range(200):
        attempt()
    assert live() == before


def test_gradients_do_not_alias_saved_values() -> None:
    x = wg.ones(4, requires_grad=True)
    y = wg.ones(4, requires_grad=True)
    (x + y).sum().backward()
    with wg.no_grad():
        x.grad += 1
    assert y.grad.tolist() == [1.0] * 4
    assert x.grad.tolist() == [2.0] * 4


def test_views_hold_their_buffer_and_let_go() -> None:
    before = live()
    x = wg.zeros(N)
    v = x[10:20]
    del x
    assert live() - before >= 4 * N
    assert array(v).tolist() == [0.0] * 10
    del v
    assert live() <= before


LAYERS, WIDTH = 10, 128
WEIGHT_BYTES = 4 * WIDTH * WIDTH


def deep_loss(weights: list[wg.Tensor]) -> wg.Tensor:
    """A network whose weights are much larger than its activations."""
    x = wg.ones(2, WIDTH)
    for w in weights:
        x = (x @ w).tanh()
    return x.sum()


def deep_weights() -> list[wg.Tensor]:
    """Its weights."""
    return [wg.full((WIDTH, WIDTH), 0.01 * (i + 1), requires_grad=True) for i in range(LAYERS)]


def peak_of_backward(weights: list[wg.Tensor]) -> int:
    """Bytes that a backward needs at once beyond what was there before it."""
    loss = deep_loss(weights)
    before = live()
    wg.memory.reset_peak()
    loss.backward()
    return wg.memory.peak_bytes() - before


def test_gradients_that_a_hook_takes_away_are_never_alive_at_once() -> None:
    weights = deep_weights()
    taken: list[int] = []
    for i, w in enumerate(weights):

        def take(w: wg.Tensor, i: int = i) -> None:
            taken.append(i)
            w.grad = None

        w.register_post_accumulate_grad_hook(take)
    assert peak_of_backward(weights) < 2 * WEIGHT_BYTES
    assert taken == list(reversed(range(LAYERS)))


def test_gradients_are_added_to_old_ones_as_they_come() -> None:
    weights = deep_weights()
    deep_loss(weights).backward()
    once = [array(w.grad) for w in weights]
    assert peak_of_backward(weights) < 2 * WEIGHT_BYTES
    for w, g in zip(weights, once, strict=True):
        np.testing.assert_array_equal(array(w.grad), 2 * g)


def test_a_weight_of_several_layers_is_accumulated_once_after_the_last() -> None:
    w = wg.full((WIDTH, WIDTH), 0.01, requires_grad=True)
    seen: list[np.ndarray] = []
    sums: list[np.ndarray] = []
    w.register_hook(lambda g: seen.append(array(g)))
    w.register_post_accumulate_grad_hook(lambda w: sums.append(array(w.grad)))
    deep_loss([w] * LAYERS).backward()
    assert len(seen) == len(sums) == 1
    np.testing.assert_array_equal(seen[0], sums[0])
    (expected,) = wg.autograd.grad(deep_loss([w] * LAYERS), [w])
    np.testing.assert_array_equal(array(expected), sums[0])


def test_a_leaf_of_two_graphs_is_complete_in_each() -> None:
    w = wg.tensor([2.0], requires_grad=True)
    seen: list[float] = []
    w.register_hook(lambda g: seen.append(g.item()))
    first, second = w * 3 + w * w, w * 5
    first.backward()
    second.backward()
    assert seen == [7.0, 5.0]
    assert w.grad.item() == 12.0


def mlp_step() -> Callable[[], None]:
    """One step of training a small network."""
    wg.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10))
    optimizer = wg.optim.Adam(model.parameters(), lr=1e-3)
    x, y = wg.randn(512, 64), wg.zeros(512, dtype=wg.int64)

    def one() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return one


def attention_step() -> Callable[[], None]:
    """One step of training a block of attention over 2 x 128 tokens."""
    wg.manual_seed(0)
    names, d = ("qkv", "proj", "up", "down"), 128
    sizes = ((d, 3 * d), (d, d), (d, 4 * d), (4 * d, d))
    w = {k: (0.05 * wg.randn(*size)).requires_grad_() for k, size in zip(names, sizes, strict=True)}
    optimizer = wg.optim.AdamW(list(w.values()), lr=1e-3)
    x, f = wg.randn(2, 128, d), nn.functional

    def one() -> None:
        optimizer.zero_grad()
        q, k, v = (
            (f.layer_norm(x, (d,)) @ w["qkv"]).reshape(2, 128, 3, 4, d // 4).permute(2, 0, 3, 1, 4).unbind(0)
        )
        seen = f.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = x + seen.permute(0, 2, 1, 3).reshape(2, 128, d) @ w["proj"]
        (h + f.gelu(f.layer_norm(h, (d,)) @ w["up"]) @ w["down"]).square().mean().backward()
        optimizer.step()

    return one


@pytest.mark.parametrize("make", [mlp_step, attention_step])
def test_steady_training_asks_the_system_for_nothing(make: Callable[[], Callable[[], None]]) -> None:
    resource = pytest.importorskip("resource", reason="page faults are counted on Unix only")
    faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step = make()
    for _ in range(30):
        step()
    gc.collect()
    fresh, before = wg.memory.stats()["fresh_allocations"], faults()
    for _ in range(100):
        step()
    assert wg.memory.stats()["fresh_allocations"] == fresh
    # One step writes thousands of pages; what remains is the interpreter's own.
    assert faults() - before <= 100


def test_where_memory_comes_from() -> None:
    wg.memory.empty_cache()
    stats = wg.memory.stats()
    wg.zeros(3 << 20)
    more = wg.memory.stats()
    assert more["fresh_allocations"] > stats["fresh_allocations"]
    assert more["cached_bytes"] >= 12 << 20
    wg.zeros(3 << 20)
    again = wg.memory.stats()
    assert again["fresh_allocations"] == more["fresh_allocations"]
    assert again["reused_allocations"] > more["reused_allocations"]
    try:
        wg.memory.set_cache_limit(0)
        wg.zeros(3 << 20)
        assert wg.memory.stats()["cached_bytes"] < 12 << 20
    finally:
        wg.memory.set_cache_limit(1 << 30)
    with pytest.raises(ValueError, match="a number of bytes was expected, got -1; 0 keeps nothing"):
        wg.memory.set_cache_limit(-1)
