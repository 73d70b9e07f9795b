"""gather, scatter, pad and tri against NumPy."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shaders.host import BF16, axes, by_fours, close, epw, rng, run, types
from shaders.views import dense, few, random_values, shapes, view

STATUS = np.zeros(2, np.uint32)


def words(count, dtype):
    return -(-count // (256 * epw(dtype)))


def in_fours(v, dtype, number, inner, vector=False, compute="f32"):
    """The replacements for a kernel that writes by fours; `vector`: and reads so, if x lies so."""
    replace = {k: s for k, s in types(compute, x=v.flat.dtype).items() if k in ("alias T", "load x")}
    out = by_fours("out", f"read_write {number}", dtype, compute)
    replace |= out | {"const FOURS": f"const FOURS: bool = {str(inner % 4 == 0).lower()};"}
    if vector and inner % 4 == 0:
        assert v.strides[-1] == 1
        assert not any(n % 4 for n in [v.offset, *v.strides[:-1]])
        replace |= by_fours("x", "read 0", dtype, compute)
    return replace


def zeroed(strides, axis):
    return [0 if a == axis else s for a, s in enumerate(strides)]


def gather(v, index, axis, shape, index_strides, vector=False, part=None):
    """Gather into `shape`; index is a view, index_strides may broadcast it. `part`: from some places alone."""
    dtype, count = v.flat.dtype, int(np.prod(shape))
    params = [axes(shape), axes(zeroed(v.strides, axis)), axes(index_strides), len(shape), count]
    first, here = part or (0, v.array.shape[axis])
    params += [v.offset + first * v.strides[axis], index.offset, v.strides[axis] & 0xFFFFFFFF]
    params += [v.array.shape[axis], first, here]
    replace = in_fours(v, dtype, 2, shape[-1], vector)
    ins, outs, groups = [v.flat, index.flat], [(shape, dtype), STATUS], -(-count // 1024)
    return run("gather.wgsl", ins, outs, params, groups, replace, limit=2, fours=True)


@few
@given(shapes(1, 4, 7), st.integers(0, 10**6), st.sampled_from([np.float32, np.float16, BF16]))
def test_gather(shape, seed, dtype):
    g = rng(seed)
    v, axis = view(seed, shape, dtype), seed % len(shape)
    small = tuple(
        int(g.integers(1, n + 1)) if a != axis else int(g.integers(1, 12)) for a, n in enumerate(shape)
    )
    index = view(seed + 1, small, np.int32)
    index.flat[:] = g.integers(-shape[axis], shape[axis], index.flat.shape)
    got, status = gather(v, index, axis, small, index.strides)
    source = v.array[tuple(slice(0, n) if a != axis else slice(None) for a, n in enumerate(small))]
    want = np.take_along_axis(source.astype(np.float64), index.array % shape[axis], axis)
    np.testing.assert_array_equal(got.astype(np.float64), want)
    assert not status.any()


@few
@given(
    st.integers(1, 5),
    st.integers(1, 20),
    st.integers(1, 12),
    st.integers(1, 30),
    st.sampled_from([np.float32, np.float16, BF16]),
)
def test_take(outer, size, inner, count, dtype):
    v = view(outer + size, (outer, size, inner), dtype)
    index = dense(rng(count).integers(-size, size, count, np.int32))
    got, _ = gather(v, index, 1, (outer, count, inner), [0, 1, 0])
    np.testing.assert_array_equal(got, v.array[:, index.array])
    v = dense(random_values(inner, (outer, size, 4 * inner), dtype))
    index.flat[-1] = size  # outside
    got, status = gather(v, index, 1, (outer, count, 4 * inner), [0, 1, 0], vector=True)
    want = v.array[:, index.array % size]
    want[:, -1] = 0
    np.testing.assert_array_equal(got, want)
    assert status.tolist() == [1, size]


@few
@given(shapes(1, 3, 7), st.integers(0, 10**6))
def test_parts_of_an_axis_add_up(shape, seed):
    g = rng(seed)
    v, axis = view(seed, shape), seed % len(shape)
    size = shape[axis]
    index = view(seed + 1, shape, np.int32)
    index.flat[:] = g.integers(-size, size, index.flat.shape)
    whole, _ = gather(v, index, axis, shape, index.strides)
    cut = seed % (size + 1)
    first, second = (
        gather(v, index, axis, shape, index.strides, part=part)[0] for part in ((0, cut), (cut, size - cut))
    )
    here = index.array % size < cut
    np.testing.assert_array_equal(first, np.where(here, whole, 0))
    np.testing.assert_array_equal(second, np.where(here, 0, whole))


def test_gather_reports_outside():
    v = dense(np.arange(6, dtype=np.float32))
    got, status = gather(v, dense(np.array([0, 6, -6], np.int32)), 0, (3,), [1])
    assert got.tolist() == [0, 0, 0]
    assert status.tolist() == [1, 6]


def scatter(v, index, src, axis, index_strides, replace=None):
    dtype, count = v.flat.dtype, v.array.size
    params = [
        axes(v.array.shape),
        axes(src.array.shape),
        axes(v.strides),
        axes(src.strides),
        axes(index_strides),
    ]
    params += [v.array.ndim, count, v.offset, src.offset, index.offset, axis, src.array.shape[axis]]
    params += [v.array.shape[axis], 0, v.array.shape[axis]]
    replace = types(out=("out", dtype), x=dtype, src=src.flat.dtype) | dict(replace or {})
    outs = [(v.array.shape, dtype), STATUS]
    return run(
        "scatter.wgsl", [v.flat, index.flat, src.flat], outs, params, words(count, dtype), replace, limit=2
    )


@few
@given(shapes(1, 3, 7), st.integers(0, 10**6), st.sampled_from([np.float32, np.float16]))
def test_scatter_add(shape, seed, dtype):
    g = rng(seed)
    v, axis = view(seed, shape, dtype), seed % len(shape)
    small = tuple(
        int(g.integers(1, n + 1)) if a != axis else int(g.integers(1, 12)) for a, n in enumerate(shape)
    )
    index, src = view(seed + 1, small, np.int32), view(seed + 2, small, dtype)
    index.flat[:] = g.integers(-shape[axis], shape[axis], index.flat.shape)
    got, status = scatter(v, index, src, axis, index.strides)
    want = v.array.astype(np.float64)
    where = list(np.indices(small))
    where[axis] = index.array % shape[axis]
    np.add.at(want, tuple(where), src.array.astype(np.float64))
    close(got, want, dtype, scale=4)
    assert not status.any()


@few
@given(st.integers(1, 4), st.integers(1, 20), st.integers(1, 9), st.integers(1, 40))
def test_take_add(outer, size, inner, count):
    src = view(count, (outer, count, inner))
    index = dense(rng(count).integers(-size, size, count, np.int32))
    empty = dense(np.zeros((outer, size, inner), np.float32))
    got, _ = scatter(empty, index, src, 1, [0, 1, 0], {"const FROM_ZERO": "const FROM_ZERO: bool = true;"})
    want = np.zeros((outer, size, inner))
    np.add.at(want, (slice(None), index.array), src.array.astype(np.float64))
    close(got, want, scale=8)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@few
@given(st.integers(1, 3), st.integers(1, 20), st.integers(1, 150), st.integers(1, 600))
def test_scatter_rows(dtype, outer, size, words_per_row, count):
    inner = words_per_row * epw(dtype)
    src = random_values(count, (outer, count, inner), dtype)
    index = rng(count).integers(-size, size, count, np.int32)
    blocks = outer * size * -(-words_per_row // 256)
    outs = [((outer, size, inner), dtype), STATUS]
    replace = types(out=("out", dtype), src=dtype)
    params = [outer, count, inner, 0, 0, size, 0, size]
    got, status = run("scatter_rows.wgsl", [index, src], outs, params, blocks, replace, limit=2)
    want = np.zeros((outer, size, inner))
    np.add.at(want, (slice(None), index), src.astype(np.float64))
    close(got, want, dtype, scale=16)
    assert not status.any()
    cut = size // 2
    for first, here in ((0, cut), (cut, size - cut)):
        outs, params[-2:] = [((outer, here, inner), dtype), STATUS], [first, here]
        own, status = run("scatter_rows.wgsl", [index, src], outs, params, blocks, replace, limit=2)
        np.testing.assert_array_equal(own, got[:, first : first + here])
        assert not status.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@few
@given(st.integers(1, 3), st.integers(1, 20), st.integers(1, 150), st.integers(1, 600))
def test_scatter_of_sorted_rows(dtype, outer, size, words_per_row, count):
    inner = words_per_row * epw(dtype)
    src = random_values(count, (outer, count, inner), dtype)
    index = rng(count).integers(-size, size, count, np.int32)
    place = index % size
    order = np.argsort(place, kind="stable").astype(np.int32)
    starts = np.searchsorted(place[order], np.arange(size + 1)).astype(np.int32)
    blocks = outer * size * -(-words_per_row // 256)
    replace, params = types(out=("out", dtype), src=dtype), [outer, count, inner, 0, 0, size, 0, size]
    outs = [((outer, size, inner), dtype), STATUS]
    ins, groups = [index, order, starts, src], -(-outer * size * words_per_row // 256)
    got, status = run("scatter_sorted.wgsl", ins, outs, params, groups, replace, limit=2)
    assert not status.any()
    want, _ = run("scatter_rows.wgsl", [index, src], outs, params, blocks, replace, limit=2)
    np.testing.assert_array_equal(got, want)


def test_scatter_of_sorted_rows_reports_an_index_outside():
    index, src = np.array([0, 7, -1], np.int32), np.ones((1, 3, 1), np.float32)
    order, starts = np.array([0, 2, 1], np.int32), np.array([0, 1, 2], np.int32)
    outs, params = [((1, 2, 1), np.float32), STATUS], [1, 3, 1, 0, 0, 2, 0, 2]
    got, status = run("scatter_sorted.wgsl", [index, order, starts, src], outs, params, 1)
    assert (got.ravel().tolist(), status.tolist()) == ([1, 1], [1, 7])


@pytest.mark.parametrize(("start", "step", "count"), [(0, 1, 1000), (5, -3, 257), (-(2**31), 7, 1)])
def test_iota(start, step, count):
    got = run("iota.wgsl", [], [((count,), np.int32)], [count, start, step], -(-count // 256), limit=2)[0]
    np.testing.assert_array_equal(got, start + step * np.arange(count))


def test_scatter_assign_last_wins_and_reports():
    v, src = dense(np.zeros(4, np.float32)), dense(np.array([1, 2, 3, 4], np.float32))
    assign = {"fn plus": "fn plus(a: T, b: T) -> T { return b; }"}
    got, status = scatter(v, dense(np.array([2, -2, 0, 9], np.int32)), src, 0, [1], assign)
    assert got.tolist() == [3, 0, 2, 0]
    assert status.tolist() == [1, 9]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
@few
@given(shape=shapes(1, 4, 6), seed=st.integers(0, 10**6))
def test_pad(dtype, shape, seed):
    g = rng(seed)
    v = view(seed, shape, dtype)
    step = g.choice([-2, -1, 1, 3], len(shape))
    size = [int(n) for n in g.integers(1, 9, len(shape))]
    start = g.integers(-2, 9, len(shape))
    compute = "i32" if dtype == np.int32 else "f32"
    fill = 7 if dtype == np.int32 else 7.5
    want = np.full(size, fill, dtype)
    for at in np.ndindex(*shape):
        to = start + step * np.array(at)
        if (to >= 0).all() and (to < size).all():
            want[tuple(to)] = v.array[at]
    params = [
        axes(size),
        axes(shape),
        axes(v.strides),
        axes(start),
        axes(step),
        len(shape),
        want.size,
        v.offset,
        fill,
    ]
    replace, groups = in_fours(v, dtype, 1, size[-1], compute=compute), -(-want.size // 1024)
    (got,) = run("pad.wgsl", [v.flat], [(want.shape, dtype)], params, groups, replace, limit=2, fours=True)
    np.testing.assert_array_equal(got, want)


@few
@given(shapes(2, 4, 8), st.integers(-9, 9), st.booleans(), st.sampled_from([np.float32, BF16]))
def test_tri(shape, diagonal, upper, dtype):
    for vector in (False, True):
        v = view(sum(shape), shape, dtype)
        if vector:
            v = dense(random_values(sum(shape), (*shape[:-1], 4 * shape[-1]), dtype))
        params = [axes(v.array.shape), axes(v.strides), len(shape), v.array.size, v.offset, diagonal]
        replace = in_fours(v, dtype, 1, v.array.shape[-1], vector)
        replace["const UPPER"] = f"const UPPER: bool = {str(upper).lower()};"
        outs, groups = [(v.array.shape, dtype)], -(-v.array.size // 1024)
        (got,) = run("tri.wgsl", [v.flat], outs, params, groups, replace, limit=2, fours=True)
        want = (np.triu if upper else np.tril)(v.array.astype(np.float32), diagonal)
        np.testing.assert_array_equal(got.astype(np.float32), want)


def test_values_survive_bit_for_bit():
    v = dense(
        np.concatenate([random_values(1, (9,), np.float32), [np.inf, -np.inf, np.nan, 1e-30]]).astype(
            np.float32
        )
    )
    got, _ = gather(v, dense(np.arange(13, dtype=np.int32)), 0, (13,), [1])
    np.testing.assert_array_equal(got, v.array)
