"""Assignment to elements of a tensor on a GPU, by every kind of key: NumPy's answers, and the CPU's
gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg

MASK = np.array([[True, False, True, False], [False] * 4, [True] * 4])

KEYS: dict[str, Any] = {
    "a list": [0, 2],
    "a list twice the same": [1, 1, 0],
    "negative": [-1, 0],
    "two lists": ([0, 2, 0], [1, -1, 1]),
    "a list behind a slice": (slice(None), [3, 0]),
    "a list and an integer": ([2, 0], 1),
    "a list behind a slice that steps": (slice(None, None, -2), [3, 0]),
    "a mask": MASK,
    "a mask of rows": np.array([True, False, True]),
    "a mask that holds nowhere": np.zeros((3, 4), bool),
    "no index": np.zeros(0, int),
}


def key_of(key: Any, device: str) -> Any:
    """The key, with arrays as tensors on a device."""
    if isinstance(key, np.ndarray):
        return wg.tensor(key, dtype=wg.bool if key.dtype == bool else wg.int32, device=device)
    return key


@pytest.mark.parametrize("where", ["cpu", "gpu"], ids=["a key on the CPU", "a key on the GPU"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
@pytest.mark.parametrize("name", KEYS)
def test_of_numbers_and_of_tensors(name: str, dtype: str, where: str) -> None:
    key = KEYS[name]
    start = np.arange(12).reshape(3, 4).astype(dtype)
    for value in (np.array(50), np.arange(start[key].size).reshape(start[key].shape) + 20):
        want = start.copy()
        want[key] = value
        x = wg.tensor(start, device="gpu")
        x[key_of(key, where)] = wg.tensor(value.astype(dtype), device="gpu")
        assert str(x.device) == "gpu:0"
        np.testing.assert_array_equal(x.tolist(), want)
        x = wg.tensor(start.T, device="gpu").mT
        x[key_of(key, where)] = wg.tensor(value.astype(dtype), device="gpu")
        np.testing.assert_array_equal(x.tolist(), want)


@pytest.mark.parametrize("name", KEYS)
def test_gradients(name: str) -> None:
    key = KEYS[name]
    rng = np.random.default_rng(0)
    start, weight = rng.standard_normal((2, 3, 4))
    value = rng.standard_normal(start[key].shape)

    def f(x: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
        y = x * 1.0
        y[key_of(key, str(x.device.type))] = v * 2.0
        return (y * wg.tensor(weight, dtype=wg.float32, device=x.device)).sum()

    slopes = []
    for device in ("cpu", "gpu"):
        given = [wg.tensor(v, dtype=wg.float32, device=device) for v in (start, value)]
        slopes.append([g.tolist() for g in wg.grad(f, argnums=(0, 1))(*given)])
    for found, want in zip(slopes[1], slopes[0], strict=True):
        np.testing.assert_array_equal(found, want)
    kept = np.ones((3, 4))
    kept[key] = 0.0
    np.testing.assert_allclose(slopes[1][0], weight * kept, rtol=1e-6)


ADDED: dict[str, Callable[[wg.Tensor, Any, wg.Tensor], Any]] = {
    "index_put_": lambda x, i, v: x.index_put_((i,), v, accumulate=True),
    "index_put": lambda x, i, v: x.index_put((i,), v, accumulate=True),
    "index_add_": lambda x, i, v: x.index_add_(0, i, v),
}


@pytest.mark.parametrize("name", ADDED)
def test_what_is_added(name: str) -> None:
    index, value = np.array([2, 0, 2]), np.arange(12, dtype=np.float32).reshape(3, 4)
    want = np.ones((3, 4), np.float32)
    np.add.at(want, index, value)
    found = ADDED[name](
        wg.ones(3, 4, device="gpu"),
        wg.tensor(index, dtype=wg.int32, device="gpu"),
        wg.tensor(value, device="gpu"),
    )
    np.testing.assert_array_equal(found.tolist(), want)


def test_numbers_without_axes_and_batches() -> None:
    x = wg.ones((), device="gpu")
    x[wg.tensor(True, device="gpu")] = 3
    assert x.item() == 3.0
    rows = wg.arange(6.0).reshape(2, 3).gpu()
    places = wg.tensor([[0, 2], [1, 1]], dtype=wg.int32, device="gpu")

    def f(row: wg.Tensor, index: wg.Tensor) -> wg.Tensor:
        y = row * 1.0
        y[index] = wg.tensor([7.0, 8.0], device="gpu")
        return y

    assert wg.vmap(f)(rows, places).tolist() == [[7.0, 1.0, 8.0], [3.0, 8.0, 5.0]]


@pytest.mark.parametrize("dtype", [wg.float16, wg.bfloat16, wg.float32])
def test_what_lies_beside_a_part_stays(dtype: wg.dtype) -> None:
    """Parts of all lengths from all places, some of which end within a word of two elements."""
    for n in (1, 2, 3, 4, 5, 8, 33):
        for start in range(min(n, 3)):
            for end in range(start + 1, n + 1):
                whole = wg.arange(n, dtype=wg.float32, device="gpu").to(dtype)
                expected = np.arange(n, dtype="float32")
                whole[start:end] = -1
                expected[start:end] = -1
                whole[start:end] += 3
                expected[start:end] += 3
                assert whole.float().tolist() == expected.tolist()
    bias = wg.tensor([1.0, 2.0], dtype=dtype, device="gpu")
    part = bias[:1].detach().requires_grad_()
    optimiser = wg.optim.SGD([part], lr=1.0)
    part.grad = wg.ones(1, dtype=dtype, device="gpu")
    optimiser.step()
    assert bias.tolist() == [0.0, 2.0]


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_gradients_of_products_of_halves_by_index(count: int) -> None:
    found = []
    for device, dtype in (("cpu", wg.float32), ("gpu", wg.float16)):
        x = wg.tensor([1.0, 1.0, 2.0], dtype=dtype, device=device, requires_grad=True)
        s = wg.arange(3.0, 3.0 + count, device=device).to(dtype).requires_grad_()
        index = wg.full((count,), 2, dtype=wg.int32, device=device)
        x.scatter_reduce(0, index.to(wg.int64) if device == "cpu" else index, s, "prod").sum().backward()
        found.append(s.grad.float().tolist())
    assert found[0] == found[1]
