"""softmax*.wgsl and cross_entropy*.wgsl against NumPy, over every row class, dtype and ragged width."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shaders.host import BF16, by_fours, close, epw, rng, run, shuffles, subgroups, types
from shaders.views import few

SHAPES = [
    (1, 1),
    (3, 5),
    (70, 16),
    (5, 255),
    (2, 256),
    (3, 300),
    (2, 1024),
    (3, 1025),
    (2, 4096),
    (2, 4099),
    (1, 9001),
    (2, 33000),
]
#: Lanes per row, and the most fours that each of them holds, as a host may choose them.
FORCED = [None, (4, 1), (16, 2), (64, 3), (256, 1), (256, 4)]


class Rows:
    """How rows are distributed over threads; split into parts where they do not fit."""

    def __init__(self, rows, cols, forced=None, most=4):
        lanes, most = forced or (next((n for n in (4, 16, 64) if cols <= 16 * n), 256), most)
        if cols > 4 * lanes * most:
            lanes = 256
        self.rows, self.cols, self.lanes = rows, cols, lanes
        self.slots = min(-(-cols // (4 * lanes)), most)
        self.parts = -(-cols // (4 * lanes * self.slots))
        self.groups = -(-rows * self.parts // (256 // lanes))

    def constants(self, split, size):
        """The replacements for one dispatch, with subgroups of at least `size` threads."""
        numbers = dict(LANES=self.lanes, SLOTS=self.slots, SPLIT=split, SUBGROUP=size)
        return {f"const {name}": f"const {name}: u32 = {n}u;" for name, n in numbers.items()} | shuffles(size)

    def variants(self, replace, **rows):
        """The replacements with subgroups of 4 to 64 threads and without and, where rows are multiples of
        four, by vectors too; `rows` are the bindings of rows by name, with number and dtype, `out` is an
        output."""
        sizes = [*subgroups(), (16, 32, 64)[self.cols % 3]]
        for size in sizes:
            yield size, replace
        if self.cols % 4 == 0:
            own = {k: v for k, v in replace.items() if k != "const EPW"}
            own["const FOURS"] = "const FOURS: bool = true;"
            for name, (number, dtype) in rows.items():
                own |= by_fours(name, f"{'read_write' if name == 'out' else 'read'} {number}", dtype)
            if "out" in rows:
                own["store out"] = "fn store_out(w: u32, v: vec2<T>) { store4_out(w, v.xyxy); } // never"
            yield sizes[-2], own

    def once(self, file, ins, outs, params, replace, groups, split=0, fours=False, **rows):
        """Run a file in one dispatch in every variant: the same bits each time."""
        found = None
        for size, own in self.variants(replace, **rows):
            own = own | self.constants(split, size)
            found = same(found, run(file, ins, outs, params, groups, own, "main", 2, fours))
        return found

    def run(self, file, ins, outs, params, replace, terms=2, limit=65535, groups=None, last=None, **rows):
        """Run a file in one or two dispatches in every variant.

        `terms` is the number of words that a part comes to, `last` the groups of a second dispatch."""
        found = None
        for size, own in self.variants(replace, **rows):
            spare = ((self.rows * self.parts, terms), np.float32)
            for split in [1, 2] if self.parts > 1 else [0]:
                count = last if split == 2 and last else groups or self.groups
                constants = self.constants(split, size)
                *got, spare = run(file, ins, [*outs, spare], params, count, own | constants, "main", limit)
            found = same(found, got)
        return found


def same(found, got):
    """`got`, which has the bits of `found`, if there is that."""
    for a, b in zip(got if found is None else found, got, strict=True):
        np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))
    return got


def even(cols, dtype):
    unit = epw(dtype)
    return -(-cols // unit) * unit


def softmax(x, log=False, dtype=np.float32, cols=None, stride=None, limit=65535, forced=None):
    rows = Rows(x.shape[0], cols or x.shape[1], forced)
    replace = types(out=("out", dtype), x=x.dtype) | {"const LOG": f"const LOG: bool = {str(log).lower()};"}
    width = even(rows.cols, dtype)
    params = [rows.rows, rows.cols, rows.parts, stride or x.shape[1], width]
    outs, bound = [((rows.rows, width), dtype)], dict(x=(0, x.dtype), out=(1, dtype))
    (got,) = rows.run("softmax.wgsl", [x], outs, params, replace, limit=limit, **bound)
    return got[:, : rows.cols]


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


@few
@given(
    rows=st.integers(1, 5),
    cols=st.integers(512, 30_000) | st.sampled_from([65_536, 524_288, 524_291]),
    forced=st.sampled_from(FORCED),
    log=st.booleans(),
)
def test_rows_of_any_length_in_every_layout(rows, cols, forced, log):
    rows = min(rows, 1 + 100_000 // cols)
    x = (rng(cols).standard_normal((rows, cols)) * 5).astype(np.float32)
    want = reference(x)[log]
    got = softmax(x, log, forced=forced, limit=7).astype(np.float64)
    assert ((got - want) ** 2).sum() <= 1e-10 * (want**2).sum()
    assert (np.abs(got - want) <= 1e-6 * (1 + np.abs(want))).all()
    np.testing.assert_array_equal(got, softmax(x, log, forced=forced))


def backward(y, cot, log=False, dtype=np.float32, forced=None):
    rows = Rows(*y.shape, forced)
    width = even(rows.cols, dtype)
    replace = {"const LOG": f"const LOG: bool = {str(log).lower()};"}
    replace |= types(out=("out", dtype), y=y.dtype, g=cot.dtype)
    params = [rows.rows, rows.cols, rows.parts, rows.cols, rows.cols, width]
    outs, bound = [((rows.rows, width), dtype)], dict(y=(0, y.dtype), g=(1, cot.dtype), out=(2, dtype))
    return rows.run("softmax_backward.wgsl", [y, cot], outs, params, replace, 1, **bound)[0][:, : rows.cols]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("forced", [None, (16, 2), (256, 1)])
def test_backward(shape, log, forced):
    g = rng(5)
    x, cot = g.standard_normal(shape).astype(np.float32), g.standard_normal(shape).astype(np.float32)
    y = reference(x)[1 if log else 0].astype(np.float32)
    got = backward(y, cot, log, forced=forced)
    y, cot = y.astype(np.float64), cot.astype(np.float64)
    total = (cot if log else cot * y).sum(1, keepdims=True)
    close(got, cot - np.exp(y) * total if log else y * (cot - total), scale=4)


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize("cols", [31, 32, 4444, 4445])
def test_backward_half(dtype, cols):
    g = rng(6)
    y, cot = g.random((5, cols)).astype(dtype) / dtype(cols), g.standard_normal((5, cols)).astype(dtype)
    got = backward(y, cot, dtype=dtype)
    y, cot = y.astype(np.float64), cot.astype(np.float64)
    close(got, y * (cot - (cot * y).sum(1, keepdims=True)), dtype, scale=4)


def entropy(x, target, ignore=-100, forced=None, parts=1):
    rows = Rows(*x.shape, forced)
    replace = {"load x": types(x=x.dtype)["load x"]}
    outs = [((rows.rows,), np.float32), ((rows.rows, 2), np.float32), np.zeros(2, np.uint32)]
    block = 4 * rows.lanes * rows.slots
    length = -(-rows.cols // (parts * block)) * block
    rows.parts = -(-rows.cols // length)
    params = [rows.rows, rows.cols, rows.parts, length, rows.cols, ignore]
    count = -(-rows.rows * rows.parts // (256 // rows.lanes))
    bound = dict(groups=count, last=rows.rows, x=(0, x.dtype))
    return rows.run("cross_entropy.wgsl", [x, target], outs, params, replace, **bound)


def entropy_backward(x, target, terms, g, ignore=-100):
    rows, cols = x.shape
    width, fours = even(cols, x.dtype), -(-cols // 4)
    params = [rows, cols, fours, cols, width, ignore, 1, 2]
    replace = types(out=("out", x.dtype), x=x.dtype)
    between = np.repeat(np.append(0, g), 2)[1:].astype(np.float32)
    outs, ins, count = [((rows, width), x.dtype)], [x, target, terms, between], -(-rows * fours // 256)
    file = "cross_entropy_backward.wgsl"
    (got,) = run(file, ins, outs, params, count, replace)
    if cols % 4 == 0:
        replace = by_fours("x", "read 0", x.dtype) | by_fours("out", "read_write 4", x.dtype)
        replace["const FOURS"] = "const FOURS: bool = true;"
        replace["store out"] = "fn store_out(w: u32, v: vec2<T>) { store4_out(w, v.xyxy); } // never"
        np.testing.assert_array_equal(got, run(file, ins, outs, params, count, replace)[0])
    return got[:, :cols]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16])
@pytest.mark.parametrize(("forced", "parts"), [(None, 1), ((256, 2), 1), ((256, 1), 3)])
@pytest.mark.parametrize("shape", [(1, 1), (7, 10), (40, 63), (3, 700), (2, 5003), (33, 8), (2, 40_000)])
def test_cross_entropy(shape, dtype, forced, parts):
    g = rng(7)
    rows, cols = shape
    x = g.standard_normal(shape).astype(dtype)
    target = g.integers(0, cols, rows, np.int32)
    target[1::3] = -100
    keep = target != -100
    loss, terms, status = entropy(x, target, forced=forced, parts=parts)
    logp = reference(x)[1]
    want = np.where(keep, -logp[np.arange(rows), np.where(keep, target, 0)], 0)
    close(loss, want, scale=8)
    close(terms.sum(1), x.astype(np.float64)[:, 0] - logp[:, 0], scale=8)
    assert not status.any()
    cot = g.standard_normal(rows).astype(np.float32)
    want = (np.exp(logp) - (np.arange(cols) == target[:, None])) * np.where(keep, cot, 0)[:, None]
    close(entropy_backward(x, target, terms, cot), want, dtype, scale=2)


def test_cross_entropy_reports_bad_targets_and_masked_logits():
    x = np.array([[-np.inf, 1, 2], [0, 0, 0]], np.float32)
    loss, terms, status = entropy(x, np.array([1, 3], np.int32))
    close(loss, [np.log1p(np.e), 0])
    assert status.tolist() == [1, 3]
    assert np.isfinite(terms).all()
