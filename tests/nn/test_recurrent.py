"""Recurrent layers, whose steps are one operation, against steps in NumPy: values, derivatives of both orders
against differences, memory, threads, programs."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import wengert as wg
from behaviours.tape import live
from references.layer_reference import recurrent
from support import Array, array, assert_near, bits, directional, dot
from wengert import nn
from wengert.autograd import gradcheck, gradgradcheck

CELLS = ["LSTM", "GRU", "tanh", "relu"]
DTYPES = [wg.float64, wg.float32, wg.float16, wg.bfloat16]
NAMES = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
BOTH = [*NAMES, *(f"{name}_reverse" for name in NAMES)]


def layer_of(cell: str, width: int, hidden: int, **options: Any) -> nn.RNNBase:
    """A layer, in float64 unless told otherwise, whose parameters do not need gradients."""
    options = {"dtype": wg.float64, **options}
    wg.manual_seed(3)
    if cell in ("tanh", "relu"):
        layer: Any = nn.RNN(width, hidden, nonlinearity=cell, **options)
    else:
        layer = getattr(nn, cell)(width, hidden, **options)
    for parameter in layer.parameters():
        parameter.requires_grad_(False)
    return layer


def start_of(layer: nn.RNNBase, rng: np.random.Generator, batch: int) -> list[Array]:
    """First states at random."""
    shape = (2 if layer.bidirectional else 1, batch, layer.hidden_size)
    return [rng.normal(size=shape) for _ in range(2 if layer.kind == "LSTM" else 1)]


def called(layer: nn.RNNBase, x: Any, *states: Any) -> tuple[Any, ...]:
    """Outputs and last states in a row."""
    out, last = layer(x, states if layer.kind == "LSTM" else states[0])
    return out, *(last if layer.kind == "LSTM" else (last,))


def defined(layer: nn.RNNBase, x: Array, *states: Array, **weights: Array) -> list[Array]:
    """The same step by step in NumPy, with these arrays for parameters or with those of the layer."""

    def part(name: str) -> Array | None:
        own = getattr(layer, name, None)
        return weights.get(name, None if own is None else array(own).astype(np.float64))

    settings = {
        "bidirectional": layer.bidirectional,
        "num_layers": 1,
        "nonlinearity": getattr(layer, "nonlinearity", "tanh"),
    }
    out, last = recurrent(layer.kind, x, list(states), part, settings)
    return [out, *last]


def as_arrays(tensors: Any) -> list[Array]:
    return [array(t) for t in tensors]


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = wg.get_num_threads()
    wg.set_num_threads(count)
    try:
        yield
    finally:
        wg.set_num_threads(before)


# Steps, batch and width of the state; the last two weights are large, one beyond a block of the depth.
SHAPES = [(1, 3, 4), (2, 1, 1), (5, 1, 32), (7, 6, 5), (3, 30, 33), (4, 100, 16), (3, 9, 190), (2, 2, 520)]


@pytest.mark.parametrize("bidirectional", [False, True], ids=["one way", "both ways"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cell", CELLS)
def test_values(cell: str, shape: tuple[int, int, int], bidirectional: bool) -> None:
    time, batch, hidden = shape
    rng = np.random.default_rng(time)
    for dtype, tolerance in ((wg.float64, 1e-13), (wg.float32, 4e-6)):
        layer = layer_of(cell, 3, hidden, bidirectional=bidirectional, dtype=dtype)
        inputs = [rng.normal(size=(time, batch, 3)), *start_of(layer, rng, batch)]
        found = called(layer, *(wg.tensor(a, dtype=dtype) for a in inputs))
        for got, want in zip(found, defined(layer, *inputs), strict=True):
            assert got.dtype == dtype
            assert_near(got, want, tolerance)


def functions(layer: nn.RNNBase) -> tuple[Callable[..., Any], Callable[[list[Array]], list[Array]]]:
    """The layer as a function of input, states and parameters, and its definition."""
    names, states = BOTH if layer.bidirectional else NAMES, 2 if layer.kind == "LSTM" else 1

    def ours(x: wg.Tensor, *rest: wg.Tensor) -> tuple[wg.Tensor, ...]:
        start, own = rest[:states], dict(zip(names, rest[states:]))
        out, last = nn.functional_call(layer, own, (x, start if states == 2 else start[0]))
        return out, *(last if states == 2 else (last,))

    def theirs(given: list[Array]) -> list[Array]:
        return defined(layer, *given[: states + 1], **dict(zip(names, given[states + 1 :])))

    return ours, theirs


def operands(layer: nn.RNNBase, rng: np.random.Generator, time: int, batch: int) -> list[Array]:
    """Input and first states at random, and the parameters."""
    x = rng.normal(size=(time, batch, layer.input_size))
    return [x, *start_of(layer, rng, batch), *(array(p) for p in layer.parameters())]


@pytest.mark.parametrize("shape", [(4, 3, 5), (2, 1, 20), (3, 26, 2), (2, 2, 190)], ids=str)
@pytest.mark.parametrize("cell", CELLS)
def test_derivatives_against_differences_of_the_steps(cell: str, shape: tuple[int, int, int]) -> None:
    (time, batch, hidden), rng = shape, np.random.default_rng(1)
    layer = layer_of(cell, 3, hidden, bidirectional=hidden != 190)
    inputs, (ours, theirs) = operands(layer, rng, time, batch), functions(layer)
    point, v = tuple(map(wg.tensor, inputs)), [rng.normal(size=a.shape) for a in inputs]
    value, tangent = wg.jvp(ours, point, tuple(map(wg.tensor, v)))
    moved = directional(theirs, inputs, v, 1e-5)
    for got, want in zip(tangent, moved, strict=True):
        assert_near(got, want, 1e-8)
    u = [rng.normal(size=y.shape) for y in as_arrays(value)]
    pulled = as_arrays(wg.vjp(ours, *point)[1](tuple(map(wg.tensor, u))))
    assert abs(dot(pulled, v) - dot(u, as_arrays(tangent))) < 1e-11 * max(1, abs(dot(pulled, v)))
    for i, direction in enumerate(v):
        alone = [d if k == i else np.zeros_like(d) for k, d in enumerate(v)]
        want = dot(u, directional(theirs, inputs, alone, 1e-5))
        assert abs(np.vdot(pulled[i], direction) - want) < 1e-7 * max(1, abs(want)), i


@pytest.mark.parametrize("both", [False, True], ids=["one way", "both ways"])
@pytest.mark.parametrize("cell", ["LSTM", "GRU", "tanh"])
def test_second_derivatives(cell: str, both: bool) -> None:
    rng = np.random.default_rng(2)
    layer = layer_of(cell, 2, 2, bidirectional=both)
    ours, _ = functions(layer)
    given = [wg.tensor(a, requires_grad=True) for a in operands(layer, rng, 3, 2)]
    assert gradcheck(ours, given, check_forward_ad=True, fast_mode=True)
    assert gradgradcheck(ours, given, check_fwd_over_rev=True, fast_mode=True)


@pytest.mark.parametrize("cell", CELLS)
def test_batches_of_layers(cell: str) -> None:
    rng = np.random.default_rng(4)
    layer = layer_of(cell, 3, 4, bidirectional=True)
    x = wg.tensor(rng.normal(size=(5, 6, 2, 3)))
    weights = wg.tensor(rng.normal(size=(5, *layer.weight_hh_l0.shape)))

    def loss(x: wg.Tensor, weight: wg.Tensor) -> wg.Tensor:
        return nn.functional_call(layer, {"weight_hh_l0": weight}, (x,))[0].sin().sum()

    slope = wg.grad(loss, argnums=(0, 1))
    for batched in ((0, 0), (0, None), (None, 0)):
        one = lambda i, a, axis: a if axis is None else a[i]
        given = tuple(a if axis == 0 else a[0] for a, axis in zip((x, weights), batched))
        many = wg.vmap(slope, in_dims=batched)(*given)
        for i in range(5):
            alone = slope(*(one(i, a, axis) for a, axis in zip(given, batched)))
            for got, want in zip(many, alone, strict=True):
                assert_near(got[i], array(want), 1e-12)


@pytest.mark.parametrize("cell", CELLS)
def test_what_is_not_asked_for(cell: str) -> None:
    """Gradients of some operands, and from some results, are those that all of them would give."""
    rng = np.random.default_rng(5)
    layer = layer_of(cell, 3, 4)
    given = [wg.tensor(a) for a in operands(layer, rng, 5, 2)]
    results = functions(layer)[0]
    count = len(results(*given))
    total = [np.zeros(g.shape) for g in given]
    for k in range(count):
        needing = [g.detach().requires_grad_() for g in given]
        all_at_once = wg.autograd.grad(results(*needing)[k].sin().sum(), needing, allow_unused=True)
        for i, want in enumerate(all_at_once):
            alone = [g.detach().requires_grad_() if j == i else g.detach() for j, g in enumerate(given)]
            (got,) = wg.autograd.grad(results(*alone)[k].sin().sum(), alone[i])
            assert_near(got, array(want), 1e-14, f"operand {i} from result {k}")
            total[i] += array(want)
    needing = [g.detach().requires_grad_() for g in given]
    together = wg.autograd.grad(sum(y.sin().sum() for y in results(*needing)), needing)
    for got, want in zip(together, total, strict=True):
        assert_near(got, want, 1e-13)


@pytest.mark.parametrize("cell", CELLS)
def test_dtypes(cell: str) -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=(6, 3, 4))
    gates = layer_of(cell, 4, 5)
    grads = {}
    for dtype, tolerance in zip(DTYPES, (1e-13, 4e-6, 4e-3, 4e-2)):
        layer = layer_of(cell, 4, 5, dtype=dtype)
        for name in NAMES:
            setattr(layer, name, nn.Parameter(getattr(gates, name).to(dtype)))
        given = wg.tensor(x, dtype=dtype)
        out, _ = layer(given)
        start = [np.zeros((1, 3, 5))] * (2 if cell == "LSTM" else 1)
        want = defined(layer, array(given).astype(np.float64), *start)
        assert out.dtype == dtype
        assert_near(out.double(), want[0], tolerance)
        (out.double().square().sum()).backward()
        grads[dtype] = [array(getattr(layer, name).grad).astype(np.float64) for name in NAMES]
        assert all(getattr(layer, name).grad.dtype == dtype for name in NAMES)
        for got, exact in zip(grads[dtype], grads[wg.float64], strict=True):
            assert_near(wg.tensor(got), exact, 10 * tolerance)


def test_mixed_dtypes_and_autocast() -> None:
    layer, rng = layer_of("LSTM", 3, 4, dtype=wg.float32), np.random.default_rng(7)
    x = rng.normal(size=(3, 2, 3))
    states = [wg.tensor(s) for s in start_of(layer, rng, 2)]
    found = called(layer, wg.tensor(x, dtype=wg.float32), *states)
    for got, want in zip(found, defined(layer, x, *map(array, states)), strict=True):
        assert got.dtype == wg.float64
        assert_near(got, want, 1e-5)
    with wg.autocast("cpu", dtype=wg.bfloat16):
        found = called(layer, wg.tensor(x, dtype=wg.float32), *(s.float() for s in states))
    for got, want in zip(found, defined(layer, x, *map(array, states)), strict=True):
        assert got.dtype == wg.bfloat16
        assert_near(got.double(), want, 4e-2)


@pytest.mark.parametrize("cell", CELLS)
def test_layouts(cell: str) -> None:
    """Strided inputs, batches in front, and none."""
    rng = np.random.default_rng(8)
    layer = layer_of(cell, 3, 4, bidirectional=True)
    x, states = rng.normal(size=(5, 2, 3)), start_of(layer, rng, 2)
    want = defined(layer, x, *states)
    strided = wg.tensor(np.repeat(x[::-1].transpose(2, 0, 1), 2, 1)).permute(1, 2, 0)[::2].flip(0)
    apart = [wg.tensor(s.transpose(2, 1, 0)).permute(2, 1, 0) for s in states]
    for got, expected in zip(called(layer, strided, *apart), want, strict=True):
        assert_near(got, expected, 1e-13)
    layer.batch_first = True
    found = called(layer, wg.tensor(x).transpose(0, 1), *map(wg.tensor, states))
    for got, expected in zip(found, [want[0].swapaxes(0, 1), *want[1:]], strict=True):
        assert_near(got, expected, 1e-13)
    found = called(layer, wg.tensor(x[:, 0]), *(wg.tensor(s[:, 0]) for s in states))
    for got, expected in zip(found, (w[:, 0] for w in want), strict=True):
        assert_near(got, expected, 1e-13)
    layer.batch_first = False
    nothing = called(layer, wg.zeros(5, 0, 3, dtype=wg.float64), *(wg.tensor(s[:, :0]) for s in states))
    assert [tuple(y.shape) for y in nothing] == [(5, 0, 8), *[(2, 0, 4)] * len(states)]


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("shape", [(20, 64, 32), (3, 16, 200), (50, 1, 32)], ids=str)
def test_bits_of_threads_and_programs(cell: str, shape: tuple[int, int, int]) -> None:
    time, batch, hidden = shape
    layer = layer_of(cell, 8, hidden, bidirectional=True, dtype=wg.float32)
    x = wg.tensor(np.random.default_rng(9).normal(size=(time, batch, 8)), dtype=wg.float32)
    weights = {name: getattr(layer, name) for name in BOTH}

    def slopes(weights: dict[str, wg.Tensor], x: wg.Tensor) -> Any:
        loss = lambda weights, x: nn.functional_call(layer, weights, (x,))[0].square().mean()
        (dweights, dx), value = wg.grad(loss, argnums=(0, 1))(weights, x), loss(weights, x)
        return [*dweights.values(), dx, value]

    staged = wg.jit(slopes)
    staged(weights, x)
    with threads(1):
        one = [bits(y) for y in slopes(weights, x)]
    for count, run in ((2, slopes), (3, slopes), (1, staged), (2, staged)):
        with threads(count):
            for got, want in zip(run(weights, x), one, strict=True):
                assert np.array_equal(bits(got), want), (count, run)


@pytest.mark.parametrize("cell", CELLS)
def test_the_tape_and_what_it_keeps(cell: str) -> None:
    """One entry for all steps, and per element of the state what the formulas read."""

    def kept(time: int) -> tuple[int, int]:
        layer = layer_of(cell, 8, 32, dtype=wg.float32, bias=False)
        layer.weight_hh_l0.requires_grad_()
        x = wg.zeros(time, 16, 8)
        gc.collect()
        before = wg.memory.live_nodes()
        size = live(lambda: layer(x)[0])
        return size, (layer(x)[0].sum(), wg.memory.live_nodes() - before)[1]

    gates = {"LSTM": 4, "GRU": 4}.get(cell, 1)
    (short, entries), (long, more) = kept(50), kept(150)
    assert entries == more
    # The hidden states, the cell states and what each step kept.
    values = 1 + (cell == "LSTM") + gates
    assert long - short == 100 * 16 * 32 * values * 4


def test_inputs_that_do_not_fit() -> None:
    layer = layer_of("GRU", 3, 4)
    with pytest.raises(wg.ShapeError, match=r"gru: operands of shapes .*expected gates \(time, ..., 3 n\)"):
        nn.functional_call(layer, {"weight_hh_l0": wg.zeros(12, 5, dtype=wg.float64)}, (wg.zeros(2, 1, 3),))


def test_packs_of_equal_lengths() -> None:
    layer = layer_of("LSTM", 3, 4, bidirectional=True)
    x = np.random.default_rng(10).normal(size=(3, 5, 3))
    pack = nn.utils.rnn.pack_sequence([wg.tensor(row) for row in x])
    out, last = layer(pack)
    want = defined(layer, x.swapaxes(0, 1), *(np.zeros((2, 3, 4)) for _ in range(2)))
    padded, lengths = nn.utils.rnn.pad_packed_sequence(out)
    assert lengths.tolist() == [5, 5, 5]
    for got, expected in zip((padded, *last), want, strict=True):
        assert_near(got, expected, 1e-13)


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_states_of_another_dtype_under_autocast(name: str, steps: int) -> None:
    """Autocast leaves float64 alone, and what meets it is promoted."""
    layer = getattr(wg.nn, name)(3, 16).double()
    x = wg.randn(steps, 2, 3, dtype=wg.float64)
    states = [wg.randn(1, 2, 16, dtype=wg.float64) for _ in range(2 if name == "LSTM" else 1)]
    expected = layer(x, tuple(states) if len(states) == 2 else states[0])[0]
    for narrow in range(len(states)):
        given = [s.float() if i == narrow else s for i, s in enumerate(states)]
        with wg.amp.autocast("cpu", dtype=wg.bfloat16):
            found = layer(x, tuple(given) if len(given) == 2 else given[0])[0]
        assert found.dtype == wg.float64
        # The state itself was rounded to bfloat16.
        assert (found - expected).abs().max().item() < 0.05
