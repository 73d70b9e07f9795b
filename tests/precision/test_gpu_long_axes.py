"""Long axes on a GPU: loops longer than a driver lets an invocation run, and the digits of long products."""

import numpy as np
import pytest
import wengert as wg
from wengert.nn import functional as F

LONG = 65600


@pytest.mark.parametrize("dtype", [wg.float32, wg.int32, wg.float16], ids=str)
def test_a_long_index(dtype: wg.dtype) -> None:
    i = np.arange(LONG) % 3
    index = wg.tensor(i, dtype=wg.int32).gpu()
    ones = wg.ones(LONG, device="gpu", dtype=dtype)
    found = wg.zeros(3, device="gpu", dtype=dtype).scatter_add(0, index, ones)
    want = wg.tensor(np.bincount(i).astype(np.float32)).to(dtype)
    assert found.dtype == dtype
    assert found.tolist() == want.tolist()


def test_along_an_axis_and_across_others() -> None:
    rng = np.random.default_rng(0)
    i, source = rng.integers(0, 2, (2, LONG, 2)), rng.integers(-3, 4, (2, LONG, 2)).astype(np.float32)
    found = wg.zeros(2, 2, 2, device="gpu").scatter_add(
        1, wg.tensor(i, dtype=wg.int32).gpu(), wg.tensor(source).gpu()
    )
    want = np.zeros((2, 2, 2))
    for row in range(2):
        np.add.at(want[row], (i[row], np.arange(2)[None]), source[row])
    np.testing.assert_array_equal(found.tolist(), want)


@pytest.mark.parametrize("kind", ["amax", "amin", "mean", "sum", "prod"])
def test_reductions_by_index(kind: str) -> None:
    i, x = np.arange(LONG) % 3, np.arange(LONG, dtype=np.float32) % 7 - 3
    x[x == 0] = 1.0
    if kind == "prod":
        x = np.sign(x)
    index, source = wg.tensor(i, dtype=wg.int32), wg.tensor(x)
    want = wg.zeros(3).scatter_reduce(0, index.long(), source, kind, include_self=False)
    found = wg.zeros(3).gpu().scatter_reduce(0, index.gpu(), source.gpu(), kind, include_self=False)
    np.testing.assert_allclose(found.tolist(), want.tolist(), rtol=1e-6)


def test_many_rows_for_one() -> None:
    # All of them go to the same row of the gradient.
    x = wg.zeros(2, 3, device="gpu", requires_grad=True)
    index = wg.ones(LONG, dtype=wg.int32, device="gpu")
    x.index_select(0, index).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3, [float(LONG)] * 3]


def test_the_gradient_of_a_long_gather() -> None:
    order = np.random.default_rng(1).permutation(LONG)
    x = wg.zeros(LONG, device="gpu", requires_grad=True)
    weight = np.arange(LONG) % 5
    # A shorter stretch of places keeps the work small: it is the length of the index that counts.
    index = wg.tensor(order % 11, dtype=wg.int32).gpu()
    small = wg.zeros(11, device="gpu", requires_grad=True)
    (small.gather(0, index) * wg.tensor(weight.astype(np.float32)).gpu()).sum().backward()
    np.testing.assert_array_equal(small.grad.tolist(), np.bincount(order % 11, weight, 11))
    assert x.grad is None


def test_a_long_recurrence() -> None:
    decay = wg.full((LONG,), 0.5, device="gpu")
    assert wg.linear_recurrence(wg.ones(LONG, device="gpu"), decay)[-1].item() == 2.0
    rng = np.random.default_rng(2)
    d, x = (
        rng.uniform(0.9, 1.0, (2, LONG)).astype(np.float32),
        rng.standard_normal((2, LONG)).astype(np.float32),
    )
    want = np.zeros((2, LONG))
    state = np.zeros(2)
    for k in range(LONG):
        state = d[:, k].astype(np.float64) * state + x[:, k]
        want[:, k] = state
    found = wg.linear_recurrence(wg.tensor(x).gpu(), wg.tensor(d).gpu(), -1)
    np.testing.assert_allclose(found.cpu().numpy(), want, rtol=2e-7, atol=1e-6)


