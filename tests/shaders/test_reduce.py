"""reduce.wgsl and argreduce.wgsl over arbitrary axes of strided views, in both entries."""

import numpy as np
import pytest
from host import BF16, IS_NAN, axes, close, epw, rng, run, types
from hypothesis import given
from hypothesis import strategies as st
from views import dense, shapes, view

ENTRIES = ["tree", "lanes", "columns", "serial"]
A_NAN, B_NAN = IS_NAN.format("a"), IS_NAN.format("b")
F32_MAX = f"fn combine(a: T, b: T) -> T {{ return select(select(max(a, b), b, {B_NAN}), a, {A_NAN}); }}"
KINDS = {
    "sum": ({}, np.sum),
    "prod": (
        {"const INIT": "const INIT: T = 1.0;", "fn combine": "fn combine(a: T, b: T) -> T { return a * b; }"},
        np.prod,
    ),
    "max": ({"const INIT": "const INIT: T = -3.4028234e38;", "fn combine": F32_MAX}, np.max),
    "min": (
        {
            "const INIT": "const INIT: T = 3.4028234e38;",
            "fn combine": F32_MAX.replace("max(a, b)", "min(a, b)"),
        },
        np.min,
    ),
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


def reduce(v, reduced, entry, replace, out_dtype=np.float32, compute="f32"):
    blocks, counts, shape = split(v, reduced)
    replace = types(compute, ("out", out_dtype), x=v.flat.dtype) | replace
    words = -(-counts[2] // epw(out_dtype))
    groups = -(-words // {"tree": 1, "lanes": 32, "columns": 32, "serial": 256}[entry])
    params = [*blocks, *counts, 0.0]
    return run("reduce.wgsl", [v.flat], [(shape, out_dtype)], params, groups, replace, entry, limit=3)[0]


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("kind", KINDS)
@given(shape=shapes(1, 4, 8), seed=st.integers(0, 10**6))
def test_any_axes(kind, entry, shape, seed):
    v = view(seed, shape)
    picked = rng(seed).random(len(shape)) < 0.5
    reduced = tuple(int(a) for a in np.flatnonzero(picked))
    replace, numpy = KINDS[kind]
    want = numpy(v.array.astype(np.float64), axis=reduced)
    close(reduce(v, reduced, entry, replace), want, scale=20, rtol=2e-5)


@pytest.mark.parametrize("entry", ENTRIES)
def test_long_sum_is_accurate_and_repeatable(entry):
    v = dense(rng(1).random((3, 25_000)).astype(np.float32) + 1)
    first, second = (reduce(v, (1,), entry, {}) for _ in range(2))
    np.testing.assert_allclose(first, v.array.astype(np.float64).sum(1), rtol=1e-6)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("dtype", [np.float16, BF16])
def test_half(dtype, entry):
    v = view(2, (5, 33, 3), dtype)
    close(reduce(v, (1,), entry, {}, dtype), v.array.astype(np.float64).sum(1), dtype, scale=10)


@pytest.mark.parametrize("entry", ENTRIES)
def test_integers_and_booleans(entry):
    v = view(3, (7, 40), np.int32)
    got = reduce(v, (1,), entry, {"const INIT": "const INIT: T = 0;"}, np.int32, "i32")
    np.testing.assert_array_equal(got, v.array.sum(1))
    v = view(4, (9, 4), np.bool_)
    either = {
        "const INIT": "const INIT: T = 0;",
        "fn combine": "fn combine(a: T, b: T) -> T { return max(a, b); }",
    }
    np.testing.assert_array_equal(reduce(v, (1,), entry, either, np.bool_, "i32"), v.array.any(1))


@pytest.mark.parametrize("entry", ENTRIES)
def test_special_values(entry):
    x = np.ones((3, 300), np.float32)
    x[0, 7], x[1, 280], x[2, :] = np.nan, np.inf, -np.inf
    got = reduce(dense(x), (1,), entry, KINDS["max"][0] | {"const INIT": "const INIT: T = -3.4028234e38;"})
    assert np.isnan(got[0])
    assert np.isposinf(got[1])


def arg(v, reduced, entry, better=">", compute="f32", replace=None):
    blocks, counts, shape = split(v, reduced)
    replace = dict(replace or {}) | {"fn better": f"fn better(a: T, b: T) -> bool {{ return a {better} b; }}"}
    replace |= {k: s for k, s in types(compute, x=v.flat.dtype).items() if k in ("alias T", "load x")}
    groups = counts[2] if entry == "tree" else -(-counts[2] // 256)
    params = [*blocks, *counts]
    return run("argreduce.wgsl", [v.flat], [(shape, np.int32)], params, groups, replace, entry, limit=3)[0]


@pytest.mark.parametrize("entry", ["tree", "serial"])
@given(shape=shapes(1, 3, 9), seed=st.integers(0, 10**6))
def test_arg(entry, shape, seed):
    v = view(seed, shape, np.int32)  # small integers: many ties
    v.flat //= 20
    axis = seed % len(shape)
    plain = {"fn is_nan": "fn is_nan(v: T) -> bool { return false; }"}
    np.testing.assert_array_equal(arg(v, (axis,), entry, ">", "i32", plain), v.array.argmax(axis))
    np.testing.assert_array_equal(arg(v, (axis,), entry, "<"), v.array.argmin(axis))
    every = tuple(range(len(shape)))
    np.testing.assert_array_equal(arg(v, every, entry), v.array.argmax())


@pytest.mark.parametrize("entry", ["tree", "serial"])
def test_arg_nan_and_infinity(entry):
    x = rng(6).standard_normal((4, 600)).astype(np.float32)
    x[0, [300, 500]], x[1, 400], x[2, :] = np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(arg(dense(x), (1,), entry), x.argmax(1))
    np.testing.assert_array_equal(arg(dense(x), (1,), entry, "<"), x.argmin(1))
    half = dense(x[3:].astype(np.float16))
    np.testing.assert_array_equal(arg(half, (1,), entry), half.array.argmax(1))
