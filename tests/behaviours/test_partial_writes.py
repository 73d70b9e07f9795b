"""Writes to the places of an index: the values are NumPy's, and they take memory for what is written,
not for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert import memory

ROWS, WIDTH = 4000, 64
RNG = np.random.default_rng(5)
INDEX = np.array([3, 77, 3, -1, 1999])
SLICES = RNG.normal(size=(5, WIDTH)).astype("float32")
COLUMNS = RNG.normal(size=(ROWS, 2)).astype("float32")


def _put(x: Any, key: Any, value: Any) -> None:
    x[key] = value


def _added(x: np.ndarray, key: Any, value: Any) -> None:
    np.add.at(x, key, value)


def _scattered(x: np.ndarray, index: np.ndarray, value: np.ndarray, add: bool) -> None:
    for at in np.ndindex(index.shape):
        place = (index[at], *at[1:])
        x[place] = x[place] + value[at] if add else value[at]


I = wg.tensor(INDEX)
ALONG = np.array([[5, 9], [5, 0], [-1, 8]])
# The write, the same with NumPy, and the bytes that it writes.
WRITES: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], Any], int]] = {
    "rows": (lambda x: _put(x, I, wg.tensor(SLICES)), lambda x: _put(x, INDEX, SLICES), SLICES.nbytes),
    "rows and a number": (lambda x: _put(x, I, 2.5), lambda x: _put(x, INDEX, 2.5), SLICES.nbytes),
    "rows and a slice": (
        lambda x: _put(x, (I, slice(2, 9, 3)), 7),
        lambda x: _put(x, (INDEX, slice(2, 9, 3)), 7),
        5 * 12,
    ),
    "elements": (lambda x: _put(x, (I, 3), 1.5), lambda x: _put(x, (INDEX, 3), 1.5), 20),
    "pairs": (
        lambda x: _put(x, (I, wg.tensor([0, 1, 2, 3, -1])), wg.arange(5.0)),
        lambda x: _put(x, (INDEX, np.array([0, 1, 2, 3, -1])), np.arange(5)),
        20,
    ),
    "columns": (
        lambda x: _put(x, (slice(None), wg.tensor([7, -2])), wg.tensor(COLUMNS)),
        lambda x: _put(x, (slice(None), np.array([7, -2])), COLUMNS),
        COLUMNS.nbytes,
    ),
    "index_put_": (
        lambda x: x.index_put_((I,), wg.tensor(SLICES)),
        lambda x: _put(x, INDEX, SLICES),
        SLICES.nbytes,
    ),
    "index_put_ that adds": (
        lambda x: x.index_put_((I,), wg.tensor(SLICES), accumulate=True),
        lambda x: _added(x, INDEX, SLICES),
        SLICES.nbytes,
    ),
    "index_copy_": (
        lambda x: x.index_copy_(0, I, wg.tensor(SLICES)),
        lambda x: _put(x, INDEX, SLICES),
        SLICES.nbytes,
    ),
    "index_fill_": (
        lambda x: x.index_fill_(1, wg.tensor([3]), -4),
        lambda x: _put(x, (slice(None), 3), -4),
        4 * ROWS,
    ),
    "index_add_": (
        lambda x: x.index_add_(0, I, wg.tensor(SLICES), alpha=2),
        lambda x: _added(x, INDEX, 2 * SLICES),
        SLICES.nbytes,
    ),
    "scatter_": (
        lambda x: x.scatter_(0, wg.tensor(ALONG), wg.tensor(SLICES)),
        lambda x: _scattered(x, ALONG, SLICES, False),
        24,
    ),
    "scatter_add_": (
        lambda x: x.scatter_add_(0, wg.tensor(ALONG), wg.tensor(SLICES)),
        lambda x: _scattered(x, ALONG, SLICES, True),
        24,
    ),
}
by_write = pytest.mark.parametrize("name", WRITES)


def peak(f: Callable[[], Any]) -> int:
    """The bytes of tensors that `f` needs beyond those there are."""
    memory.reset_peak()
    before = memory.live_bytes()
    f()
    return memory.peak_bytes() - before


@by_write
def test_values_and_memory(name: str) -> None:
    write, reference, written = WRITES[name]
    values = RNG.normal(size=(ROWS, WIDTH)).astype("float32")
    x, expected = wg.tensor(values), values.copy()
    assert peak(lambda: write(x)) <= 8 * written + 8192 < x.nbytes
    reference(expected)
    np.testing.assert_array_equal(x.numpy(), expected)


@by_write
def test_recorded_writes_are_in_place_too(name: str) -> None:
    write, reference, written = WRITES[name]
    leaf = wg.ones(ROWS, WIDTH, requires_grad=True)
    x = leaf * 1
    address = x.data_ptr()
    assert peak(lambda: write(x)) <= 8 * written + 8192
    assert x.data_ptr() == address
    expected = np.ones((ROWS, WIDTH), "float32")
    reference(expected)
    np.testing.assert_array_equal(x.detach().numpy(), expected)
    # What was replaced has no gradient, what was added to has one.
    x.sum().backward()
    hit = np.zeros((ROWS, WIDTH), "float32")
    reference(hit)
    marked = np.full((ROWS, WIDTH), np.nan, "float32")
    reference(marked)
    replaced = ~np.isnan(marked)
    np.testing.assert_array_equal(leaf.grad.numpy(), np.where(replaced, 0, 1))


@by_write
@pytest.mark.parametrize("layout", ["transposed", "view", "strided"])
def test_any_layout(name: str, layout: str) -> None:
    write, reference, _ = WRITES[name]
    values = RNG.normal(size=(ROWS, WIDTH)).astype("float32")
    if layout == "transposed":
        x = wg.tensor(np.ascontiguousarray(values.T)).t()
    elif layout == "view":
        x = wg.zeros(ROWS + 2, WIDTH)[1:-1]
    else:
        x = wg.zeros(2 * ROWS, WIDTH + 3)[::2, 3:]
    x.copy_(wg.tensor(values))
    write(x)
    reference(values)
    np.testing.assert_array_equal(x.numpy(), values)


def test_gradients_go_to_what_stayed() -> None:
    x, v = wg.zeros(3, 2, requires_grad=True), wg.ones(3, 2, requires_grad=True)
    weights = wg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    y = x * 1
    y[wg.tensor([2, 0, 2])] = v
    (y * weights).sum().backward()
    # Row 2 is written twice: the last one has its gradient, the first has none.
    assert v.grad.tolist() == [[0.0, 0.0], [1.0, 2.0], [5.0, 6.0]]
    assert x.grad.tolist() == [[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]]


def test_an_index_per_example_is_linear_in_the_indices() -> None:
    count, length = 500, 2000
    index = RNG.integers(0, length, (3, count))
    values = RNG.normal(size=(3, count))

    def write(i: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
        x = wg.zeros(length, dtype=wg.float64)
        x[i] = v
        return x

    def run() -> wg.Tensor:
        return wg.vmap(write)(wg.tensor(index), wg.tensor(values))

    expected = np.zeros((3, length))
    for row, i, v in zip(expected, index, values, strict=True):
        row[i] = v
    np.testing.assert_array_equal(run().numpy(), expected)
    assert peak(run) < 40 * (index.size + expected.size)
    # The gradient of what was written: 1 for the last at each place.
    ones = wg.vmap(wg.grad(lambda v, i: write(i, v).sum()))(wg.tensor(values), wg.tensor(index)).numpy()
    assert ones.sum() == sum(len(set(row)) for row in index.tolist())
    with pytest.raises(IndexError, match="out of range"):
        wg.vmap(write)(wg.tensor([[1], [length], [0]]), wg.tensor(values[:, :1]))


def test_one_value_for_a_mask_takes_no_memory() -> None:
    values = RNG.normal(size=(ROWS, WIDTH))
    x, mask = wg.tensor(values), wg.tensor(values > 0.5)
    assert peak(lambda: _put(x, mask, -1.0)) < 4096
    np.testing.assert_array_equal(x.numpy(), np.where(values > 0.5, -1, values))
    assert peak(lambda: x.masked_fill_(wg.tensor(values < 0), 3)) < 4096 + values.size
    np.testing.assert_array_equal(x.numpy(), np.where(values < 0, 3, np.where(values > 0.5, -1, values)))
    rows = wg.zeros(4, 3, 2)[:, ::2]
    rows[wg.tensor([True, False, True, False])] = 5
    assert rows.sum(dim=(1, 2)).tolist() == [20.0, 0.0, 20.0, 0.0]


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "complex64", "complex128"]
)
def test_every_width(dtype: str) -> None:
    kind = getattr(wg, dtype)
    x = wg.zeros(6, 3, dtype=kind)
    x[wg.tensor([1, 4])] = wg.ones(2, 3, dtype=kind)
    x.index_add_(0, wg.tensor([4]), wg.ones(1, 3, dtype=kind))
    expected = [0, 1, 0, 0, 1 if dtype == "bool" else 2, 0]
    assert x.to(wg.complex128).real[:, 1].tolist() == expected


def test_memory_that_is_read_while_it_is_written() -> None:
    x = wg.arange(6)
    x[wg.tensor([5, 4, 3, 2, 1, 0])] = x
    assert x.tolist() == [5, 4, 3, 2, 1, 0]
    x[x] = x
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_errors_leave_the_tensor_as_it_was() -> None:
    x = wg.zeros(4, 2)
    with pytest.raises(IndexError, match="index 4 is out of range for an axis of length 4"):
        x[wg.tensor([0, 4])] = 1
    with pytest.raises(IndexError, match="do not broadcast together"):
        x[wg.tensor([0, 1]), wg.tensor([0, 1, 1])] = 1
    with pytest.raises(ValueError, match=r"a value of shape \(3,\) cannot be broadcast"):
        x[wg.tensor([0, 1])] = wg.ones(3)
    with pytest.raises(TypeError, match="indices must be integers"):
        x.index_add_(0, wg.tensor([0.5]), wg.ones(1, 2))
    assert x.sum().item() == 0
    leaf = wg.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf of shape"):
        leaf[wg.tensor([0])] = 1
