"""Sorting, searching and finding on a GPU: the positions of the CPU, by kernels alone."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from hypothesis import given, strategies as st
from support import array, examples

DEVICE = "gpu"
DTYPES = ["float32", "float16", "bfloat16", "int32", "uint32", "bool"]
few = examples(10)


def hard(seed: int, shape: tuple[int, ...], dtype: str) -> wg.Tensor:
    """Elements with many ties; of floats also both zeros, infinities, subnormals and NaN."""
    g = np.random.default_rng(seed)
    if dtype == "bool":
        return wg.tensor(g.random(shape) < 0.5)
    if "int" in dtype:
        info = np.iinfo(dtype)
        wild = g.integers(info.min, info.max, shape, dtype, endpoint=True)
        return wg.tensor(np.where(g.random(shape) < 0.5, wild, g.integers(0, 4, shape, dtype)))
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan, 1e-40, 6e-8], np.float32)
    numbers = np.where(
        g.random(shape) < 0.5, g.standard_normal(shape), special[g.integers(0, len(special), shape)]
    )
    return wg.tensor(numbers.astype(np.float32)).to(getattr(wg, dtype))


def same(f: Callable[..., Any], *x: wg.Tensor) -> None:
    """The results on both devices have one shape and equal elements; positions are int32 on the GPU."""
    got, want = f(*(a.to(DEVICE) for a in x)), f(*x)
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for a, b in pairs:
        assert a.device.type == "gpu"
        assert a.dtype == (wg.int32 if b.dtype == wg.int64 else b.dtype)
        np.testing.assert_array_equal(array(a.cpu().to(b.dtype)), array(b))


def kernels(work: Callable[[], Any]) -> Counter[str]:
    """How often each kernel runs."""
    work()
    with wg.gpu.profile() as found:
        work()
    calls: Counter[str] = Counter()
    for row in found.kernels:
        calls[row.kernel] += row.calls
    return calls


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@few
@given(shape=st.lists(st.integers(0, 9), min_size=1, max_size=4), seed=st.integers(0, 10**6))
def test_order_along_any_axis(dtype: str, descending: bool, shape: list[int], seed: int) -> None:
    x = hard(seed, tuple(shape), dtype)
    for axis in range(len(shape)):
        same(lambda x, axis=axis: x.argsort(axis, descending), x)
        same(lambda x, axis=axis: x.mT.argsort(axis, descending) if x.ndim > 1 else x, x)
        same(lambda x, axis=axis: x.topk(x.shape[axis] // 2, axis, descending).indices, x)


@pytest.mark.parametrize("length", [1, 2, 255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 4097])
def test_order_of_lines_of_any_length(length: int) -> None:
    x = hard(length, (3, length), "float32")
    same(lambda x: x.sort(-1), x)
    same(lambda x: x.argsort(-1, True), x)
    same(lambda x: x.flip(1)[:, ::2].argsort(-1), x)
    same(lambda x: x.mT.argsort(0), x)
    same(lambda x: x.topk((length + 1) // 2, largest=False), x)
    same(lambda x: x.mT.topk((length + 1) // 2, 0), x)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_order_of_long_lines(dtype: str, descending: bool) -> None:
    same(lambda x: x.argsort(-1, descending), hard(1, (70_000,), dtype))
    same(lambda x: x.argsort(1, descending), hard(2, (2, 3001, 3), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("largest", [False, True])
def test_little_of_long_lines(dtype: str, largest: bool) -> None:
    same(lambda x: x.topk(17, -1, largest).indices, hard(3, (2, 300_001), dtype))
    same(lambda x: x.topk(512, 1, largest).indices, hard(4, (2, 4100, 3), dtype))
    same(lambda x: x.cummax(1).indices if largest else x.cummin(1).indices, hard(5, (3, 70_001), dtype))


def test_counts_that_are_added_up_in_blocks() -> None:
    x = wg.tensor(np.random.default_rng(0).integers(0, 2**31, 600_000, "int32"))
    same(lambda x: x.argsort(), x)
    same(lambda x: (x > 2**30).nonzero(), x)


def test_no_order_of_nothing() -> None:
    same(lambda x: x.argsort(1), wg.ones(2, 0))
    same(lambda x: x.topk(0).indices, wg.ones(2, 5000))
    same(lambda x: x.nonzero(), wg.ones(0, 3))
    same(lambda x: x.nonzero(), wg.tensor(2.0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_sorting_makes_possible(dtype: str) -> None:
    x = hard(3, (5, 301), dtype)
    same(lambda x: x.kthvalue(7), x)
    same(lambda x: x.mT.median(0), x)
    if dtype in ("float32", "int32"):
        same(lambda x: x.unique(return_inverse=True, return_counts=True), x)
        same(lambda x: x.mode(), x)


@pytest.mark.parametrize("length", [3000, 2000])
def test_many_of_long_lines(length: int) -> None:
    """More than tiles keep: all of a line is sorted there."""
    g = np.random.default_rng(1)
    # Distinct medians, and ties elsewhere.
    x = wg.tensor(
        np.where(g.random((3, length)) < 0.5, g.permuted(np.tile(np.arange(length), (3, 1)), axis=1), 7)
    )
    x = x.to(wg.float32)
    count = length - 700
    for largest in (False, True):
        same(lambda x, largest=largest: x.topk(count, -1, largest), x)
        same(lambda x, largest=largest: x.mT.topk(count, 0, largest), x)
    same(lambda x: x.kthvalue(count), x)
    same(lambda x: x.median(1), x)
    same(lambda x: x.nanmedian(1), x)
    same(lambda x: x.quantile(0.75, 1), x)
    assert kernels(lambda: x.gpu().topk(count))["sort"] == 1
    grads = []
    for device in ("cpu", DEVICE):
        own = x.detach().to(device).requires_grad_()
        weight = wg.arange(count, dtype=wg.float32, device=device)
        ((own.topk(count).values * weight).sum() + (own.kthvalue(count, 1).values * 3).sum()).backward()
        grads.append(array(own.grad.cpu()))
    np.testing.assert_array_equal(*grads)


def test_quantiles() -> None:
    x = wg.tensor(np.random.default_rng(0).normal(size=(4, 3000)).astype(np.float32))
    got = x.to(DEVICE).quantile(wg.tensor([0.1, 0.5], device=DEVICE), 1)
    np.testing.assert_allclose(array(got.cpu()), array(x.quantile(wg.tensor([0.1, 0.5]), 1)), rtol=1e-6)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_searching(dtype: str, right: bool) -> None:
    for length in (0, 1, 2, 300):
        x, values = hard(4, (3, length), dtype).sort(-1).values, hard(5, (3, 41), dtype)
        same(lambda x, v: wg.searchsorted(x, v, right=right), x, values)
        same(lambda x, v: wg.searchsorted(x[1], v[:, ::2], right=right), x, values)
    same(lambda x, v: wg.searchsorted(x, v[:, :0]), x, values)


@pytest.mark.parametrize("dtype", DTYPES)
def test_running_extremes(dtype: str) -> None:
    for shape in ((3, 5, 7), (2, 1500), (70, 3)):
        x = hard(6, shape, dtype)
        for axis in range(len(shape)):
            same(lambda x, axis=axis: x.cummax(axis), x)
            same(lambda x, axis=axis: x.cummin(axis), x)
    same(lambda x: x[:, ::-1].cummax(1), hard(7, (2, 1500), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@few
@given(shape=st.lists(st.integers(0, 9), max_size=4), seed=st.integers(0, 10**6))
def test_what_is_not_zero(dtype: str, shape: list[int], seed: int) -> None:
    x = hard(seed, tuple(shape), dtype)
    same(lambda x: x.nonzero(), x)
    same(lambda x: x[x > 0] if x.dtype != wg.bool else x[x], x)
    if len(shape) > 1:
        same(lambda x: x.mT.nonzero(), x)


def test_masks_write() -> None:
    x = wg.arange(6000, dtype=wg.float32).reshape(2, 3000)

    def put(x: wg.Tensor) -> wg.Tensor:
        x = x.clone()
        x[x % 3 == 0] = -1.0
        return x

    same(put, x)


def test_gradients_follow_the_order() -> None:
    x = hard(8, (4, 2500), "int32").to(wg.float32)
    grads = []
    for device in ("cpu", DEVICE):
        own = x.detach().to(device).requires_grad_()
        (own.sort(-1).values * wg.arange(2500, device=device)).sum().backward()
        grads.append(array(own.grad.cpu()))
    np.testing.assert_array_equal(*grads)


def test_kernels_do_it() -> None:
    x = wg.rand(3, 2048, device=DEVICE)
    assert kernels(lambda: x.argsort()) == {"sort": 1}
    assert kernels(lambda: x.topk(5).indices) == {"sort": 1, "gather": 1}
    long = wg.rand(5000, device=DEVICE)
    passes = {"radix_count": 8, "scan_sum": 8, "radix_move": 8}
    assert kernels(lambda: long.argsort()) == {"sort": 1, **passes}
    assert kernels(lambda: long.to(wg.float16).argsort())["radix_move"] == 4
    assert kernels(lambda: (long > 0.5).argsort())["radix_move"] == 1
    assert kernels(lambda: long.topk(5).indices) == {"sort": 2, "gather": 1}
    assert kernels(lambda: long.topk(1024).indices) == {"sort": 3, "gather": 1}
    assert kernels(lambda: long.topk(1025).indices)["radix_move"] == 8
    assert kernels(lambda: long.long().argsort())["radix_move"] == 16
    assert kernels(lambda: x.cummax(1).indices)["argscan"] == 1
    assert kernels(lambda: wg.rand(8192, device=DEVICE).cummax(0).indices)["argscan"] == 2
    mask = x > 0.5
    assert kernels(lambda: mask.nonzero()) == {"radix_count": 1, "scan_sum": 1, "nonzero": 1}


def test_repeats() -> None:
    g = np.random.default_rng(0)
    x, counts = wg.tensor(g.normal(size=(300, 3)).astype(np.float32)), g.integers(0, 4, 300, "int32")
    same(lambda x, n: x.repeat_interleave(n, 0), x, wg.tensor(counts))
    same(lambda n: wg.repeat_interleave(n), wg.tensor(counts))
    same(lambda x, n: x.repeat_interleave(n, 0), x, wg.tensor([2], dtype=wg.int32))
    same(lambda x, n: x.repeat_interleave(n, 0), x, wg.tensor(counts * 0))
    with pytest.raises(ValueError, match="repeats must not be negative"):
        x.to(DEVICE).repeat_interleave(wg.tensor(counts - 1, device=DEVICE), 0)
    many = wg.tensor([2**30, 2**30], dtype=wg.int32, device=DEVICE)
    with pytest.raises(ValueError, match="elements are too many; an axis holds at most 2"):
        many.repeat_interleave(many)


@pytest.mark.parametrize("dtype", DTYPES[:-1])
def test_counting_there(dtype: str) -> None:
    of = {"dtype": getattr(wg, dtype)}
    for start, stop, step in (
        (0, 700, 1),
        (5, -300, -3),
        (-9, 9, 2),
        (0.5, 20, 1.5),
        (2**24 - 3, 2**24 + 5, 2),
    ):
        if dtype == "uint32" and (start, step) != (0, 1):
            continue
        want = wg.arange(start, stop, step, **of)
        np.testing.assert_array_equal(
            array(wg.arange(start, stop, step, device=DEVICE, **of).cpu().float()), array(want.float())
        )
    assert kernels(lambda: wg.arange(700, device=DEVICE))["iota"] == 1


@pytest.mark.parametrize("length", [600, 2049, 40_000])
def test_gradients_of_large_tables(length: int) -> None:
    """Sorted indices give the bits of the kernel that looks at all of them."""
    g = np.random.default_rng(0)
    index = g.integers(-30_000, 30_000, length, "int32")
    index[::5] = 7
    rows = np.zeros((30_000, 3), np.float32)
    upstream = g.integers(-50, 50, (length, 3)).astype(np.float32)
    np.add.at(rows, index, upstream)

    def gradient() -> wg.Tensor:
        x = wg.zeros(30_000, 3, device=DEVICE, requires_grad=True)
        return wg.autograd.grad((x[wg.tensor(index, device=DEVICE)] * there).sum(), x)[0]

    there = wg.tensor(upstream, device=DEVICE)
    assert np.array_equal(array(gradient().cpu()), rows)
    assert kernels(gradient)["scatter_sorted"] == 1 + length // 32768


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_adding_along_a_long_axis(axis: int, dtype: str) -> None:
    """Sorted segments, linear in the number of elements: whole numbers, of which sums are exact."""
    g = np.random.default_rng(axis)
    own, given = [6, 5, 7], [4, 5, 6]
    own[axis], given[axis] = 3000, 4100
    index = g.integers(-3000, 3000, given, "int32")
    index.flat[::7] = 11
    source = g.integers(0, 3, given).astype(dtype)
    want = np.zeros(own, "float64")
    at = list(np.ix_(*map(np.arange, given)))
    at[axis] = index % 3000
    np.add.at(want, tuple(at), source)
    x, i, s = (wg.tensor(v, device=DEVICE) for v in (np.zeros(own, dtype), index, source))
    with wg.gpu.profile() as found:
        got = x.scatter_add(axis, i, s)
    assert sum(launch.kernel == "scatter_sorted" for launch in found.launches) == 1
    np.testing.assert_array_equal(got.cpu().numpy(), want.astype(dtype))
    index.flat[5] = -3001
    with pytest.raises(IndexError, match="-3001 is out of range for an axis of size 3000"):
        x.scatter_add(axis, wg.tensor(index, device=DEVICE), s).cpu()


def test_an_index_outside_of_a_large_table() -> None:
    x = wg.zeros(30_000, 1, device=DEVICE, requires_grad=True)
    index = wg.zeros(1000, dtype=wg.int32, device=DEVICE)
    index[3] = 30_001
    with pytest.raises(IndexError, match="30001 is out of range for an axis of size 30000"):
        wg.autograd.grad(x[index].sum(), x)[0].cpu()


@pytest.mark.parametrize("dtype", DTYPES[:-1])
@few
@given(shape=st.lists(st.integers(1, 6), min_size=1, max_size=3), seed=st.integers(0, 10**6))
def test_what_scattering_leaves(dtype: str, shape: list[int], seed: int) -> None:
    g = np.random.default_rng(seed)
    axis = seed % len(shape)
    own = [n + int(g.integers(0, 3)) for n in shape]
    x, source = hard(seed, tuple(own), dtype), hard(seed + 1, tuple(shape), dtype)
    index = wg.tensor(g.integers(0, own[axis], shape, "int32"))
    same(lambda x, i, s: x.scatter(axis, i, s), x, index, source)
    for reduce in ("amax", "amin"):
        same(lambda x, i, s, r=reduce: x.scatter_reduce(axis, i, s, r), x, index, source)
        same(lambda x, i, s, r=reduce: x.scatter_reduce(axis, i, s, r, include_self=False), x, index, source)


def test_scattering_stays_there() -> None:
    x, index = wg.zeros(9, device=DEVICE), wg.tensor([1, 8, 1], dtype=wg.int32, device=DEVICE)
    assert kernels(lambda: x.scatter(0, index, x[:3]))["scatter_best"] == 1
    assert kernels(lambda: x.scatter_reduce(0, index, x[:3], "amax"))["scatter_best"] == 2
    with pytest.raises(IndexError, match="scatter: index 9 is out of range for an axis of size 9"):
        x.scatter(0, index + 1, x[:3]).cpu()


def test_indices_of_several_axes_stay_there() -> None:
    """The ends of their range are read, and, of a mask, their number."""
    x = wg.arange(12, dtype=wg.float32, device=DEVICE).reshape(3, 4)
    calls = kernels(lambda: x[x > 5])
    assert (calls["nonzero"], calls["reduce_min"] > 0, calls["reduce_max"] > 0) == (1, True, True)
    index = wg.tensor([0, 3], dtype=wg.int32, device=DEVICE)
    with pytest.raises(IndexError, match="index 3 is out of range for axis 0 of length 3"):
        x[index, index]


@pytest.mark.parametrize("reduce", ["amax", "amin"])
@pytest.mark.parametrize("with_own", [True, False])
def test_scatter_reduce_of_truth_values(reduce: str, with_own: bool) -> None:
    x, source, index = hard(0, (7,), "bool"), hard(1, (9,), "bool"), hard(2, (9,), "int32").abs() % 7
    here = x.scatter_reduce(0, index.long(), source, reduce, include_self=with_own)
    there = x.to(DEVICE).scatter_reduce(0, index.to(DEVICE), source.to(DEVICE), reduce, include_self=with_own)
    assert there.tolist() == here.tolist()
