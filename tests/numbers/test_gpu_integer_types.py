"""Integers of every width on a GPU: the bits are those of the CPU, for hard values, views and whole lists of
operations. Positions, and sums of up to 32 bits, are int32 there and int64 on the CPU."""

import operator
import os
from typing import Any

import numpy as np
import pytest
import wengert as wg
from samples.op_samples import SAMPLES
from samples.sample import OpSample
from support import random_source, tensor
from wengert.nn import functional as F

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
DTYPES = ["bool", *INTEGERS]


def numbers(dtype: str, count: int, seed: int = 0) -> np.ndarray:
    """The hardest values of a type, then others of all sizes."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, count).astype(bool)
    info = np.iinfo(dtype)
    bits = info.bits
    near = [
        0,
        1,
        2,
        3,
        7,
        bits - 1,
        bits,
        100,
        -1,
        -2,
        -3,
        -7,
        info.max,
        info.max - 1,
        info.min,
        info.min + 1,
    ]
    near += [1 << bits // 2, (1 << bits // 2) - 1, (1 << bits // 2) + 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
    hard = [v for v in near if info.min <= v <= info.max]
    sizes = rng.integers(1, bits + 1, count).astype(np.uint64)
    wide = rng.integers(0, 2**64 - 1, count, dtype=np.uint64, endpoint=True) >> (np.uint64(64) - sizes)
    out = wide.astype(dtype)
    out[: min(len(hard), count)] = np.array(hard, dtype)[:count]
    return rng.permutation(out)


def pair(values: np.ndarray) -> tuple[wg.Tensor, wg.Tensor]:
    """A tensor on either device."""
    x = wg.tensor(values)
    return x, x.to("gpu")


#: What GPUs count in: int32, and sums of uint32 in uint32.
NARROWER = [("int64", "int32"), ("int64", "uint32")]


def same(cpu: Any, gpu: Any, what: str) -> None:
    """The same numbers; the type too, but for what GPUs count in int32."""
    if isinstance(cpu, (tuple, list)):
        assert len(cpu) == len(gpu)
        for a, b in zip(cpu, gpu, strict=True):
            same(a, b, what)
        return
    if not isinstance(cpu, wg.Tensor):
        return
    assert cpu.shape == gpu.shape, what
    a, b = cpu.numpy(), gpu.cpu().numpy()
    if cpu.dtype.is_floating_point or cpu.dtype.is_complex:
        np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-5, err_msg=what)
        return
    if b.dtype != a.dtype:
        assert (str(a.dtype), str(b.dtype)) in NARROWER, f"{what}: {a.dtype} and {b.dtype}"
        a = a.astype(b.dtype)
    np.testing.assert_array_equal(b, a, err_msg=what)


DIVISIONS = {"floordiv": operator.floordiv, "mod": operator.mod, "fmod": wg.fmod}
BINARY = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul")},
    **{name: getattr(operator, name) for name in ("and_", "or_", "xor", "lshift", "rshift")},
    **{name: getattr(operator, name) for name in ("lt", "le", "eq", "ne", "gt", "ge", "truediv")},
    **{name: getattr(wg, name) for name in ("maximum", "minimum", "gcd", "logical_xor")},
    "pow": lambda x, y: x ** (y & 7),
    "where": lambda x, y: wg.where(x > y, x, y),
    "lerp of masks": lambda x, y: wg.where(y > 2, x, 5),
}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_two_numbers(dtype: str) -> None:
    a, b = (np.concatenate([numbers(dtype, 40, seed), numbers(dtype, 25, seed)]) for seed in (1, 2))
    (x, gx), (y, gy) = pair(np.repeat(a, len(b))), pair(np.tile(b, len(a)))
    divisors, gpu_divisors = (wg.where(v == 0, 3, v) for v in (y, gy))
    for name, f in DIVISIONS.items():
        same(f(x, divisors), f(gx, gpu_divisors), name)
        same(f(x, 3), f(gx, 3), f"{name} by 3")
    for name, f in BINARY.items():
        same(f(x, y), f(gx, gy), name)
        same(f(x[::3], y[2]), f(gx[::3], gy[2]), f"{name} with a scalar")
        same(f(x, 3), f(gx, 3), f"{name} with 3")
    # Divisors and exponents, of either sign.
    same(x**y, gx**gy, "pow")


UNARY = {
    **{name: operator.methodcaller(name) for name in ("abs", "sign", "square", "logical_not")},
    **{name: getattr(operator, name) for name in ("neg", "invert", "pos")},
    "clamp": lambda x: x.clamp(2, 100),
    "cube": lambda x: x**3,
    "bool": lambda x: x.bool(),
    "nonzero": lambda x: x.nonzero(),
    "sqrt": lambda x: x.abs().float().sqrt(),
}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_one_number(dtype: str) -> None:
    x, gx = pair(numbers(dtype, 301, 3))
    for name, f in UNARY.items():
        same(f(x), f(gx), name)
        same(f(x[1::2].reshape(5, 30).mT), f(gx[1::2].reshape(5, 30).mT), f"{name} of a view")


@pytest.mark.parametrize("to", [*DTYPES, "float32", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("dtype", [*DTYPES, "float32", "float16", "bfloat16"])
def test_conversions(dtype: str, to: str) -> None:
    if dtype in DTYPES:
        x, gx = pair(numbers(dtype, 203, 4))
    else:
        rng = np.random.default_rng(5)
        hard = [0.0, -0.0, 0.5, -0.99, 1.0, -1.0, 255.7, -129.2, 65535.0, 3e9, -3e9, 1.5e10, -7e14, 6e18]
        wide = rng.standard_normal(200) * 2.0 ** rng.integers(-3, 62, 200)
        values = np.concatenate([hard, wide])
        x = wg.tensor(values, dtype=wg.float64).to(getattr(wg, dtype))
        x = x[x.isfinite() & (x.abs() < 2.0**63)]
        gx = x.to("gpu")
    got, want = gx.to(getattr(wg, to)), x.to(getattr(wg, to))
    if to in DTYPES:
        same(want, got, f"{dtype} to {to}")
        same(want[1::2], gx[1::2].to(getattr(wg, to)), f"{dtype} to {to}, a view")
    elif dtype in ("int64", "uint64") or to in ("float32", "complex64"):
        assert (got.cpu() == want).all(), f"{dtype} to {to}"


REDUCTIONS = {
    **{name: operator.methodcaller(name) for name in ("sum", "prod", "any", "all", "count_nonzero")},
    **{name: operator.methodcaller(name) for name in ("amax", "amin", "argmax", "argmin")},
    **{
        f"{name} 0": operator.methodcaller(name, 0) for name in ("sum", "prod", "cumsum", "cumprod", "argmax")
    },
    **{
        f"{name} 1": operator.methodcaller(name, 1) for name in ("sum", "prod", "cumsum", "cumprod", "argmin")
    },
    "amax 1": lambda x: x.amax(1),
    "amin 0": lambda x: x.amin(0, keepdim=True),
    "sort 0": lambda x: wg.sort(x, 0),
    "sort 1": lambda x: wg.sort(x, 1, descending=True),
    "argsort": lambda x: x.argsort(1, stable=True),
    "topk": lambda x: wg.topk(x, min(3, x.shape[1]), 1),
    "unique": lambda x: wg.unique(x),
    "mean": lambda x: (x % 100).float().mean(),
    "any 1": lambda x: (x == 7).any(1),
    "all 0": lambda x: (x > 0).all(0),
}


@pytest.mark.parametrize("shape", [(7, 9), (1, 700), (300, 3), (3, 2100)], ids=str)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_reductions_scans_and_orders(dtype: str, shape: tuple[int, int]) -> None:
    x, gx = pair(numbers(dtype, shape[0] * shape[1], 6).reshape(shape))
    for name, f in REDUCTIONS.items():
        same(f(x), f(gx), name)
        same(f(x.mT), f(gx.mT), f"{name} of a transpose")


def test_orders_of_long_lines() -> None:
    for dtype in ("int64", "uint64", "int16"):
        x, gx = pair(numbers(dtype, 5000, 7))
        same(wg.sort(x), wg.sort(gx), dtype)
        same(x.argmax(), gx.argmax(), dtype)
        line = wg.sort(x)[0]
        for right in (False, True):
            places = wg.searchsorted(line.to("gpu"), gx[:400], right=right)
            same(wg.searchsorted(line, x[:400], right=right), places, f"{dtype} {right}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_moves_and_writes(dtype: str) -> None:
    values, more = numbers(dtype, 96, 8).reshape(4, 24), numbers(dtype, 96, 9).reshape(4, 24)
    for shape in ((0,), (1,), (3,)):
        same(*pair(numbers(dtype, 96, 8)[: shape[0]]), "transfer")
    index = np.array([3, 0, -1, 2, 2])
    moves = {
        "take": lambda x, y, i: x[:, i],
        "rows": lambda x, y, i: x[i],
        "gather": lambda x, y, i: x.gather(1, (y != 0).long() + 3),
        "mask": lambda x, y, i: x[y > x] if dtype != "bool" else x[y],
        "cat": lambda x, y, i: wg.cat([x[:, 1::3], y[:, :5]], 1),
        "flip": lambda x, y, i: x.flip(1),
        "roll": lambda x, y, i: x.roll(5, 1),
        "pad": lambda x, y, i: F.pad(x, (1, 2, 3, 0)),
        "pad with 1": lambda x, y, i: F.pad(x, (1, 2), value=1),
        "tril": lambda x, y, i: x.tril(1),
        "repeat": lambda x, y, i: x.repeat(2, 3),
        "permute": lambda x, y, i: x.reshape(2, 2, 12, 2).permute(2, 0, 3, 1).contiguous(),
        "transpose": lambda x, y, i: x.reshape(12, 8).mT.contiguous(),
    }
    for name, f in moves.items():
        results = []
        for device in ("cpu", "gpu"):
            x, y, i = (wg.tensor(v).to(device) for v in (values, more, index))
            results.append(f(x, y, i))
        same(*results, name)

    def column(x: wg.Tensor, y: wg.Tensor) -> None:
        x[:, 1] = y[:, 2]

    def odd(x: wg.Tensor, y: wg.Tensor) -> None:
        x[1, 1::2] = y[0, ::2]

    def number(x: wg.Tensor, y: wg.Tensor) -> None:
        x[2, 3:8] = 1

    def whole(x: wg.Tensor, y: wg.Tensor) -> None:
        x.copy_(y.flip(0))

    def rows(x: wg.Tensor, y: wg.Tensor) -> None:
        x[wg.tensor([2, 0]).to(x.device)] = y[:2]

    def places(x: wg.Tensor, y: wg.Tensor) -> None:
        x[y == y[0, 0]] = 0

    def filled(x: wg.Tensor, y: wg.Tensor) -> None:
        x[1:3, 5].fill_(1)

    for write in (column, odd, number, whole, rows, places, filled):
        results = []
        for device in ("cpu", "gpu"):
            x, y = (wg.tensor(v).to(device) for v in (values, more))
            write(x, y)
            results.append(x)
        same(*results, write.__name__)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_sums_by_index(dtype: str) -> None:
    values = numbers(dtype, 60, 10).reshape(12, 5)
    for name in ("index_add", "scatter_add", "amax", "amin", "scatter"):
        results = []
        for device in ("cpu", "gpu"):
            x = wg.tensor(values[:4]).to(device)
            source = wg.tensor(values).to(device)
            rows = wg.tensor(np.arange(12) * 7 % 4).to(device)
            if name == "index_add":
                results.append(x.index_add(0, rows, source))
            elif name == "scatter_add":
                results.append(x.scatter_add(0, rows.unsqueeze(1).expand(12, 5), source))
            elif name == "scatter":
                results.append(x.scatter(1, wg.tensor([[4, 0], [1, 2]]).to(device), source[:2, :2]))
            else:
                index = rows.unsqueeze(1).expand(12, 5)
                results.append(x.scatter_reduce(0, index, source, reduce=name))
        same(*results, name)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_creation_and_products(dtype: str) -> None:
    kind = getattr(wg, dtype)
    info = np.iinfo(dtype)
    for value in (info.max, info.min, 5):
        same(wg.full((3,), value, dtype=kind), wg.full((3,), value, dtype=kind, device="gpu"), "full")
        x, gx = pair(numbers(dtype, 50, 11))
        same(x == value, gx == value, f"== {value}")
        same(x.fill_(value), gx.fill_(value), "fill")
    same(wg.arange(3, 40, 4, dtype=kind), wg.arange(3, 40, 4, dtype=kind, device="gpu"), "arange")
    same(wg.eye(3, 4, dtype=kind), wg.eye(3, 4, dtype=kind, device="gpu"), "eye")
    wg.manual_seed(3)
    cpu = wg.randint(0, 100, (41,), dtype=kind)
    wg.manual_seed(3)
    same(cpu, wg.randint(0, 100, (41,), dtype=kind, device="gpu"), "randint")
    (x, gx), (y, gy) = (
        pair(numbers(dtype, 60, 12).reshape(5, 12)),
        pair(numbers(dtype, 84, 13).reshape(12, 7)),
    )
    same(x @ y, gx @ gy, "matmul")
    same(x[0] @ y, gx[0] @ gy, "vector by matrix")
    same(x.reshape(5, 3, 4) @ y[:4], gx.reshape(5, 3, 4) @ gy[:4], "batches")


def test_random_integers_of_the_whole_range() -> None:
    for low, high in ((-(2**63), 2**63 - 1), (2**40, 2**40 + 9)):
        wg.manual_seed(4)
        cpu = wg.randint(low, high, (9,), dtype=wg.int64)
        wg.manual_seed(4)
        same(cpu, wg.randint(low, high, (9,), dtype=wg.int64, device="gpu"), f"{low}")


#: What a GPU refuses, or does in floats of fewer digits, and what draws numbers or depends on rounding.
OTHER = ("rand", "dropout", "bernoulli", "multinomial", "normal", "poisson", "cast")


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.gpu], ids=str)
def test_every_operation(sample: OpSample) -> None:
    if any(word in sample.name for word in OTHER):
        return
    for dtype in ("bool", "int8", "uint16", "int64", "uint64"):
        source, rng = random_source(3)
        case = sample.case(source)
        inputs = [tensor(value) for value in case.sample(rng)]
        if not any(t.dtype.is_floating_point for t in inputs):
            return
        inputs = [t.to(getattr(wg, dtype)) if t.dtype.is_floating_point else t for t in inputs]
        try:
            want = sample.fn(*inputs, **case.kwargs)
        # What the CPU does not take is not asked of a GPU.
        except Exception:
            continue
        try:
            got = sample.fn(*[t.to("gpu") for t in inputs], **case.kwargs)
        except TypeError as error:
            assert "has no float64" in str(error), sample.name  # noqa: PT017 - what else is a failure
            continue
        outs = want if isinstance(want, (tuple, list)) else [want]
        if any(isinstance(y, wg.Tensor) and y.dtype in (wg.float64, wg.complex128) for y in outs):
            continue
        if all(not isinstance(y, wg.Tensor) or not y.dtype.is_floating_point for y in outs):
            same(want, got, f"{sample.name} of {dtype}")


def test_indices_and_labels_of_64_bits() -> None:
    x = wg.randn(6, 5, device="gpu", requires_grad=True)
    labels = wg.tensor(np.array([0, 4, 2, 2, 1, -100]), device="gpu")
    assert labels.dtype == wg.int64
    loss = F.cross_entropy(x, labels)
    loss.backward()
    y = x.detach().cpu().requires_grad_()
    F.cross_entropy(y, labels.cpu()).backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), y.grad.numpy(), rtol=1e-4, atol=1e-6)
    accuracy = (x.detach().argmax(1) == labels).sum().item()
    assert accuracy == (y.detach().argmax(1) == labels.cpu()).sum().item()
    table = wg.nn.Embedding(10, 4).to("gpu")
    assert table(labels[:5]).shape == (5, 4)
    with pytest.raises(IndexError):
        x.detach()[wg.tensor(np.array([2**32]), device="gpu")].tolist()
    with pytest.raises(IndexError):
        x.detach()[wg.tensor(np.array([-(2**33)]), device="gpu")].tolist()


def test_python_integers_take_the_type_that_holds_them() -> None:
    assert wg.tensor([1, 2], device="gpu").dtype == wg.int32
    wide = wg.tensor([1, 2**40], device="gpu")
    assert wide.dtype == wg.int64
    assert (wide + 1).tolist() == [2, 2**40 + 1]
    assert wide.sum().item() == 2**40 + 1


@pytest.mark.parametrize("name", ["float64", "complex128"])
def test_what_a_gpu_lacks_is_refused(name: str) -> None:
    for make in (lambda d: wg.ones(2, dtype=d).to("gpu"), lambda d: wg.ones(2, dtype=d, device="gpu")):
        with pytest.raises(TypeError, match=rf"gpu:0 has no {name}; convert with .*or use device='cpu'"):
            make(getattr(wg, name))


@pytest.mark.skipif(os.environ.get("WENGERT_GPU_LIMITS") != "small", reason="in pieces under small limits")
def test_tensors_larger_than_a_binding() -> None:
    for dtype in ("int64", "uint8"):
        x, gx = pair(numbers(dtype, 300_001, 14))
        y, gy = pair(numbers(dtype, 300_001, 15))
        same(x + y, gx + gy, "sum")
        same(x * 3 - y, gx * 3 - gy, "chain")
        same(x > y, gx > gy, "relation")
        same(x.sum(), gx.sum(), "sum of all")
        same(x.amax(), gx.amax(), "largest")
        same(x[1::2].clone(), gx[1::2].clone(), "view")
        same(x.float(), gx.float(), "float")
        gx[5:200_000] = gy[6:200_001]
        x[5:200_000] = y[6:200_001]
        same(x, gx, "write")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(16384,), (40_001,), (3, 17_000), (1, 20_480, 2)], ids=str)
def test_long_lines_are_scanned_in_blocks(dtype: str, shape: tuple[int, ...]) -> None:
    axis = int(np.argmax(shape))
    values = numbers("int16", int(np.prod(shape)), 16).reshape(shape)
    if dtype.startswith("float"):
        values = values % 8 / np.float32(4)
    x = wg.tensor(values).to(getattr(wg, dtype))
    gx = x.to("gpu")
    with wg.gpu.profile() as seen:
        found = gx.cumsum(axis)
    launches = sum(row.calls for row in seen.kernels)
    # The ends of blocks, and then each block; halves are converted first.
    assert 2 <= launches <= 4, seen
    if dtype in INTEGERS:
        same(x.cumsum(axis), found, "sum")
        same(x.cumprod(axis), gx.cumprod(axis), "product")
    else:
        # Sums of small multiples of a power of two are exact.
        exact = np.cumsum(values.astype(np.float64), axis)
        np.testing.assert_array_equal(found.cpu().float().numpy(), exact.astype(dtype).astype(np.float32))
        noise = wg.rand(*shape, device="gpu")
        got = noise.cumsum(axis).cpu().numpy()
        np.testing.assert_array_equal(got, noise.cumsum(axis).cpu().numpy())
        np.testing.assert_allclose(got, np.cumsum(noise.cpu().numpy().astype(np.float64), axis), rtol=1e-5)
    flipped = gx.flip(axis)[..., : shape[-1]]
    if dtype == "int64":
        same(x.flip(axis).cumsum(axis), flipped.cumsum(axis), "of a view")


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int8"])
def test_eight_axes(dtype: str) -> None:
    x, gx = pair(numbers(dtype, 256, 17).reshape((2,) * 8))
    order = (7, 1, 2, 3, 4, 5, 6, 0)
    calls = {
        "contiguous": lambda x: x.permute(*order).contiguous(),
        "take": lambda x: x[wg.tensor(np.array([1, 0, 1])).to(x.device)],
        "gather": lambda x: x.gather(3, (x > 2).long()),
        "flip": lambda x: x.flip(0, 4),
        "pad": lambda x: F.pad(x, (1, 0, 0, 1)),
        "tril": lambda x: x.tril(),
        "add": lambda x: x + x.permute(*order),
        "sum": lambda x: x.sum(3),
        "sort": lambda x: wg.sort(x, 2),
        "cat": lambda x: wg.cat([x, x], 5),
    }
    for name, f in calls.items():
        same(f(x), f(gx), name)
    x[:, 0], gx[:, 0] = 3, 3
    x[0].copy_(x[1].flip(0))
    gx[0].copy_(gx[1].flip(0))
    same(x, gx, "written")


def test_uint64_and_signed_integers_have_no_dtype_in_common() -> None:
    x, y = wg.ones(2, dtype=wg.uint64, device="gpu"), wg.ones(2, dtype=wg.int64, device="gpu")
    with pytest.raises(TypeError, match="uint64 and the other operand meet in float64, which a GPU has not"):
        x + y
    with pytest.raises(TypeError, match="which a GPU has not"):
        x < y  # noqa: B015
    assert (x.to(wg.int64) + y).tolist() == [2, 2]
