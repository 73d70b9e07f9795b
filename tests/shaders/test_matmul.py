"""matmul.wgsl, linear.wgsl and dot.wgsl against NumPy: every tile, layouts, batches, ragged edges, dtypes,
parts of k, few rows, what follows a product."""

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shaders.host import BF16, as_halves, axes, by_fours, close, epw, has_halves, load, rng, run, types
from shaders.views import few

#: TILE_M, TILE_N, DEPTH, BUFFERS.
TILES = [(64, 64, 16, 2), (64, 64, 32, 1), (128, 128, 16, 1), (128, 128, 8, 2), (128, 64, 16, 1)]
TILES += [(64, 128, 8, 2), (32, 128, 16, 1), (128, 32, 8, 2)]
SIZE = st.integers(1, 70)
#: Sizes at which nothing is left over, and whatever else.
ROWS = SIZE | st.sampled_from([64, 128])
DTYPES = [np.float32, np.float16, BF16]
#: What may follow a product: the sums of the rows of x.
ROW_SUMS = (None, "return x;", False)


@dataclass(frozen=True)
class Way:
    """How a product is computed: its tile, or the slices of the kernel for few rows; the parts of k;
    whether operands and results are bound by vectors where they can be; whether operands are f16."""

    tile: tuple[int, int, int, int] = TILES[0]
    slices: int = 0
    parts: int = 1
    fours: bool = True
    halves: bool = False


WAYS = st.builds(Way, st.sampled_from(TILES), st.just(0), st.integers(1, 3), st.booleans())


def constants(**values):
    """The replacements that give constants these values."""
    kind = {bool: ("bool", ""), int: ("u32", "u")}
    text = {name: (*kind[type(value)], str(value).lower()) for name, value in values.items()}
    return {f"const {n}": f"const {n}: {kind} = {value}{unit};" for n, (kind, unit, value) in text.items()}


def operand(name, number, array, strides, offset, along_k, way):
    """The replacements of an operand; strides: outer, inner, and the two of which one may be 1."""
    table = types(**{name: array.dtype}) | constants(**{f"{'AB'[number]}_ALONG_K": along_k})
    others = sorted([*strides[:2], offset, *strides[2:]], key=lambda s: s == 1)
    if way.fours and others[-1] == 1 and all(s % 4 == 0 for s in others[:-1]):
        table |= by_fours(name, f"read {number}", array.dtype)
    table = {key: line for key, line in table.items() if name in key or "ALONG" in key}
    return table | (as_halves((name, number, f"load4 {name}" in table)) if way.halves else {})


def result(name, number, dtype, in_fours, compute):
    """The replacements of an output."""
    if not in_fours:
        return {key: line for key, line in types(compute, (name, dtype)).items() if key != "alias T"}
    one = f"fn store_{name}(w: u32, v: vec2<T>) {{ store4_{name}(w, v.xyxy); }}"
    table = by_fours(name, f"read_write {number}", dtype, compute) | {f"store {name}": one}
    return {key: re.sub(r"(store|bf16)_word", rf"\1_{name}_word", line) for key, line in table.items()}


