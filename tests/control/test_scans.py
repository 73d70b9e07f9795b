"""`scan` and `map`: values, derivatives, what backward keeps, and how often it runs a step again."""

import functools
import gc
import math
from typing import Any

import numpy as np
import pytest
import wengert as wg
from messages import Situations, message_tests
from support import array, assert_near
from wengert.control._revolve import split

F64 = wg.float64


def tensor(x: Any) -> wg.Tensor:
    return wg.tensor(np.asarray(x), dtype=F64)


X = tensor([2.0, 3.0, 4.0])
ONE = tensor(1.0)


def linear(c: Any, x: Any) -> Any:
    return c * x + 1, {"before": c, "product": c * x}


# ---- values --------------------------------------------------------------------------------------


def test_a_scan_carries_and_stacks() -> None:
    c, ys = wg.scan(linear, ONE, X)
    assert c.item() == 41.0
    assert {k: y.tolist() for k, y in ys.items()} == {"before": [1, 3, 10], "product": [2, 9, 40]}
    # jax.lax.scan gives the same from behind.
    c, ys = wg.scan(linear, ONE, X, reverse=True)
    assert c.item() == 33.0
    assert {k: y.tolist() for k, y in ys.items()} == {"before": [16, 5, 1], "product": [32, 15, 4]}
    for unroll in (2, True):
        assert wg.scan(linear, ONE, X, 3, True, unroll)[0].item() == 33.0


def test_trees_and_axes() -> None:
    m = tensor(np.arange(12.0).reshape(3, 4))
    rows = {"m": m, "v": X[:, None] * m}
    c, ys = wg.scan(lambda c, x: ((c[0] + x["m"], c[1] * 2), x["v"]), (wg.zeros(4, dtype=F64), 1), rows)
    assert c[0].tolist() == m.sum(0).tolist()
    assert (c[1].item(), c[1].dtype) == (8, wg.int64)
    assert wg.equal(ys, rows["v"])
    # Results lie along the first axis whatever axis the slices came from, as in PyTorch.
    for dim in (1, -1):
        c, ys = wg.scan(combine_fn=lambda c, x: (c + x, c), init=wg.zeros(3, dtype=F64), xs=m, dim=dim)
        assert c.tolist() == m.sum(1).tolist()
        assert ys.shape == (4, 3)


def test_no_slices_and_no_steps() -> None:
    c, ys = wg.scan(lambda c, x: (c * 2, x), ONE, length=4)
    assert (c.item(), ys) == (16.0, None)
    c, ys = wg.scan(lambda c, x: (c, {"y": (x, c)}), ONE, X[:0])
    assert c.item() == 1.0
    assert [y.shape for y in ys["y"]] == [(0,), (0,)]
    assert wg.scan(lambda c, x: (c, c), wg.ones(2), length=0, save=3)[1].shape == (0, 2)
    assert wg.grad(lambda c: wg.scan(lambda c, x: (c * x, c), c, X[:0])[0])(ONE).item() == 1.0


def test_a_number_takes_the_dtype_that_it_needs() -> None:
    assert wg.scan(lambda c, x: (c + x, None), 0, X)[0].dtype == F64
    # Beside float32 a number is not rounded to it first.
    assert wg.scan(lambda c, x: (c + x, None), 0.1, X)[0].item() == 0.1 + 2.0 + 3.0 + 4.0
    assert wg.scan(lambda c, x: (0, x), ONE, X)[0].dtype == F64
    assert wg.scan(lambda c, x: (c, 0), ONE, X)[1].dtype == wg.int64
    # One number after another, and in checkpoints.
    c, _ = wg.scan(lambda c, x: ((c[1], c[1] * 0.5 + x), None), (0, 0), X, save=32)
    assert [x.dtype for x in c] == [F64, F64]
    assert [x.item() for x in c] == [4.0, 6.0]
    assert wg.fori_loop(0, 2, lambda i, c: X.argmax().int(), 0).dtype == wg.int32
    # What never settles is an error, not a loop without an end.
    turn = {wg.int64: wg.int32, wg.int32: wg.int64}
    with pytest.raises(TypeError, match=r"the value was wengert\.int32"):
        wg.fori_loop(0, 2, lambda i, c: c.to(wg.int32 if c.dtype == wg.int64 else wg.int16), 0)
    with pytest.raises(TypeError, match=r"the value was wengert\.int64"):
        wg.fori_loop(0, 2, lambda i, c: c.to(turn[c.dtype]), 0)


