"""matmul.wgsl, matmul_large.wgsl and vecmat.wgsl against NumPy: strides, batches, ragged edges, dtypes."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shaders.host import BF16, close, epw, rng, run, types
from shaders.views import few

SIZE = st.integers(1, 70)


def product(
    x,
    y,
    x_strides,
    y_strides,
    batch,
    m,
    n,
    k,
    out_dtype=np.float32,
    compute="f32",
    limit=65535,
    offsets=(0, 0),
):
    """Run the kernel on flat buffers x, y with (outer, inner, row, column) strides; returns [batch, m, n]."""
    outer, inner = batch
    unit = epw(out_dtype)
    row = -(-n // unit) * unit
    replace = types(compute, ("out", out_dtype), x=x.dtype, y=y.dtype)
    outs = [((outer * inner, m, row), out_dtype)]
    results = []
    for file, side in (("matmul.wgsl", 64), ("matmul_large.wgsl", 128)):
        tiles = -(-m // side), -(-n // side)
        params = [m, n, k, outer * inner, inner, *tiles, offsets[0], *x_strides, offsets[1], *y_strides]
        groups = outer * inner * tiles[0] * tiles[1]
        results += run(file, [x, y], outs, [*params, m * row, row], groups, replace, limit=limit)
    small, large = (out[:, :, :n].astype(np.float64) for out in results)
    np.testing.assert_allclose(
        large, small, rtol=1e-2 if unit == 2 else 1e-4, atol=1e-2 if unit == 2 else 1e-4
    )
    return results[m % 2][:, :, :n]


@few
@given(SIZE, SIZE, SIZE, st.booleans(), st.booleans(), st.integers(1, 3))
def test_layouts(m, n, k, x_t, y_t, batch):
    g = rng(m * n + k)
    x = g.standard_normal((batch, k, m) if x_t else (batch, m, k)).astype(np.float32)
    y = g.standard_normal((batch, n, k) if y_t else (batch, k, n)).astype(np.float32)
    xs = (0, m * k, 1, m) if x_t else (0, m * k, k, 1)
    ys = (0, n * k, 1, k) if y_t else (0, n * k, n, 1)
    a, b = (x.swapaxes(1, 2) if x_t else x), (y.swapaxes(1, 2) if y_t else y)
    got = product(x, y, xs, ys, (1, batch), m, n, k, limit=3)
    close(got, a.astype(np.float64) @ b, scale=4 * k**0.5)


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@few
@given(m=SIZE, n=SIZE, k=SIZE)
def test_half(dtype, m, n, k):
    g = rng(m + n + k)
    x, y = g.standard_normal((m, k)).astype(dtype), g.standard_normal((k, n)).astype(dtype)
    want = (x.astype(np.float64) @ y.astype(np.float64))[None]
    close(product(x, y, (0, 0, k, 1), (0, 0, n, 1), (1, 1), m, n, k, dtype), want, dtype, scale=k**0.5)
    close(product(x, y, (0, 0, k, 1), (0, 0, n, 1), (1, 1), m, n, k), want, scale=4 * k**0.5)


def test_broadcast_batches_and_offsets():
    g = rng(0)
    x, y = g.standard_normal((3, 1, 5, 7)).astype(np.float32), g.standard_normal((2, 7, 9)).astype(np.float32)
    got = product(x, y, (35, 0, 7, 1), (0, 63, 9, 1), (3, 2), 5, 9, 7)
    close(got.reshape(3, 2, 5, 9), x.astype(np.float64) @ y, scale=8)
    every_other = product(x, y, (0, 0, 14, 2), (0, 0, 9, 1), (1, 1), 2, 9, 3, offsets=(1, 63))
    want = x[0, 0].reshape(-1)[[[1, 3, 5], [15, 17, 19]]].astype(np.float64) @ y[1, :3]
    close(every_other[0], want, scale=8)


def test_integers():
    g = rng(1)
    x, y = g.integers(-9999, 9999, (20, 33), np.int32), g.integers(-9999, 9999, (33, 17), np.int32)
    got = product(x, y, (0, 0, 33, 1), (0, 0, 17, 1), (1, 1), 20, 17, 33, np.int32, "i32")
    np.testing.assert_array_equal(got[0], x @ y)


def test_special_values_pass_through():
    x = np.full((2, 3), np.inf, np.float32)
    got = product(x, np.ones((3, 2), np.float32), (0, 0, 3, 1), (0, 0, 2, 1), (1, 1), 2, 2, 3)
    assert np.isposinf(got).all()


@pytest.mark.parametrize("tile_rows", [3, 9, 17])
def test_bands_of_tiles(tile_rows):
    m, n = tile_rows * 128 - 100, 300
    g = rng(tile_rows)
    x, y = g.standard_normal((m, 3)).astype(np.float32), g.standard_normal((3, n)).astype(np.float32)
    got = product(x, y, (0, 0, 3, 1), (0, 0, n, 1), (1, 1), m, n, 3)
    close(got[0], x.astype(np.float64) @ y, scale=8)


def row_product(x, y, strides, batch, n, k, entry, dtype=np.float32, x_stride=1):
    """vecmat.wgsl on x [outer, inner, k], y with (outer, inner, row, column) strides; returns [batch, n]."""
    outer, inner = batch
    row = -(-n // epw(dtype)) * epw(dtype)
    x_strides = (inner * k * x_stride, k * x_stride, x_stride)
    params = [n, k, outer * inner, inner, 0, *x_strides, 0, *strides, row]
    groups = outer * inner * -(-n // ((32 if entry == "columns" else 8) * epw(dtype)))
    replace = types(out=("out", dtype), x=x.dtype, y=y.dtype)
    outs = [((outer * inner, row), dtype)]
    return run("vecmat.wgsl", [x, y], outs, params, groups, replace, entry, limit=3)[0][:, :n]


@pytest.mark.parametrize("entry", ["columns", "rows"])
@few
@given(n=SIZE, k=st.integers(1, 200), outer=st.integers(1, 2), inner=st.integers(1, 3), turned=st.booleans())
def test_one_row(entry, n, k, outer, inner, turned):
    g = rng(n + k)
    x = g.standard_normal((outer, inner, 1, k)).astype(np.float32)
    y = g.standard_normal((inner, n, k) if turned else (inner, k, n)).astype(np.float32)
    got = row_product(x, y, (0, n * k, 1, k) if turned else (0, n * k, n, 1), (outer, inner), n, k, entry)
    want = x.astype(np.float64) @ (y.swapaxes(1, 2) if turned else y)
    close(got.reshape(outer, inner, 1, n), want, scale=4 * k**0.5)


@pytest.mark.parametrize("entry", ["columns", "rows"])
@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize("n", [1, 17, 64])
def test_one_row_half(entry, dtype, n):
    g = rng(n)
    x, y = g.standard_normal((1, 1, 60)).astype(dtype), g.standard_normal((30, n)).astype(dtype)
    got = row_product(x, y, (0, 0, n, 1), (1, 1), n, 30, entry, dtype, x_stride=2)
    close(got[0], x[0, 0, ::2].astype(np.float64) @ y.astype(np.float64), dtype, scale=6)
