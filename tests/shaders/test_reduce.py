"""reduce.wgsl and argreduce.wgsl over arbitrary axes of strided views, in both entries."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shaders.host import BF16, axes, by_fours, close, epw, rng, run, types
from shaders.views import View, dense, few, shapes, view

ENTRIES = ["tree", "lanes", "columns", "serial"]
# The number of the operation, its neutral element, and NumPy's function.
KINDS = {
    "sum": (0, 0.0, np.sum),
    "prod": (1, 1.0, np.prod),
    "max": (2, -np.inf, np.max),
    "min": (3, np.inf, np.min),
}


def split(v, reduced):
    """The axis blocks of the parameter struct, and the kept shape and reduced length."""
    kept = [a for a in range(v.array.ndim) if a not in reduced]
    blocks = []
    for group in (kept, reduced):
        blocks += [axes(v.array.shape[a] for a in group), axes(v.strides[a] for a in group)]
    shape = tuple(v.array.shape[a] for a in kept)
    length = int(np.prod([v.array.shape[a] for a in reduced]))
    return blocks, [len(kept), len(reduced), int(np.prod(shape)), length, v.offset], shape


def reduce(
    v, reduced, entry, kind="sum", out_dtype=np.float32, compute="f32", neutral=None, fours=False, cut=(0, 0)
):
    """Reduce a view; `fours` binds it by vectors, `cut` is the length of a cut axis and outputs per part."""
    blocks, counts, shape = split(v, reduced)
    fold, of_floats, _ = KINDS[kind]
    replace = types(compute, ("out", out_dtype), x=v.flat.dtype)
    replace["const FOLD"] = f"const FOLD: u32 = {fold}u;"
    if fours:
        replace |= by_fours("x", "read 0", v.flat.dtype) | {"const FOURS": "const FOURS: bool = true;"}
    words = -(-counts[2] // epw(out_dtype))
    groups = -(-words // {"tree": 1, "lanes": 32, "columns": 32, "serial": 256}[entry])
    params = [*blocks, *counts, of_floats if neutral is None else neutral, *cut]
    return run("reduce.wgsl", [v.flat], [(shape, out_dtype)], params, groups, replace, entry, limit=3)[0]


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("kind", KINDS)
@few
@given(shape=shapes(1, 4, 8), seed=st.integers(0, 10**6))
def test_any_axes(kind, entry, shape, seed):
    v = view(seed, shape)
    picked = rng(seed).random(len(shape)) < 0.5
    reduced = tuple(int(a) for a in np.flatnonzero(picked))
    want = KINDS[kind][2](v.array.astype(np.float64), axis=reduced)
    close(reduce(v, reduced, entry, kind), want, scale=20, rtol=2e-5)


@pytest.mark.parametrize("entry", ENTRIES)
def test_long_sum_is_accurate_and_repeatable(entry):
    v = dense(rng(1).random((3, 25_000)).astype(np.float32) + 1)
    first, second = (reduce(v, (1,), entry) for _ in range(2))
    np.testing.assert_allclose(first, v.array.astype(np.float64).sum(1), rtol=1e-6)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("dtype", [np.float16, BF16])
def test_half(dtype, entry):
    v = view(2, (5, 33, 3), dtype)
    close(reduce(v, (1,), entry, "sum", dtype), v.array.astype(np.float64).sum(1), dtype, scale=10)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("kind", ["sum", "max"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("length", [3, 100, 5000])
def test_fours_have_the_bits_of_single_elements(entry, kind, dtype, length):
    flat = (rng(5).standard_normal(3 * 5024) / 64 + 1).astype(dtype)
    rows = flat.reshape(3, 5024)[:, 16 : 16 + length]
    v = View(flat, rows, 16)
    single, fours = (reduce(v, (1,), entry, kind, fours=fours) for fours in (False, True))
    np.testing.assert_array_equal(single, fours)
    close(fours, KINDS[kind][2](rows.astype(np.float64), axis=1), rtol=2e-4)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("fours", [False, True])
@pytest.mark.parametrize("length", [9, 24, 1001])
def test_cut_axis(entry, fours, length):
    flat = rng(6).standard_normal((2, 1004)).astype(np.float32)
    each = -(-length // 3 // 4) * 4
    parts = -(-length // each)
    padded = np.lib.stride_tricks.as_strided(flat, (parts, 2, each), (4 * each, 4 * 1004, 4), writeable=False)
    v = View(flat.reshape(-1), padded, 0)
    got = reduce(v, (2,), entry, fours=fours, cut=(length, 2))
    want = [flat[:, k * each : min((k + 1) * each, length)].astype(np.float64).sum(1) for k in range(parts)]
    close(got, np.array(want), scale=20)


@pytest.mark.parametrize("entry", ENTRIES)
def test_integers_and_booleans(entry):
    v = view(3, (7, 40), np.int32)
    got = reduce(v, (1,), entry, "sum", np.int32, "i32", 0)
    np.testing.assert_array_equal(got, v.array.sum(1))
    v = view(4, (9, 4), np.bool_)
    got = reduce(v, (1,), entry, "max", np.bool_, "i32", -(2**31))
    np.testing.assert_array_equal(got, v.array.any(1))


@pytest.mark.parametrize("entry", ENTRIES)
def test_special_values(entry):
    x = np.ones((3, 300), np.float32)
    x[0, 7], x[1, 280], x[2, :] = np.nan, np.inf, -np.inf
    got = reduce(dense(x), (1,), entry, "max")
    assert np.isnan(got[0])
    assert np.isposinf(got[1])


def arg(v, reduced, entry, better=">", compute="f32", cut=(0, 0), pairs="", fours=False):
    """Of a cut axis `cut` is the whole length and the outputs per part; `pairs` are those IN or OUT."""
    blocks, counts, shape = split(v, reduced)
    replace = {"const SMALLEST": f"const SMALLEST: bool = {str(better == '<').lower()};"}
    replace |= {k: s for k, s in types(compute, x=v.flat.dtype).items() if k in ("alias T", "load x")}
    if fours:
        replace |= by_fours("x", "read 0", v.flat.dtype, compute) | {
            "const FOURS": "const FOURS: bool = true;"
        }
    if pairs:
        replace[f"const PAIRS_{pairs}"] = f"const PAIRS_{pairs}: bool = true;"
    groups = -(-counts[2] // {"tree": 1, "serial": 256}.get(entry, 32))
    params = [*blocks, *counts, *cut]
    shape = (*shape, 2) if pairs == "OUT" else shape
    return run("argreduce.wgsl", [v.flat], [(shape, np.int32)], params, groups, replace, entry, limit=3)[0]


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("length", [9, 25, 1001])
def test_cut_arg(entry, length):
    flat = (rng(7).standard_normal((2, 1004)) * 4).round().astype(np.float32)  # ties
    flat[1, length - 2] = np.nan
    each, outputs = -(-length // 3 // 4) * 4, 2
    parts = -(-length // each)
    padded = np.lib.stride_tricks.as_strided(flat, (parts, 2, each), (4 * each, 4 * 1004, 4), writeable=False)
    for better, best in ((">", np.argmax), ("<", np.argmin)):
        cut = (length, outputs)
        whole = View(flat.reshape(-1), padded, 0)
        found = arg(whole, (2,), entry, better, cut=cut, pairs="OUT")
        by_four = arg(whole, (2,), entry, better, cut=cut, pairs="OUT", fours=True)
        np.testing.assert_array_equal(found, by_four)
        of_parts = View(found.reshape(-1).view(np.uint32), np.empty((parts, outputs), np.int32), 0)
        got = arg(of_parts, (0,), entry, better, "u32", pairs="IN")
        np.testing.assert_array_equal(got, best(flat[:, :length], axis=1))


@pytest.mark.parametrize("entry", ENTRIES)
@few
@given(shape=shapes(1, 3, 9), seed=st.integers(0, 10**6))
def test_arg(entry, shape, seed):
    v = view(seed, shape, np.int32)  # small integers: many ties
    v.flat //= 20
    axis = seed % len(shape)
    np.testing.assert_array_equal(arg(v, (axis,), entry, ">", "i32"), v.array.argmax(axis))
    np.testing.assert_array_equal(arg(v, (axis,), entry, "<"), v.array.argmin(axis))
    every = tuple(range(len(shape)))
    np.testing.assert_array_equal(arg(v, every, entry), v.array.argmax())


@pytest.mark.parametrize("entry", ENTRIES)
def test_arg_nan_and_infinity(entry):
    x = rng(6).standard_normal((4, 600)).astype(np.float32)
    x[0, [300, 500]], x[1, 400], x[2, :] = np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(arg(dense(x), (1,), entry), x.argmax(1))
    np.testing.assert_array_equal(arg(dense(x), (1,), entry, "<"), x.argmin(1))
    half = dense(x[3:].astype(np.float16))
    np.testing.assert_array_equal(arg(half, (1,), entry), half.array.argmax(1))


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16, np.int32, np.uint32, np.bool_])
def test_arg_of_special_values(entry, dtype):
    rows = [[0, 0, 0, 0, 0], [1, 0, 1, 1, 0], [0, 1, 0, 1, 1]]
    if dtype is np.int32:
        rows += [[-(2**31), -1, 2**31 - 1, 0, 5], [-5, -(2**31), -7, -5, -6]]
    if dtype is np.uint32:
        rows += [[2**31, 2**31 - 1, 2**32 - 1, 0, 5], [2**31, 2**32 - 1, 7, 2**31, 2**32 - 1]]
    if dtype in (np.float32, np.float16, BF16):
        inf, nan = np.inf, np.nan
        rows += [[-0.0, 0.0, -0.0, 0.0, 0.0], [-1, -0.0, 0.0, -2, -2], [-inf, -inf, -inf, -inf, -inf]]
        rows += [[1, inf, nan, -nan, inf], [-inf, 2, -3, -inf, 4], [inf, inf, inf, -inf, inf]]
    x = np.array(rows).astype(dtype)
    compute = {np.int32: "i32", np.bool_: "i32", np.uint32: "u32"}.get(dtype, "f32")
    wide = x.astype(np.float32 if compute == "f32" else np.int64)
    for better, best in ((">", np.argmax), ("<", np.argmin)):
        np.testing.assert_array_equal(arg(dense(x), (1,), entry, better, compute), best(wide, 1))
        x4 = np.pad(x, ((0, 0), (0, 3)), mode="edge")
        got = arg(View(x4.reshape(-1), x4[:, :5], 0), (1,), entry, better, compute, fours=True)
        np.testing.assert_array_equal(got, best(wide, 1))
