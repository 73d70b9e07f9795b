"""Unsigned 32-bit integers on a GPU against NumPy; the other widths are in
`tests/numbers/test_gpu_integer_types.py`."""

import operator

import numpy as np
import pytest
import wengert as wg

DEVICE = "gpu"


def some(seed: int, shape: tuple[int, ...] = (5, 7)) -> np.ndarray:
    """Numbers from the whole range, its ends among them."""
    x = np.random.default_rng(seed).integers(0, 2**32 - 1, shape, dtype="uint32", endpoint=True)
    x.flat[:4] = [0, 2**32 - 1, 2**31, 1]
    return x


def near(got: wg.Tensor, expected: np.ndarray) -> None:
    """Equal numbers of one type."""
    assert got.dtype == getattr(wg, np.asarray(expected).dtype.name)
    assert np.array_equal(got.cpu().numpy(), expected)


def test_numbers_go_there_and_back() -> None:
    x = some(0)
    near(wg.tensor(x).to(DEVICE), x)
    near(wg.tensor(x, device=DEVICE).mT.contiguous(), x.T)
    near(wg.full((3,), 2**32 - 1, dtype=wg.uint32, device=DEVICE), np.full(3, 2**32 - 1, "uint32"))
    near(wg.arange(4, dtype=wg.uint32, device=DEVICE), np.arange(4, dtype="uint32"))


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "sub",
        "mul",
        "floordiv",
        "mod",
        "lt",
        "ge",
        "eq",
        "ne",
        "and_",
        "or_",
        "xor",
        "lshift",
        "rshift",
    ],
)
def test_arithmetic_without_sign(name: str) -> None:
    f, a, b = getattr(operator, name), some(1), some(2)
    if name in ("floordiv", "mod"):
        b[b == 0] = 7
    if "shift" in name:
        b %= 32
    with np.errstate(all="ignore"):
        expected = f(a, b)
    near(f(wg.tensor(a, device=DEVICE), wg.tensor(b, device=DEVICE)), expected)


def test_functions_and_bounds() -> None:
    a, b = some(3), some(4)
    x, y = wg.tensor(a, device=DEVICE), wg.tensor(b, device=DEVICE)
    with np.errstate(all="ignore"):
        near(-x, -a)
        near(x.square(), a * a)
        near(x**3, a**3)
    near(x.abs(), a)
    near(x.sign(), np.sign(a))
    near(wg.maximum(x, y), np.maximum(a, b))
    near(wg.minimum(x, y), np.minimum(a, b))
    near(x.clamp(5, 3 * 10**9), a.clip(5, 3 * 10**9))
    near(wg.where(x > y, x, y), np.where(a > b, a, b))
    near(wg.gcd(x, y), np.gcd(a, b))


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions_and_scans(axis: int | None) -> None:
    for shape in ((6, 5), (3, 700)):
        a = some(5, shape)
        x, flat = wg.tensor(a, device=DEVICE), {} if axis is None else {"axis": axis}
        near(x.sum(**flat), np.asarray(a.sum(axis, dtype="uint32")))
        near(x.prod(**flat), np.asarray(a.prod(axis, dtype="uint32")))
        near(x.amax(**flat), np.asarray(a.max(axis)))
        near(x.amin(**flat), np.asarray(a.min(axis)))
        near(x.argmax(**flat), np.asarray(a.argmax(axis)).astype("int32"))
        if axis is not None:
            near(x.cumsum(axis), a.cumsum(axis, dtype="uint32"))
            near(x.sort(axis)[0], np.sort(a, axis))


def test_conversions() -> None:
    a = some(6)
    x = wg.tensor(a, device=DEVICE)
    near(x.float(), a.astype("float32"))
    near(x.int(), a.astype("int32"))
    near(x.bool(), a != 0)
    near(x.int().to(wg.uint32), a)
    floats = np.array([0.0, 1.9, 3e9, -1.5], "float32")
    near(wg.tensor(floats, device=DEVICE).to(wg.uint32), np.array([0, 1, 3 * 10**9, 2**32 - 1], "uint32"))
    near(wg.tensor([3, 4], dtype=wg.int32, device=DEVICE).half().to(wg.uint32), np.array([3, 4], "uint32"))


def test_as_indices() -> None:
    x = wg.arange(12.0, device=DEVICE)
    places = wg.tensor([3, 0, 11], dtype=wg.uint32, device=DEVICE)
    assert x[places].tolist() == [3.0, 0.0, 11.0]
    assert x.gather(0, places).tolist() == [3.0, 0.0, 11.0]
    with pytest.raises(IndexError):
        x[wg.tensor([2**32 - 1], dtype=wg.uint32, device=DEVICE)].tolist()


def test_membership_of_truth_values_and_integers() -> None:
    for dtype in (wg.bool, wg.int32):
        x = wg.tensor([[1, 0], [0, 1]], dtype=dtype, device=DEVICE)
        found = wg.isin(x, wg.tensor([1], dtype=dtype, device=DEVICE))
        assert found.tolist() == [[True, False], [False, True]]
