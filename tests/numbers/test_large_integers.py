"""Integers beyond the range of a dtype, and floats, as limits of integers and what
they are compared with; Python's own comparisons are exact."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.nn.functional as F

LARGE = 2**63 + 7
MOST = 2**64 - 1
U = wg.tensor([0, 5, LARGE, MOST], dtype=wg.uint64)
VALUES = [0, 5, LARGE, MOST]


LOWS = [None, -(2**70), -1, 3, LARGE, LARGE + 1, 2**64, 10**400]
HIGHS = [None, -(10**400), 4, LARGE - 1, LARGE, MOST, 2**70]


@pytest.mark.parametrize(("low", "high"), list(itertools.product(LOWS, HIGHS))[1:])
def test_uint64_is_limited_to_any_integers(low: int | None, high: int | None) -> None:
    expected = VALUES if low is None else [max(x, low) for x in VALUES]
    expected = expected if high is None else [min(x, high) for x in expected]
    expected = [min(max(x, 0), MOST) for x in expected]
    for out in (
        U.clamp(low, high),
        wg.clip(U, low, high),
        U.clone().clamp_(low, high),
        wg.numpy.clip(U, low, high),
    ):
        assert out.dtype == wg.uint64
        assert out.tolist() == expected


def test_arithmetic_of_uint64_with_large_integers() -> None:
    assert U.maximum(LARGE).tolist() == [LARGE] * 3 + [MOST]
    assert U.minimum(LARGE).tolist() == [0, 5, LARGE, LARGE]
    assert (U[:2] + LARGE).tolist() == [LARGE, LARGE + 5]
    assert wg.where(U > 5, U, LARGE).tolist() == [LARGE, LARGE, LARGE, MOST]
    assert U.masked_fill(U == 5, MOST).tolist() == [0, MOST, LARGE, MOST]
    assert wg.full_like(U, MOST).tolist() == [MOST] * 4
    for dtype, n in (("int64", LARGE), ("uint64", 2**64), ("uint8", 300)):
        with pytest.raises(ValueError, match=f"{n} does not fit into {dtype}, which holds"):
            wg.ones(2, dtype=getattr(wg, dtype)) + n
    assert (wg.tensor([1.0], dtype=wg.float64) + 2**70).tolist() == [2.0**70]
    with pytest.raises(ValueError, match="does not fit into int64"):
        wg.ones(2) + 10**400


@pytest.mark.parametrize("name", ["clamp", "clip"])
def test_floats_that_limit_integers_make_floats(name: str) -> None:
    # As torch.clamp(torch.tensor([-3, 0, 3]), -1., 1.) is float32.
    x = wg.tensor([-3, 0, 3])
    limit = getattr(wg, name)
    for bounds, expected in (
        ((-1.0, 1.0), [-1.0, 0.0, 1.0]),
        ((-1.0, 1), [-1.0, 0.0, 1.0]),
        ((None, 0.5), [-3.0, 0.0, 0.5]),
    ):
        out = limit(x, *bounds)
        assert out.dtype == wg.float32
        assert out.tolist() == expected
    assert limit(x, -math.inf, math.inf).dtype == wg.float32
    assert limit(x, -1, 1).dtype == wg.int64
    assert limit(x.to(wg.uint8), 1.0).dtype == wg.float32
    assert (
        wg.clamp_min(x, -1.0).dtype == wg.clamp_max(x, -1.0).dtype == wg.maximum(x, 1.0).dtype == wg.float32
    )
    with pytest.raises(TypeError, match="the result is float32 and cannot be stored in a tensor of int64"):
        x.clone().clamp_(-1.0, 1.0)


def test_layers_and_the_array_standard_keep_integers() -> None:
    x = wg.tensor([-3, 0, 3])
    assert F.hardtanh(x).tolist() == [-1, 0, 1]
    assert F.hardtanh(x).dtype == F.relu6(x).dtype == wg.int64
    for bounds, expected in (
        ((-1.5, 1.5), [-1, 0, 1]),
        ((0.5, None), [1, 1, 3]),
        ((-math.inf, 2.0), [-3, 0, 2]),
        ((None, math.inf), [-3, 0, 3]),
    ):
        out = wg.numpy.clip(x, *bounds)
        assert out.dtype == wg.int64
        assert out.tolist() == expected


NUMBERS = (300, -1, 255, 2**63 + 5, 2**64, 2**70, -(2**70), 10**400, -(10**400))
RELATIONS = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("name", RELATIONS)
def test_comparisons_by_name(name: str, dtype: str) -> None:
    x = wg.tensor([0, 1, 100], dtype=getattr(wg, dtype))
    values: list[Any] = x.tolist()
    for n in NUMBERS:
        expected = [RELATIONS[name](v, n) for v in values]
        assert getattr(wg, name)(x, n).tolist() == getattr(x, name)(n).tolist() == expected, n
        assert RELATIONS[name](x, n).tolist() == expected, n
        if dtype != "bool":
            assert getattr(wg, name)(n, x).tolist() == [RELATIONS[name](n, v) for v in values], n


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "uint64"])
def test_closeness_to_any_integer(dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = [0, 100, int(limits.max) - 1, int(limits.max)]
    x = wg.tensor(values, dtype=getattr(wg, dtype))
    for n in (300, -1, int(limits.max) + 6, int(limits.min) - 6, 2**63 + 5, 2**70, -(2**70)):
        for rtol, atol in ((0.0, 0.0), (0.0, 7.0), (0.0, 6.5), (0.1, 0.0), (0.0, 199.5), (1.5, 0.0)):
            expected = [abs(v - n) <= Fraction(atol) + Fraction(rtol) * abs(n) for v in values]
            assert wg.isclose(x, n, rtol=rtol, atol=atol).tolist() == expected, (n, rtol, atol)
            assert wg.allclose(x, n, rtol=rtol, atol=atol) == all(expected)
    assert wg.isclose(wg.tensor([True]), 2, atol=1.0).tolist() == [True]
    assert wg.isclose(300, wg.tensor([44, 255], dtype=wg.uint8), rtol=0.0, atol=50.0).tolist() == [
        False,
        True,
    ]
    assert wg.isclose(wg.tensor([1.0, 2.0**70]), 2**70).tolist() == [False, True]
    assert not wg.isclose(wg.tensor([1.0]), 10**400).any()
    assert not wg.allclose(300, wg.tensor([44], dtype=wg.uint8))


def test_search_among_any_integers() -> None:
    x = wg.tensor([44, 200], dtype=wg.uint8)
    for n in NUMBERS:
        assert wg.isin(x, n).tolist() == [False, False]
        assert wg.searchsorted(x, n).item() == (2 if n > 0 else 0)
        assert wg.bucketize(n, x).item() == (2 if n > 0 else 0)
        assert not wg.equal(x[:1], n)
    assert wg.isin(U, [MOST, 5]).tolist() == [False, True, False, True]
    assert wg.searchsorted(U, [LARGE, MOST]).tolist() == [2, 3]
    assert wg.isin(MOST, U).item()