# ---- derivatives ---------------------------------------------------------------------------------


def nested(x: wg.Tensor, save: Any = "residuals") -> wg.Tensor:
    """A branch and a loop inside of a scan."""

    def step(c: Any, x: Any) -> Any:
        c = wg.cond(x > 0, lambda c: c + x.sin() * c, lambda c: c * 2 / (1 - x), c)
        c = wg.fori_loop(0, 3, lambda i, c: c * (10 + i) / 10, c)
        return c, c.sin()

    return wg.scan(step, tensor(1.0), x, save=save)[1].sum()


P = tensor([[0.5, 1.0, -2.0], [3.0, -1.0, -0.25]])
# Values, gradients and Hessians of the same function in JAX.
VALUES = [-0.9316903691099898, 1.0408141924634045]
GRADIENTS = [
    [-1.5985206076231073, -0.5770523923080237, -0.7100968234634036],
    [2.403583917077887, -1.433809029755832, -1.6491442584738532],
]
HESSIANS = [
    [
        [12.83362936365236, 6.189492162926414, 2.5466418501412473],
        [6.189492162926412, 4.129502275835067, 1.2596356369865158],
        [2.546641850141247, 1.2596356369865163, 1.1943409611052207],
    ],
    [
        [7.481595183724879, -3.8526157532728367, -9.231831703728465],
        [-3.852615753272836, 1.5034642932306306, 5.320559450875148],
        [-9.231831703728465, 5.320559450875147, 7.193579714621155],
    ],
]


@pytest.mark.parametrize("save", ["residuals", "carries", 8])
def test_a_branch_and_a_loop_in_a_scan_in_every_transform(save: Any) -> None:
    f = functools.partial(nested, save=save)
    each = wg.vmap(f)
    assert_near(each(P), VALUES, 1e-14)
    assert_near(wg.vmap(wg.grad(f))(P), GRADIENTS, 1e-14)
    assert_near(wg.grad(lambda p: each(p).sum())(P), GRADIENTS, 1e-14)
    assert_near(wg.vmap(wg.jacfwd(f))(P), GRADIENTS, 1e-14)
    v = tensor([[1.0, -2.0, 0.5], [0.25, 1.0, 3.0]])
    along = (np.array(GRADIENTS) * array(v)).sum(1)
    assert_near(wg.jvp(each, (P,), (v,))[1], along, 1e-13)
    assert_near(wg.linearize(each, P)[1](v), along, 1e-13)
    assert_near(wg.vmap(wg.hessian(f))(P), HESSIANS, 1e-13)
    for outer in (wg.jacfwd, wg.jacrev):
        for inner in (wg.grad, wg.jacfwd):
            assert_near(wg.vmap(outer(inner(f)))(P), HESSIANS, 1e-13)
    leaf = P.clone().requires_grad_()
    (slope,) = wg.autograd.grad(each(leaf).sum(), leaf, create_graph=True)
    assert_near(slope.detach(), GRADIENTS, 1e-14)
    slope[0, 0].backward()
    assert_near(leaf.grad, [HESSIANS[0][0], [0, 0, 0]], 1e-13)


def test_a_recurrent_network_has_the_gradients_of_a_loop() -> None:
    wg.manual_seed(0)
    cell = wg.nn.GRUCell(2, 3).double()
    x = wg.randn(5, 4, 2, dtype=F64)
    h, ys = wg.scan(lambda h, x: ((new := cell(x, h)), new), wg.zeros(4, 3, dtype=F64), x, save=2 * 96)
    ys.square().sum().backward()
    got = [p.grad for p in cell.parameters()]
    cell.zero_grad()
    state, total = wg.zeros(4, 3, dtype=F64), []
    for row in x:
        state = cell(row, state)
        total.append(state)
    wg.stack(total).square().sum().backward()
    assert wg.equal(h, state)
    for g, p in zip(got, cell.parameters()):
        assert_near(g, array(p.grad), 1e-13)


