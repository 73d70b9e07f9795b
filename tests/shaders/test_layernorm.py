"""layernorm*.wgsl against NumPy: forward, both backward dispatches, RMS, every row class."""

import numpy as np
import pytest
from shaders.host import BF16, close, epw, rng, run, types
from shaders.test_softmax import SHAPES, even, groups, rows_config, run_rows


def forward(x, w, b, flags, eps=1e-5, dtype=np.float32):
    rows, cols = x.shape
    entry, lanes, replace = rows_config(cols)
    replace |= types(out=("out", dtype), x=x.dtype, weight=w.dtype, bias=b.dtype)
    width = even(cols, dtype)
    outs = [((rows, width), dtype), ((rows,), np.float32), ((rows,), np.float32)]
    params = [rows, cols, 0, cols, width, flags, eps]
    fours = dict(x=(0, x.dtype), weight=(1, w.dtype), bias=(2, b.dtype))
    count = groups(rows, lanes)
    y, mean, rstd = run_rows("layernorm.wgsl", [x, w, b], outs, params, count, replace, entry, 4, **fours)
    return y[:, :cols], mean, rstd


def backward(x, g, w, mean, rstd, flags, count, dtype=np.float32):
    rows, cols = x.shape
    entry, lanes, replace = rows_config(cols)
    replace |= types(out=("out", dtype), x=x.dtype, g=g.dtype, weight=w.dtype)
    width = even(cols, dtype)
    count = min(count, groups(rows, lanes))
    slots = count * (256 // lanes)
    outs = [((rows, width), dtype), ((slots, 2, cols), np.float32)]
    params = [rows, cols, cols, cols, width, flags | 8, count]
    fours = dict(x=(0, x.dtype), g=(1, g.dtype), weight=(2, w.dtype))
    ins = [x, g, w, mean, rstd]
    dx, partial = run_rows("layernorm_backward.wgsl", ins, outs, params, count, replace, entry, 2, **fours)
    replace = types(out=("dweight", dtype)) | types(out=("dbias", dtype))
    outs = [((cols,), dtype), ((cols,), dtype)]
    params = [slots, cols]
    dw, db = run(
        "layernorm_columns.wgsl", [partial], outs, params, -(-cols // (8 * epw(dtype))), replace, limit=2
    )
    return dx[:, :cols], dw, db


def reference(x, g, w, b, eps=1e-5, rms=False):
    """Forward values and gradients in float64."""
    x, g, w, b = (v.astype(np.float64) for v in (x, g, w, b))
    mean = x.mean(1, keepdims=True) * (not rms)
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + eps)
    n, h = (x - mean) * rstd, g * w
    dx = rstd * (h - h.mean(1, keepdims=True) * (not rms) - n * (h * n).mean(1, keepdims=True))
    return n * w + b, mean[:, 0], rstd[:, 0], dx, (g * n).sum(0), g.sum(0)


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("shape", [*SHAPES, (70, 33)])
def test_f32(shape, rms):
    r = rng(sum(shape))
    x, g = ((r.standard_normal(shape) + 3).astype(np.float32) for _ in range(2))
    w, b = (r.standard_normal(shape[1]).astype(np.float32) for _ in range(2))
    y, mean, rstd = forward(x, w, b, 3 + 4 * rms)
    want = reference(x, g, w, b, rms=rms)
    tight = 1 if shape[1] > 1 else 400  # one column: x - mean is rounding, divided by sqrt(eps)
    close(y, want[0], scale=20 * tight)
    close(mean, want[1], scale=4)
    close(rstd, want[2], rtol=1e-5)
    for got, exact in zip(backward(x, g, w, mean, rstd, 1 + 4 * rms, 2), want[3:], strict=True):
        close(got, exact, scale=40 * tight * shape[0])


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize("shape", [(9, 31), (3, 5001)])
def test_half(shape, dtype):
    r = rng(8)
    x, g = (r.standard_normal(shape).astype(dtype) for _ in range(2))
    w, b = (r.standard_normal(shape[1]).astype(dtype) for _ in range(2))
    y, mean, rstd = forward(x, w, b, 3, dtype=dtype)
    want = reference(x, g, w, b)
    close(y, want[0], dtype, scale=2)
    for got, exact in zip(backward(x, g, w, mean, rstd, 1, 3, dtype), want[3:], strict=True):
        close(got, exact, dtype, scale=4)


def test_without_affine_and_large_mean():
    x = (rng(9).standard_normal((4, 100)) + 1e4).astype(np.float32)
    one, zero = np.ones(100, np.float32), np.zeros(100, np.float32)
    y, mean, rstd = forward(x, one[:1], zero[:1], 0)
    want = reference(x, x, one, zero)
    np.testing.assert_allclose(y, want[0], atol=2e-3)
    dx, _, _ = backward(x, x, one[:1], mean, rstd, 0, 1)
    assert np.isfinite(dx).all()


def test_bitwise_repeatable():
    x = rng(10).standard_normal((50, 40)).astype(np.float32)
    w = x[0]
    _, mean, rstd = forward(x, w, w, 3)
    first, second = (backward(x, x, w, mean, rstd, 1, 3) for _ in range(2))
    assert all((a == b).all() for a, b in zip(first, second, strict=True))
