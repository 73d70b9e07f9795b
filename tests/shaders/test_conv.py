"""conv, conv_weight and max_pool against NumPy."""

import numpy as np
import references.conv_reference as reference
from hypothesis import given, strategies as st
from shaders.host import BF16, axes, close, epw, rng, run, types
from shaders.views import few

DTYPES = st.sampled_from([np.float32, np.float16, BF16])


def three(values, missing):
    """One number for each of three axes, the missing ones in front."""
    return [missing] * (3 - len(values)) + list(values)


def attributes(seed):
    """Sizes and attributes of a convolution over one to three axes."""
    g = rng(seed)
    rank = int(g.integers(1, 4))
    window, stride, dilation = (g.integers(1, high, rank).tolist() for high in (4, 4, 3))
    padding = [int(g.integers(0, 3)) for _ in range(rank)]
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, window, strict=True)]
    lengths = [max(1, r - 2 * p) + int(g.integers(0, 5)) for r, p in zip(reach, padding, strict=True)]
    output = [(n + 2 * p - r) // s + 1 for n, p, r, s in zip(lengths, padding, reach, stride, strict=True)]
    n, groups, inner, outer = g.integers(1, 4, 4).tolist()
    return (n, groups, inner, outer), lengths, window, output, stride, dilation, padding


def geometry(lengths, window, output, stride, dilation, padding):
    """The first parameters of all three kernels."""
    ones = (lengths, window, output, stride, dilation)
    return [axes(three(v, 1)) for v in ones] + [axes(three(padding, 0))]


def values(seed, shape, dtype):
    return rng(seed).standard_normal(shape).astype(dtype)


def words(count, dtype):
    return -(-count // epw(dtype))


@few
@given(st.integers(0, 10**6), DTYPES)
def test_conv(seed, dtype):
    (n, groups, inner, outer), lengths, window, output, stride, dilation, padding = attributes(seed)
    x = values(seed, (n, groups * inner, *lengths), dtype)
    w = values(seed + 1, (groups * outer, inner, *window), dtype)
    taps, count = int(np.prod(window)), n * groups * outer * int(np.prod(output))
    params = geometry(lengths, window, output, stride, dilation, padding)
    params += [count, 0, 0, groups, inner, outer, outer * inner * taps, taps, inner * taps]
    replace = types(out=("out", dtype), x=dtype, weight=dtype)
    shape = (n, groups * outer, *output)
    grid = -(-words(count, dtype) // 256)
    (got,) = run("conv.wgsl", [x.reshape(-1), w.reshape(-1)], [(shape, dtype)], params, grid, replace)
    kwargs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    close(got, reference.conv(x.astype(np.float64), w.astype(np.float64), **kwargs), dtype)


@few
@given(st.integers(0, 10**6), DTYPES)
def test_conv_transposed(seed, dtype):
    (n, groups, inner, outer), lengths, window, output, stride, dilation, padding = attributes(seed)
    y = values(seed, (n, groups * outer, *output), dtype)
    w = values(seed + 1, (groups * outer, inner, *window), dtype)
    taps, count = int(np.prod(window)), n * groups * inner * int(np.prod(lengths))
    params = geometry(output, window, lengths, stride, dilation, padding)
    params += [count, 0, 0, groups, outer, inner, outer * inner * taps, inner * taps, taps]
    replace = types(out=("out", dtype), x=dtype, weight=dtype)
    replace["const TRANSPOSED"] = "const TRANSPOSED: bool = true;"
    shape = (n, groups * inner, *lengths)
    grid = -(-words(count, dtype) // 256)
    (got,) = run("conv.wgsl", [y.reshape(-1), w.reshape(-1)], [(shape, dtype)], params, grid, replace)
    kwargs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    # The transpose is what gives the same inner products.
    probe = rng(seed + 2).standard_normal(shape)
    image = reference.conv(probe, w.astype(np.float64), **kwargs)
    want = reference.conv_transpose(y.astype(np.float64), w.astype(np.float64), **{**kwargs, "padding": 0})
    full = np.zeros(
        [*shape[:2], *(max(a, p + b) for a, p, b in zip(want.shape[2:], padding, lengths, strict=True))]
    )
    full[tuple(slice(0, m) for m in want.shape)] = want
    want = full[(..., *(slice(p, p + m) for p, m in zip(padding, lengths, strict=True)))]
    np.testing.assert_allclose(
        (image * y.astype(np.float64)).sum(), (want * probe).sum(), rtol=1e-9, atol=1e-9
    )
    close(got, want, dtype)


@few
@given(st.integers(0, 10**6), DTYPES)
def test_conv_weight(seed, dtype):
    (n, groups, inner, outer), lengths, window, output, stride, dilation, padding = attributes(seed)
    x = values(seed, (n, groups * inner, *lengths), dtype)
    y = values(seed + 1, (n, groups * outer, *output), dtype)
    shape = (groups * outer, inner, *window)
    count = int(np.prod(shape))
    params = geometry(lengths, window, output, stride, dilation, padding)
    params += [count, 0, 0, groups, inner, outer, n]
    replace = types(out=("out", dtype), x=dtype, y=dtype)
    inputs = [x.reshape(-1), y.reshape(-1)]
    (got,) = run("conv_weight.wgsl", inputs, [(shape, dtype)], params, words(count, dtype), replace)
    wide = y.astype(np.float64).reshape(n, groups, outer, -1)
    want = np.zeros((groups, outer, inner, *window))
    pads = [(p, p) for p in padding]
    for k, part in reference.windows(x.astype(np.float64), window, stride, pads, dilation):
        part = part.reshape(n, groups, inner, -1)
        want[(..., *k)] = np.einsum("ngcp,ngop->goc", part, wide)
    close(got, want.reshape(shape), dtype)


@few
@given(st.integers(0, 10**6), DTYPES)
def test_max_pool(seed, dtype):
    g = rng(seed)
    rank = int(g.integers(1, 4))
    window, stride, dilation = (g.integers(1, high, rank).tolist() for high in (4, 4, 3))
    padding = [int(g.integers(0, k // 2 + 1)) for k in window]
    lengths = [d * (k - 1) + 1 + int(g.integers(0, 5)) for d, k in zip(dilation, window, strict=True)]
    planes = int(g.integers(1, 5))
    x = g.permutation(planes * int(np.prod(lengths))).reshape(planes, *lengths).astype(dtype)
    x = np.where(g.random(x.shape) < 0.1, np.nan, x).astype(dtype)
    output = reference.pooled_lengths(x, window, stride, padding, dilation, False)
    shape = (planes, *output)
    params = [*geometry(lengths, window, output, stride, dilation, padding), int(np.prod(shape)), 0]
    replace = types(out=("out", dtype), x=dtype)
    outputs = [(shape, dtype), (shape, np.int32)]
    grid = -(-words(int(np.prod(shape)), dtype) // 256)
    got, index = run("max_pool.wgsl", [x.reshape(-1)], outputs, params, grid, replace)
    kwargs = {"kernel_size": window, "stride": stride, "padding": padding, "dilation": dilation}
    want = reference.max_pool(x.astype(np.float64), **kwargs)
    np.testing.assert_array_equal(got.astype(np.float64), want)
    picked = np.take_along_axis(x.reshape(planes, -1), index.reshape(planes, -1), 1).reshape(shape)
    np.testing.assert_array_equal(picked.astype(np.float64), want)


@few
@given(st.integers(0, 10**6), DTYPES)
def test_max_pool_add(seed, dtype):
    g = rng(seed)
    rank = int(g.integers(1, 4))
    window, stride, dilation = (g.integers(1, high, rank).tolist() for high in (5, 4, 4))
    padding = [int(g.integers(0, k // 2 + 1)) for k in window]
    lengths = [d * (k - 1) + 1 + int(g.integers(0, 9)) for d, k in zip(dilation, window, strict=True)]
    if dtype != np.float32:
        lengths[-1] += lengths[-1] % 2
    planes = int(g.integers(1, 5))
    ceil_mode = bool(g.integers(0, 2))
    output = reference.pooled_lengths(np.zeros((1, *lengths)), window, stride, padding, dilation, ceil_mode)
    # An element of each window that lies inside; not only maxima, so that some get none and some get many.
    places = np.zeros((planes, *output), np.int32)
    for at in np.ndindex(*output):
        inside = [
            [i for k in range(n) if 0 <= (i := o * s + k * d - pad) < length]
            for o, n, s, d, pad, length in zip(at, window, stride, dilation, padding, lengths, strict=True)
        ]
        if all(inside):
            for plane in range(planes):
                place = [int(g.choice(axis)) for axis in inside]
                places[(plane, *at)] = np.ravel_multi_index(place, lengths)
        else:
            places[(slice(None), *at)] = -1
    values_ = values(seed + 1, places.shape, dtype)
    quads = planes * int(np.prod(lengths[:-1])) * -(-lengths[-1] // 4)
    params = [*geometry(lengths, window, output, stride, dilation, padding), quads, 0, 0]
    replace = types(out=("out", dtype), g=dtype)
    inputs = [values_.reshape(-1), places.reshape(-1)]
    (got,) = run("max_pool_add.wgsl", inputs, [((planes, *lengths), dtype)], params, -(-quads // 256), replace)
    want = np.zeros((planes, int(np.prod(lengths))), np.float32)
    for plane in range(planes):
        there = places[plane].reshape(-1) >= 0
        np.add.at(
            want[plane],
            places[plane].reshape(-1)[there],
            values_[plane].reshape(-1)[there].astype(np.float32),
        )
    # The order of the sums is that of the windows: the same bits.
    np.testing.assert_array_equal(got.reshape(planes, -1), want.astype(dtype))
