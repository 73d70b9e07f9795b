"""Elementwise operations that a program runs together: the bits of each alone, whatever runs between them."""

from collections.abc import Callable

import numpy as np
import pytest
import wengert as wg
from hypothesis import given, strategies as st
from wengert import Tensor, nn
from wengert.nn import functional as F

SIZES = (1, 5, 1024, 3000)


def same(got: object, expected: object) -> None:
    """The same bits, NaN and signs of zeros included."""
    for a, b in zip(wg.tree.leaves(got), wg.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride())
        a, b = (x.detach().view(wg.int16) if x.dtype == wg.bfloat16 else x.detach() for x in (a, b))
        assert a.numpy().tobytes() == b.numpy().tobytes()


# One step of a random program: from a list of tensors, one more, or a write into one of them.
UNARY: list[Callable[[Tensor], Tensor]] = [
    wg.sin,
    wg.exp,
    wg.tanh,
    wg.neg,
    lambda x: x * 2.5,
    lambda x: 1 - x,
    lambda x: x.abs() + 0.5,
    lambda x: x.reshape(-1).reshape(x.shape),
    lambda x: x.flip(0),
    lambda x: x - x.mean(),
    lambda x: x.cumsum(0) / 100,
    lambda x: x.clone(),
    lambda x: (x > 0).to(x.dtype),
    lambda x: wg.where(x > 0.25, x, -x * x),
    lambda x: x.double().float() if x.dtype == wg.float32 else x.float().double(),
]
BINARY: list[Callable[[Tensor, Tensor], Tensor]] = [
    wg.add,
    wg.mul,
    wg.sub,
    wg.maximum,
    lambda x, y: x / (y.abs() + 1),
    lambda x, y: x * y + x,
    lambda x, y: wg.where(x < y, x, y * 0.5),
    lambda x, y: x + y.sum(),
    lambda x, y: x * y[:1],
]
WRITES: list[Callable[[Tensor, Tensor], object]] = [
    lambda x, y: x.add_(y),
    lambda x, y: x.mul_(0.5),
    lambda x, y: x.copy_(y),
    lambda x, y: x[1:].add_(1),
    lambda x, y: x.clamp_(-1, 1),
    lambda x, y: x.sin_(),
    lambda x, y: x.neg_(),
    lambda x, y: x.relu_(),
    lambda x, y: x.tanh_(),
    lambda x, y: x.zero_(),
    lambda x, y: x.fill_(0.5),
    lambda x, y: x.mul_(x),
    lambda x, y: x.addcmul_(x, y, value=0.5),
    lambda x, y: x.lerp_(y, 0.25),
]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["unary", "unary", "binary", "binary", "binary", "write", "drop"]),
        st.integers(0, 14),
        st.integers(0, 99),
        st.integers(0, 99),
    ),
    min_size=2,
    max_size=40,
)


def program(steps: list[tuple[str, int, int, int]], *tensors: Tensor) -> list[Tensor]:
    """Runs the steps; tensors of one size meet, writes go to those that the program made."""
    sizes = {len(x): [x] for x in tensors}
    kept: list[Tensor] = []
    for kind, which, i, j in steps:
        values = list(sizes.values())[i % len(sizes)]
        x, y = values[i % len(values)], values[j % len(values)]
        if kind == "unary":
            values.append(UNARY[which % len(UNARY)](x))
        elif kind == "binary":
            values.append(BINARY[which % len(BINARY)](x, y))
        elif kind == "write":
            values.append(x.clone())
            WRITES[which % len(WRITES)](values[-1], y)
        else:
            kept.append(values[-1])
    return [*(values[-1] for values in sizes.values()), *kept[:3]]


DTYPES = [wg.float32, wg.float64, wg.float16, wg.bfloat16]


