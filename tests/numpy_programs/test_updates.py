"""`x.at[...]` against NumPy's functions that write: `add.at` and its companions."""

from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.numpy as xp
from wengert.testing import gradcheck

X = np.arange(12.0).reshape(3, 4) + 1
INDICES: dict[str, Any] = {
    "number": 1,
    "negative": (-1, 2),
    "slice": (slice(None), slice(0, None, 2)),
    "backwards": slice(None, None, -1),
    "mask": X > 5,
    "twice": np.array([0, 2, 0]),
    "pairs": (np.array([0, 1, 0]), np.array([1, 1, 1])),
    "mixed": (slice(1, None), np.array([[0, 3], [3, 3]])),
    "new axis": (None, 1, ..., 2),
    "nothing": slice(0, 0),
}
UFUNCS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "mul": np.multiply}
UFUNCS |= {"divide": np.divide, "power": np.power, "min": np.minimum, "max": np.maximum}


def ours(index: Any) -> Any:
    """An index of tensors in the place of arrays."""
    if isinstance(index, tuple):
        return tuple(map(ours, index))
    return wg.tensor(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("method", UFUNCS)
def test_every_value_counts(method: str, name: str) -> None:
    index = INDICES[name]
    values = np.random.default_rng(0).uniform(0.5, 3, X[index].shape)
    for value in (values, 2.0):
        wanted = X.copy()
        UFUNCS[method].at(wanted, index, value)
        x = wg.tensor(X)
        found = getattr(x.at[ours(index)], method)(wg.tensor(value) if value is values else value)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)
        assert x.tolist() == X.tolist()


@pytest.mark.parametrize("name", [name for name in INDICES if name not in ("twice", "pairs", "mixed")])
def test_set_get_and_apply(name: str) -> None:
    index, x = INDICES[name], wg.tensor(X)
    wanted = X.copy()
    wanted[index] = -1
    assert x.at[ours(index)].set(-1).tolist() == wanted.tolist()
    assert x.at[ours(index)].get().tolist() == X[index].tolist()
    wanted[index] = X[index] ** 2
    assert x.at[ours(index)].apply(xp.square).tolist() == wanted.tolist()


def test_dtypes_stay() -> None:
    for dtype in (wg.int32, wg.float32, wg.float16):
        x = wg.ones(3, dtype=dtype)
        for changed in (x.at[0].set(2.0), x.at[0].add(2), x.at[:2].max(5)):
            assert changed.dtype == dtype
    assert wg.tensor([True, False]).at[1].set(True).tolist() == [True, True]


@pytest.mark.parametrize("method", ["set", *UFUNCS])
def test_derivatives(method: str) -> None:
    places = wg.tensor([0, 1] if method == "set" else [0, 1, 1])
    x = wg.tensor([1.5, 2.5, 3.5], dtype=wg.float64, requires_grad=True)
    values = wg.tensor([2.0, 1.2, 3.0], dtype=wg.float64)[: len(places)].requires_grad_()
    assert gradcheck(lambda x, values: getattr(x.at[places], method)(values), (x, values))


def test_transforms() -> None:
    x, places = wg.zeros(4, 3), wg.tensor([0, 1, 2, 0])
    rows = wg.vmap(lambda row, place: row.at[place].add(1.0))(x, places)
    assert rows.tolist() == np.eye(3)[[0, 1, 2, 0]].tolist()
    slope = wg.grad(lambda x: x.at[0].multiply(x[1]).sum())
    assert slope(wg.tensor([2.0, 3.0])).tolist() == [3.0, 3.0]
    assert wg.vmap(slope)(wg.tensor([[2.0, 3.0], [1.0, 5.0]])).tolist() == [[3.0, 3.0], [5.0, 2.0]]


def test_an_index_out_of_range_raises() -> None:
    for method in ("set", "add"):
        with pytest.raises(IndexError, match="out of range"):
            getattr(wg.zeros(3).at[3], method)(1.0)
    with pytest.raises(TypeError, match="set: tensors, arrays or numbers expected, got str"):
        wg.zeros(3).at[0].set("one")