# ---- what backward keeps -------------------------------------------------------------------------

RUNS = [0]


def counted(c: Any, x: Any) -> Any:
    RUNS[0] += 1
    return (c * x).sin(), c * 2


def total(c: wg.Tensor, xs: wg.Tensor, save: Any) -> wg.Tensor:
    """Of a carry of 8 bytes."""
    c, ys = wg.scan(counted, c, xs, save=save)
    return c + ys.sum()


@functools.cache
def fewest(length: int, slots: int) -> int:
    """The fewest steps that keep nothing, by trying every first checkpoint."""
    if length < 2:
        return 0
    if slots == 1:
        return length * (length - 1) // 2
    return min(m + fewest(m, slots) + fewest(length - m, slots - 1) for m in range(1, length))


def evaluations(length: int, slots: int) -> int:
    """How many steps run in all until backward has passed a chain, with the formula of Griewank and Walther.

    Theirs, `r l - binomial(s + r, r - 1)`, counts steps that keep nothing; each runs once more and keeps what
    its operations save.
    """
    r = next(r for r in range(length + 1) if math.comb(slots + r, slots) >= length)
    return length + r * length - (math.comb(slots + r, r - 1) if r else 0)


def test_the_schedule_needs_the_fewest_steps() -> None:
    for length in range(1, 60):
        for slots in range(1, 8):
            assert evaluations(length, slots) == length + fewest(length, slots)
    for length in (2, 3, 10, 100, 5151, 10**6):
        for slots in (2, 3, 7, 1000):
            assert 1 <= split(length, slots) < length


@pytest.mark.parametrize(
    ("length", "slots"), [(1, 1), (2, 1), (6, 1), (10, 3), (17, 2), (7, 7), (5, 20), (40, 4), (35, 3)]
)
def test_bytes_for_a_number_of_carries(length: int, slots: int) -> None:
    xs = wg.linspace(0.5, 2.0, length, dtype=F64)
    c = tensor(0.5)
    both = lambda save: wg.value_and_grad(lambda c, xs: total(c, xs, save), argnums=(0, 1))(c, xs)
    value, slopes = both("residuals")
    RUNS[0] = 0
    # What is left over holds no carry.
    save = 8 * slots + 7
    got, found = both(save)
    assert RUNS[0] == evaluations(length, slots)
    assert wg.equal(got, value)
    assert all(wg.equal(a, b) for a, b in zip(found, slopes))
    RUNS[0] = 0
    leaf = c.clone().requires_grad_()
    total(leaf, xs, save).backward()
    assert RUNS[0] == evaluations(length, slots)
    assert wg.equal(leaf.grad, slopes[0])
    RUNS[0] = 0
    total(c, xs, save)
    assert RUNS[0] == length


def test_a_parameter_of_the_function_has_the_same_bits() -> None:
    wg.manual_seed(0)
    w, xs = wg.randn(4, 4, dtype=F64), wg.randn(23, 4, dtype=F64)

    def f(w: wg.Tensor, xs: wg.Tensor, save: Any) -> wg.Tensor:
        c, ys = wg.scan(lambda c, x: ((w @ c + x).sin(), c * 2), xs[0], xs, save=save)
        return ys.sum() + c.sum()

    want = wg.grad(f, argnums=(0, 1))(w, xs, "residuals")
    for save in ("carries", 32, 96):
        assert all(wg.equal(a, b) for a, b in zip(wg.grad(f, argnums=(0, 1))(w, xs, save), want))
        leaf = w.clone().requires_grad_()
        f(leaf, xs, save).backward()
        assert wg.equal(leaf.grad, want[0])


def test_the_carries_alone() -> None:
    xs = wg.linspace(0.5, 2.0, 9, dtype=F64)
    RUNS[0] = 0
    found = wg.grad(total)(ONE, xs, "carries")
    # All but the last step, whose operations backward needs at once, run twice.
    assert RUNS[0] == 17
    assert wg.equal(found, wg.grad(total)(ONE, xs, "residuals"))