@pytest.mark.parametrize("length", [10, 1000, LONG])
def test_the_digits_of_a_recurrence(length: int) -> None:
    rng = np.random.default_rng(length)
    d, x = rng.uniform(0.99, 1.0, length).astype(np.float32), rng.uniform(0.5, 1.0, length).astype(np.float32)
    state, want = 0.0, np.zeros(length)
    for k in range(length):
        state = float(d[k]) * state + float(x[k])
        want[k] = state
    found = wg.linear_recurrence(wg.tensor(x).gpu(), wg.tensor(d).gpu()).cpu().numpy()
    assert np.abs(found / want - 1).max() < 1.2e-7


@pytest.mark.parametrize("shape", [(10,), (1000,), (LONG,), (3, 1500)])
def test_the_digits_of_a_product(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).uniform(0.98, 1.0201, shape).astype(np.float32)
    want = np.cumprod(x.astype(np.float64), -1)
    found = wg.tensor(x).gpu().cumprod(-1).cpu().numpy()
    assert np.abs(found / want - 1).max() < 1.2e-7
    steady = np.full(shape, 1.00001, np.float32)
    found = wg.tensor(steady).gpu().cumprod(-1).cpu().numpy()
    assert np.abs(found / np.cumprod(steady.astype(np.float64), -1) - 1).max() < 1.2e-7


@pytest.mark.parametrize("shape", [(1_000_000,), (3, 70_001), (70_001, 2)], ids=str)
def test_long_lines_are_shared(shape: tuple[int, ...]) -> None:
    """By several workgroups: two launches."""
    x = np.random.default_rng(0).uniform(0.98, 1.0201, shape).astype(np.float32)
    there, axis = wg.tensor(x).gpu(), int(np.argmax(shape))
    with wg.gpu.profile() as profile:
        sums, products = there.cumsum(axis), there.cumprod(axis)
        wg.gpu.synchronize()
    calls: dict[str, int] = {}
    for row in profile.kernels:
        calls[row.kernel] = calls.get(row.kernel, 0) + row.calls
    assert calls == {"scan_sum": 2, "scan_prod": 2}
    exact = x.astype(np.float64)
    assert np.abs(products.cpu().numpy() / exact.cumprod(axis) - 1).max() < 1.2e-7
    assert np.abs(sums.cpu().numpy() / exact.cumsum(axis) - 1).max() < 1e-6
    again = [there.cumsum(axis).cpu().numpy(), there.cumprod(axis).cpu().numpy()]
    for found, other in zip((sums, products), again, strict=True):
        np.testing.assert_array_equal(found.cpu().numpy(), other)


@pytest.mark.parametrize("length", [3000, 70_000])
@pytest.mark.parametrize("lines", [1, 20_000])
def test_products_whose_parts_are_beyond_the_range(length: int, lines: int) -> None:
    """Those of a thousand of these factors are; the CPU has float64 on the way."""
    if lines > 1:
        length = 300
    rest = np.ones(length - 250)
    for head in ([0.0, *[3.0] * 249], [2.0] * 125 + [0.25] * 125, [np.inf] + [0.01] * 249):
        x = wg.tensor(np.r_[head, rest].astype(np.float32)).expand(lines, length)
        np.testing.assert_array_equal(x.gpu().cumprod(1)[-1].cpu().numpy(), x.cumprod(1)[-1].numpy())


