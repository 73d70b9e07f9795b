"""matmul.wgsl against NumPy: any strides, broadcast batches, ragged edges, every dtype."""

import numpy as np
import pytest
from host import BF16, close, epw, rng, run, types
from hypothesis import given
from hypothesis import strategies as st

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
    tiles = -(-m // 64), -(-n // 64)
    params = [
        m,
        n,
        k,
        outer * inner,
        inner,
        *tiles,
        offsets[0],
        *x_strides,
        offsets[1],
        *y_strides,
        m * row,
        row,
    ]
    replace = types(compute, ("out", out_dtype), x=x.dtype, y=y.dtype)
    groups = outer * inner * tiles[0] * tiles[1]
    (out,) = run(
        "matmul.wgsl", [x, y], [((outer * inner, m, row), out_dtype)], params, groups, replace, limit=limit
    )
    return out[:, :, :n]


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