@pytest.mark.parametrize("save", ["carries", 8, 24])
def test_every_mode_and_order_has_what_it_has_without(save: Any) -> None:
    xs = wg.linspace(0.5, 2.0, 8, dtype=F64)
    c = tensor([0.5, -1.0])
    modes = {
        "jvp": lambda f: wg.jvp(wg.vmap(f), (c,), (wg.ones_like(c),))[1],
        "vmap": lambda f: wg.vmap(f)(c),
        "vmap of grad": lambda f: wg.vmap(wg.grad(f))(c),
        "hessian": lambda f: wg.hessian(lambda c: wg.vmap(f)(c).sum())(c),
        "grad of grad": lambda f: wg.vmap(wg.grad(wg.grad(f)))(c),
        "third": lambda f: wg.vmap(wg.grad(wg.jacfwd(wg.grad(f))))(c),
        "linearize": lambda f: wg.linearize(wg.vmap(f), c)[1](wg.ones_like(c)),
    }
    for name, mode in modes.items():
        got = mode(lambda c: total(c, xs, save))
        assert_near(got, array(mode(lambda c: total(c, xs, "residuals"))), 1e-14, name)


def test_fewer_bytes_are_kept() -> None:
    c = wg.ones(1000, requires_grad=True)

    def kept(save: Any) -> int:
        held: list[int] = []
        pack = lambda x: held.append(x.numel()) or x
        with wg.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            wg.scan(lambda c, _: (c.sin().cos().exp(), None), c, length=60, save=save)
        return sum(held)

    everything, carries, five = kept("residuals"), kept("carries"), kept(5 * 4000)
    assert everything >= 180_000
    assert carries <= 70_000
    assert five <= 10_000


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("length", "slots"), [(60, 5), (35, 3), (20, 1), (200, 4)])
def test_no_more_bytes_are_kept_than_they_may(length: int, slots: int, order: int) -> None:
    """Beside them there is the carry of the step that runs, and its gradient."""
    # Of 80,000 bytes and 8.
    c = {"x": wg.ones(10_000, dtype=F64, requires_grad=True), "n": wg.tensor(0)}
    step = lambda c, _: ({"x": c["x"].sin(), "n": c["n"] + 1}, None)
    save = 80_008 * slots
    before = wg.memory.live_bytes()
    wg.memory.reset_peak()
    y = wg.scan(step, c, length=length, save=save)[0]["x"].sum()
    # The first carry was there before; the last step keeps its own for backward.
    assert wg.memory.live_bytes() - before <= save + 1000
    assert wg.memory.peak_bytes() - before <= save + 80_000 + 1000
    for _ in range(order - 1):
        y.backward(retain_graph=True)
    wg.memory.reset_peak()
    y.backward()
    # The gradient of the carry, and with another backward before that of the leaf.
    assert wg.memory.peak_bytes() - before <= save + 80_000 * (1 + order) + 1000


def drawn(c: Any, x: Any) -> Any:
    c = c * x + wg.rand(2, dtype=F64)
    return c, c.sin()


@pytest.mark.parametrize("save", [16, 48, 64])
def test_backward_from_steps_in_the_middle(save: int) -> None:
    xs = wg.linspace(0.5, 1.5, 12, dtype=F64)

    def slopes(save: Any, rows: list[int]) -> list[wg.Tensor]:
        wg.manual_seed(5)
        leaf, along = wg.ones(2, dtype=F64, requires_grad=True), xs.clone().requires_grad_()
        c, ys = wg.scan(drawn, leaf, along, save=save)
        wg.rand(3)
        found = [*wg.autograd.grad(ys[rows].sum(), (leaf, along), retain_graph=True)]
        found += wg.autograd.grad((c * c).sum(), (leaf, along), create_graph=True)
        found += wg.autograd.grad(found[-1].square().sum(), (leaf, along), retain_graph=True)
        return [*found, *wg.autograd.grad(ys[rows].sum(), (leaf, along)), wg.rand(1)]

    for rows in (*([row] for row in range(12)), [3, 10]):
        for got, want in zip(slopes(save, rows), slopes("residuals", rows)):
            assert_near(got.detach(), array(want.detach()), 1e-13)