@given(steps=STEPS, dtype=st.sampled_from(DTYPES), threads=st.sampled_from([1, 2]))
def test_random_programs(steps: list[tuple[str, int, int, int]], dtype: wg.dtype, threads: int) -> None:
    rng = np.random.default_rng(len(steps))
    before = wg.get_num_threads()
    wg.set_num_threads(threads)
    try:
        staged = wg.jit(lambda *tensors: program(steps, *tensors))
        for _ in range(3):
            tensors = [wg.tensor(rng.standard_normal(n), dtype=dtype) for n in SIZES]
            same(staged(*tensors), program(steps, *tensors))
        assert staged.traces == 1, staged.why()
    finally:
        wg.set_num_threads(before)


@given(steps=STEPS)
def test_gradients_of_random_programs(steps: list[tuple[str, int, int, int]]) -> None:
    """Backward adds in place where several uses of a value meet."""
    steps = [(kind, which, i, j) for kind, which, i, j in steps if kind != "write"]

    def loss(*tensors: Tensor) -> Tensor:
        return sum(((x * x).sum() for x in program(steps, *tensors)), wg.zeros(()))

    f = wg.value_and_grad(loss, argnums=tuple(range(len(SIZES))))
    staged = wg.jit(f)
    rng = np.random.default_rng(len(steps))
    for _ in range(2):
        tensors = [wg.tensor(rng.standard_normal(n), dtype=wg.float64) for n in SIZES]
        same(staged(*tensors), f(*tensors))


INTEGERS = [wg.int8, wg.uint8, wg.int16, wg.uint16, wg.int32, wg.uint32, wg.int64, wg.uint64]
OF_INTEGERS: list[Callable[[Tensor, Tensor], Tensor]] = [
    lambda x, y: x + y.to(x.dtype),
    lambda x, y: x - y.to(x.dtype),
    lambda x, y: x * y.to(x.dtype),
    lambda x, y: wg.maximum(x, y.to(x.dtype)),
    lambda x, y: wg.where(x < y.to(x.dtype), x, x + 1),
    lambda x, y: (x != y.to(x.dtype)).to(x.dtype),
    lambda x, y: x * 3 + 1,
    lambda x, y: x.abs(),
    lambda x, y: -x,
    lambda x, y: (x // (y.to(x.dtype) * y.to(x.dtype) + 1)) if x.dtype == wg.int64 else x.square(),
    lambda x, y: (x.float() * 0.25).to(x.dtype),
    lambda x, y: (x.half() * 0.25).to(x.dtype),
    lambda x, y: x.double().sin().mul(9).abs().to(x.dtype),
    lambda x, y: x.clamp(2, 90),
    lambda x, y: x.to(wg.bool).to(x.dtype) + (x > 1).to(wg.bfloat16).to(x.dtype),
]


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)), min_size=2, max_size=24
    ),
    start=st.sampled_from(INTEGERS),
    n=st.sampled_from([1, 5, 1025]),
)
def test_random_programs_of_integers(steps: list[tuple[int, int, int]], start: wg.dtype, n: int) -> None:
    def run(*values: Tensor) -> list[Tensor]:
        known = list(values)
        for which, i, j in steps:
            known.append(OF_INTEGERS[which % len(OF_INTEGERS)](known[i % len(known)], known[j % len(known)]))
            known.append(known[-1].to(INTEGERS[(i + j) % len(INTEGERS)]))
        return known[2::2]

    staged = wg.jit(run)
    rng = np.random.default_rng(n)
    for _ in range(2):
        tensors = [wg.tensor(rng.integers(0, 100, n)).to(start) for _ in range(2)]
        same(staged(*tensors), run(*tensors))
    assert staged.traces == 1, staged.why()


