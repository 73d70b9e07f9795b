"""Combining with the elements at the places of an index, in place: values and slopes are NumPy's, and it
takes memory for what is combined, not for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from behaviours.test_partial_writes import peak

ROWS, WIDTH = 4000, 64
RNG = np.random.default_rng(11)
FOLDS = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}
by_fold = pytest.mark.parametrize("reduce", FOLDS)
by_self = pytest.mark.parametrize("include_self", [True, False])

# Index and source of `scatter_reduce_`, and of `index_reduce_` along each axis: places that are named several
# times, from behind too.
ALONG = np.array([[5, 9, 1], [5, 0, 2], [-1, 8, 1], [ROWS - 1, 0, 1]])
VECTOR = np.array([3, 77, 3, -1, 3, 63])
Write = Callable[[Any, Any, str, bool], Any]
WRITES: dict[str, tuple[np.ndarray, Write]] = {
    "scatter_reduce_": (
        RNG.normal(size=(5, 4)),
        lambda x, y, fold, own: x.scatter_reduce_(0, wg.tensor(ALONG), y, fold, include_self=own),
    ),
    "index_reduce_ of rows": (
        RNG.normal(size=(len(VECTOR), WIDTH)),
        lambda x, y, fold, own: x.index_reduce_(0, wg.tensor(VECTOR), y, fold, include_self=own),
    ),
    "index_reduce_ of columns": (
        RNG.normal(size=(ROWS, 3)),
        lambda x, y, fold, own: x.index_reduce_(1, wg.tensor([3, 5, 3]), y, fold, include_self=own),
    ),
}
by_write = pytest.mark.parametrize("name", WRITES)


def reference(name: str, x: np.ndarray, y: np.ndarray, fold: str, own: bool) -> None:
    """The same with NumPy, place by place."""
    if name == "index_reduce_ of columns":
        return reference("columns", x.T, y.T, fold, own)
    index = {"scatter_reduce_": ALONG, "columns": np.array([3, 5, 3])}.get(name, VECTOR)
    met: dict[Any, list[Any]] = {}
    for at in np.ndindex(index.shape):
        place = (index[at] % len(x), *at[1:])
        met.setdefault(place, [x[place].copy()] if own else []).append(y[at])
    for place, values in met.items():
        x[place] = FOLDS[fold](np.stack(values), axis=0)
    return None


@by_fold
@by_self
@by_write
def test_values_and_memory(name: str, reduce: str, include_self: bool) -> None:
    y, write = WRITES[name]
    values = RNG.normal(size=(ROWS, WIDTH))
    x, source = wg.tensor(values), wg.tensor(y)
    address, version = x.data_ptr(), x._version
    assert peak(lambda: write(x, source, reduce, include_self)) < 24 * y.nbytes + 16_384
    assert x.data_ptr() == address
    assert x._version > version
    reference(name, values, y, reduce, include_self)
    np.testing.assert_allclose(x.numpy(), values, rtol=1e-14, atol=1e-15)


@by_fold
@by_self
@by_write
@pytest.mark.parametrize("layout", ["transposed", "view"])
def test_any_layout(name: str, reduce: str, include_self: bool, layout: str) -> None:
    y, write = WRITES[name]
    values = RNG.normal(size=(ROWS, WIDTH))
    x = wg.zeros(WIDTH, ROWS, dtype=wg.float64).t() if layout == "transposed" else None
    x = wg.zeros(ROWS + 2, WIDTH + 1, dtype=wg.float64)[1:-1, 1:] if x is None else x
    x.copy_(wg.tensor(values))
    write(x, wg.tensor(y), reduce, include_self)
    reference(name, values, y, reduce, include_self)
    np.testing.assert_allclose(x.numpy(), values, rtol=1e-14, atol=1e-15)


@by_fold
@by_self
def test_gradients(reduce: str, include_self: bool) -> None:
    index, weights = np.array([1, 4, 1, -2, 4, 1]), RNG.normal(size=(6, 8))
    values, y = RNG.normal(size=(6, 8)), RNG.normal(size=(6, 1))
    places = wg.tensor(index.reshape(6, 1))

    def loss(x: wg.Tensor, y: wg.Tensor, w: wg.Tensor) -> wg.Tensor:
        x = x * 1
        x.scatter_reduce_(0, places, y, reduce, include_self=include_self)
        x.index_reduce_(1, wg.tensor([7]), 2 * y, reduce, include_self=include_self)
        return (x * w).sum()

    def by_numpy(x: np.ndarray, y: np.ndarray) -> float:
        x = x.copy()
        column = x[:, 0].copy()
        for place in {k % 6 for k in index}:
            met = [y[i, 0] for i in range(6) if index[i] % 6 == place]
            column[place] = FOLDS[reduce]([x[place, 0], *met] if include_self else met)
        x[:, 0] = column
        for i in range(6):
            x[i, 7] = FOLDS[reduce]([x[i, 7], 2 * y[i, 0]] if include_self else [2 * y[i, 0]])
        return float((x * weights).sum())

    assert 4 * places.numel() <= values.size  # or all would be gone through
    args = wg.tensor(values), wg.tensor(y), wg.tensor(weights)
    found = wg.grad(loss, argnums=(0, 1))(*args)
    for which, got in enumerate(found):
        for at in np.ndindex(got.shape):
            step = [np.zeros_like(values), np.zeros_like(y)]
            step[which][at] = 1e-6
            up, down = (by_numpy(values + s * step[0], y + s * step[1]) for s in (1, -1))
            np.testing.assert_allclose(got[at].item(), (up - down) / 2e-6, rtol=1e-6, atol=1e-6)
    # Recorded by the eager tape, and example by example.
    x, z = args[0].clone().requires_grad_(), args[1].clone().requires_grad_()
    loss(x, z, args[2]).backward()
    batched = wg.vmap(wg.grad(loss, argnums=(0, 1)))(*(wg.stack([t, -t]) for t in args))
    for got, other, many in zip((x.grad, z.grad), found, batched, strict=True):
        np.testing.assert_allclose(got.numpy(), other.numpy(), rtol=1e-12)
        np.testing.assert_allclose(many[0].numpy(), other.numpy(), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "float16", "bfloat16", "float32"])
@by_fold
@by_self
def test_dtypes(dtype: str, reduce: str, include_self: bool) -> None:
    values, y = RNG.integers(1, 3, (40, 2)), RNG.integers(1, 3, (5, 2))
    index = np.array([[3, 0], [3, 1], [-1, 0], [39, 0], [3, 2]])
    x = wg.tensor(values).to(getattr(wg, dtype))
    x.scatter_reduce_(0, wg.tensor(index), wg.tensor(y).to(x.dtype), reduce, include_self=include_self)
    expected = values.astype("float64")
    for place in {(int(index[at]) % 40, at[1]) for at in np.ndindex(5, 2)}:
        met = [y[at] for at in np.ndindex(5, 2) if (index[at] % 40, at[1]) == place]
        expected[place] = FOLDS[reduce]([values[place], *met] if include_self else met)
    expected = expected if x.is_floating_point() else np.floor(expected)
    np.testing.assert_allclose(x.double().numpy(), expected, rtol=1e-2 if dtype == "bfloat16" else 1e-3)


def test_scatter_that_combines() -> None:
    x = wg.arange(1.0, 13.0)
    x.scatter_(0, wg.tensor([2, -1, 2]), wg.tensor([2.0, 10.0, 3.0]), reduce="multiply")
    x.scatter_(0, wg.tensor([0, 1]), 0.5, reduce="add")
    assert x.tolist() == [1.5, 2.5, 18.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 120.0]


def test_errors_leave_the_tensor_as_it_was() -> None:
    x, one = wg.zeros(20, 2), wg.ones(1, 2)
    with pytest.raises(IndexError, match="index 20 is out of range for an axis of length 20"):
        x.scatter_reduce_(0, wg.tensor([[0, 20]]), one, "sum")
    with pytest.raises(IndexError, match="index -21 is out of range for an axis of length 20"):
        x.index_reduce_(0, wg.tensor([-21]), one, "sum")
    with pytest.raises(ValueError, match="scatter_reduce: reduce must be one of"):
        x.scatter_reduce_(0, wg.tensor([[0, 1]]), one, "max")
    with pytest.raises(ValueError, match="index_reduce: reduce must be one of"):
        x.index_reduce_(0, wg.tensor([0]), one, "max")
    with pytest.raises(ValueError, match="scatter: reduce must be 'add' or 'multiply'"):
        x.scatter_(0, wg.tensor([[0, 1]]), one, reduce="sum")
    with pytest.raises(wg.ShapeError, match="index_reduce: index of shape"):
        x.index_reduce_(0, wg.tensor([0, 1]), one, "sum")
    assert x.sum().item() == 0
    leaf = wg.zeros(20, requires_grad=True)
    with pytest.raises(RuntimeError, match="scatter_reduce_: a leaf of shape"):
        leaf.scatter_reduce_(0, wg.tensor([0]), wg.ones(1), "sum")
    with pytest.raises(RuntimeError, match="index_reduce_: a leaf of shape"):
        leaf.index_reduce_(0, wg.tensor([0]), wg.ones(1), "sum")
    # Nothing to combine, and no axes.
    x.scatter_reduce_(0, wg.zeros(0, 2, dtype=wg.int64), wg.zeros(0, 2), "prod")
    assert wg.tensor(3.0).scatter_reduce_(0, wg.tensor(0), wg.tensor(4.0), "prod").item() == 12
    assert x.sum().item() == 0


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64", "complex128"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_gather_reads_a_part_where_it_lies(axis: int, dtype: str) -> None:
    values = RNG.integers(0, 100, (60, 50, 40)).astype(dtype)
    index = RNG.integers(-40, 40, tuple(5 if k == axis else 3 for k in range(3)))
    layouts = {
        "plain": (lambda x: x, lambda x: x),
        "transposed": (lambda x: x.permute(2, 1, 0), lambda x: x.transpose(2, 1, 0)),
        "strided": (lambda x: x[5:49, 3:47], lambda x: x[5:49, 3:47]),
        "stretched": (lambda x: x[:, :1].expand(60, 50, 40), lambda x: np.broadcast_to(x[:, :1], x.shape)),
    }
    for ours, theirs in layouts.values():
        x, expected = ours(wg.tensor(values)), theirs(values)
        corner = expected[tuple(slice(None) if k == axis else slice(3) for k in range(3))]
        found: list[wg.Tensor] = []
        assert peak(lambda x=x, found=found: found.append(x.gather(axis, wg.tensor(index)))) < 4096
        np.testing.assert_array_equal(found[0].numpy(), np.take_along_axis(corner, index, axis))
    with pytest.raises(IndexError, match="out of range"):
        wg.tensor(values).gather(axis, wg.full(index.shape, 60, dtype=wg.int64))
