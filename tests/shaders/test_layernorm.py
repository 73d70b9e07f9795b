"""layernorm*.wgsl against NumPy: forward, both backward dispatches, RMS, every row class."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shaders.host import BF16, POISON, by_fours, close, rng, run, types
from shaders.test_softmax import FORCED, SHAPES, Rows, even
from shaders.views import few


def rms_flag(rms):
    return {"const RMS": f"const RMS: bool = {str(rms).lower()};"}


def forward(x, w, b, flags, eps=1e-5, dtype=np.float32, forced=None, rms=False):
    rows = Rows(*x.shape, forced)
    replace = types(out=("out", dtype), x=x.dtype, weight=w.dtype, bias=b.dtype) | rms_flag(rms)
    width = even(rows.cols, dtype)
    outs = [((rows.rows, width), dtype), ((rows.rows,), np.float32), ((rows.rows,), np.float32)]
    params = [rows.rows, rows.cols, rows.parts, rows.cols, width, flags, eps]
    fours = dict(x=(0, x.dtype), weight=(1, w.dtype), bias=(2, b.dtype), out=(3, dtype))
    y, mean, rstd = rows.run("layernorm.wgsl", [x, w, b], outs, params, replace, limit=4, **fours)
    return y[:, : rows.cols], mean, rstd


def parameters(dtype, weight, bias):
    """The replacements for outputs dweight and dbias, as bindings of these numbers."""
    replace = by_fours("dweight", f"read_write {weight}", dtype)
    replace |= by_fours("dbias", f"read_write {bias}", dtype)
    text = replace["store4 dbias"].replace("word(", "bias_word(").replace("bf16_word", "bf16_bias_word")
    return replace | {"store4 dbias": text}


def backward(x, g, w, mean, rstd, flags, count, dtype=np.float32, forced=None, rms=False):
    rows = Rows(*x.shape, forced)
    replace = types(out=("out", dtype), x=x.dtype, g=g.dtype, weight=w.dtype) | rms_flag(rms)
    width, cols = even(rows.cols, dtype), even(rows.cols, np.float32) + -rows.cols % 4
    is_split, sums = rows.parts > 1, 1 if rms else 2
    slots = rows.rows if is_split else min(count, -(-rows.rows // (256 // rows.lanes)))
    shape = (rows.rows, rows.parts, 4) if is_split else (slots, sums, cols)
    outs = [((rows.rows, width), dtype), (shape, np.float32)]
    params = [rows.rows, rows.cols, rows.parts, rows.cols, rows.cols, width, flags, slots]
    bound = dict(x=(0, x.dtype), g=(1, g.dtype), weight=(2, w.dtype), out=(5, dtype))
    ins, groups = [x, g, w, mean, rstd], slots * rows.parts
    file = "layernorm_backward.wgsl"
    first = rows.once(file, ins, outs, params, replace, groups, int(is_split), **bound)
    outs = [((rows.cols,), dtype), ((rows.cols,), dtype)]
    if is_split:
        rows.lanes, rows.slots = (4, 16, 64, 256)[rows.cols % 4], 1
        ins, params = [x, g, w, first[1]], params[:-1]
        outs, groups = [((rows.rows, width), dtype), *outs], -(-rows.cols // (4 * rows.lanes))
        bound["out"] = (4, dtype)
        file, replace = "layernorm_strips.wgsl", replace | parameters(dtype, 5, 6)
        dx, dw, db = rows.once(file, ins, outs, params, replace, groups, fours=True, **bound)
        return dx[:, : rows.cols], dw, db
    dx, partial = first
    partial[:, :, rows.cols :] = np.nan
    params, groups, replace = [slots, cols, sums], -(-sums * cols // 16), parameters(dtype, 1, 2)
    dw, db = run("layernorm_columns.wgsl", [partial], outs, params, groups, replace, limit=2, fours=True)
    return dx[:, : rows.cols], dw, db


def reference(x, g, w, b, eps=1e-5, rms=False):
    """Forward values and gradients in float64."""
    x, g, w, b = (v.astype(np.float64) for v in (x, g, w, b))
    mean = x.mean(1, keepdims=True) * (not rms)
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + eps)
    n, h = (x - mean) * rstd, g * w
    dx = rstd * (h - h.mean(1, keepdims=True) * (not rms) - n * (h * n).mean(1, keepdims=True))
    return n * w + b, mean[:, 0], rstd[:, 0], dx, (g * n).sum(0), g.sum(0)


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("forced", [None, (16, 2), (256, 1)])
@pytest.mark.parametrize("shape", [*SHAPES, (70, 33)])
def test_f32(shape, forced, rms):
    r = rng(sum(shape))
    x, g = ((r.standard_normal(shape) + 3).astype(np.float32) for _ in range(2))
    w, b = (r.standard_normal(shape[1]).astype(np.float32) for _ in range(2))
    y, mean, rstd = forward(x, w, b, 3, forced=forced, rms=rms)
    want = reference(x, g, w, b, rms=rms)
    tight = 1 if shape[1] > 1 else 400  # one column: x - mean is rounding, divided by sqrt(eps)
    close(y, want[0], scale=20 * tight)
    if not rms:
        close(mean, want[1], scale=4)
    close(rstd, want[2], rtol=1e-5)
    found = backward(x, g, w, mean, rstd, 1, 2, forced=forced, rms=rms)
    for got, exact in zip(found[: 3 - rms], want[3:]):
        close(got, exact, scale=40 * tight * shape[0])


@few
@given(
    rows=st.integers(1, 6),
    cols=st.integers(512, 20_000) | st.sampled_from([65_536, 262_147]),
    forced=st.sampled_from(FORCED),
    count=st.integers(1, 3),
    rms=st.booleans(),
)
def test_rows_of_any_length_in_every_layout(rows, cols, forced, count, rms):
    rows = min(rows, 1 + 100_000 // cols)
    r = rng(cols)
    x, g = ((r.standard_normal((rows, cols)) + 3).astype(np.float32) for _ in range(2))
    w, b = (r.standard_normal(cols).astype(np.float32) for _ in range(2))
    y, mean, rstd = forward(x, w, b, 3, forced=forced, rms=rms)
    want = reference(x, g, w, b, rms=rms)
    found = [y, mean, rstd, *backward(x, g, w, mean, rstd, 1, count, forced=forced, rms=rms)]
    for i, (got, exact) in enumerate(zip(found, want, strict=True)):
        if rms and i in (1, 5):
            continue  # no mean, no bias
        assert ((got - exact) ** 2).sum() <= 1e-10 * (exact**2).sum()


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


@pytest.mark.parametrize("slots", [1, 63, 64, 65, 300])
def test_columns_of_many_slots(slots):
    partial = rng(slots).integers(-9, 9, (slots, 2, 12)).astype(np.float32)
    outs = [((12,), np.float32)] * 2
    found = run("layernorm_columns.wgsl", [partial], outs, [slots, 12, 2], 2)
    np.testing.assert_array_equal(found, partial.sum(0))
    dweight, dbias = run("layernorm_columns.wgsl", [partial[:, :1]], outs, [slots, 12, 1], 2)
    np.testing.assert_array_equal(dweight, partial[:, 0].sum(0))
    assert (dbias.view(np.uint32) == POISON).all()