@pytest.mark.parametrize("dtype", [wg.float16, wg.bfloat16, wg.int32, wg.uint8, wg.int64])
@pytest.mark.parametrize("n", [1, 1023, 1025, 100_000])
def test_dtypes_that_run_tile_by_tile(n: int, dtype: wg.dtype) -> None:
    """Halves and small integers are rounded between two operations, as memory would."""

    def f(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        z = (x * y + x) * 3 - y
        return wg.where(z > x, z, y.neg()), z.float() * 0.5

    staged = wg.jit(f)
    for scale in (1, 3, 7):
        x, y = (wg.randint(0, 100, (n,)) * scale).to(dtype), wg.randint(0, 100, (n,)).to(dtype)
        same(staged(x, y), f(x, y))
    (group, *others) = staged.fused(x, y)
    assert group[:4] == ["mul", "add", "mul", "sub"], others
    assert {"gt", "where", "cast"} <= {name for names in staged.fused(x, y) for name in names}


def test_what_is_read_and_what_is_not_are_groups_apart() -> None:
    """One group of both would lose the machine code of the former."""
    staged = wg.jit(lambda x, i: ((x * 2).sin() + 1, (i + 1) * 2))
    x, i = wg.randn(50), wg.arange(50)
    staged(x, i)
    assert sorted(staged.fused(x, i)) == [["add", "mul"], ["mul", "sin", "add"]]


@pytest.mark.parametrize("dtype", [wg.float16, wg.bfloat16])
def test_gradients_of_halves(dtype: wg.dtype) -> None:
    f = wg.value_and_grad(lambda x, y: (F.gelu(x * y) * wg.sigmoid(y) + x).float().sum(), argnums=(0, 1))
    staged = wg.jit(f)
    for n in (5, 1100):
        for _ in range(2):
            x, y = wg.randn(n).to(dtype), wg.randn(n).to(dtype)
            same(staged(x, y), f(x, y))
        assert max(map(len, staged.fused(x, y))) >= 4


@pytest.mark.parametrize("name", ["exp_", "neg_", "sin_", "tanh_", "relu_", "sigmoid_", "sqrt_", "abs_"])
def test_functions_in_place_within_a_group(name: str) -> None:
    def f(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        before = y + 1
        getattr(y, name)()
        return before, y * 3

    staged = wg.jit(f)
    for x in (wg.rand(5), wg.rand(2000), wg.rand(3, 4)):
        staged(x)
        same(staged(x), f(x))
        assert staged.fused(x)


def test_a_call_that_takes_another_way_changes_nothing_before() -> None:
    """What the program itself made may be written in place before Python decides by a value."""
    p = wg.ones(3).requires_grad_()

    def step(x: Tensor) -> Tensor:
        p.grad = None
        y = x * 2
        y.exp_()
        y.add_(1)
        if y.max() > 100:
            return y * 0
        (y * p).sum().backward()
        return y

    def eager(x: Tensor) -> tuple[Tensor, Tensor | None]:
        out = step(x)
        return out, p.grad

    staged = wg.jit(step)
    xs = [wg.full((3,), value) for value in (0.5, 0.25, 3.0, 0.125, 4.0)]
    found = []
    for x in xs:
        p.grad = wg.full((3,), 7.0)
        found.append((staged(x), p.grad))
    for x, (out, grad) in zip(xs, found, strict=True):
        expected, slope = eager(x)
        same(out, expected)
        assert (grad is None) == (slope is None)
        if slope is not None:
            same(grad, slope)
    assert staged.traces == 2, staged.why()


def test_a_chain_is_one_group() -> None:
    staged = wg.jit(lambda x, y: ((x * y + x) * 2).tanh() - y)
    x, y = wg.randn(7, 11), wg.randn(7, 11)
    staged(x, y)
    assert staged.fused(x, y) == [["mul", "add", "mul", "tanh", "sub"]]
    with pytest.raises(ValueError, match="no program for these arguments"):
        staged.fused(x)


def test_forward_and_backward_of_a_loss_are_one_group() -> None:
    p, q = wg.randn(50).requires_grad_(), wg.randn(50).requires_grad_()

    def loss() -> Tensor:
        p.grad = q.grad = None
        out = (F.gelu(p) * wg.sigmoid(q) + p).sum()
        out.backward()
        return out

    staged = wg.jit(loss)
    staged()
    assert [len(group) for group in staged.fused()] == [9]
    out = staged()
    grads = [p.grad, q.grad]
    same([out, *grads], [loss(), p.grad, q.grad])


def test_groups_of_different_sizes_beside_products() -> None:
    staged = wg.jit(lambda x, w: ((x * 2).exp() @ (w + 1).sin()).relu() * 3)
    x, w = wg.randn(4, 5), wg.randn(5, 6)
    staged(x, w)
    assert [len(group) for group in staged.fused(x, w)] == [2, 2, 2]
    same(staged(x, w), ((x * 2).exp() @ (w + 1).sin()).relu() * 3)


def test_what_is_no_loop_over_the_same_elements_is_left_alone() -> None:
    staged = wg.jit(lambda x, row: (x + row) * 2)
    x, row = wg.randn(4, 5), wg.randn(5)
    staged(x, row)
    assert staged.fused(x, row) == []


@pytest.mark.parametrize("n", [1, 1023, 1025, 100_000])
def test_masks_and_numbers_within_a_group(n: int) -> None:
    def f(x: Tensor, y: Tensor) -> Tensor:
        inside = (x > -0.5) & (x < y)
        return wg.where(inside, x * y, 0.25) + x

    x, y = wg.randn(n), wg.randn(n)
    staged = wg.jit(f)
    staged(x, y)
    assert len(staged.fused(x, y)) == 1
    same(staged(x, y), f(x, y))


def test_axes_of_one_element_keep_their_strides() -> None:
    def f(x: Tensor) -> list[Tensor]:
        total = x.sum().expand(1)
        return [x[:1].expand(1) + x[:1].expand(1), total + total, total * 2]

    staged = wg.jit(f)
    x = wg.tensor([0.5])
    for _ in range(3):
        same(staged(x), f(x))


def test_memory_of_a_chain_is_that_of_its_ends() -> None:
    x = wg.randn(100_000)

    def f(x: Tensor) -> Tensor:
        for _ in range(10):
            x = (x * 1.5).sin()
        return x

    staged = wg.jit(f)
    kept = staged(x)
    before = wg.memory.live_bytes()
    wg.memory.reset_peak()
    kept = staged(x)
    assert wg.memory.peak_bytes() - before <= kept.nbytes + 4096


class Residual(nn.Module):
    """Gated layers with connections around them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(128, 128) for _ in range(8)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + F.gelu(layer(x)) * wg.sigmoid(x)
        return x


def normalised(width: int) -> list[nn.Module]:
    return [nn.Linear(width, width), nn.Tanh(), nn.LayerNorm(width), nn.SiLU()]


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "layers": (lambda: nn.Sequential(*[nn.Linear(256, 256), nn.GELU()] * 3), (512, 256)),
    "norms": (lambda: nn.Sequential(*normalised(64), *normalised(64)), (2048, 64)),
    "attention": (lambda: nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0), (8, 64, 64)),
    "convolutions": (
        lambda: nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.SiLU(), nn.MaxPool2d(2)),
        (8, 3, 32, 32),
    ),
    "residual": (Residual, (1024, 128)),
}


def peak(step: Callable[[], object]) -> int:
    """Bytes at once that a third call needs beyond what is there."""
    step()
    step()
    before = wg.memory.live_bytes()
    wg.memory.reset_peak()
    step()
    return wg.memory.peak_bytes() - before


@pytest.mark.parametrize("name", MODELS)
def test_a_program_needs_no_more_memory_at_once_than_eager_mode(name: str) -> None:
    make, shape = MODELS[name]
    model, x = make(), wg.randn(*shape)
    optimizer = wg.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    eager = peak(step)
    staged = wg.jit(step)
    assert peak(staged) <= eager + (1 << 15)
    assert staged.traces == 1, staged.why()
