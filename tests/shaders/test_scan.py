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


def scan(v, axis, entry, replace=None, reverse=False, compute="f32", dtype=np.float32, each=0):
    """Scan a view along an axis into a dense result; in blocks of `each`, half of them in a launch."""
    shape = v.array.shape
    out_strides = [int(np.prod(shape[a + 1 :])) for a in range(len(shape))]
    kept = [a for a in range(len(shape)) if a != axis]
    lines = int(np.prod([shape[a] for a in kept]))
    length, sign = shape[axis], -1 if reverse else 1
    last = length - 1 if reverse else 0
    params = [
        axes(shape[a] for a in kept),
        axes(v.strides[a] for a in kept),
        axes(out_strides[a] for a in kept),
    ]
    table = types(compute, ("out", dtype), x=v.flat.dtype)
    del table["const EPW"]
    each = each or length
    count = -(-length // each)
    halves = [(0, count // 2), (count // 2, count)] if count > 1 else [(0, 1)]
    out, blocks = np.full(shape, 7, dtype), np.zeros((lines, count, 3), np.uint32)
    for way in ("ends", entry) if count > 1 else (entry,):
        for first, end in halves:
            start = first * each
            own = [len(kept), lines, min(end * each, length) - start]
            for offset, s in ((v.offset, v.strides), (0, out_strides)):
                own += [offset + (last + sign * start) * s[axis], sign * s[axis]]
            own += [count, each, first, end - first]
            groups = -(-lines // 256) if entry == "serial" else lines * (end - first)
            out, blocks = run(
                "scan.wgsl",
                [v.flat],
                [out, blocks],
                params + own,
                groups,
                table | dict(replace or {}),
                way,
                3,
            )
    return out


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("length", "each"), [(9, 4), (2500, 1024), (5000, 300), (4097, 7)])
def test_blocks(kind, length, each):
    x = rng(length).uniform(0.98, 1.0201, (2, length, 3)).astype(np.float32)
    replace, numpy = KINDS[kind]
    want = numpy(x.astype(np.float64), axis=1)
    rtol = 1.2e-7 if kind == "paired prod" else 1e-4
    np.testing.assert_allclose(scan(dense(x), 1, "tree", replace, each=each), want, rtol)
    want = np.flip(numpy(np.flip(x, 1).astype(np.float64), axis=1), 1)
    np.testing.assert_allclose(scan(dense(x), 1, "tree", replace, reverse=True, each=each), want, rtol)


@pytest.mark.parametrize("entry", ["serial", "tree"])
@pytest.mark.parametrize("each", [0, 1024])
def test_products_whose_parts_are_beyond_the_range(entry, each):
    """A product of 1024 of these factors is."""
    parts = {
        "nothing": np.r_[0.0, np.full(2999, 3.0)],
        "there and back": np.r_[np.full(500, 4.0), np.full(900, 0.5), np.full(1600, 1.0)],
        "infinite": np.r_[np.inf, np.full(2999, 0.5)],
        "subnormal": np.r_[np.full(5, 1e-40), np.full(600, 2.0), np.full(2395, -1.0)],
        "small": np.r_[1e-30, 1e-9, np.full(2998, 1.0)],
    }
    x = np.stack([*parts.values()]).astype(np.float32)
    with np.errstate(over="ignore"):
        want = np.cumprod(x.astype(np.float64), 1).astype(np.float32)
    got = scan(dense(x), 1, entry, KINDS["paired prod"][0], each=each if entry == "tree" else 0)
    # A device may have no subnormal numbers.
    np.testing.assert_allclose(got, want, 1.2e-7, 1.2e-38)


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
