"""scan.wgsl and recurrence.wgsl: cumulative sum, product, maximum, recurrences of strided views, both
directions."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shaders.host import BF16, axes, close, rng, run, types
from shaders.views import dense, few, shapes, view

KINDS = {
    "sum": ({}, np.cumsum),
    "prod": ({"const FOLD": "const FOLD: u32 = 1u;"}, np.cumprod),
    "paired prod": (
        {"const FOLD": "const FOLD: u32 = 1u;", "const PAIRED": "const PAIRED: bool = true;"},
        np.cumprod,
    ),
}


def scan(v, axis, entry, replace=None, reverse=False, compute="f32", dtype=np.float32):
    """Scan a view along an axis into a dense result."""
    shape = v.array.shape
    out_strides = [int(np.prod(shape[a + 1 :])) for a in range(len(shape))]
    kept = [a for a in range(len(shape)) if a != axis]
    lines = int(np.prod([shape[a] for a in kept]))
    last = shape[axis] - 1 if reverse else 0
    sign = -1 if reverse else 1
    params = [
        axes(shape[a] for a in kept),
        axes(v.strides[a] for a in kept),
        axes(out_strides[a] for a in kept),
    ]
    params += [len(kept), lines, shape[axis], v.offset + last * v.strides[axis], sign * v.strides[axis]]
    params += [last * out_strides[axis], sign * out_strides[axis]]
    table = types(compute, ("out", dtype), x=v.flat.dtype)
    del table["const EPW"]
    groups = lines if entry == "tree" else -(-lines // 256)
    return run(
        "scan.wgsl", [v.flat], [(shape, dtype)], params, groups, table | dict(replace or {}), entry, limit=3
    )[0]


@pytest.mark.parametrize("entry", ["serial", "tree"])
@pytest.mark.parametrize("kind", KINDS)
@few
@given(shape=shapes(1, 4, 9), seed=st.integers(0, 10**6), reverse=st.booleans())
def test_any_axis(kind, entry, shape, seed, reverse):
    v, axis = view(seed, shape), seed % len(shape)
    replace, numpy = KINDS[kind]
    x = v.array.astype(np.float64)
    want = np.flip(numpy(np.flip(x, axis), axis=axis), axis) if reverse else numpy(x, axis=axis)
    close(scan(v, axis, entry, replace, reverse), want, scale=8)


@pytest.mark.parametrize("entry", ["serial", "tree"])
@pytest.mark.parametrize("length", [1, 255, 1024, 1025, 5000])
def test_long_lines(entry, length):
    v = dense(rng(length).random((3, length)).astype(np.float32))
    close(scan(v, 1, entry), v.array.astype(np.float64).cumsum(1), rtol=1e-4 if entry == "serial" else 1e-5)


@pytest.mark.parametrize("entry", ["serial", "tree"])
def test_other_types(entry):
    v = view(1, (4, 50), np.int32)
    got = scan(v, 1, entry, compute="i32", dtype=np.int32)
    np.testing.assert_array_equal(got, v.array.cumsum(1))
    v = view(2, (50, 3), BF16)
    close(scan(v, 0, entry), v.array.astype(np.float64).cumsum(0), scale=10)


@few
@given(shape=shapes(1, 4, 9), seed=st.integers(0, 10**6), reverse=st.booleans())
def test_recurrence(shape, seed, reverse):
    decay, x, axis = view(seed, shape), view(seed + 1, shape), seed % len(shape)
    out_strides = [int(np.prod(shape[a + 1 :])) for a in range(len(shape))]
    kept = [a for a in range(len(shape)) if a != axis]
    last, sign = (shape[axis] - 1, -1) if reverse else (0, 1)
    strides = [decay.strides, x.strides, out_strides]
    params = [axes(shape[a] for a in kept), *(axes(s[a] for a in kept) for s in strides)]
    lines = int(np.prod([shape[a] for a in kept]))
    params += [len(kept), lines, shape[axis]]
    for offset, s in zip([decay.offset, x.offset, 0], strides, strict=True):
        params += [offset + last * s[axis], sign * s[axis]]
    table = types("f32", ("out", np.float32), decay=decay.flat.dtype, x=x.flat.dtype)
    del table["const EPW"]
    groups = -(-lines // 256)
    inputs = [decay.flat, x.flat]
    got = run("recurrence.wgsl", inputs, [(shape, np.float32)], params, groups, table, "main", limit=3)[0]
    d, want = (np.moveaxis(v.array.astype(np.float64), axis, 0) for v in (decay, x))
    want = want.copy()
    order = range(len(want) - 2, -1, -1) if reverse else range(1, len(want))
    for i in order:
        want[i] += d[i] * want[i + 1 if reverse else i - 1]
    close(got, np.moveaxis(want, 0, axis), scale=16)
