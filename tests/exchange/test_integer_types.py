"""Integers of 64 bits leave as NumPy's own `int64` and `uint64`:
compiled code goes by the number of the type.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.numpy as wnp

WAYS: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda x: x.numpy(),
    "asarray": np.asarray,
    "array": np.array,
    "__array__": lambda x: x.__array__(),
    "buffer": lambda x: np.asarray(memoryview(x)),
    "dlpack": np.from_dlpack,
    "a function of NumPy": lambda x: np.asarray(np.concatenate([x, x])),
    "wengert.numpy": lambda x: np.asarray(wnp.sort(x)),
    "an index": lambda x: x[1:].numpy(),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "uint32", "int16", "uint8", "bool"])
def test_type_numbers(way: str, dtype: str) -> None:
    out = WAYS[way](wg.tensor([0, 1, 1]).to(getattr(wg, dtype)))
    assert out.dtype.num == np.dtype(dtype).num


@pytest.mark.parametrize("source", ["argmax", "nonzero", "arange", "sum"])
def test_results_of_operations(source: str) -> None:
    x = wg.tensor([0.0, 2.0, 1.0])
    out = {
        "argmax": lambda: x.argmax(),
        "nonzero": lambda: x.nonzero(),
        "arange": lambda: wg.arange(3),
        "sum": lambda: (x > 0).sum(),
    }[source]()
    assert out.numpy().dtype.num == np.dtype("int64").num


def test_compiled_code_knows_them() -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    labels = wg.tensor([0, 1, 1]).numpy()
    assert sorted(ndimage.value_indices(labels)) == [0, 1]
    assert ndimage.median_filter(labels, 3).tolist() == [0, 1, 1]
