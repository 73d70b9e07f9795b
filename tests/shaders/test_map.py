"""map1..map4.wgsl and copy_into.wgsl: generated bodies, broadcasting, strided views, copies and casts."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shaders.host import BF16, axes, close, epw, rng, run, source, types
from shaders.views import dense, few, random_values, shapes, view

NAMES = "xyzw"
DTYPES = [np.float32, np.float16, BF16, np.int32, np.bool_]


def elementwise(views, body, out_dtype=np.float32, compute="f32", scalars=(), contiguous=False, limit=65535):
    """Run map1..map4 on views of one (already broadcast) shape."""
    shape = views[0].array.shape
    count = int(np.prod(shape))
    names = NAMES[: len(views)]
    replace = types(
        compute, ("out", out_dtype), **{n: v.flat.dtype for n, v in zip(names, views, strict=True)}
    )
    replace["fn op"] = f"fn op({', '.join(n + ': T' for n in names)}) -> T {{ return {body}; }}"
    replace["const CONTIGUOUS"] = f"const CONTIGUOUS: bool = {str(contiguous).lower()};"
    scalars = [float(s) for s in scalars] + [0.0] * (4 - len(scalars))
    params = [
        axes(shape),
        *[axes(v.strides) for v in views],
        len(shape),
        count,
        *[v.offset for v in views],
        *scalars,
    ]
    groups = -(-count // (1024 * epw(out_dtype)))
    outs = [(shape, out_dtype)]
    return run(f"map{len(views)}.wgsl", [v.flat for v in views], outs, params, groups, replace, limit=limit)[
        0
    ]


@few
@given(shapes(0, 5, 6), st.integers(0, 10**6))
def test_strided(shape, seed):
    x, y, z, w = (view(seed + i, shape) for i in range(4))
    a, b, c, d = (v.array.astype(np.float64) for v in (x, y, z, w))
    np.testing.assert_array_equal(elementwise([x], "x"), x.array)
    close(elementwise([x, y], "x * y"), a * b)
    close(elementwise([x, y, z], "x * y + z"), a * b + c, scale=4)
    close(elementwise([x, y, z, w], "x * y + z * w"), a * b + c * d, scale=4)


@pytest.mark.parametrize("count", [1, 2, 255, 1023, 5001])
def test_contiguous_and_folded_grid(count):
    x = dense(rng(count).standard_normal(count).astype(np.float32))
    got = elementwise([x, x], "x + y * p.s0", scalars=[3.0], contiguous=True, limit=2)
    close(got, x.array * 4.0, scale=4)


def test_broadcast():
    x, y = view(1, (5, 1, 7)), view(2, (3, 1))
    for v in (x, y):
        v.array = np.broadcast_to(v.array, (5, 3, 7))
    close(elementwise([x, y], "x - y"), x.array.astype(np.float64) - y.array)


def test_eight_axes():
    x = view(3, (2, 1, 3, 2, 1, 2, 3, 2))
    np.testing.assert_array_equal(elementwise([x], "x"), x.array)


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_cast(source, target):
    compute = (
        "i32"
        if np.dtype(source) == np.int32 and np.dtype(target) in (np.dtype(np.int32), np.dtype(bool))
        else "f32"
    )
    x = view(4, (5, 7), source)
    want = (
        x.array.astype(np.float32).astype(target) if np.dtype(source) != np.int32 else x.array.astype(target)
    )
    got = elementwise([x], "x", target, compute)
    np.testing.assert_array_equal(got, want)


def element(verb, binding, name, target):
    """The line of `lib/elements.wgsl` for a dtype, under the name of a binding."""
    text = source("lib/elements.wgsl")
    line = text.split(f"//@ {verb} {name}\n")[1].split("\n")[0]
    return line.replace(f"{verb}_{name}(", f"{verb}_{target}(").replace(f"{binding}[", f"{target}[")


@pytest.mark.parametrize("origin", ["f32", "f16", "bf16", "i32", "u32", "bool"])
@pytest.mark.parametrize("target", ["f32", "f16", "bf16", "i32", "u32", "bool", "truth"])
def test_elements_of_the_library(origin, target):
    dtypes = dict(f32=np.float32, f16=np.float16, bf16=BF16, i32=np.int32, bool=np.bool_)
    dtypes |= dict(u32=np.uint32, truth=np.bool_)
    whole = origin in ("i32", "u32", "bool") and target in ("i32", "u32", "bool")
    if (target == "truth") == whole:
        return  # `truth` is for floats
    x = np.array([0, 1, 2, 3, 40, 250, 0], np.float32).astype(dtypes[origin])
    replace = {
        "alias T": f"alias T = {'i32' if whole else 'f32'};",
        "const EPW": f"const EPW: u32 = {epw(dtypes[target])}u;",
        "load x": element("load", "x", origin, "x"),
        "store out": element("store", "out", target, "out")
        + "\n"
        + source("lib/to_f16.wgsl")
        + source("lib/to_bf16.wgsl"),
    }
    params = [axes([7]), axes([1]), 1, 7, 0, 0.0, 0.0]
    (got,) = run("map1.wgsl", [x], [(x.shape, dtypes[target])], params, 1, replace)
    np.testing.assert_array_equal(got, x.astype(dtypes[target]))


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@few
@given(shape=shapes(1, 3, 7))
def test_half(dtype, shape):
    x, y = view(5, shape, dtype), view(6, shape, dtype)
    want = x.array.astype(np.float64) + y.array.astype(np.float64)
    close(elementwise([x, y], "x + y", dtype), want, dtype)


def test_compare_and_select():
    x, y = view(7, (9, 5)), view(8, (9, 5))
    mask = elementwise([x, y], "select(T(0), T(1), x < y)", np.bool_)
    np.testing.assert_array_equal(mask, x.array < y.array)
    picked = elementwise([dense(mask), x, y], "select(z, y, x != T(0))")
    np.testing.assert_array_equal(picked, np.minimum(x.array, y.array))


def test_large_integers_are_exact():
    x = dense(random_values(1, (100,), np.int32) * 40_000_001)
    np.testing.assert_array_equal(elementwise([x, x], "x + y - 1", np.int32, "i32"), x.array * 2 - 1)


def test_bfloat16_rounds_to_even_and_keeps_nan():
    x = dense(np.array([1 + 2**-8, 1 + 3 * 2**-8, np.nan, np.inf, -np.inf, 3.4e38], np.float32))
    got = elementwise([x], "x", BF16, contiguous=True)
    np.testing.assert_array_equal(got.astype(np.float32), x.array.astype(BF16).astype(np.float32))


@pytest.mark.parametrize("dtype", DTYPES)
@few
@given(shape=shapes(0, 4, 6), seed=st.integers(0, 10**6))
def test_copy_into_a_view(dtype, shape, seed):
    source, target = view(seed, shape, dtype), view(seed + 5, shape, dtype)
    file = "copy_into_halves.wgsl" if epw(dtype) == 2 else "copy_into.wgsl"
    count = source.array.size
    params = [axes(shape), axes(target.strides), axes(source.strides)]
    params += [len(shape), count, target.offset, source.offset]
    groups = -(-count // 256)
    (got,) = run(file, [source.flat], [target.flat], params, groups, limit=2)
    target.array[...] = source.array
    np.testing.assert_array_equal(got, target.flat)
