"""Sums of truth values and of narrow integers: int64, without a copy of the operand in int64."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.numpy as wnp
from wengert import memory

SHAPE = (40, 50, 30)
DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "int64", "uint64"]
AXES = [None, 0, 1, 2, (0, 2), (1,)]


def values(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    if dtype == "bool":
        return rng.random(SHAPE) < 0.4
    limits = np.iinfo(dtype)
    return rng.integers(
        max(limits.min, -(2**31)), min(limits.max, 2**32 - 1), SHAPE, dtype=dtype, endpoint=True
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_values(dtype: str, axis: Any, turned: bool) -> None:
    v = values(dtype)
    v = v.transpose(2, 0, 1) if turned else v
    x = wg.tensor(v)
    for keepdim in (False, True):
        total = x.sum(dim=axis, keepdim=keepdim)
        assert total.dtype is (wg.uint64 if dtype == "uint64" else wg.int64)
        expected = v.sum(axis=axis, keepdims=keepdim, dtype="uint64" if dtype == "uint64" else "int64")
        np.testing.assert_array_equal(total.numpy(), expected)
        np.testing.assert_array_equal(
            x.any(dim=axis, keepdim=keepdim).numpy(), v.any(axis=axis, keepdims=keepdim)
        )
        np.testing.assert_array_equal(
            x.all(dim=axis, keepdim=keepdim).numpy(), v.all(axis=axis, keepdims=keepdim)
        )


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(),
    "sum along": lambda x: x.sum(0),
    "any": lambda x: x.any(),
    "all": lambda x: x.all(),
    "count_nonzero": lambda x: x.count_nonzero(),
    "wengert.numpy": wnp.count_nonzero,
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16"])
def test_memory(question: str, dtype: str) -> None:
    x = wg.zeros(1 << 16, 16, dtype=getattr(wg, dtype))
    memory.reset_peak()
    before = memory.live_bytes()
    QUESTIONS[question](x)
    # At most truth values of all elements.
    assert memory.peak_bytes() - before <= x.numel() + 65536


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), ()])
def test_of_nothing(shape: tuple[int, ...]) -> None:
    x, v = wg.zeros(shape, dtype=wg.bool), np.zeros(shape, bool)
    assert (x.any().item(), x.all().item(), x.sum().item()) == (v.any(), v.all(), v.sum())
    if len(shape) == 2:
        assert x.all(dim=0).tolist() == v.all(axis=0).tolist()
        assert x.any(dim=1).tolist() == v.any(axis=1).tolist()


def test_in_transforms() -> None:
    x = wg.tensor([[1.0, -2.0, 3.0], [0.0, -1.0, -5.0]])
    assert wg.vmap(lambda row: (row > 0).sum())(x).tolist() == [2, 0]
    assert wg.vmap(lambda row: (row > 0).any())(x).tolist() == [True, False]
    assert wg.grad(lambda x: x.sum() * (x > 0).sum())(x).tolist() == [[2.0] * 3] * 2
    value, tangent = wg.jvp(lambda x: x.square().sum() * (x > 0).all(), (x,), (x,))
    assert (value.item(), tangent.item()) == (0.0, 0.0)
