"""map1..map4, copy_into and transpose: generated bodies, broadcasting, strided views, copies and casts."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shaders.host import BF16, axes, by_fours, close, epw, load, rng, run, source, types
from shaders.views import View, dense, few, random_values, shapes, view

NAMES = "xyzw"
DTYPES = [np.float32, np.float16, BF16, np.int32, np.bool_]


def elementwise(
    views, body, out_dtype=np.float32, compute="f32", scalars=(), contiguous=False, limit=65535, forms=None
):
    """Run map1..map4 on views of one (already broadcast) shape. `forms` tells of each input how four adjacent
    elements lie: "vector", "adjacent" or "one"; without it the place of each is found."""
    shape = views[0].array.shape
    count = int(np.prod(shape))
    names = NAMES[: len(views)]
    replace = {"alias T": f"alias T = {compute};", "const SPREAD": f"const SPREAD: bool = {spread(forms)};"}
    replace |= by_fours("out", f"read_write {len(views)}", out_dtype)
    for i, (name, v) in enumerate(zip(names, views, strict=True)):
        form = forms[i] if forms else ""
        replace |= {f"load {name}": load(name, v.flat.dtype)}
        if form == "vector":
            replace |= by_fours(name, f"read {i}", v.flat.dtype)
        elif form == "one":
            four = f"fn load4_{name}(i: vec4<u32>) -> vec4<T> {{ return vec4<T>(load_{name}(i.x)); }}"
            replace[f"load4 {name}"] = four
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
    file, flat = f"map{len(views)}.wgsl", [v.flat for v in views]
    outs, groups = [(shape, out_dtype)], -(-count // 1024)
    return run(file, flat, outs, params, groups, replace, limit=limit, fours=True)[0]


def spread(forms):
    """A constant of WGSL."""
    return str(not forms).lower()


@pytest.mark.parametrize("dtype", [*DTYPES, np.uint32])
@pytest.mark.parametrize("form", ["vector", "adjacent", "one"])
@pytest.mark.parametrize("shape", [(4,), (3, 4), (5, 2, 8), (2, 3, 1, 12), (1031,)])
def test_four_at_a_time(dtype, form, shape):
    if form != "vector" and shape == (1031,):
        return  # only a vector may reach past the end
    start = {"vector": 8, "adjacent": 3, "one": 5}[form]
    count = int(np.prod(shape))
    wide = random_values(1, (count + 16,), np.float32 if dtype == np.uint32 else dtype)
    wide = np.abs(wide * 8).astype(dtype) if dtype == np.uint32 else wide
    x = View(wide, wide[start : start + count].reshape(shape), start)
    if form == "one":
        x.array = np.broadcast_to(x.array[..., :1], shape)
    y = dense(random_values(2, shape, np.float32))
    compute = "f32" if np.dtype(dtype).kind in "fV" or dtype == BF16 else "i32"
    for other, out in ((dense(x.array.copy()), dtype), (x, dtype), (y, np.float32)):
        if compute == "i32" and out == np.float32:
            continue
        forms = [form, form if other is x else "vector"]
        got = elementwise([x, other], "x", out, compute, forms=forms)
        np.testing.assert_array_equal(got, x.array.astype(out))
        got = elementwise([other, x], "y", out, compute, forms=forms[::-1])
        np.testing.assert_array_equal(got, x.array.astype(out))
    for n in (1, 3, 4):
        got = elementwise([x] * n, NAMES[n - 1], dtype, compute, forms=[form] * n)
        np.testing.assert_array_equal(got, x.array)


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


def element(file, verb, binding, name, target):
    """The line of a file of `lib/` for a dtype, under the name of a binding."""
    line = source(f"lib/{file}.wgsl").split(f"//@ {verb} {name}\n")[1].split("\n")[0]
    for called in ("load", "load4", verb):
        line = line.replace(f"{called}_{name}(", f"{called}_{target}(")
    return line.replace(f"{binding}[", f"{target}[")


def bound(number, access, name, dtype):
    """The line that binds vectors of four elements."""
    kind = "vec2" if epw(dtype) == 2 else "vec4"
    return f"@group(0) @binding({number}) var<storage, {access}> {name}: array<{kind}<u32>>;"


@pytest.mark.parametrize("origin", ["f32", "f16", "bf16", "i32", "u32", "bool"])
@pytest.mark.parametrize("target", ["f32", "f16", "bf16", "i32", "u32", "bool", "truth"])
def test_elements_of_the_library(origin, target):
    dtypes = dict(f32=np.float32, f16=np.float16, bf16=BF16, i32=np.int32, bool=np.bool_)
    dtypes |= dict(u32=np.uint32, truth=np.bool_)
    whole = origin in ("i32", "u32", "bool") and target in ("i32", "u32", "bool")
    if (target == "truth") == whole:
        return  # `truth` is for floats
    x = np.array([0, 1, 2, 3, 40, 250, 0], np.float32).astype(dtypes[origin])
    half, half_out = epw(dtypes[origin]) == 2, epw(dtypes[target]) == 2
    helpers = source("lib/to_f16.wgsl") + source("lib/to_bf16.wgsl")
    replace = {
        "alias T": f"alias T = {'i32' if whole else 'f32'};",
        "words out": bound(1, "read_write", "out", dtypes[target]),
        "store4 out": element("quads", "store4", "o" if half_out else "out", target, "out") + "\n" + helpers,
    }
    single = {"load x": element("elements", "load", "x", origin, "x")}
    fours = {
        "const SPREAD": "const SPREAD: bool = false;",
        "words x": bound(0, "read", "x", dtypes[origin]),
        "load4 x": element("quads", "load4", "h" if half else "x", origin, "x"),
        "load x": element("quads", "load", "x", "any", "x"),
    }
    params = [axes([7]), axes([1]), 1, 7, 0, 0.0, 0.0]
    for loads in (single, fours):
        outs = [(x.shape, dtypes[target])]
        (got,) = run("map1.wgsl", [x], outs, params, 1, replace | loads, fours=True)
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


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (70, 34), (33, 100), (3, 9, 40), (2, 3, 64, 66)])
def test_exchanged_axes(dtype, shape):
    *outer, rows, columns = shape
    x = random_values(1, (*outer, columns, rows), dtype)
    if epw(dtype) == 2 and columns % 2:
        return  # rows of the output start on words
    replace = types("f32" if dtype != np.int32 else "i32", ("out", dtype), x=dtype)
    matrices, plane = int(np.prod(outer)), rows * columns
    across, down = -(-columns // 32), -(-rows // 32)
    strides = axes([plane * int(np.prod(outer[i + 1 :])) for i in range(len(outer))])
    params = [
        axes(outer),
        strides,
        strides,
        len(outer),
        rows,
        columns,
        rows,
        columns,
        0,
        across,
        down,
        matrices,
    ]
    outs = [(shape, dtype)]
    (got,) = run("transpose.wgsl", [x], outs, params, across * down * matrices, replace, limit=3)
    np.testing.assert_array_equal(got, x.swapaxes(-1, -2))


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
