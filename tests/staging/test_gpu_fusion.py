"""Elementwise operations that a program of a GPU runs as one kernel: the values of each alone."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert import Tensor, gpu, nn
from wengert.nn import functional as F

pytestmark = pytest.mark.gpu

UNARY = "neg exp tanh sigmoid sin abs sqrt relu log1p square erf floor softplus digamma".split()
BINARY = "add mul sub maximum minimum div pow".split()
DTYPES = [wg.float32, wg.float32, wg.float32, wg.float16, wg.bfloat16]


def inputs(rng: np.random.Generator) -> list[Tensor]:
    """Tensors that broadcast to the shape of the first, of several dtypes and layouts."""
    shape = tuple(int(d) for d in rng.integers(1, 9, size=rng.integers(1, 5)))
    made = [wg.tensor(np.abs(rng.standard_normal(shape)).astype(np.float32) + 0.1)]
    for _ in range(rng.integers(0, 4)):
        own = tuple(d if rng.random() < 0.6 else 1 for d in shape)[int(rng.integers(0, len(shape))) :]
        x = wg.tensor(np.abs(rng.standard_normal(own)).astype(np.float32) + 0.1)
        made.append(x.to(DTYPES[rng.integers(len(DTYPES))]))
    return [x.to("gpu") for x in made]


def laid_out(x: Tensor, how: int) -> Tensor:
    """The same values in another layout."""
    if how == 1 and x.dim() > 1:
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if how == 2:
        return wg.cat([x[:1], x])[1:]
    return x


def steps(rng: np.random.Generator, count: int) -> list[Any]:
    """A random program on so many inputs."""
    made = []
    for _ in range(rng.integers(2, 14)):
        kind, (a, b, c) = rng.random(), (int(k) for k in rng.integers(0, count, size=3))
        if kind < 0.4:
            made.append(("unary", UNARY[rng.integers(len(UNARY))], a))
        elif kind < 0.75:
            made.append(("binary", BINARY[rng.integers(len(BINARY))], a, b))
        elif kind < 0.85:
            made.append(("where", a, b, c))
        elif kind < 0.92:
            made.append(("scale", a, float(rng.integers(1, 5)) / 2))
        else:
            made.append(("cast", a, DTYPES[rng.integers(len(DTYPES))]))
        count += 1
    return made


def run(values: list[Tensor], program: list[Any], kept: list[int]) -> list[Tensor]:
    values = list(values)
    for kind, *at in program:
        if kind == "unary":
            values.append(getattr(values[at[1]], at[0])())
        elif kind == "binary":
            values.append(getattr(values[at[1]], at[0])(values[at[2]]))
        elif kind == "where":
            a, b, c = (values[k] for k in at)
            values.append(wg.where((a > b) & (c > 0.5), a, c.to(a.dtype)))
        elif kind == "scale":
            values.append(values[at[0]] * at[1] + 1)
        else:
            values.append(values[at[0]].to(at[1]))
    return [values[k] for k in kept]


def check(seed: int) -> int:
    """Runs a random program both ways; returns how many groups it has."""
    rng = np.random.default_rng(seed)
    given = inputs(rng)
    given = [laid_out(x, int(rng.integers(0, 4))) for x in given]
    program = steps(rng, len(given))
    last = len(given) + len(program) - 1
    kept = sorted({int(k) for k in rng.integers(len(given), last + 1, size=3)} | {last})
    eager = run(given, program, kept)
    staged = wg.jit(lambda *x: run(list(x), program, kept))
    staged(*given)
    for a, b in zip(eager, staged(*given), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        x, y = a.float().cpu().numpy(), b.float().cpu().numpy()
        # A compiler of shaders may contract what stands in one kernel.
        scale = {wg.float32: 2e-5, wg.float16: 4e-3, wg.bfloat16: 3e-2}[a.dtype]
        np.testing.assert_allclose(y, x, rtol=scale, atol=scale, err_msg=f"{seed} {program} {kept}")
    assert staged.traces == 1, staged.why()
    return len(staged.fused(*given))


def test_random_programs() -> None:
    assert sum(check(seed) for seed in range(60)) > 60


def test_random_programs_on_a_small_gpu() -> None:
    if os.environ.get("WENGERT_GPU_LIMITS") == "small":
        return
    environment = {**os.environ, "WENGERT_GPU_LIMITS": "small"}
    code = "from staging import test_gpu_fusion as t\nassert sum(t.check(seed) for seed in range(12)) > 10"
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    subprocess.run([sys.executable, "-c", code], cwd=here, env=environment, check=True, timeout=300)


def dispatches(f: Any, *args: Any) -> int:
    with gpu.profile() as profile:
        f(*args)
    return len(profile.launches)


def test_a_chain_is_one_kernel() -> None:
    def f(x: Tensor, bias: Tensor) -> Tensor:
        y = x + bias
        return F.gelu(y) * wg.sigmoid(y) + (y > 0) * x

    x, bias = wg.randn(40, 24, device="gpu"), wg.randn(24, device="gpu")
    staged = wg.jit(f)
    np.testing.assert_allclose(staged(x, bias).cpu().numpy(), f(x, bias).cpu().numpy(), rtol=1e-5, atol=1e-6)
    assert dispatches(f, x, bias) >= 6
    assert dispatches(staged, x, bias) == 1
    assert len(staged.fused(x, bias)) == 1


@pytest.mark.parametrize(
    "shape", [(7,), (4096,), (5, 8), (130, 33), (300, 64), (3, 70, 5), (70_000,), (2, 3, 40_000)]
)
def test_reductions_of_chains_are_computed_as_they_are_read(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape))
    x = wg.tensor(rng.standard_normal(shape).astype(np.float32)).to("gpu")
    row = wg.tensor(rng.standard_normal(shape[-1:]).astype(np.float32)).to("gpu")
    axes = [None, *range(len(shape)), *([(0, len(shape) - 1)] if len(shape) > 1 else [])]
    for axis in axes:
        for how in ("sum", "amax", "amin", "mean"):
            f = lambda x, row, axis=axis, how=how: getattr(wg, how)(
                (x - row) * (x * 0.5), **({} if axis is None else {"dim": axis})
            )
            staged = wg.jit(f)
            expected = f(x, row)
            got = staged(x, row)
            assert got.shape == expected.shape
            np.testing.assert_allclose(got.cpu(), expected.cpu(), rtol=2e-5, atol=2e-5 * x.numel() ** 0.5)
            assert len(staged.fused(x, row)) == 1
            assert dispatches(staged, x, row) <= dispatches(f, x, row) - 3


def region(rng: np.random.Generator, shape: tuple[int, ...], is_empty: int) -> tuple[slice, ...]:
    """A part of a shape, which has no elements along the axes of which `is_empty` has the bit."""
    ends = [sorted(int(k) for k in rng.integers(0, n + 1, size=2)) for n in shape]
    return tuple(slice(a, a if is_empty >> k & 1 else b) for k, (a, b) in enumerate(ends))


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("shape", [(8,), (1,), (100,), (4, 7), (1, 5), (3, 4, 8), (2, 1, 3, 5)])
def test_parts_of_values_perhaps_empty(shape: tuple[int, ...], device: str) -> None:
    rng = np.random.default_rng(len(shape))
    every = 2 ** len(shape)
    for is_empty in (0, 0, 1, every - 1):
        # Zeros too, of which -2 makes -0.
        x, v = (rng.integers(-2, 3, size=shape).astype(np.float32) for _ in range(2))
        a, b = region(rng, shape, is_empty), region(rng, shape, int(rng.integers(every)))

        def f(x: Tensor, v: Tensor, a: Any = a, b: Any = b, shape: Any = shape) -> list[Tensor]:
            widths = [
                n for s, d in zip(reversed(a), reversed(shape), strict=True) for n in (s.start, d - s.stop)
            ]
            y = x * -2
            y[a].add_(v[a])
            y[b].add_(v[b])
            gradient = wg.func.grad(lambda x: (x[a] * 3).sum() + (x * x).sum() + (x[b] * x[b]).sum())(x)
            return [y, F.pad(x[a], widths) + 1, gradient * 1]

        summed, padded, gradient = x * np.float32(-2), np.ones_like(x), 2 * x
        for part in (a, b):
            summed[part] += v[part]
        padded[a] += x[a]
        gradient[a] += 3
        gradient[b] += 2 * x[b]
        given = lambda x=x, v=v: (wg.tensor(array).to(device) for array in (x, v))
        f(*given())
        staged = wg.jit(f)
        for _ in range(3):
            made = staged(*given())
            for found, wanted in zip(made, (summed, padded, gradient), strict=True):
                # The signs of zeros too.
                bits = found.cpu().numpy().view(np.int32)
                np.testing.assert_array_equal(bits, wanted.view(np.int32), err_msg=f"{shape} {a} {b}")
        assert staged.traces == 1, staged.why()


def test_an_empty_part_behind_the_end_of_its_memory() -> None:
    """Nothing of it is read, though its place is that of the element behind the last one."""
    x = wg.full((64,), 7.0, device="gpu")
    staged = wg.jit(lambda x: [F.pad(x[64:], (2, 3)) + 1, F.pad(x[:0], (64, 0)) * 2])
    for _ in range(3):
        ones, zeros = staged(x)
        assert ones.tolist() == [1.0] * 5
        assert zeros.tolist() == [0.0] * 64
    assert any("pad" in name for group in staged.fused(x) for name in group)


def test_what_others_read_is_stored_too() -> None:
    f = wg.jit(lambda x: ((y := wg.exp(x) * x), y.sum(0)))
    x = wg.randn(50, 6, device="gpu")
    y, total = f(x)
    np.testing.assert_allclose(y.cpu(), np.exp(x.cpu().numpy()) * x.cpu().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(total.cpu(), y.cpu().numpy().sum(0), rtol=1e-5, atol=1e-5)


def test_more_arrays_than_a_kernel_binds_are_several() -> None:
    given = [wg.full((33,), float(k), device="gpu") for k in range(40)]

    def f(*x: Tensor) -> tuple[Tensor, ...]:
        return sum(x[1:], x[0]), *(x[k] * x[k + 1] for k in range(20))

    staged = wg.jit(f)
    for a, b in zip(f(*given), staged(*given), strict=True):
        np.testing.assert_array_equal(a.cpu().numpy(), b.cpu().numpy())
    assert dispatches(staged, *given) < dispatches(f, *given) / 4


def test_a_training_step_of_tensor_operations() -> None:
    """An optimiser in tensor operations, dropout, and a network whose layers are written out."""

    def trained(staged: bool) -> tuple[list[float], int]:
        wg.manual_seed(0)
        w = [wg.randn(9, 16) * 0.3, wg.zeros(16), wg.randn(16, 1) * 0.3]
        w = [p.to("gpu").requires_grad_() for p in w]
        momentum = [wg.zeros_like(p) for p in w]

        def step(x: Tensor, y: Tensor) -> Tensor:
            h = F.dropout(wg.tanh(x @ w[0] + w[1]), 0.25)
            loss = ((h @ w[2] - y) ** 2).mean()
            gradients = wg.autograd.grad(loss, w)
            with wg.no_grad():
                for p, m, g in zip(w, momentum, gradients, strict=True):
                    m.copy_(0.9 * m + g + 0.01 * p)
                    p.copy_(p - 0.05 * m / (1 + m.abs()))
            return loss

        f = wg.jit(step) if staged else step
        x = wg.tensor(np.random.default_rng(1).standard_normal((32, 9)), dtype=wg.float32).to("gpu")
        losses = [f(x, x[:, :1]).item() for _ in range(5)]
        if staged:
            assert f.traces == 1, f.why()
        return losses, dispatches(f, x, x[:, :1])

    (eager, many), (program, few) = trained(False), trained(True)
    assert program == pytest.approx(eager, rel=1e-4)
    assert few * 2 <= many + 10, (few, many)


def test_second_derivatives_of_a_network_are_fused() -> None:
    net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)).to("gpu")

    def residual(x: Tensor) -> Tensor:
        u = lambda t: net(t[None])[0]
        return (wg.vmap(wg.func.hessian(u))(x).reshape(-1) + wg.vmap(u)(x).reshape(-1)).detach()

    x = wg.linspace(-1, 1, 12, device="gpu")[:, None]
    staged = wg.jit(residual)
    staged(x)
    np.testing.assert_allclose(staged(x).detach().cpu(), residual(x).detach().cpu(), rtol=1e-4, atol=1e-5)
    assert dispatches(staged, x) < dispatches(residual, x)
