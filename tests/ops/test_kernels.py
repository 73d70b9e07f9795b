"""The kernels at size: blocks and remainders, the same bits for any number of threads, every instruction
set."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wengert as wg
from samples.op_samples import SAMPLES
from scipy import special
from support import (
    TOLERANCE,
    Array,
    array,
    assert_near,
    rounded,
    tensor,
)

# ---- large operands: vector lanes with remainders, blocks, cut reductions
# --------------------------------------------

SIZES = [(1,), (7,), (1031,), (70_001,), (3, 20_011), (20_011, 3), (257, 131), (5, 67, 129), (2, 3, 5, 7, 11)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", SIZES, ids=str)
def test_large_reductions_and_scans(shape: tuple[int, ...], dtype: str) -> None:
    values = rounded([np.random.default_rng(0).normal(size=shape)], dtype)[0]
    axes = [None, *range(len(shape)), *([(0, len(shape) - 1)] if len(shape) > 2 else [])]
    for source, x in (
        (values, tensor(values, dtype)),
        (values.T, tensor(values, dtype).permute(*reversed(range(values.ndim)))),
    ):
        for axis in axes:
            size = source.size if axis is None else np.prod([source.shape[i] for i in np.atleast_1d(axis)])
            loose = TOLERANCE[dtype] * (1 if dtype == "float16" else max(4, size**0.5))
            assert_near(x.sum(axis), source.sum(axis), loose, f"sum {axis}")
            assert_near(x.mean(axis), source.mean(axis), loose, f"mean {axis}")
            assert np.array_equal(array(x.amax(axis)), source.max(axis).astype(array(x).dtype)), axis
            assert np.array_equal(array(x.amin(axis)), source.min(axis).astype(array(x).dtype)), axis
            if axis is None or isinstance(axis, int):
                assert np.array_equal(array(x.argmax(axis)), source.argmax(axis))
                assert np.array_equal(array(x.argmin(axis)), source.argmin(axis))
            if isinstance(axis, int):
                assert_near(x.cumsum(axis), source.cumsum(axis), loose, f"cumsum {axis}")
                assert_near(
                    x.softmax(axis), special.softmax(source, axis), TOLERANCE[dtype] * 8, f"softmax {axis}"
                )


PRODUCTS = [
    ((193, 257), (257, 129)),
    ((1, 5000), (5000, 1)),
    ((5000, 1), (1, 7)),
    ((3, 9000), (9000, 5)),
    ((1000, 3), (3, 1000)),
    ((2, 70, 33), (33, 65)),
    ((4, 1, 31, 17), (3, 17, 40)),
    ((300,), (300, 77)),
    ((77, 300), (300,)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("left", "right"), PRODUCTS, ids=str)
def test_large_products(left: tuple[int, ...], right: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rounded([rng.normal(size=left), rng.normal(size=right)], dtype)
    x, y = tensor(a, dtype), tensor(b, dtype)
    loose = TOLERANCE[dtype] * (1 if dtype == "bfloat16" else 64)
    assert_near(x @ y, a @ b, loose)
    if a.ndim >= 2 and b.ndim >= 2:
        # Operands of other strides: transposed, reversed, every second row.
        assert_near(y.mT @ x.mT, (b.swapaxes(-1, -2) @ a.swapaxes(-1, -2)), loose)
        assert_near(x.flip(-2) @ y, np.flip(a, -2) @ b, loose)
        assert_near(x[..., ::2, :] @ y[..., ::-1], a[..., ::2, :] @ b[..., ::-1], loose)


def test_products_of_integers_are_exact() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-1000, 1000, (37, 101)), rng.integers(-1000, 1000, (101, 29))
    for dtype in ("int64", "int32"):
        assert np.array_equal(array(wg.tensor(a.astype(dtype)) @ wg.tensor(b.astype(dtype))), a @ b)


def test_many_operands_are_joined() -> None:
    parts = [np.full((2, 1 + k % 3), float(k)) for k in range(100)]
    leaves = [wg.tensor(p, requires_grad=True) for p in parts]
    joined = wg.cat(leaves, 1)
    assert np.array_equal(array(joined), np.concatenate(parts, 1))
    weights = np.arange(joined.numel(), dtype=float).reshape(joined.shape)
    grads = wg.autograd.grad((joined * wg.tensor(weights)).sum(), leaves)
    assert np.array_equal(np.concatenate([array(g) for g in grads], 1), weights)


# ---- layouts -------------------------------------------------------------------------------------

ORDERS = [(1, 0), (2, 0, 1), (0, 2, 1), (3, 1, 0, 2)]


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("n", [3, 60])
def test_results_lie_as_their_operands_do(order: tuple[int, ...], n: int) -> None:
    """Values and strides are those of NumPy, which keeps the order of axes in memory too."""
    shape = (n, 5, 3, 4)[: len(order)]
    a = np.random.default_rng(0).normal(size=shape)
    row = np.arange(float(shape[order[-1]]))
    x, y = wg.tensor(a).permute(*order), a.transpose(order)
    for ours, theirs in (
        (x + x, y + y),
        (x.exp(), np.exp(y)),
        (x * 2 + 1, y * 2 + 1),
        (x * wg.tensor(row), y * row),
        (x < 0, y < 0),
        (wg.where(x < 0, x, 2 * x), np.where(y < 0, y, 2 * y)),
        (x.to(wg.float32), y.astype("float32")),
    ):
        assert_near(ours, theirs, 1e-12)
        assert wg.ones_like(ours).is_contiguous()
    assert (x + x).numpy().strides == (y + y).strides
    assert (x * wg.tensor(row)).numpy().strides == (y * row).strides
    # Operands that lie differently give what row-major order says.
    assert_near(x + x.contiguous(), 2 * y, 1e-12)
    assert (x + x.contiguous()).is_contiguous()


OVERLAPS: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = [
    ("add", lambda x: x, lambda x: x),
    ("add", lambda x: x, lambda x: x[::-1]),
    ("multiply", lambda x: x.T, lambda x: x.T),
    ("subtract", lambda x: x[1:], lambda x: x[:-1]),
    ("multiply", lambda x: x[:, 1:], lambda x: x[:, :-1]),
    ("add", lambda x: x.T[1:], lambda x: x.T[:-1]),
    ("add", lambda x: x.T, lambda x: x.T[0]),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "uint8"])
@pytest.mark.parametrize("n", [3, 1031, 9000])
@pytest.mark.parametrize("case", range(len(OVERLAPS)))
def test_writing_over_operands(dtype: str, n: int, case: int) -> None:
    """In place, where the operand is the memory written to, or a part of it, or across it."""
    name, target, operand = OVERLAPS[case]
    values = (np.arange(4 * n).reshape(4, n) % 50).astype("uint8" if dtype == "uint8" else "float64")
    x = wg.tensor(values).to(getattr(wg, dtype))
    getattr(target(x), name + "_")(operand(x))
    expected = values.copy()
    target(expected)[...] = getattr(np, name)(target(values), operand(values))
    assert np.array_equal(array(x), array(wg.tensor(expected).to(x.dtype)))


# ---- the same bits for any number of threads; nearly the same for any processor ------------------

LARGE = {
    "add": lambda a, b, m, i: a + b,
    "tanh": lambda a, b, m, i: a.tanh() * b.exp(),
    "broadcast": lambda a, b, m, i: a * b[0] + b[:, :1],
    "transposed": lambda a, b, m, i: (a.mT + b.mT).exp(),
    "sum": lambda a, b, m, i: a.sum(),
    "sum_rows": lambda a, b, m, i: a.sum(1),
    "sum_columns": lambda a, b, m, i: a.sum(0),
    "var": lambda a, b, m, i: a.var(0) + b.std(1).sum(),
    "prod": lambda a, b, m, i: (1 + 1e-4 * a).prod(0),
    "amax": lambda a, b, m, i: a.amax(0) + b.amin(1).sum(),
    "cumsum": lambda a, b, m, i: a.cumsum(0) + b.cumsum(1),
    "softmax": lambda a, b, m, i: a.softmax(-1) * b,
    "log_softmax": lambda a, b, m, i: a.log_softmax(0) * b,
    "layer_norm": lambda a, b, m, i: wg.nn.functional.layer_norm(a, (a.shape[1],), b[0], b[1]),
    "rms_norm": lambda a, b, m, i: wg.nn.functional.rms_norm(a, (a.shape[1],), b[0]),
    "matmul": lambda a, b, m, i: a @ b.mT,
    "matmul_batched": lambda a, b, m, i: a.reshape(6, -1, 768) @ b.reshape(6, -1, 768).mT,
    "where": lambda a, b, m, i: wg.where(m, a, b),
    "gather": lambda a, b, m, i: a.gather(0, i) * b,
    "scatter_add": lambda a, b, m, i: a.scatter_add(0, i, b),
    "take": lambda a, b, m, i: a.index_select(0, i[:, 0]) * b,
    "cat": lambda a, b, m, i: wg.cat([a, b.flip(0)], 1),
    "cross_entropy": lambda a, b, m, i: wg.nn.functional.cross_entropy(a * b, i[:, 0]),
}


@pytest.fixture
def threads() -> object:
    before = wg.get_num_threads()
    yield wg.set_num_threads
    wg.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", list(LARGE))
def test_threads_do_not_change_a_bit(name: str, dtype: str, threads: object) -> None:
    rng = np.random.default_rng(7)
    shape = (600, 768)
    a, b = (rng.normal(size=shape) for _ in range(2))
    mask, index = rng.random(shape) < 0.5, rng.integers(0, 600, shape)
    weight = None
    seen = []
    for count in (1, 2, 5):
        threads(count)
        x, y = (tensor(v, dtype).requires_grad_() for v in (a, b))
        out = LARGE[name](x, y, wg.tensor(mask), wg.tensor(index))
        weight = rng.normal(size=out.shape) if weight is None else weight
        grads = wg.autograd.grad((out * tensor(weight, dtype)).sum(), [x, y], allow_unused=True)
        seen.append([array(t).tobytes() for t in (out, *grads) if t is not None])
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_threads_do_not_change_random_numbers(dtype: str, threads: object) -> None:
    seen = []
    for count in (1, 2, 5):
        threads(count)
        wg.manual_seed(11)
        drawn_values = [
            wg.rand(300_001, dtype=getattr(wg, dtype)),
            wg.randn(300_001, dtype=getattr(wg, dtype)),
        ]
        seen.append([array(t).tobytes() for t in drawn_values])
    assert seen[0] == seen[1] == seen[2]


REPLAY = """
import sys
import numpy as np
from samples.op_samples import SAMPLES
from support import array, outputs, random_source, tensor

