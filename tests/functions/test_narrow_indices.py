"""Index tensors of every integer dtype name the elements that NumPy's int64 names, also where axes are
merged."""

from typing import Any

import numpy as np
import pytest
import wengert as wg

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
#: Positions in an axis of 120 elements; as offsets into merged axes no 8 and no 16 bits hold them.
NAMED = np.array([119, 3, 64, 119])
SHAPES = [(120, 120), (120, 120, 3), (2, 120, 120), (120, 2, 120)]


def index(dtype: str, positions: Any = NAMED) -> wg.Tensor:
    return wg.tensor(positions, dtype=getattr(wg, dtype))


def keys(first: Any, second: Any) -> dict[str, tuple[Any, ...]]:
    return {
        "two axes": (..., first, second, slice(None)),
        "beside an integer": (first, 1),
        "an integer in front": (-1, second),
        "apart": (first, slice(None), second),
    }


@pytest.mark.parametrize("second", DTYPES)
@pytest.mark.parametrize("first", DTYPES)
def test_two_axes(first: str, second: str) -> None:
    values = np.arange(120.0 * 120 * 3).reshape(120, 120, 3)
    x = wg.tensor(values, requires_grad=True)
    expected = values[NAMED, NAMED[::-1]]
    found = x[index(first), index(second, NAMED[::-1].copy())]
    np.testing.assert_array_equal(found.detach().numpy(), expected)
    (found * wg.arange(1.0, 13.0, dtype=wg.float64).reshape(4, 3)).sum().backward()
    slope = np.zeros_like(values)
    np.add.at(slope, (NAMED, NAMED[::-1]), np.arange(1.0, 13.0).reshape(4, 3))
    np.testing.assert_array_equal(x.grad.numpy(), slope)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", keys(0, 0))
def test_keys(name: str, dtype: str) -> None:
    values = np.arange(120.0 * 120 * 120).reshape(120, 120, 120)
    key, plain = keys(index(dtype), index(dtype))[name], keys(NAMED, NAMED)[name]
    np.testing.assert_array_equal(wg.tensor(values)[key].numpy(), values[plain])
    if dtype.startswith("int"):
        key, plain = keys(index(dtype, NAMED - 120), index(dtype))[name], keys(NAMED - 120, NAMED)[name]
        np.testing.assert_array_equal(wg.tensor(values)[key].numpy(), values[plain])
    written = wg.tensor(values)
    written[key] = -1.0
    values[plain] = -1.0
    np.testing.assert_array_equal(written.numpy(), values)


READS = {
    "x[i]": lambda x, i: x[i],
    "x[i, 3]": lambda x, i: x[i, 3],
    "x[3, i]": lambda x, i: x[3, i],
    "x[i, i]": lambda x, i: x[i, i],
    "index_select": lambda x, i: x.index_select(0, i),
    "index_select of columns": lambda x, i: x.index_select(1, i),
    "take": lambda x, i: wg.take(x, i),
    "gather": lambda x, i: x.gather(0, i.reshape(-1, 1).expand(4, 120)),
    "embedding": lambda x, i: wg.nn.functional.embedding(i, x),
    "written": lambda x, i: _doubled(x, i),
    "index_add": lambda x, i: x.index_add(0, i, x[:4]),
    "scatter": lambda x, i: x.scatter(0, i.reshape(-1, 1).expand(4, 120), x[4:8]),
}


def _doubled(x: wg.Tensor, i: wg.Tensor) -> wg.Tensor:
    x = x.clone()
    x[i] = x[i] * 2
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", READS)
def test_in_a_batch(name: str, dtype: str) -> None:
    """Examples of a batch read and write their own rows; the expectation is each example alone, with
    int64."""
    rng = np.random.default_rng(0)
    values, positions = rng.normal(size=(6, 120, 120)), rng.integers(100, 120, (6, 4))
    x, narrow, wide = wg.tensor(values), index(dtype, positions), wg.tensor(positions)
    read = READS[name]
    weights = wg.tensor(rng.normal(size=read(x[0], wide[0]).shape))

    def loss(x: wg.Tensor, i: wg.Tensor) -> wg.Tensor:
        return (read(x, i) * weights).sum()

    for i in range(6):
        alone = read(x[i], narrow[i])
        np.testing.assert_array_equal(alone.numpy(), read(x[i], wide[i]).numpy())
    for shared in (False, True):
        given, axes = (x[0], (None, 0)) if shared else (x, 0)
        one = [given if shared else given[i] for i in range(6)]
        found = wg.vmap(read, in_axes=axes)(given, narrow)
        expected = wg.stack([read(own, wide[i]) for i, own in enumerate(one)])
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
        slopes = wg.vmap(wg.grad(loss), in_axes=axes)(given, narrow)
        expected = wg.stack([wg.grad(loss)(own, wide[i]) for i, own in enumerate(one)])
        np.testing.assert_allclose(slopes.numpy(), expected.numpy(), rtol=1e-14, atol=1e-14)


def test_what_is_out_of_range() -> None:
    x = wg.zeros(120, 120)
    for dtype in DTYPES:
        with pytest.raises(IndexError, match="120"):
            x[index(dtype, [120]), index(dtype, [0])]
    with pytest.raises(IndexError, match="out of range for axis 0 of length 120"):
        x[wg.tensor([2**64 - 1], dtype=wg.uint64), wg.tensor([0])]


def test_nothing_is_named() -> None:
    """Where index tensors broadcast to no element, none of them is out of range, as in NumPy."""
    values = np.zeros((1, 0))
    for key in ((np.array([1]), np.zeros(0, bool)), (np.array([7]), np.zeros(0, int))):
        x = wg.tensor(values)
        own = tuple(wg.tensor(k) for k in key)
        assert x[own].shape == values[key].shape
        x[own] = 1.0
        values[key] = 1.0
    with pytest.raises(IndexError):
        wg.zeros(1, 0)[[1]]
    with pytest.raises(IndexError):
        wg.zeros(1, 0)[[1]] = 0.0
