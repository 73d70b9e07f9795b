"""Tensors of several MiB against NumPy. Under `WENGERT_GPU_LIMITS=small` a kernel binds 1 MiB of one, so that
these work in pieces; `test_gpu_limits.py` runs them so.
"""

import os

import numpy as np
import pytest
import wengert as wg

F = wg.nn.functional
IS_SMALL = os.environ.get("WENGERT_GPU_LIMITS") == "small"
RNG = np.random.default_rng(11)


def noise(*shape: int, dtype: str = "float32") -> np.ndarray:
    if dtype == "int32":
        return RNG.integers(-50, 50, shape).astype(dtype)
    return RNG.standard_normal(shape, dtype=np.float32).astype(dtype)


def gpu(x: np.ndarray) -> wg.Tensor:
    return wg.tensor(x).to("gpu")


def same(got: wg.Tensor, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(got.cpu().numpy(), expected)


def near(got: wg.Tensor, expected: np.ndarray, relative: float = 1e-5) -> None:
    assert got.shape == expected.shape
    scale = np.abs(expected).max()
    assert np.abs(got.cpu().float().numpy() - expected).max() <= relative * scale


SHAPES = [(700_001,), (3, 300_001), (1030, 1031), (2, 3, 5, 40_009)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_elementwise(shape: tuple[int, ...], dtype: str) -> None:
    a, b, row = noise(*shape, dtype=dtype), noise(*shape, dtype=dtype), noise(shape[-1], dtype=dtype)
    x, y = gpu(a), gpu(b)
    same(x, a)
    near(x + y, a.astype("float32") + b, 1e-3)
    near(x * gpu(row), a.astype("float32") * row, 1e-3)
    same(x > y, a > b)
    same(wg.where(x > y, x, y), np.where(a > b, a, b))
    near(x.float(), a.astype("float32"))
    same((x > 0).int(), (a > 0).astype("int32"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_layouts(dtype: str) -> None:
    a = noise(1030, 1031, dtype=dtype)
    x = gpu(a)
    same(x.T.contiguous(), np.ascontiguousarray(a.T))
    same(x.flip(0, 1).contiguous(), a[::-1, ::-1])
    same(x[1:, 3::2].contiguous(), a[1:, 3::2])
    same(x.T + x[:, :1].T, a.T + a[:, :1].T)
    same(x[1029], a[1029])
    same(wg.cat([x, x[:3]]), np.concatenate([a, a[:3]]))
    same(gpu(a[:1]).expand(900, 1031).contiguous(), np.broadcast_to(a[:1], (900, 1031)))
    y = x.clone()
    y[5:, 2::3] = x[5:, :343]
    b = a.copy()
    b[5:, 2::3] = a[5:, :343]
    same(y, b)
    y[:, 1000:] = 7
    b[:, 1000:] = 7
    same(y, b)


def test_fills_and_ranges() -> None:
    same(wg.full((600_003,), 2.5, device="gpu"), np.full(600_003, 2.5, "float32"))
    same(wg.arange(600_003, dtype=wg.int32, device="gpu") * 3 - 5, np.arange(600_003, dtype="int32") * 3 - 5)
    same(wg.arange(5, 1_800_014, 3, dtype=wg.int32, device="gpu"), np.arange(5, 1_800_014, 3, dtype="int32"))


@pytest.mark.parametrize("draw", [wg.rand, wg.randn])
def test_random_numbers_are_those_of_the_cpu(draw) -> None:
    wg.manual_seed(5)
    expected = draw(700_001).numpy()
    wg.manual_seed(5)
    near(draw(700_001, device="gpu"), expected, 1e-5)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions(shape: tuple[int, ...]) -> None:
    a = noise(*shape)
    x = gpu(a)
    exact = a.astype("float64")
    for dim in (None, *range(len(shape))):
        size = np.abs(exact).sum(dim).max()
        assert np.abs(x.sum(dim).cpu().numpy() - exact.sum(dim)).max() <= 1e-6 * size, dim
        same(x.amax(dim) if dim is not None else x.max(), a.max(dim))
        same(x.amin(dim) if dim is not None else x.min(), a.min(dim))
        same(x.argmax(dim), a.argmax(dim).astype("int32"))
        same(x.argmin(dim), a.argmin(dim).astype("int32"))
        assert x.sum(dim, keepdim=True).shape == exact.sum(dim, keepdims=True).shape
    same((x > 5).any(), (a > 5).any())
    same((x > -9).all(0), (a > -9).all(0))


def test_the_first_nan_wins_and_the_first_of_equal_ones() -> None:
    a = np.zeros(900_000, "float32")
    assert gpu(a).argmax().item() == 0
    a[[100, 800_000]] = 3
    assert gpu(a).argmax().item() == 100
    a[850_000] = np.nan
    assert gpu(a).argmax().item() == 850_000
    a[[20, 600_000]] = np.nan
    assert gpu(a).argmax().item() == 20
    assert np.isnan(gpu(a).max().item())


def softmax(a: np.ndarray) -> np.ndarray:
    e = np.exp(a - a.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("shape", [(1500, 701), (3, 700, 333)], ids=str)
def test_rows(shape: tuple[int, ...]) -> None:
    a, g, w = noise(*shape), noise(*shape), noise(shape[-1])
    x = gpu(a).requires_grad_()
    y = x.softmax(-1)
    p = softmax(a.astype("float64"))
    near(y.detach(), p)
    (y * gpu(g)).sum().backward()
    near(x.grad, p * (g - (p * g).sum(-1, keepdims=True)), 1e-4)
    x.grad = None
    weight = gpu(w).requires_grad_()
    bias = gpu(w * 2).requires_grad_()
    y = F.layer_norm(x, (shape[-1],), weight, bias)
    h = a.astype("float64")
    h = (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + 1e-5)
    near(y.detach(), h * w + w * 2)
    (y * gpu(g)).sum().backward()
    lead = tuple(range(len(shape) - 1))
    near(weight.grad, (g.astype("float64") * h).sum(lead), 1e-4)
    near(bias.grad, g.astype("float64").sum(lead), 1e-4)
    d = g.astype("float64") * w
    rstd = 1 / np.sqrt(a.astype("float64").var(-1, keepdims=True) + 1e-5)
    near(x.grad, rstd * (d - d.mean(-1, keepdims=True) - h * (d * h).mean(-1, keepdims=True)), 1e-4)
    x.grad, weight.grad = None, None
    y = F.rms_norm(x, (shape[-1],), weight, 1e-5)
    rstd = 1 / np.sqrt((a.astype("float64") ** 2).mean(-1, keepdims=True) + 1e-5)
    h = a * rstd
    near(y.detach(), h * w)
    (y * gpu(g)).sum().backward()
    near(weight.grad, (g.astype("float64") * h).sum(lead), 1e-4)
    near(x.grad, rstd * (d - h * (d * h).mean(-1, keepdims=True)), 1e-4)


def test_cross_entropy() -> None:
    a, classes = noise(1500, 701), RNG.integers(0, 701, 1500).astype("int32")
    x = gpu(a).requires_grad_()
    loss = F.cross_entropy(x, gpu(classes))
    p = softmax(a.astype("float64"))
    rows = np.arange(1500)
    near(loss.detach(), -np.log(p[rows, classes]).mean())
    loss.backward()
    p[rows, classes] -= 1
    near(x.grad, p / 1500, 1e-4)


@pytest.mark.parametrize(
    ("m", "k", "n"), [(3000, 130, 70), (70, 130, 3000), (1100, 40, 1100), (64, 9000, 64), (1, 900, 700)]
)
def test_products(m: int, k: int, n: int) -> None:
    a, b = noise(m, k), noise(k, n)
    near(gpu(a) @ gpu(b), a.astype("float64") @ b, 1e-4)
    near(gpu(a.T.copy()).T @ gpu(b.T.copy()).T, a.astype("float64") @ b, 1e-4)


def test_batches_of_products() -> None:
    a, b = noise(6, 300, 200), noise(6, 200, 300)
    near(gpu(a) @ gpu(b), a.astype("float64") @ b, 1e-4)
    near(gpu(a) @ gpu(b[0]), a.astype("float64") @ b[0], 1e-4)


def test_optimisers_and_norms() -> None:
    a = noise(700_001)
    there, here = gpu(a).requires_grad_(), wg.tensor(a).requires_grad_()
    for x in (there, here):
        optimiser = wg.optim.AdamW([x], lr=0.1)
        for _ in range(2):
            optimiser.zero_grad()
            (x * x).sum().backward()
            optimiser.step()
    near(there.detach(), here.detach().numpy())
    norm = wg.nn.utils.clip_grad_norm_([there], 1.0)
    near(norm, np.float64(np.linalg.norm(here.grad.numpy().astype("float64"))), 1e-4)


def test_views_beyond_the_first_piece() -> None:
    a = noise(1_000_000)
    x = gpu(a)
    for start in (0, 1, 127, 262_144, 524_287, 999_990):
        same(x[start : start + 7] * 2, a[start : start + 7] * 2)


@pytest.mark.parametrize("shape", [(900_001,), (3, 300_001), (1030, 1031), (2, 5, 3, 40_009)], ids=str)
def test_scans(shape: tuple[int, ...]) -> None:
    a = RNG.uniform(0.98, 1.0201, shape).astype("float32")
    x, exact, whole = gpu(a), a.astype("float64"), noise(*shape, dtype="int32")
    for axis in range(len(shape)):
        near(x.cumsum(axis), exact.cumsum(axis), 1e-6)
        products = x.cumprod(axis).cpu().numpy()
        assert np.abs(products / exact.cumprod(axis) - 1).max() < 1.2e-7, axis
        same(gpu(whole).cumsum(axis), whole.cumsum(axis, dtype="int32"))
        same(gpu(whole).long().cumsum(axis), whole.cumsum(axis, dtype="int64"))
        half = wg.tensor(whole % 3).half()
        same(half.gpu().cumsum(axis), half.cumsum(axis).numpy())


def test_scans_of_a_line_that_is_a_view() -> None:
    a = noise(1_800_003, dtype="int32")
    same(gpu(a)[3::2].cumsum(0), a[3::2].cumsum(dtype="int32"))
    same(gpu(a).flip(0).cumsum(0), a[::-1].cumsum(dtype="int32"))


@pytest.mark.parametrize(("shape", "axis"), [((3, 130_001), 1), ((600, 501), 0), ((2, 200, 3, 251), 1)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64"])
def test_order(dtype: str, shape: tuple[int, ...], axis: int) -> None:
    a = RNG.integers(-999, 999, shape).astype(dtype)
    x = gpu(a)
    values, order = x.sort(axis)
    want = np.argsort(a, axis, kind="stable")
    same(order, want.astype("int32"))
    same(values, np.take_along_axis(a, want, axis))
    down = np.argsort(-a.astype("float64"), axis, kind="stable")
    same(x.topk(150, axis).indices, down.take(range(150), axis).astype("int32"))
    if dtype != "int64":
        same(x.cummax(axis).values, np.maximum.accumulate(a, axis))
        same(x.cummin(axis).values, np.minimum.accumulate(a, axis))


def test_the_first_of_one_long_line() -> None:
    a = RNG.integers(-99_999, 99_999, 1_000_001).astype("float32")
    a[[5, 700_000]] = np.nan
    for largest in (True, False):
        # NaN is the largest.
        key = np.where(np.isnan(a), np.inf, a)
        want = np.argsort(-key if largest else key, kind="stable")[:40_000]
        found = gpu(a).topk(40_000, largest=largest)
        same(found.indices, want.astype("int32"))
        same(found.values, a[want])
    x = gpu(np.nan_to_num(a)).requires_grad_()
    x.topk(3000).values.sum().backward()
    mark = np.zeros_like(a)
    mark[np.argsort(-np.nan_to_num(a), kind="stable")[:3000]] = 1
    same(x.grad, mark)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "complex64"])
def test_reading_by_index(dtype: str) -> None:
    """From a long line, from rows, along rows, and more elements than the source has."""
    line = noise(1_200_001).astype(dtype)
    at = RNG.integers(-len(line), len(line), (700, 900)).astype("int32")
    same(gpu(line)[gpu(at)], line[at])
    same(gpu(line).gather(0, gpu(at.ravel())), line[at.ravel()])
    table, rows = noise(9001, 67).astype(dtype), RNG.integers(-9001, 9001, 11_003)
    same(gpu(table)[gpu(rows)], table[rows])
    same(gpu(table).index_select(0, gpu(rows[:5] % 9001)), table[rows[:5]])
    columns = RNG.integers(-67, 67, (9001, 80)).astype("int32")
    same(gpu(table).gather(1, gpu(columns)), np.take_along_axis(table, columns % 67, 1))
    lines = RNG.integers(0, 9001, (300, 60)).astype("int32")
    same(gpu(table).gather(0, gpu(lines)), np.take_along_axis(table[:, :60], lines, 0))
    same(gpu(table).index_select(1, gpu(columns[0] % 67)), table[:, columns[0]])
    same(gpu(table.T.copy()).T[gpu(rows)], table[rows])


def test_an_index_outside_of_a_long_axis() -> None:
    x, at = gpu(noise(1_200_001)), np.zeros(9, "int32")
    for bad in (1_200_001, -1_200_002):
        at[4] = bad
        with pytest.raises(IndexError, match=f"index {bad} is out of range for an axis of size 1200001"):
            x.gather(0, gpu(at)).cpu()
        with pytest.raises(IndexError, match=f"index {bad} is out of range for an axis of size 1200001"):
            x.scatter_add(0, gpu(at), x[:9]).cpu()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_adding_by_index(dtype: str) -> None:
    def added(shape: tuple[int, ...], at: tuple, source: np.ndarray) -> np.ndarray:
        out = np.zeros(shape, "float64")
        np.add.at(out, at, source)
        return out.astype(dtype)

    line, at = noise(300_001, dtype="int32") % 4, RNG.integers(-700_001, 700_001, 300_001).astype("int32")
    source = line.astype(dtype)
    zeros = wg.zeros(700_001, dtype=getattr(wg, dtype), device="gpu")
    same(zeros.scatter_add(0, gpu(at), gpu(source)), added((700_001,), (at,), source))
    few, near_by = source[:40_000], at[:40_000] % 7
    same(zeros[:9].scatter_add(0, gpu(near_by), gpu(few)), added((9,), (near_by,), few))
    rows, table = RNG.integers(-5001, 5001, 4603), np.zeros((5001, 67), dtype)
    own = (noise(4603, 67, dtype="int32") % 4).astype(dtype)
    there = gpu(table).index_add(0, gpu(rows % 5001), gpu(own))
    same(there, added(table.shape, (rows,), own))
    at = RNG.integers(0, 5001, (4603, 60)).astype("int32")
    columns = np.broadcast_to(np.arange(60), at.shape)
    there = gpu(table).scatter_add(0, gpu(at), gpu(own[:, :60].copy()))
    same(there, added(table.shape, (at, columns), own[:, :60]))


def test_gradients_of_reading_by_index() -> None:
    table, rows = noise(5001, 67), RNG.integers(-5001, 5001, 4603)
    upstream = (noise(4603, 67, dtype="int32") % 5).astype("float32")
    want = np.zeros_like(table)
    np.add.at(want, rows, upstream)
    x = gpu(table).requires_grad_()
    (x[gpu(rows)] * gpu(upstream)).sum().backward()
    same(x.grad, want)


def test_writing_by_index() -> None:
    at = RNG.integers(0, 700, (1200, 601)).astype("int32")
    source, base = noise(1200, 601), noise(700, 601)
    columns = np.broadcast_to(np.arange(601), at.shape)
    want = base.copy()
    np.maximum.at(want, (at, columns), source)
    same(gpu(base).scatter_reduce(0, gpu(at), gpu(source), "amax"), want)
    want = base.copy()
    want[at, columns] = source
    same(gpu(base).scatter(0, gpu(at), gpu(source)), want)
    line, few = noise(900_001), RNG.integers(0, 900_001, 5000).astype("int32")
    want = line.copy()
    np.minimum.at(want, few, source.ravel()[:5000])
    same(gpu(line).scatter_reduce(0, gpu(few), gpu(source).reshape(-1)[:5000], "amin"), want)


def test_finding() -> None:
    a = noise(700, 3, 401)
    for least in (1, -1):
        same((gpu(a) > least).nonzero(), np.argwhere(a > least).astype("int32"))
    same(gpu(a)[gpu(a) > 1], a[a > 1])
    line = noise(900_001)
    same(gpu(line)[gpu(line) > 2], line[line > 2])
    edges = np.sort(noise(5000))
    same(wg.searchsorted(gpu(edges), gpu(line)), np.searchsorted(edges, line).astype("int32"))
    rows, values = np.sort(noise(600, 501)), noise(600, 700)
    want = np.stack([np.searchsorted(r, v) for r, v in zip(rows, values, strict=True)])
    same(wg.searchsorted(gpu(rows), gpu(values)), want.astype("int32"))


def test_slices_and_triangles() -> None:
    a = noise(1030, 1031)
    x = gpu(a).requires_grad_()
    (x[3:900, 5::2] * 2).sum().backward()
    want = np.zeros_like(a)
    want[3:900, 5::2] = 2
    same(x.grad, want)
    for diagonal in (0, 300, -400):
        same(x.detach().tril(diagonal), np.tril(a, diagonal))
        same(x.detach().triu(diagonal), np.triu(a, diagonal))
    x.grad = None
    x.tril().sum().backward()
    same(x.grad, np.tril(np.ones_like(a)))
    same(F.pad(gpu(a), (1, 2, 3, 4), value=7), np.pad(a, ((3, 4), (1, 2)), constant_values=7))


CONVOLUTIONS = {
    "many images": ((9, 5, 90, 91), (6, 5, 3, 3), 1),
    "large results": ((4, 2, 90, 91), (40, 2, 3, 3), 1),
    "large images": ((1, 40, 101, 100), (3, 40, 3, 3), 1),
    "many weights": ((2, 300, 5, 5), (310, 300, 3, 3), 1),
    "groups": ((1, 64, 80, 81), (128, 2, 3, 3), 32),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    shape, of_weight, groups = CONVOLUTIONS[name]
    a, w = noise(*shape), noise(*of_weight)
    found = []
    for move in (lambda x: wg.tensor(x).double(), gpu):
        x, weight = move(a).requires_grad_(), move(w).requires_grad_()
        y = F.conv2d(x, weight, stride=(1, 2), padding=1, groups=groups)
        g = np.random.default_rng(0).standard_normal(tuple(y.shape), np.float32)
        (y * move(g)).sum().backward()
        found.append([y.detach(), x.grad, weight.grad])
    for want, got in zip(*found, strict=True):
        near(got, want.numpy())


def test_pooling() -> None:
    a = noise(5, 40, 63, 64)
    found = []
    for move in (wg.tensor, gpu):
        x = move(a).requires_grad_()
        y = F.max_pool2d(x, 3, 2, 1)
        (y * y).sum().backward()
        found.append([y.detach(), x.grad])
    for want, got in zip(*found, strict=True):
        near(got, want.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_running_extremes_of_one_line(dtype: str) -> None:
    a = noise(900_001).astype(dtype)
    for place in (0, 899_000):
        a[place] = 1 if dtype == "int32" else 0.5
        for x, want in ((gpu(a), a), (gpu(a).flip(0), a[::-1])):
            same(x.cummax(0).values, np.maximum.accumulate(want))
            found = x.cummin(0)
            same(found.values, np.minimum.accumulate(want))
            places = np.where(want == np.minimum.accumulate(want), np.arange(len(a)), 0)
            same(found.indices, np.maximum.accumulate(places).astype("int32"))


def test_a_recurrence_of_one_line() -> None:
    decay, a = RNG.uniform(0, 1, 600_001).astype("float32"), noise(600_001)
    want = a.astype("float64").tolist()
    for i, d in enumerate(decay.tolist()):
        if i:
            want[i] += d * want[i - 1]
    near(wg.linear_recurrence(gpu(a), gpu(decay)), np.array(want))
    near(wg.linear_recurrence(gpu(a).flip(0).flip(0), gpu(decay)), np.array(want))


def test_recurrences() -> None:
    decay, a = RNG.uniform(0.5, 1, (900, 701)).astype("float32"), noise(900, 701)
    want = a.astype("float64")
    for i in range(1, 701):
        want[:, i] += decay[:, i] * want[:, i - 1]
    near(wg.linear_recurrence(gpu(a), gpu(decay), -1), want)


#: What takes a line, or a plane, whole.
WHOLE = {
    "sort": lambda x: x.sort(),
    "softmax": lambda x: x.reshape(1, -1).softmax(-1),
    "search": lambda x: wg.searchsorted(x, x[:5]),
    "scatter_best": lambda x: x[:9].scatter(0, wg.zeros_like(x, dtype=wg.int32), x),
    "conv": lambda x: F.conv1d(x.reshape(1, 1, -1), x[:3].reshape(1, 1, 3)),
    "max_pool": lambda x: F.max_pool1d(x.reshape(1, 1, -1), 2),
}


@pytest.mark.skipif(not IS_SMALL, reason="only small limits refuse a tensor of this size")
@pytest.mark.parametrize("name", WHOLE)
def test_what_cannot_work_in_pieces_says_so(name: str) -> None:
    x = gpu(noise(600_000))
    text = rf"{name} takes a tensor of 2400000 bytes whole, and a kernel here binds at most 1048576 bytes "
    text += r"of one \(max_storage_buffer_binding_size\); compute it in parts"
    with pytest.raises(MemoryError, match=text):
        WHOLE[name](x)
    same(x[:5], x.cpu().numpy()[:5])


def test_long_uploads() -> None:
    """Longer than a staging buffer, more than two of them, an odd number of halves."""
    for n in (10_000_001, 30_000_001):
        a = (np.arange(n, dtype="uint32") * 40503).astype("uint16").view("float16")
        got = gpu(a).cpu().numpy()
        np.testing.assert_array_equal(got.view("uint16"), a.view("uint16"))
