"""softmax*.wgsl and cross_entropy*.wgsl against NumPy, over every row class, dtype and ragged width."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shaders.host import BF16, by_fours, close, epw, rng, run, types
from shaders.views import few

LANES = {16: 4, 64: 8, 256: 16}
SHAPES = [
    (1, 1),
    (3, 5),
    (17, 16),
    (5, 255),
    (2, 256),
    (3, 300),
    (2, 1024),
    (3, 1025),
    (2, 4096),
    (2, 4099),
    (1, 9001),
]


def rows_config(cols, dtype=np.float32):
    """Entry point and lane constants for a row of `cols`, as a host chooses them."""
    lanes = next((n for n in LANES if cols <= 16 * n), None)
    entry = "wide" if lanes is None else "rows"
    lanes = lanes or 256
    return (
        entry,
        lanes,
        {
            "const LANES": f"const LANES: u32 = {lanes}u;",
            "const RADIX": f"const RADIX: u32 = {LANES[lanes]}u;",
        },
    )


def run_rows(file, ins, outs, params, groups, replace, entry, limit=65535, **rows):
    """Run a file; where rows are multiples of four (params[1] has their length), by vectors too: the same bits.

    `rows` are the bindings of rows by name, with their number and dtype; the first output is one of them."""
    found = run(file, ins, outs, params, groups, replace, entry, limit)
    if params[1] % 4 == 0:
        more = by_fours("out", f"read_write {len(ins)}", outs[0][1]) | {
            "const FOURS": "const FOURS: bool = true;"
        }
        for name, (number, dtype) in rows.items():
            more |= by_fours(name, f"read {number}", dtype)
        more["store out"] = "fn store_out(w: u32, v: vec2<T>) { store4_out(w, v.xyxy); } // never"
        replace = {k: v for k, v in replace.items() if k != "const EPW"}
        again = run(file, ins, outs, params, groups, replace | more, entry, limit)
        for a, b in zip(found, again, strict=True):
            np.testing.assert_array_equal(a, b)
    return found


def groups(rows, lanes):
    return -(-rows // (256 // lanes))


def even(cols, dtype):
    unit = epw(dtype)
    return -(-cols // unit) * unit


def softmax(x, log=False, dtype=np.float32, cols=None, stride=None, limit=65535):
    rows, cols = x.shape[0], cols or x.shape[1]
    entry, lanes, replace = rows_config(cols)
    replace |= types(out=("out", dtype), x=x.dtype) | {"const LOG": f"const LOG: bool = {str(log).lower()};"}
    width = even(cols, dtype)
    params = [rows, cols, 0, stride or x.shape[1], width]
    outs = [((rows, width), dtype)]
    count = groups(rows, lanes)
    (got,) = run_rows("softmax.wgsl", [x], outs, params, count, replace, entry, limit, x=(0, x.dtype))
    return got[:, :cols]


def reference(x):
    """Softmax and log-softmax in float64."""
    x = x.astype(np.float64)
    shifted = x - x.max(1, keepdims=True)
    total = np.exp(shifted).sum(1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.exp(shifted) / total, shifted - np.log(total)


@pytest.mark.parametrize("shape", SHAPES)
def test_forward(shape):
    x = (rng(1).standard_normal(shape) * 5).astype(np.float32)
    want, want_log = reference(x)
    close(softmax(x, limit=2), want, scale=0.1)
    close(softmax(x, log=True), want_log, scale=4)


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@few
@given(rows=st.integers(1, 40), cols=st.integers(1, 64))
def test_half(dtype, rows, cols):
    x = rng(rows + cols).standard_normal((rows, cols)).astype(dtype)
    close(softmax(x, dtype=dtype), reference(x)[0], dtype, scale=0.01)
    close(softmax(x, log=True, dtype=np.float32), reference(x)[1], scale=4)


def test_half_wide_and_large_values():
    x = (rng(3).standard_normal((2, 4500)) * 100).astype(np.float16)
    close(softmax(x, dtype=np.float16), reference(x)[0], np.float16, scale=0.01)
    x = np.array([[1e30, 1e30, -1e30], [-np.inf, 0, 1]], np.float32)
    close(softmax(x), reference(x)[0])
    assert (softmax(x)[1] >= 0).all()
    assert np.isneginf(softmax(x, log=True)[1, 0])


def test_row_stride():
    x = rng(4).standard_normal((6, 20)).astype(np.float32)
    close(softmax(x, cols=7, stride=20), reference(x[:, :7])[0])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("log", [False, True])
def test_backward(shape, log):
    g = rng(5)
    x, cot = g.standard_normal(shape).astype(np.float32), g.standard_normal(shape).astype(np.float32)
    y = reference(x)[1 if log else 0].astype(np.float32)
    entry, lanes, replace = rows_config(shape[1])
    replace |= {"const LOG": f"const LOG: bool = {str(log).lower()};"}
    params = [*shape, shape[1], shape[1], shape[1]]
    outs, count, fours = [(shape, np.float32)], groups(shape[0], lanes), dict(y=(0, y.dtype), g=(1, y.dtype))
    (got,) = run_rows("softmax_backward.wgsl", [y, cot], outs, params, count, replace, entry, **fours)
    y, cot = y.astype(np.float64), cot.astype(np.float64)
    total = (cot if log else cot * y).sum(1, keepdims=True)
    close(got, cot - np.exp(y) * total if log else y * (cot - total), scale=4)


@pytest.mark.parametrize("dtype", [np.float16, BF16])
def test_backward_half(dtype):
    g = rng(6)
    y, cot = g.random((5, 31)).astype(dtype), g.standard_normal((5, 31)).astype(dtype)
    _, lanes, replace = rows_config(31)
    replace |= types(out=("out", dtype), y=dtype, g=dtype)
    params = [5, 31, 31, 31, 32]
    (got,) = run(
        "softmax_backward.wgsl", [y, cot], [((5, 32), dtype)], params, groups(5, lanes), replace, "rows"
    )
    y, cot = y.astype(np.float64), cot.astype(np.float64)
    close(got[:, :31], y * (cot - (cot * y).sum(1, keepdims=True)), dtype, scale=4)


def entropy(x, target, ignore=-100, smoothing=0.0):
    rows, cols = x.shape
    _, lanes, replace = rows_config(cols)
    replace |= {"load x": types(x=x.dtype)["load x"], "const EPW": f"const EPW: u32 = {epw(x.dtype)}u;"}
    outs = [((rows,), np.float32), ((rows, 2), np.float32), np.zeros(2, np.uint32)]
    params = [rows, cols, 0, cols, ignore, smoothing]
    return run("cross_entropy.wgsl", [x, target], outs, params, groups(rows, lanes), replace)


def entropy_backward(x, target, terms, g, ignore=-100, smoothing=0.0, scale=1.0):
    rows, cols = x.shape
    width = even(cols, x.dtype)
    fours = -(-cols // 4)
    params = [rows, cols, fours, 0, cols, int(g.size > 1), width, ignore, smoothing, scale]
    replace = types(out=("out", x.dtype), x=x.dtype, g=g.dtype)
    outs, ins, count = [((rows, width), x.dtype)], [x, target, terms, g], -(-rows * fours // 256)
    file, bound = "cross_entropy_backward.wgsl", dict(x=(0, x.dtype))
    return run_rows(file, ins, outs, params, count, replace, "main", **bound)[0][:, :cols]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16])
@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize("shape", [(1, 1), (7, 10), (40, 63), (3, 700), (2, 5003), (33, 8)])
def test_cross_entropy(shape, dtype, smoothing):
    g = rng(7)
    rows, cols = shape
    x = g.standard_normal(shape).astype(dtype)
    target = g.integers(0, cols, rows, np.int32)
    target[1::3] = -100
    keep = target != -100
    loss, terms, status = entropy(x, target, smoothing=smoothing)
    logp = reference(x)[1]
    picked = logp[np.arange(rows), np.where(keep, target, 0)]
    want = np.where(keep, -(1 - smoothing) * picked - smoothing * logp.mean(1), 0)
    close(loss, want, scale=8)
    close(terms.sum(1), x.astype(np.float64)[:, 0] - logp[:, 0], scale=8)
    assert not status.any()
    cot = g.standard_normal(rows).astype(np.float32)
    hot = (np.arange(cols) == target[:, None]) * (1 - smoothing) + smoothing / cols
    want = (np.exp(logp) - hot) * np.where(keep, cot, 0)[:, None]
    close(entropy_backward(x, target, terms, cot, smoothing=smoothing), want, dtype, scale=2)
    want = (np.exp(logp) - hot) * np.where(keep, cot[0] / rows, 0)[:, None]
    got = entropy_backward(x, target, terms, cot[:1], smoothing=smoothing, scale=1 / rows)
    close(got, want, dtype, scale=2)


def test_cross_entropy_reports_bad_targets_and_masked_logits():
    x = np.array([[-np.inf, 1, 2], [0, 0, 0]], np.float32)
    loss, terms, status = entropy(x, np.array([1, 3], np.int32))
    close(loss, [np.log1p(np.e), 0])
    assert status.tolist() == [1, 3]
    assert np.isfinite(terms).all()
