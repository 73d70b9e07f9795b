"""conv, max_pool and its transpose against NumPy."""

from dataclasses import dataclass
from math import gcd

import numpy as np
import references.conv_reference as reference
from hypothesis import given, strategies as st
from shaders.host import BF16, as_halves, axes, by_fours, close, epw, has_halves, rng, run, types
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
    if seed % 3 == 0:  # more than a tile has
        inner, outer = g.integers(1, 80, 2).tolist()
    return (n, groups, inner, outer), lengths, window, output, stride, dilation, padding


def geometry(lengths, window, output, stride, dilation, padding):
    """The first parameters of both kernels."""
    ones = (lengths, window, output, stride, dilation)
    return [axes(three(v, 1)) for v in ones] + [axes(three(padding, 0))]


def values(seed, shape, dtype):
    return rng(seed).standard_normal(shape).astype(dtype)


def words(count, dtype):
    return -(-count // epw(dtype))


TILES = [
    (128, 128, 16, 1),
    (128, 64, 16, 1),
    (64, 64, 16, 2),
    (64, 64, 8, 1),
    (32, 128, 16, 1),
    (128, 32, 8, 2),
]


def eight(first, at, second, then):
    """Three numbers and one more, twice."""
    return [*three(first, 1), at, *[int(v) & 0xFFFFFFFF for v in second], then]


@dataclass
class Product:
    """What conv.wgsl is to compute: its parameters, and the shape of the result."""

    rows: int
    groups: int
    shape: tuple
    source: list  # lengths
    start: list
    columns: list  # lengths, count, steps, step per outer digit
    terms: list
    a_steps: list  # per digit, of a row, of a group
    x_group: int
    to: list  # step per outer digit, of a row, of a group
    to_lengths: list
    spread: list  # distances of places; the phases
    stride: list
    window: list
    phased: bool = False
    fours: bool = False  # whether a is read by fours
    whole: bool = True  # whether results share no words
    bias: np.ndarray | None = None  # a number for each row of each group

    @property
    def k(self):
        """The number of products in a sum, at most."""
        return int(np.prod(self.window[0] if self.phased else self.terms[0])) * self.terms[1]

    def check(self, a, x, dtype, how, parts, want):
        """Compares with what is expected; rounding errors grow with the root of the length of sums. Columns
        are stored one by one or, where they can, by fours, with the same bits."""
        if self.bias is not None:
            want = want + self.bias.astype(np.float64).reshape(-1, *[1] * len(self.shape[2:]))
        got = self.run(a, x, dtype, how, parts)
        if not self.phased and self.to[1] % 4 == 0:
            np.testing.assert_array_equal(self.run(a, x, dtype, how, parts, stores_fours=True), got)
        close(got, want, dtype, scale=max(1.0, self.k**0.5))
        if dtype == np.float16 and has_halves():
            np.testing.assert_array_equal(self.run(a, x, dtype, how, parts, halves=True), got)

    def run(self, a, x, dtype, how, parts, halves=False, stores_fours=False):
        """The result by tiles of these sizes, or directly, its sums cut into parts; operands as f16."""
        count = int(np.prod(three(self.columns[0], 1))) * self.columns[1]
        products = self.groups * int(np.prod(self.spread)) * parts
        size = int(np.prod(self.shape))
        made = dtype if self.whole and parts == 1 and not self.phased else np.float32
        table = types(out=("out", made), a=dtype, x=dtype, bias=dtype)
        table["const BIAS"] = f"const BIAS: bool = {str(self.bias is not None).lower()};"
        if stores_fours:
            table["store out"] = "fn store_out(w: u32, v: vec2<T>) { store4_out(w, v.xyxy); } // never"
            table["const FOURS"] = "const FOURS: bool = true;"
            table |= by_fours("out", "read_write 3", made)
        table["const PHASED"] = f"const PHASED: bool = {str(self.phased).lower()};"
        if self.fours:
            del table["load a"]
            table |= by_fours("a", "read 0", dtype)
        if halves:
            table |= as_halves(("a", 0, self.fours), ("x", 1, False), ("bias", 2, False))
        tiles, part_k = (0, 0), 0
        if how in ("direct", "direct_parts"):
            entry = how
            grid = -(-products * self.rows * -(-count // 4) // 256)
        else:
            entry = "main"
            for name, value in zip(("TILE_M", "TILE_N", "DEPTH", "BUFFERS"), how, strict=True):
                table[f"const {name}"] = f"const {name}: u32 = {value}u;"
            tiles = (-(-self.rows // how[0]), -(-count // how[1]))
            part_k = -(-self.k // parts // how[2]) * how[2] if parts > 1 else self.k
            grid = products * tiles[0] * tiles[1]
        params = [
            eight(self.source, 0, three(self.start, 0), 0),
            eight(self.columns[0], count, three(self.columns[2], 1), self.columns[3]),
            eight(self.terms[0], self.terms[1], three(self.terms[2], 1), self.terms[3]),
            [*self.a_steps[0], *self.a_steps[1:], self.rows, 0],
            eight(self.to_lengths, self.to[0], three(self.spread, 1), 0),
            eight(self.window[0], 0, three(self.window[1], 1), 0),
            eight(self.stride, 0, [0, 0, 0], 0),
            *(products, *tiles, parts, part_k, 0, 0, self.x_group, self.to[1], self.to[2], size, 0),
        ]
        outs = [((parts, *self.shape), made)]
        bias = np.zeros(1, dtype) if self.bias is None else self.bias
        ins = [a.reshape(-1), x.reshape(-1), bias]
        (got,) = run("conv.wgsl", ins, outs, params, grid, table, entry, fours=stores_fours)
        return got.sum(0)


def dense_steps(lengths):
    """Elements from one to the next along three axes."""
    lengths = three(lengths, 1)
    return [lengths[1] * lengths[2], lengths[2], 1]


def halves_fit(dtype, *lengths):
    """Whether results of this dtype share no words between rows."""
    return dtype == np.float32 or all(n % 2 == 0 for n in lengths)


VARIANTS = st.sampled_from(
    [("direct", 1), *((how, parts) for how in [*TILES, "direct_parts"] for parts in (1, 3))]
)


@few
@given(st.integers(0, 10**6), DTYPES, VARIANTS)
def test_conv(seed, dtype, variant):
    (n, groups, inner, outer), lengths, window, output, stride, dilation, padding = attributes(seed)
    x = values(seed, (n, groups * inner, *lengths), dtype)
    w = values(seed + 1, (groups * outer, inner, *window), dtype)
    taps, plane, places = (int(np.prod(v)) for v in (window, lengths, output))
    product = Product(
        rows=outer,
        groups=groups,
        shape=(n, groups * outer, *output),
        source=lengths,
        start=[-pad for pad in padding],
        columns=[output, n, stride, groups * inner * plane],
        terms=[window, inner, dilation, plane],
        a_steps=[[*dense_steps(window), taps], inner * taps, outer * inner * taps],
        x_group=inner * plane,
        to=[groups * outer * places, places, outer * places],
        to_lengths=output,
        spread=[1],
        stride=stride,
        window=[window, dilation],
        fours=inner * taps % 4 == 0,
    )
    kwargs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    want = reference.conv(x.astype(np.float64), w.astype(np.float64), **kwargs)
    product.whole = halves_fit(dtype, places)
    product.bias = values(seed + 3, (groups * outer,), dtype) if seed % 2 else None
    product.check(w, x, dtype, *variant, want)


@few
@given(st.integers(0, 10**6), DTYPES, VARIANTS)
def test_conv_transposed(seed, dtype, variant):
    (n, groups, inner, outer), lengths, window, output, stride, dilation, padding = attributes(seed)
    y = values(seed, (n, groups * outer, *output), dtype)
    w = values(seed + 1, (groups * outer, inner, *window), dtype)
    taps, plane, places = (int(np.prod(v)) for v in (window, lengths, output))
    phased = bool(rng(seed).integers(0, 2)) or max(stride) > 1
    # Elements of the window that meet the same places, and their distance in y.
    every = [s // gcd(s, d) for s, d in zip(stride, dilation, strict=True)]
    steps = [d // gcd(s, d) for s, d in zip(stride, dilation, strict=True)]
    row_steps = [a * b for a, b in zip(dense_steps(window), three(every, 1), strict=True)]
    product = Product(
        rows=inner,
        groups=groups,
        shape=(n, groups * inner, *lengths),
        source=output,
        start=padding,
        columns=[[-(-a // s) for a, s in zip(lengths, stride, strict=True)], n, [1], groups * outer * places],
        terms=[every if phased else window, outer, [-step for step in steps], places],
        a_steps=[[*row_steps, inner * taps], taps, outer * inner * taps],
        x_group=outer * places,
        to=[groups * inner * plane, plane, inner * plane],
        to_lengths=lengths,
        spread=[min(pair) for pair in zip(stride, lengths, strict=True)],
        stride=stride,
        window=[window, dilation],
        phased=phased,
    )
    kwargs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    shape = (n, groups * inner, *lengths)
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
    product.whole = halves_fit(dtype, plane)
    product.bias = values(seed + 3, (groups * inner,), dtype) if seed % 2 else None
    product.check(w, y, dtype, *variant, want)


@few
@given(st.integers(0, 10**6), DTYPES, VARIANTS)
def test_conv_weight(seed, dtype, variant):
    (n, groups, inner, outer), lengths, window, output, stride, dilation, padding = attributes(seed)
    x = values(seed, (n, groups * inner, *lengths), dtype)
    y = values(seed + 1, (n, groups * outer, *output), dtype)
    shape = (groups * outer, inner, *window)
    taps, plane, places = (int(np.prod(v)) for v in (window, lengths, output))
    product = Product(
        rows=outer,
        groups=groups,
        shape=shape,
        source=lengths,
        start=[-pad for pad in padding],
        columns=[window, inner, dilation, plane],
        terms=[output, n, stride, groups * inner * plane],
        a_steps=[[*dense_steps(output), groups * outer * places], places, outer * places],
        x_group=inner * plane,
        to=[taps, inner * taps, outer * inner * taps],
        to_lengths=window,
        spread=[1],
        stride=stride,
        window=[window, dilation],
        fours=places % 4 == 0,
    )
    wide = y.astype(np.float64).reshape(n, groups, outer, -1)
    want = np.zeros((groups, outer, inner, *window))
    pads = [(p, p) for p in padding]
    for k, part in reference.windows(x.astype(np.float64), window, stride, pads, dilation):
        part = part.reshape(n, groups, inner, -1)
        want[(..., *k)] = np.einsum("ngcp,ngop->goc", part, wide)
    product.whole = halves_fit(dtype, inner * taps)
    product.check(y, x, dtype, *variant, want.reshape(shape))


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
    outputs = [((planes, *lengths), dtype)]
    (got,) = run("max_pool_add.wgsl", inputs, outputs, params, -(-quads // 256), replace)
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