def test_products_beyond_the_range() -> None:
    x = wg.tensor([1e30, 1e30, 0.5, -2.0, 1e-40, 0.0, 3.0])
    found = x.gpu().cumprod(0).tolist()
    assert found == x.cumprod(0).tolist()
    assert found[:4] == [np.float32(1e30), np.inf, np.inf, -np.inf]
    assert found[4] == pytest.approx(-1e20, rel=1e-4)
    assert found[5:] == [0.0, 0.0]
    assert wg.tensor([2.0, 0.0, 5.0]).gpu().cumprod(0).tolist() == [2.0, 0.0, 0.0]
    big = wg.linear_recurrence(wg.full((3,), 3e38).gpu(), wg.tensor([0.0, 2.0, -1.0]).gpu())
    assert big.tolist() == [np.float32(3e38), np.inf, -np.inf]
    # Integers wrap as they did.
    assert wg.tensor([2, 3, -4], dtype=wg.int32).gpu().cumprod(0).tolist() == [2, 6, -24]


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("x", "y"),
    [((2, 70_000), (70_000, 3)), ((2, 3, 70_000), (2, 70_000, 2)), ((1, 600_000), (600_000, 1))],
    ids=["matrices", "a batch", "vectors"],
)
def test_a_long_sum_of_products(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    a, b = noise(*x), noise(*y)
    want = a.astype(np.float64) @ b
    scale = np.abs(a).astype(np.float64) @ np.abs(b)
    found = wg.tensor(a).gpu() @ wg.tensor(b).gpu()
    assert (np.abs(found.cpu().numpy() - want) < 1e-6 * scale).all()


def test_a_long_sum_of_products_of_halves_and_integers() -> None:
    ones = wg.ones(2, 70_000, device="gpu")
    assert (ones.half() * 0.5 @ ones.half().mT).tolist() == [[float(np.float16(35_000))] * 2] * 2
    assert (ones.int() @ ones.int().mT).tolist() == [[70_000] * 2] * 2


def test_the_gradient_of_a_long_batch() -> None:
    x, g = noise(70_000, 2), noise(70_000, 3)
    w = wg.zeros(2, 3, device="gpu", requires_grad=True)
    (wg.tensor(x).gpu() @ w).backward(wg.tensor(g).gpu())
    want = x.astype(np.float64).T @ g
    np.testing.assert_allclose(w.grad.tolist(), want, rtol=0, atol=1e-6 * 70_000)


@pytest.mark.parametrize("what", ["taps", "channels"])
def test_a_long_sum_of_a_convolution(what: str) -> None:
    n = 70_000
    x, w = {
        "taps": (noise(1, 1, n + 1), noise(1, 1, n)),
        "channels": (noise(1, n, 1), noise(5, n, 1)),
    }[what]
    found = F.conv1d(wg.tensor(x).gpu(), wg.tensor(w).gpu()).cpu().numpy()
    want = F.conv1d(*[wg.tensor(v.astype(np.float64)) for v in (x, w)]).numpy()
    scale = F.conv1d(*[wg.tensor(np.abs(v).astype(np.float64)) for v in (x, w)]).numpy()
    assert (np.abs(found - want) < 1e-6 * scale).all()


REFUSED = "is a software adapter, which runs loops of at most 65535 rounds"


@pytest.mark.parametrize("what", ["a window", "keys", "keys of a gradient"])
def test_what_has_no_parts_is_right_or_refused(what: str) -> None:
    n = 70_000
    f, x = {
        "a window": (lambda x: F.max_pool1d(x, n), [np.arange(n + 1, dtype=np.float32)[None, None]]),
        "keys": (F.scaled_dot_product_attention, [noise(1, 3, 8), noise(1, n, 8), noise(1, n, 8)]),
        "keys of a gradient": (
            wg.grad(lambda q, k, v: F.scaled_dot_product_attention(q, k, v).sum()),
            [noise(1, 3, 8), noise(1, n, 8), noise(1, n, 8)],
        ),
    }[what]
    want = f(*[wg.tensor(v) for v in x]).numpy()
    operands = [wg.tensor(v).gpu() for v in x]
    if wg.gpu.info()["device_type"] == "software":
        with pytest.raises(wg.DeviceError, match=REFUSED):
            f(*operands)
        return
    np.testing.assert_allclose(f(*operands).cpu().numpy(), want, rtol=1e-4, atol=1e-4 * np.abs(want).max())