@pytest.mark.parametrize("save", [8, 24])
@pytest.mark.parametrize(
    "saves",
    [lambda x: x < 6, lambda x: x % 2 < 1, lambda x: x % 3 < 1],
    ids=["the first half", "every second", "every third"],
)
def test_steps_that_save_nothing(saves: Any, save: int) -> None:
    """Backward does not run them for themselves, but for the carry that steps before them began with."""

    def f(c: wg.Tensor, save: Any) -> wg.Tensor:
        wg.manual_seed(7)

        def step(c: wg.Tensor, x: wg.Tensor) -> Any:
            c = c + wg.rand((), dtype=F64)
            return wg.cond(
                saves(x), lambda c: (c * (x + wg.rand((), dtype=F64))).sin(), lambda c: c + x, c
            ), None

        return wg.scan(step, c, wg.arange(12, dtype=F64), save=save)[0] + wg.rand((), dtype=F64)

    c = tensor(0.5)
    assert wg.equal(f(c, save), f(c, "residuals"))
    assert wg.equal(wg.grad(f)(c, save), wg.grad(f)(c, "residuals"))
    assert_near(wg.grad(wg.grad(f))(c, save), array(wg.grad(wg.grad(f))(c, "residuals")), 1e-12)
    leaves = [c.clone().requires_grad_() for _ in range(2)]
    for leaf, way in zip(leaves, (save, "residuals")):
        y = f(leaf, way)
        y.backward(retain_graph=True)
        y.backward()
    assert wg.equal(leaves[0].grad, leaves[1].grad)


def test_a_carry_without_bytes_is_kept_always() -> None:
    for carry in (None, wg.ones(0)):
        _, ys = wg.scan(lambda c, x: (c, x * 2), carry, X, save=1)
        assert ys.tolist() == [4.0, 6.0, 8.0]


def test_bytes_are_those_of_one_example() -> None:
    f = lambda c, save: wg.scan(counted, c, wg.linspace(0.5, 2.0, 10, dtype=F64), save=save)[0]
    RUNS[0] = 0
    wg.vmap(wg.grad(lambda c: f(c, 24)))(wg.ones(5, dtype=F64))
    assert RUNS[0] == evaluations(10, 3)


@pytest.mark.parametrize("save", ["residuals", "carries", 8, 16])
def test_nothing_waits_for_the_collector_of_cycles(save: Any) -> None:
    def step(c: Any, y: Any, w: Any) -> Any:
        c = wg.cond(y > 0.3, lambda: (c * y).sin(), lambda: c * w)
        return c, c * y

    def f(w: Any) -> Any:
        each = lambda x: wg.scan(lambda c, y: step(c, y, w), w, wg.stack([w, x, x]), save=save)
        last, ys = wg.vmap(each)(wg.tensor([0.7, -0.6], dtype=F64))
        return (last * ys.sum(1)).sum()

    w = wg.tensor(0.45, dtype=F64)
    for g in (f, wg.grad(f), wg.hessian(f), wg.jacfwd(wg.jacfwd(f)), lambda w: 0 * f(w)):
        want = g(w).item()
        gc.collect()
        gc.disable()
        try:
            before = wg.memory.live_bytes()
            assert g(w).item() == want
            assert wg.memory.live_bytes() == before
        finally:
            gc.enable()
        jitted = wg.jit(g)
        assert [jitted(w).item(), jitted(w).item()] == [want, want]
        assert (jitted.traces, jitted.why()) == (1, [])


def test_random_numbers_are_the_same_again() -> None:
    def f(c: wg.Tensor, save: Any) -> wg.Tensor:
        wg.manual_seed(3)
        step = lambda c, _: ((c * wg.rand(3, dtype=F64)).sin(), None)
        return wg.scan(step, c, length=9, save=save)[0].sum()

    c = tensor([1.0, 2.0, 3.0])
    assert wg.equal(wg.grad(f)(c, 48), wg.grad(f)(c, "residuals"))