found = {}
for sample in SAMPLES:
    for seed in range(3):
        source, rng = random_source(seed, most=40)
        case = sample.case(source)
        tensors = [tensor(v, "float32") for v in case.sample(rng)]
        for k, y in enumerate(outputs(sample.fn(*tensors, **case.kwargs))):
            found[f"{sample.name}/{seed}/{k}"] = array(y)
np.savez(sys.argv[1], **found)
"""


def replay(isa: str, folder: Path) -> dict[str, Array]:
    """The float32 values of every operation, computed with this instruction set in a process of its own."""
    path = folder / f"{isa}.npz"
    places = [str(Path(__file__).parents[1]), *sys.path]
    environment = {**os.environ, "WENGERT_ISA": isa, "PYTHONPATH": os.pathsep.join(p for p in places if p)}
    subprocess.run([sys.executable, "-c", REPLAY, str(path)], env=environment, check=True, timeout=300)
    with np.load(path) as stored:
        return dict(stored)


def test_instruction_sets_agree() -> None:
    with tempfile.TemporaryDirectory() as folder:
        baseline, avx2, avx512 = (replay(isa, Path(folder)) for isa in ("baseline", "avx2", "avx512"))
    scales = {sample.name: sample.scale for sample in SAMPLES}
    assert len(baseline) >= 3 * len(SAMPLES)
    for key, expected in baseline.items():
        for other in (avx2, avx512):
            assert_near(other[key], expected, TOLERANCE["float32"] * scales[key.split("/")[0]], key)