def product(
    x,
    y,
    x_strides,
    y_strides,
    batch,
    sizes,
    way,
    dtype=np.float32,
    compute="f32",
    offsets=(0, 0),
    finish=None,
):
    """x and y, flat, with (outer, inner, row, column) strides; returns [batch, m, n], with `finish` (bias or
    None, the body of a function) also the sums, or with SUMS_A the sums of the rows of x."""
    (m, n, k), count = sizes, batch[0] * batch[1]
    columns = 1024 // way.slices if way.slices else way.tile[1]
    tiles = (1, -(-n // columns)) if way.slices else (-(-m // way.tile[0]), -(-n // columns))
    part = max(-(-k // way.parts // 16), 1) * 16 * (way.tile[2] // 16 or 1)
    parts = -(-k // part) or 1
    inputs = {"alias T": f"alias T = {compute};"}
    inputs |= operand("x", 0, x, x_strides, offsets[0], x_strides[3] == 1, way)
    inputs |= operand("y", 1, y, y_strides, offsets[1], y_strides[2] == 1, way)
    if way.slices:
        inputs |= constants(ROW_QUADS=-(-m // 4), SLICES=way.slices, SINGLE=m == 1)
    else:
        whole = k > 0 and all(size % side == 0 for size, side in zip((m, n, k), way.tile))
        inputs |= constants(**dict(zip(("TILE_M", "TILE_N", "DEPTH", "BUFFERS"), way.tile)), WHOLE=whole)
    entry, groups = "thin" if way.slices else "main", count * tiles[0] * tiles[1] * parts
    row, wide, limit = -(-n // epw(dtype)) * epw(dtype), -(-n // 4) * 4, 3 if m % 2 else 65535

    def params(width, bias_steps=(0, 0)):
        operands = [offsets[0], *x_strides, offsets[1], *y_strides]
        behind = -(-m // 4) * 4 if finish is ROW_SUMS else 0
        apart = [count * m * wide + behind, m * width, width, 1, 0, *bias_steps]
        return [m, n, k, count, batch[1], *tiles, parts, part, *operands, *apart]

    if finish is ROW_SUMS:
        inputs |= constants(SUMS_A=True)
    in_fours = way.fours and n % 4 == 0
    if parts > 1:
        sums = {"f32": np.float32, "i32": np.int32}[compute]
        first = inputs | result("out", 2, sums, True, compute) | constants(FOURS=True)
        apart = params(wide)[-7]
        x = run("matmul.wgsl", [x, y], [((parts, apart), sums)], params(wide), groups, first, entry, limit)[0]
        inputs = types(compute, y=y.dtype) | by_fours("x", "read 0", sums, compute)
        inputs |= constants(SUMS_A=finish is ROW_SUMS)
        entry, groups = "parts", -(-apart // 1024)
    last = inputs | constants(FOURS=in_fours)
    outs = [((count, m, row), dtype)]
    if finish is None:
        last |= result("out", 2, dtype, in_fours, compute)
        return run("matmul.wgsl", [x, y], outs, params(row), groups, last, entry, limit)[0][:, :, :n]
    bias, body, by_rows = finish
    last |= result("out", 3, dtype, in_fours, compute)
    last |= result("sum", 4, dtype, in_fours or finish is ROW_SUMS, compute)
    last |= {"fn op": f"fn op(x: T) -> T {{ {body} }}"}
    last |= constants(MORE=bias is not None, SUM=finish is not ROW_SUMS)
    if bias is not None:
        typed = {"load more": load("more", bias.dtype)}
        fours = way.fours and not by_rows
        last |= by_fours("more", "read 2", bias.dtype) if fours else typed
        last |= as_halves(("more", 2, fours)) if "halves S" in last else {}
    ins = [x, y, np.zeros(1, np.float32) if bias is None else bias]
    if finish is ROW_SUMS:
        outs = [*outs, ((m,), dtype)]
        found = run("linear.wgsl", ins, outs, params(row), groups, last, entry, limit, fours=True)
        return found[0][:, :, :n], found[1]
    found = run(
        "linear.wgsl", ins, outs * 2, params(row, (1, 0) if by_rows else (0, 1)), groups, last, entry, limit
    )
    return [y[:, :, :n] for y in found]


def operands(g, batch, m, n, k, turned, dtype=np.float32):
    """Random matrices, flat with their strides, and as float64; each stored as its transpose if `turned`."""
    x = g.standard_normal((batch, k, m) if turned[0] else (batch, m, k)).astype(dtype)
    y = g.standard_normal((batch, n, k) if turned[1] else (batch, k, n)).astype(dtype)
    strides = [(0, m * k, 1, m) if turned[0] else (0, m * k, k, 1)]
    strides += [(0, n * k, 1, k) if turned[1] else (0, n * k, n, 1)]
    wide = [z.swapaxes(1, 2) if t else z for z, t in zip((x, y), turned)]
    return [x, y, *strides], [z.astype(np.float64) for z in wide]


def within(got, x, y, dtype=np.float32, constant=4.0):
    """Whether every element is within a few roundings of the sum of the products' magnitudes."""
    want, unit = x @ y, {2: 2.0**-8 if np.dtype(dtype) == np.dtype(BF16) else 2.0**-11}
    bound = constant * 2.0**-24 * (np.abs(x) @ np.abs(y)) * max(x.shape[-1], 1) ** 0.5
    bound += unit.get(np.dtype(dtype).itemsize, 0.0) * np.abs(want) + 1e-30
    assert (np.abs(got.astype(np.float64) - want) <= bound).all()


@few
@given(WAYS, ROWS, ROWS, ROWS | st.just(0), st.tuples(st.booleans(), st.booleans()), st.integers(1, 2))
def test_layouts(way, m, n, k, turned, batch):
    given_, wide = operands(rng(m * n + k), batch, m, n, k, turned)
    within(product(*given_, (1, batch), (m, n, k), way), *wide)


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
def test_whole_tiles(tile, turned):
    way, sizes = Way(tile), (tile[0], tile[1] * 2, 64)
    given_, wide = operands(rng(tile[0]), 1, *sizes, turned)
    got = product(*given_, (1, 1), sizes, way)
    within(got, *wide)
    np.testing.assert_array_equal(product(*given_, (1, 1), sizes, way), got)
    ragged = product(*given_, (1, 1), sizes, replace(way, fours=False, parts=2))
    within(ragged, *wide)


@pytest.mark.parametrize("dtype", DTYPES[1:])
@few
@given(WAYS, ROWS, ROWS, SIZE, st.tuples(st.booleans(), st.booleans()))
def test_half(dtype, way, m, n, k, turned):
    given_, wide = operands(rng(m + n + k), 1, m, n, k, turned, dtype)
    within(product(*given_, (1, 1), (m, n, k), way, dtype), *wide, dtype)
    within(product(*given_, (1, 1), (m, n, k), way), *wide)


@pytest.mark.skipif(not has_halves(), reason="shaders have no f16 on this adapter")
@few
@given(
    WAYS | st.builds(Way, slices=st.sampled_from([8, 256]), fours=st.booleans()),
    ROWS,
    ROWS,
    SIZE | st.sampled_from([64, 200]),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from([None, ROW_SUMS, "bias"]),
)
def test_operands_of_type_f16_give_the_same_bits(way, m, n, k, turned, finish):
    if way.slices:
        m, turned, finish = 1 + m % 16, (turned[0], way.slices > 8), None if finish is ROW_SUMS else finish
    given_, wide = operands(rng(m + n + k), 1, m, n, k, turned, np.float16)
    # Of some operands all are subnormal.
    given_[0] = given_[0] * np.float16(2.0**-16 if k % 3 == 0 else 1)
    bias = rng(n).standard_normal(n).astype(np.float16)
    finish = (bias, "return max(x, T()) * 2.0;", False) if finish == "bias" else finish
    got, want = (
        product(*given_, (1, 1), (m, n, k), replace(way, halves=halves), np.float16, finish=finish)
        for halves in (True, False)
    )
    for x, y in zip(*([got], [want]) if finish is None else (got, want), strict=True):
        np.testing.assert_array_equal(x.view(np.uint16), y.view(np.uint16))
    if finish is None and k % 3:
        within(got, *wide, np.float16)


@pytest.mark.skipif(not has_halves(), reason="shaders have no f16 on this adapter")
def test_halves_have_room_for_two_steps():
    """What float32 has of a large tile in 16 KiB is one step, of the same bits."""
    sizes = (130, 70, 100)
    given_, wide = operands(rng(0), 1, *sizes, (True, False), np.float16)
    got = product(*given_, (1, 1), sizes, Way((128, 128, 16, 2), halves=True), np.float16)
    within(got, *wide, np.float16)
    want = product(*given_, (1, 1), sizes, Way((128, 128, 16, 1)), np.float16)
    np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))


@pytest.mark.parametrize("dtype", DTYPES)
@few
@given(
    st.sampled_from([8, 32, 256]),
    st.integers(1, 16) | st.just(1),
    SIZE | st.sampled_from([4, 128, 260]),
    st.integers(0, 300) | st.sampled_from([512, 1024]),
    st.tuples(st.booleans(), st.booleans()),
    st.integers(1, 3),
    st.booleans(),
)
def test_few_rows(dtype, slices, m, n, k, turned, parts, fours):
    given_, wide = operands(rng(m + n + k), 2, m, n, k, (turned[0], slices > 8), dtype)
    way = Way(slices=slices, parts=parts, fours=fours)
    within(product(*given_, (1, 2), (m, n, k), way, dtype), *wide, dtype)


@pytest.mark.parametrize("way", [Way(), Way(TILES[2]), Way(slices=8)])
def test_broadcast_batches_and_offsets(way):
    g = rng(0)
    x, y = g.standard_normal((3, 1, 5, 7)).astype(np.float32), g.standard_normal((2, 7, 9)).astype(np.float32)
    got = product(x, y, (35, 0, 7, 1), (0, 63, 9, 1), (3, 2), (5, 9, 7), way)
    close(got.reshape(3, 2, 5, 9), x.astype(np.float64) @ y, scale=8)
    got = product(x, y, (0, 0, 14, 2), (0, 0, 9, 1), (1, 1), (2, 9, 3), way, offsets=(1, 63))
    want = x[0, 0].reshape(-1)[[[1, 3, 5], [15, 17, 19]]].astype(np.float64) @ y[1, :3]
    close(got[0], want, scale=8)
    # A window of padded rows: by vectors, although nothing is a multiple of four.
    x, y = g.standard_normal((6, 12)).astype(np.float32), g.standard_normal((7, 16)).astype(np.float32)
    got = product(x, y, (0, 0, 12, 1), (0, 0, 16, 1), (1, 1), (5, 9, 7), way, offsets=(4, 4))
    close(got[0], x[:5, 4:11].astype(np.float64) @ y[:, 4:13], scale=8)


@pytest.mark.parametrize("way", [Way(), Way(TILES[3], parts=2), Way(slices=32)])
def test_integers(way):
    g = rng(1)
    x, y = g.integers(-9999, 9999, (13, 33), np.int32), g.integers(-9999, 9999, (17, 33), np.int32)
    got = product(x, y, (0, 0, 33, 1), (0, 0, 1, 33), (1, 1), (13, 17, 33), way, np.int32, "i32")
    np.testing.assert_array_equal(got[0], x @ y.T)


@pytest.mark.parametrize("way", [Way(), Way(slices=8)])
def test_special_values_stay_where_they_are(way):
    x, y = np.ones((6, 5), np.float32), np.ones((5, 6), np.float32)
    x[2, 1], y[3, 4] = np.inf, np.nan
    got = product(x, y, (0, 0, 5, 1), (0, 0, 6, 1), (1, 1), (6, 6, 5), way)[0]
    # NumPy warns of infinities on some processors.
    with np.errstate(invalid="ignore"):
        want = x @ y
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("tile_rows", [3, 9, 17])
def test_bands_of_tiles(tile_rows):
    m, n = tile_rows * 128 - 100, 300
    given_, wide = operands(rng(tile_rows), 1, m, n, 3, (False, False))
    within(product(*given_, (1, 1), (m, n, 3), Way(TILES[2])), *wide)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "way", [Way(), Way(TILES[2], parts=2), Way(slices=32), Way(slices=8, parts=2, fours=False)]
)
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("n", [12, 17])
def test_what_follows(dtype, way, has_bias, by_rows, n):
    g, m, k = rng(n), 14, 40
    given_, (x, y) = operands(g, 1, m, n, k, (False, way.slices > 8), dtype)
    bias = g.standard_normal(m if by_rows else n).astype(dtype) if has_bias else None
    finish = (bias, "return max(x, T()) * 2.0;", by_rows)
    out, sums = product(*given_, (1, 1), (m, n, k), way, dtype, finish=finish)
    want = x @ y
    if bias is not None:
        want = want + (bias[:, None] if by_rows else bias).astype(np.float64)
    close(sums, want, dtype, scale=k**0.5)
    close(out, np.maximum(want, 0.0) * 2.0, dtype, scale=2 * k**0.5)


@pytest.mark.parametrize("dtype", DTYPES)
@few
@given(WAYS, ROWS, ROWS, SIZE | st.sampled_from([64, 200]), st.tuples(st.booleans(), st.booleans()))
def test_sums_of_rows(dtype, way, m, n, k, turned):
    given_, (x, y) = operands(rng(m + n + k), 1, m, n, k, turned, dtype)
    got, sums = product(*given_, (1, 1), (m, n, k), way, dtype, finish=ROW_SUMS)
    within(got, x, y, dtype)
    within(sums[None, :, None], x, np.ones((1, k, 1)), dtype)


@few
@given(st.lists(st.integers(1, 40), min_size=4, max_size=4), st.booleans(), st.integers(0, 10**6))
def test_dot(sizes, turned, seed):
    """Products of integers, whose sums wrap."""
    b, m, k, n = sizes
    x, y = (
        rng(seed + i).integers(-(2**31), 2**31, s, np.int32) for i, s in enumerate([(b, m, k), (b, k, n)])
    )
    given_ = np.swapaxes(y, 1, 2).copy() if turned else y
    step, across = (1, k) if turned else (n, 1)
    params = [axes((b, m, n)), axes((m * k, k, 0)), axes((k * n, 0, across)), 3, b * m * n, 0, 0, k, 1, step]
    outs = [((b, m, n), np.int32)]
    (got,) = run("dot.wgsl", [x, given_], outs, params, -(-b * m * n // 256), limit=2)
    np.testing.assert_array_equal(got, np.matmul(x, y))