# ---- map -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [None, 1, 2, 5, 9])
def test_a_map_in_batches(batch_size: int | None) -> None:
    xs = (wg.arange(5.0), wg.arange(10.0).reshape(5, 2))
    f = lambda t: t[0] * t[1].sum()
    # The values of jax.lax.map.
    assert wg.map(f, xs, batch_size=batch_size).tolist() == [0.0, 5.0, 18.0, 39.0, 68.0]
    out = wg.map(
        lambda x, w, k: {"y": x * w, "k": k["n"]}, X, tensor([1.0, 2.0]), {"n": 3}, batch_size=batch_size
    )
    assert out["y"].tolist() == [[2, 4], [3, 6], [4, 8]]
    assert out["k"].tolist() == [3, 3, 3]
    runs: list[None] = []
    wg.map(lambda x: runs.append(None) or x, wg.ones(5), batch_size=batch_size)
    assert len(runs) == -(-5 // (batch_size or 1))
    g = lambda w: wg.map(lambda x: (x * w).sin(), X, batch_size=batch_size).sum()
    assert_near(wg.grad(g)(ONE), (array(X) * np.cos(array(X))).sum(), 1e-15)
    assert_near(wg.hessian(g)(ONE), -(array(X) ** 2 * np.sin(array(X))).sum(), 1e-14)
    assert_near(wg.vmap(wg.grad(g))(X[:2]), [array(wg.grad(g)(x)) for x in X[:2]], 1e-14)
    assert wg.map(lambda x: wg.ones(2) * x, wg.ones(0), batch_size=batch_size).shape == (0, 2)


# ---- programs ------------------------------------------------------------------------------------


def test_a_scan_unrolls_into_a_program() -> None:
    functions = {
        "scan": lambda x: wg.scan(linear, ONE, x, reverse=True),
        "gradient": wg.grad(lambda x: total(ONE, x, "residuals")),
        "carries": wg.grad(lambda x: total(ONE, x, 16)),
        "map": lambda x: wg.map(lambda x: x.sin(), x),
        "map in batches": lambda x: wg.map(lambda x: x.sin(), x, batch_size=2),
    }
    for name, f in functions.items():
        step = wg.jit(f)
        for scale in (1.0, 2.0, -0.5):
            got, want = (wg.tree.leaves(g(X * scale)) for g in (step, f))
            assert all(wg.equal(a, b) for a, b in zip(got, want)), name
        if name not in ("gradient", "carries"):  # `counted` counts, which a program cannot
            assert (step.traces, step.why()) == (1, []), name
    step = wg.jit(wg.vmap(nested))
    for p in (P, P * 2, -P):
        assert wg.equal(step(p), wg.vmap(nested)(p))
    assert step.why() == []


@pytest.mark.parametrize("number", [np.int64(16), np.uint8(16), wg.tensor(16)])
def test_a_number_of_bytes_is_any_integer(number: Any) -> None:
    f = lambda save: wg.grad(lambda x: wg.scan(lambda c, _: (c.sin(), None), x, length=9, save=save)[0])(ONE)
    assert f(number).item() == f(16).item()


@pytest.mark.parametrize("value", [np.bool_(True), True, np.float64(16), np.int64(0), wg.tensor(16.0), None])
def test_what_is_no_number_of_bytes(value: Any) -> None:
    with pytest.raises(
        ValueError, match=r"^scan: save is 'residuals', 'carries' or a number of bytes, at least 1"
    ):
        wg.scan(KEEP, ONE, X, save=value)


# ---- messages ------------------------------------------------------------------------------------

HINT = "each step returns the carry with the structure, shapes and dtypes that it had"
STEPS = "all steps return one structure, with equal shapes and dtypes"
SAVE = "scan: save is 'residuals', 'carries' or a number of bytes, at least 1, got "
KEEP = lambda c, x: (c, x)
SITUATIONS: Situations = {
    "another structure": (
        lambda: wg.scan(lambda c, x: ((c, c), x), ONE, X),
        ValueError,
        f"scan: the carry was TreeDef(*), after a step it is TreeDef((*, *)); {HINT}",
    ),
    "another shape": (
        lambda: wg.scan(lambda c, x: ({"a": c["a"], "b": c["b"][None]}, x), {"a": ONE, "b": ONE}, X),
        wg.ShapeError,
        "scan: the carry at ['b'] was wengert.float64 of shape (), after a step it is wengert.float64 of "
        "shape (1,); "
        f"{HINT}",
    ),
    "another dtype": (
        lambda: wg.scan(lambda c, x: (c.float(), x), ONE, X),
        TypeError,
        "scan: the carry was wengert.float64 of shape (), after a step it is wengert.float32 of shape (); "
        + HINT,
    ),
    "another dtype in a checkpoint": (
        lambda: wg.scan(lambda c, x: (c.float(), x), ONE, X, save="carries"),
        TypeError,
        "scan: the carry was wengert.float64 of shape (), after a step it is wengert.float32 of shape (); "
        + HINT,
    ),
    "results of other shapes": (
        lambda: wg.scan(lambda c, x: (c + 1, wg.ones(int(c))), ONE, X),
        wg.ShapeError,
        "scan: the result of the first step is wengert.float32 of shape (1,), that of another "
        "wengert.float32 of "
        f"shape (2,); {STEPS}",
    ),
    "no pair": (
        lambda: wg.scan(lambda c, x: c, ONE, X),  # type: ignore[arg-type, return-value]
        TypeError,
        "scan: the function returns a pair (carry, result), got Tensor; write None for no result",
    ),
    "tensors of other lengths": (
        lambda: wg.scan(KEEP, ONE, {"a": X, "b": X[:2]}),
        wg.ShapeError,
        "scan: the tensors of xs have different lengths along axis 0: 3 at ['a'], 2 at ['b']",
    ),
    "no length": (
        lambda: wg.scan(KEEP, ONE),
        ValueError,
        "scan: xs has no tensors; say how many steps to take, as in length=10",
    ),
    "another length": (
        lambda: wg.scan(KEEP, ONE, X, 5),
        wg.ShapeError,
        "scan: length=5 for xs of length 3 along axis 0",
    ),
    "a negative length": (
        lambda: wg.scan(KEEP, ONE, length=-1),
        ValueError,
        "scan: length is an integer of at least 0, or None, got -1",
    ),
    "a number to go along": (
        lambda: wg.scan(KEEP, ONE, ONE),
        wg.ShapeError,
        "scan: xs of shape () has no axis 0 to go along",
    ),
    "no such axis": (
        lambda: wg.scan(KEEP, ONE, {"a": X}, dim=1),
        wg.ShapeError,
        "scan: xs at ['a'] of shape (3,) has no axis 1 to go along",
    ),
    "no bytes": (lambda: wg.scan(KEEP, ONE, X, save=0), ValueError, SAVE + "0"),
    "a truth value": (lambda: wg.scan(KEEP, ONE, X, save=True), ValueError, SAVE + "True"),
    "another way to save": (
        lambda: wg.scan(KEEP, ONE, X, save="all"),  # type: ignore[call-overload]
        ValueError,
        SAVE + "'all'",
    ),
    "bytes for no carry": (
        lambda: wg.scan(KEEP, (ONE, X), X, save=31),
        ValueError,
        "scan: save=31 is less than the 32 bytes of one carry; give at least 32 bytes, save=32",
    ),
    "bytes for no carry of many": (
        lambda: wg.scan(KEEP, ONE, length=1000, save=7),
        ValueError,
        "scan: save=7 is less than the 8 bytes of one carry; give at least 16 bytes, save=16",
    ),
    "too few carries": (
        lambda: wg.scan(KEEP, ONE, length=1000, save=15),
        ValueError,
        "scan: save=15 keeps 1 of the carries, of 8 bytes each, so that some of the 1000 steps would run "
        "again more than 100 times; give at least 16 bytes, save=16",
    ),
    "a function by two names": (
        lambda: wg.scan(f=KEEP, combine_fn=KEEP, init=ONE, xs=X),  # type: ignore[call-overload]
        TypeError,
        "scan: f and combine_fn are two names of one argument; give one of them",
    ),
    "a text to begin with": (
        lambda: wg.scan(KEEP, "text", X),
        TypeError,
        "scan: the carry is str, expected a tensor or a tree of tensors",
    ),
    "a map of nothing": (
        lambda: wg.map(lambda x: x, None),
        ValueError,
        "map: xs has no tensors",
    ),
    "a batch of none": (
        lambda: wg.map(lambda x: x, X, batch_size=0),
        ValueError,
        "map: batch_size is an integer of at least 1, or None, got 0",
    ),
}

test_messages = message_tests(SITUATIONS)
