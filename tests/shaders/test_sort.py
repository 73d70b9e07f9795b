"""Order, search, running extremes, and what is there after scattering, against NumPy, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shaders.host import BF16, axes, rng, run
from shaders.views import dense, few, shapes, view

KINDS = {np.bool_: 0, np.uint32: 0, np.int32: 1, np.float32: 2, BF16: 3, np.float16: 4}
BITS = {np.bool_: range(1), BF16: range(16, 32), np.float16: range(16, 32)}
FLIP = 0xFFFFFFFF


def replace(dtype, **more):
    """The marked lines for elements of `dtype`."""
    table = {f"const {name}": f"const {name}: bool = {str(value).lower()};" for name, value in more.items()}
    return {"const KIND": f"const KIND: u32 = {KINDS[dtype]}u;"} | table


def hard(seed, shape, dtype):
    """Elements with many ties; of floats also both zeros, infinities, subnormals and NaN of any bits."""
    g = rng(seed)
    if dtype is np.bool_:
        return g.random(shape) < 0.5
    if not np.issubdtype(dtype, np.integer):
        special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan, 1e-40, -6e-8], dtype)
        numbers = g.standard_normal(shape).astype(dtype)
        return np.where(g.random(shape) < 0.5, numbers, special[g.integers(0, len(special), shape)])
    info = np.iinfo(dtype)
    wild = g.integers(info.min, info.max, shape, dtype, endpoint=True)
    return np.where(g.random(shape) < 0.5, wild, g.integers(0, 4, shape, dtype)).astype(dtype)


def order(x, axis, descending=False):
    """The stable order of the elements, NaN last, or first where the order descends."""
    ranks = rank(x)
    return np.argsort(-ranks if descending else ranks, axis, kind="stable").astype(np.int32)


def rank(x):
    """Whole numbers with the order of the elements."""
    wide = x.astype(np.float64) + 0.0
    values = np.unique(wide[~np.isnan(wide)])
    return np.where(np.isnan(wide), len(values), np.searchsorted(values, wide))


def layout(v, axis):
    """The parameters of the lines of a view, and the strides of a dense result."""
    shape = v.array.shape
    strides = [int(np.prod(shape[a + 1 :])) for a in range(len(shape))]
    kept = [a for a in range(len(shape)) if a != axis]
    lines = int(np.prod([shape[a] for a in kept]))
    params = [
        axes(shape[a] for a in kept),
        axes(v.strides[a] for a in kept),
        axes(strides[a] for a in kept),
    ]
    return lines, [*params, len(kept), lines, shape[axis], v.offset, v.strides[axis], 0, strides[axis]]


def short(v, axis, dtype, descending=False, most=None, tile=2048):
    """The order by one dispatch, or the first `most` of long lines in tiles, which keep as many."""
    shape = v.array.shape
    lines, params = layout(v, axis)
    whole, most = shape[axis], most or shape[axis]
    shape = tuple(most if a == axis else n for a, n in enumerate(shape))
    strides = [int(np.prod(shape[a + 1 :])) for a in range(len(shape))]
    params[2] = axes(s for a, s in enumerate(strides) if a != axis)
    params[-1] = strides[axis]
    keys = positions = v.flat.view(np.uint32) if v.flat.dtype.itemsize == 4 else v.flat
    kind, flip = replace(dtype), FLIP if descending else 0
    while True:
        tiles = -(-whole // tile)
        params[5] = length = -(-whole // tiles)
        size = 1 << (length - 1).bit_length()
        to = (shape, np.int32) if tiles == 1 else ((lines, tiles * most), np.int32)
        kept = ((lines, tiles * most), np.uint32) if tiles > 1 else ((1,), np.uint32)
        last, groups = [size, most, flip, tiles, whole], -(-lines * tiles // (2048 // size))
        positions, keys = run(
            "sort.wgsl", [keys, positions], [to, kept], [*params, *last], groups, kind, "short", 3
        )
        if tiles == 1:
            return positions
        kind, flip, whole = replace(np.uint32, GIVEN=True), 0, tiles * most


def count(keys, shift, extra=0):
    """The counts of a pass over rows of keys, with tiles behind the end."""
    lines, length = keys.shape
    tiles = -(-length // 2048) + extra
    params, outs = [lines, length, tiles, shift], [((lines, 16, tiles), np.int32)]
    return run("radix_count.wgsl", [keys], outs, params, lines * tiles, limit=3)[0]


def radix(x, dtype, descending=False, extra=0):
    """The order of rows by a radix sort."""
    lines, length = x.shape
    _, params = layout(dense(x), 1)
    params += [0, 0, FLIP if descending else 0, 1, length]
    groups = -(-lines * length // 256)
    ins, outs = [x.reshape(-1)] * 2, [(x.shape, np.uint32), ((1,), np.uint32)]
    keys = run("sort.wgsl", ins, outs, params, groups, replace(dtype), "keys", 3)[0]
    positions = keys
    for k, shift in enumerate(BITS.get(dtype, range(32))[::4]):
        counts = count(keys, shift, extra)
        assert counts.sum() == x.size
        ends = counts.reshape(lines, -1).cumsum(1).astype(np.int32)
        blocks = -(-length // 2048)
        params = [lines, length, counts.shape[2], shift, blocks]
        outs = [(x.shape, np.uint32), (x.shape, np.int32)]
        first = {"const FIRST": f"const FIRST: bool = {str(k == 0).lower()};"}
        keys, positions = run(
            "radix_move.wgsl", [keys, positions, ends], outs, params, lines * blocks, first, limit=3
        )
    return positions


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", KINDS)
@few
@given(shape=shapes(1, 4, 9), seed=st.integers(0, 10**6))
def test_short_lines(dtype, descending, shape, seed):
    v, axis = view(seed, shape, np.float32 if dtype is np.uint32 else dtype), seed % len(shape)
    v.array[...] = hard(seed, shape, dtype).view(v.array.dtype)
    x = v.array.view(np.uint32) if dtype is np.uint32 else v.array
    np.testing.assert_array_equal(short(v, axis, dtype, descending), order(x, axis, descending))


@pytest.mark.parametrize("length", [1, 2, 3, 255, 256, 257, 1023, 1024, 1025, 2048])
def test_lengths_of_short_lines(length):
    x = hard(length, (5, length), np.float32)
    np.testing.assert_array_equal(short(dense(x), 1, np.float32), order(x, 1))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", KINDS)
@few
@given(shape=shapes(1, 3, 5), length=st.integers(3, 300), most=st.integers(1, 9), seed=st.integers(0, 10**6))
def test_the_first_of_long_lines(dtype, descending, shape, length, most, seed):
    """In small tiles, more than once; the last tile may have fewer elements than are wanted."""
    axis, most = seed % len(shape), min(most, length)
    x = hard(seed, tuple(length if a == axis else n for a, n in enumerate(shape)), dtype)
    want = order(x, axis, descending).take(range(most), axis)
    np.testing.assert_array_equal(short(dense(x), axis, dtype, descending, most, tile=20), want)


@pytest.mark.parametrize(("length", "most"), [(2049, 512), (2049, 1), (100_003, 300), (2_097_153, 7)])
def test_the_first_of_very_long_lines(length, most):
    x = hard(length, (1, length), np.float32)
    got = short(dense(x), 1, np.float32, True, most)
    np.testing.assert_array_equal(got, order(x, 1, True)[:, :most])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", KINDS)
def test_long_lines(dtype, descending):
    x = hard(1, (3, 5001), dtype)
    np.testing.assert_array_equal(radix(x, dtype, descending, int(descending)), order(x, 1, descending))


@pytest.mark.parametrize("length", [1, 7, 8, 2047, 2048, 2049, 70_000])
def test_lengths_of_long_lines(length):
    x = hard(length, (1, length), np.float32)
    np.testing.assert_array_equal(radix(x, np.float32), order(x, 1))


@pytest.mark.parametrize("shape", [(1,), (7,), (2048,), (2049,), (3, 5, 999), (2, 1, 2, 1, 1, 2, 3, 2)])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_nonzero(shape, share):
    mask = rng(3).random(shape) < share
    ends = count(mask.reshape(1, -1).astype(np.uint32), 0)[0, 1].cumsum().astype(np.int32)
    want = np.argwhere(mask).astype(np.int32)
    assert ends[-1] == len(want)
    params = [axes(shape), len(shape), mask.size]
    got = run("nonzero.wgsl", [mask, ends], [(want.shape, np.int32)], params, len(ends), limit=3)[0]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("length", [0, 1, 2, 8, 300])
def test_search(dtype, right, length):
    x, values = hard(2, (3, length), dtype), hard(3, (3, 101), dtype)
    x = np.take_along_axis(x, order(x, 1), 1)
    ranks = rank(np.concatenate([x, values], 1))
    side = "right" if right else "left"
    want = [np.searchsorted(r[:length], r[length:], side) for r in ranks]
    params, outs = [length, 101, 303, 0, 0], [((3, 101), np.int32)]
    got = run("search.wgsl", [x, values], outs, params, 2, replace(dtype, RIGHT=right), limit=3)[0]
    np.testing.assert_array_equal(got, want)


def test_search_of_numbers_from_zero_on():
    x = np.sort(rng(0).integers(-5, 20, 40, np.int32))
    table, outs = replace(np.int32, COUNTED=True), [((17,), np.int32)]
    got = run("search.wgsl", [x, x], outs, [40, 17, 17, 0, 0], 1, table, limit=3)[0]
    np.testing.assert_array_equal(got, np.searchsorted(x, np.arange(17)))


def running(x, axis, smallest):
    """The index of the last of the extreme elements so far."""
    ranks = rank(x)
    if smallest:
        ranks = np.where(np.isnan(x.astype(np.float64)), ranks, -1 - ranks)
    at = np.broadcast_to(
        np.moveaxis(np.arange(x.shape[axis])[(..., *[None] * (x.ndim - 1))], 0, axis), x.shape
    )
    top = np.maximum.accumulate(ranks, axis)
    return np.maximum.accumulate(np.where(ranks == top, at, 0), axis).astype(np.int32)


def argscan(v, axis, dtype, smallest, entry, count=1):
    """Running extremes of lines in about `count` blocks, the second half of them in the first launch."""
    lines, params = layout(v, axis)
    *head, length, x_off, x_step, out_off, out_step = params
    each = -(-length // count)
    count = -(-length // each)
    out, blocks = np.full(v.array.shape, 7, np.int32), np.zeros((lines, count, 2), np.uint32)
    table, halves = replace(dtype, SMALLEST=smallest), [(count // 2, count), (0, count // 2)]
    for way in ("best", entry) if count > 1 else (entry,):
        for first, end in halves if count > 1 else [(0, 1)]:
            start, groups = first * each, -(-lines // 256) if entry == "serial" else lines * (end - first)
            own = [min(end * each, length) - start, x_off + start * x_step, x_step]
            own += [out_off + start * out_step, out_step, count, each, first, end - first]
            out, blocks = run("argscan.wgsl", [v.flat], [out, blocks], head + own, groups, table, way, 3)
    return out


@pytest.mark.parametrize(("entry", "count"), [("serial", 1), ("tree", 1), ("tree", 3)])
@pytest.mark.parametrize("smallest", [False, True])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, BF16, np.bool_])
@few
@given(shape=shapes(1, 4, 9), seed=st.integers(0, 10**6))
def test_running_extremes(dtype, smallest, entry, count, shape, seed):
    v, axis = view(seed, shape, dtype), seed % len(shape)
    v.array[...] = hard(seed, shape, dtype)
    got = argscan(v, axis, dtype, smallest, entry, count)
    np.testing.assert_array_equal(got, running(v.array, axis, smallest))


@pytest.mark.parametrize(("entry", "count"), [("serial", 1), ("tree", 1), ("tree", 4), ("tree", 600)])
@pytest.mark.parametrize("length", [1, 255, 1024, 1025, 5000])
def test_running_extremes_of_long_lines(entry, count, length):
    v = dense(hard(length, (3, length), np.float32)[:, ::-1] * np.linspace(1, 9, length, dtype=np.float32))
    got = argscan(v, 1, np.float32, False, entry, count)
    np.testing.assert_array_equal(got, running(v.array, 1, False))


def best(mode, index, x, keys, shape, axis, fill, dtype, smallest=False):
    """scatter_best.wgsl over dense operands."""
    dense_strides = [[int(np.prod(s[a + 1 :])) for a in range(len(s))] for s in (index.shape, shape)]
    params = [axes(s) for s in (index.shape, dense_strides[0], dense_strides[0], dense_strides[1])]
    params += [index.ndim, index.size, 0, 0, axis, shape[axis], 0, shape[axis]]
    table = replace(dtype, SMALLEST=smallest) | {"const MODE": f"const MODE: u32 = {mode}u;"}
    outs = [np.full(shape, fill, np.int32), np.zeros(2, np.uint32)]
    return run("scatter_best.wgsl", [index, x, keys], outs, params, -(-index.size // 256), table, limit=2)


@pytest.mark.parametrize("smallest", [False, True])
@pytest.mark.parametrize("dtype", [np.int32, np.float32, BF16])
@few
@given(shape=shapes(1, 3, 9), seed=st.integers(0, 10**6))
def test_what_scattering_leaves(dtype, smallest, shape, seed):
    axis, length = seed % len(shape), 5
    x, index = hard(seed, shape, dtype), rng(seed).integers(-length, length, shape, np.int32)
    to = [*shape[:axis], length, *shape[axis + 1 :]]
    last, extreme = np.full(to, -1), np.full(to, -1)
    ranks = rank(x)
    if smallest:
        ranks = np.where(np.isnan(x.astype(np.float64)), ranks, -1 - ranks)
    for at in np.ndindex(*shape):
        place = (*at[:axis], index[at] % length, *at[axis + 1 :])
        last[place] = at[axis]
        old = (*at[:axis], extreme[place], *at[axis + 1 :])
        if extreme[place] < 0 or ranks[at] >= ranks[old]:
            extreme[place] = at[axis]
    got, status = best(0, index, index, index, to, axis, -1, dtype)
    np.testing.assert_array_equal(got, last)
    keys, _ = best(1, index, x, index, to, axis, -(2**31), dtype, smallest)
    got, _ = best(2, index, x, keys, to, axis, -1, dtype, smallest)
    np.testing.assert_array_equal(got, extreme)
    assert not status.any()


def test_scattering_reports_an_index_outside():
    index = np.array([1, -3, 0], np.int32)
    got, status = best(0, index, index, index, [2], 0, -1, np.int32)
    assert (got.tolist(), status.tolist()) == ([2, 0], [1, 0xFFFFFFFD])
