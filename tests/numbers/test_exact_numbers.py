"""Python numbers beside float64 and 64-bit integers lose no digits,
and integers compare with any number exactly.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from wengert import Tensor

X = wg.tensor([0.1, 0.3, 0.7], dtype=wg.float64)
A = np.array([0.1, 0.3, 0.7])
ZERO = wg.tensor([0])
BIG = 2**53 + 1

#: Calls with a Python number beside float64, and what they are in float64.
FLOATS: dict[str, tuple[Callable[[], Any], Any]] = {
    "searchsorted": (lambda: wg.searchsorted(X, 0.3), 1),
    "searchsorted of a list": (lambda: wg.searchsorted(X, [0.3, 0.7]), [1, 2]),
    "bucketize": (lambda: wg.bucketize(0.3, X), 1),
    "bucketize among numbers": (lambda: wg.bucketize(X, [0.1, 0.3]), [0, 1, 2]),
    "isin": (lambda: wg.isin(X, 0.3), [False, True, False]),
    "isin of a list": (lambda: wg.isin(X, [0.3, 0.7]), [False, True, True]),
    "isin of a number": (lambda: wg.isin(0.3, X), True),
    "index_fill": (lambda: X.index_fill(0, ZERO, 0.3), [0.3, 0.3, 0.7]),
    "index_fill_": (lambda: X.clone().index_fill_(0, ZERO, 0.3), [0.3, 0.3, 0.7]),
    "xlogy": (lambda: wg.xlogy(X, 0.3), A * math.log(0.3)),
    "xlogy, number first": (lambda: wg.xlogy(0.3, X), 0.3 * np.log(A)),
    "xlog1py": (lambda: wg.xlog1py(X, 0.3), A * math.log1p(0.3)),
    "lerp": (lambda: X.lerp(0.3, 1.0), [0.3, 0.3, 0.3]),
    "lerp_": (lambda: X.clone().lerp_(0.3, 1.0), A + (0.3 - A)),
    "dist": (lambda: wg.zeros((), dtype=wg.float64).dist(0.3), 0.3),
    "ldexp": (lambda: wg.ldexp(X, 0.3), A * 2**0.3),
    "logaddexp2": (lambda: wg.logaddexp2(X, 0.3), np.logaddexp2(A, 0.3)),
    "kron": (lambda: wg.kron(X, 0.3), A * 0.3),
    "inner": (lambda: wg.inner(X, 0.3), A * 0.3),
    "complex": (lambda: wg.complex(X, 0.3), A + 0.3j),
    "complex, number first": (lambda: wg.complex(0.3, X), 0.3 + 1j * A),
    "polar": (lambda: wg.polar(X, 0.3), A * (math.cos(0.3) + 1j * math.sin(0.3))),
    "masked_scatter": (lambda: X.masked_scatter(X == 0.3, 0.25 + 1e-9), [0.1, 0.25 + 1e-9, 0.7]),
    "masked_scatter of a list": (lambda: X.masked_scatter(X == 0.3, [0.3]), A),
    "linear_recurrence": (lambda: wg.linear_recurrence(X, 0.3), [0.1, 0.3 + 0.03, 0.7 + 0.099]),
    "copy_": (lambda: X.clone().copy_(0.3), [0.3] * 3),
    "copy_ of a list": (lambda: X.clone().copy_([0.3, 0.1, 0.7]), [0.3, 0.1, 0.7]),
    "nextafter": (lambda: wg.nextafter(X, 0.3), np.nextafter(A, 0.3)),
    "isclose": (lambda: wg.isclose(X, 0.3, rtol=0.0, atol=0.0), [False, True, False]),
    "allclose": (lambda: wg.allclose(X[1], 0.3, rtol=0.0, atol=0.0), True),
    "equal": (lambda: wg.equal(X[1], 0.3), True),
    "addcmul": (lambda: wg.addcmul(X, 0.3, X), A + 0.3 * A),
    "addcmul_": (lambda: X.clone().addcmul_(0.3, X), A + 0.3 * A),
    "addcdiv_": (lambda: X.clone().addcdiv_(0.3, X), A + 0.3 / A),
    "index_put": (lambda: X.index_put((ZERO,), 0.3, accumulate=True), [0.1 + 0.3, 0.3, 0.7]),
    "diff": (lambda: X.diff(prepend=0.3), np.diff(A, prepend=0.3)),
    "slice_scatter": (lambda: X.slice_scatter([0.3], 0, 0, 1), [0.3, 0.3, 0.7]),
    "where": (lambda: wg.where(X > 0.5, X, 0.3), [0.3, 0.3, 0.7]),
    "stack": (lambda: wg.stack([X[0], 0.3]), [0.1, 0.3]),
    "stack of lists": (lambda: wg.stack([X, [0.3, 0.1, 0.7]]), [A, [0.3, 0.1, 0.7]]),
    "stack, complex": (lambda: wg.stack([X[0], 0.3j]), [0.1, 0.3j]),
    "cat": (lambda: wg.cat([[0.3], X]), [0.3, 0.1, 0.3, 0.7]),
    "hstack": (lambda: wg.hstack([X, 0.3]), [0.1, 0.3, 0.7, 0.3]),
    "vstack": (lambda: wg.vstack([0.3, X[0]]), [[0.3], [0.1]]),
    "dstack": (lambda: wg.dstack([X[0], 0.3]), [[[0.1, 0.3]]]),
    "column_stack": (lambda: wg.column_stack([X[0], 0.3]), [[0.1, 0.3]]),
    "block_diag": (lambda: wg.block_diag(X[0], 0.3), [[0.1, 0.0], [0.0, 0.3]]),
    "cartesian_prod": (lambda: wg.cartesian_prod(X[:1], [0.3]), [[0.1, 0.3]]),
    "meshgrid": (lambda: wg.meshgrid(X, 0.3)[1], [[0.3]] * 3),
    "broadcast_tensors": (lambda: wg.broadcast_tensors(X, 0.3)[1], [0.3] * 3),
    "einsum": (lambda: wg.einsum("i,->i", X, 0.3), A * 0.3),
    "tensordot of a list": (lambda: wg.tensordot(X, [0.3, 0.1, 0.7], 1), A @ [0.3, 0.1, 0.7]),
    "cross of a list": (lambda: wg.linalg.cross(X, [0.3, 0.1, 0.7]), np.cross(A, [0.3, 0.1, 0.7])),
    "vecdot of a list": (lambda: wg.linalg.vecdot(X, [0.3, 0.1, 0.7]), A @ [0.3, 0.1, 0.7]),
    "solve of a list": (lambda: wg.linalg.solve(2 * wg.eye(3).double(), [0.3, 0.1, 0.7]), [0.15, 0.05, 0.35]),
    "trapezoid of a list": (lambda: wg.trapezoid(X, [0.3, 0.4, 0.8]), 0.02 + 0.2),
    "cov of a list": (
        lambda: wg.cov(X.reshape(1, 3), aweights=[0.3, 0.1, 0.7]),
        np.cov(A, aweights=[0.3, 0.1, 0.7]),
    ),
    "clamp": (lambda: X.clamp(0.3, 0.6), [0.3, 0.3, 0.6]),
    "maximum": (lambda: X.maximum(0.3), [0.3, 0.3, 0.7]),
    "masked_fill": (lambda: X.masked_fill(X == 0.7, 0.3), [0.1, 0.3, 0.3]),
    "fill_": (lambda: X.clone().fill_(0.3), [0.3] * 3),
    "assignment": (lambda: assigned(X.clone(), 0.3), [0.3] * 3),
    "assignment of a list": (lambda: assigned(X.clone(), [0.3, 0.1, 0.7]), [0.3, 0.1, 0.7]),
}


def assigned(x: Tensor, value: Any) -> Tensor:
    """`x[:] = value`."""
    x[:] = value
    return x


@pytest.mark.parametrize("name", FLOATS)
def test_numbers_beside_float64(name: str) -> None:
    call, expected = FLOATS[name]
    got = call()
    got = got.numpy() if isinstance(got, Tensor) else np.asarray(got)
    expected = np.asarray(expected)
    if expected.dtype.kind in "fc":
        assert got.dtype == expected.dtype, name
        np.testing.assert_allclose(got, expected, rtol=1e-15, atol=0)
    else:
        np.testing.assert_array_equal(got, expected)


#: Integers beyond the mantissa of float64, limited to a bound beside them.
CLAMPS: dict[str, tuple[Callable[[Tensor], Tensor], list[int]]] = {
    "above": (lambda x: x.clamp(max=BIG), [BIG, -BIG - 2, BIG]),
    "below": (lambda x: x.clamp(min=-BIG), [BIG + 2, -BIG, BIG]),
    "both": (lambda x: x.clamp(-BIG, BIG), [BIG, -BIG, BIG]),
    "clip": (lambda x: x.clip(-BIG, BIG), [BIG, -BIG, BIG]),
    "in place": (lambda x: x.clone().clamp_(-BIG, BIG), [BIG, -BIG, BIG]),
    "clamp_min": (lambda x: x.clamp_min(-BIG), [BIG + 2, -BIG, BIG]),
    "clamp_max": (lambda x: x.clamp_max(BIG), [BIG, -BIG - 2, BIG]),
    "hardtanh": (lambda x: wg.nn.functional.hardtanh(x, -BIG, BIG), [BIG, -BIG, BIG]),
    "crossed": (lambda x: x.clamp(BIG, -BIG), [-BIG] * 3),
    "bounds beyond int64": (lambda x: x.clamp(-(2**63) - 1, 2**64), [BIG + 2, -BIG - 2, BIG]),
    "in a batch": (lambda x: wg.vmap(lambda v: v.clamp(-BIG, BIG))(x), [BIG, -BIG, BIG]),
}


@pytest.mark.parametrize("name", CLAMPS)
def test_integer_bounds(name: str) -> None:
    call, expected = CLAMPS[name]
    out = call(wg.tensor([BIG + 2, -BIG - 2, BIG]))
    assert out.dtype == wg.int64
    assert out.tolist() == expected


def test_integer_bounds_of_other_types() -> None:
    assert wg.tensor([1, 200, 250], dtype=wg.uint8).clamp(-5, 1000).tolist() == [1, 200, 250]
    assert wg.tensor([1, 200], dtype=wg.uint8).clamp(min=300).tolist() == [255, 255]
    assert wg.tensor([1, 100], dtype=wg.int8).clamp(max=-1000).tolist() == [-128, -128]
    most = wg.tensor([2**64 - 1], dtype=wg.uint64)
    assert most.clamp(min=0).tolist() == [2**64 - 1]
    assert most.clamp(max=BIG).tolist() == [BIG]
    assert wg.tensor([True, False]).clamp(0, 5).dtype == wg.int64
    assert wg.tensor([1, 2]).clamp(0.5, 1.5).tolist() == [1.0, 1.5]
    with pytest.raises(ValueError, match="min, max or both"):
        wg.tensor([1]).clamp()


NUMBERS = (
    300,
    -1,
    0,
    127,
    255,
    1000,
    -(2**63),
    2**63,
    2**64,
    -(2**70),
    0.5,
    -0.5,
    254.5,
    1e300,
    -math.inf,
    math.nan,
    True,
)
RELATIONS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x == y,
    lambda x, y: x != y,
    lambda x, y: x < y,
    lambda x, y: x <= y,
    lambda x, y: x > y,
    lambda x, y: x >= y,
)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_compare_with_any_number(dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = [limits.min, 0, 1, 100, limits.max - 1, limits.max]
    x = wg.tensor(values, dtype=getattr(wg, dtype))
    for number in (*NUMBERS, *values, limits.max + 1, limits.min - 1):
        for relation in RELATIONS:
            # Python compares its own numbers exactly.
            expected = [relation(v, number) for v in values]
            assert relation(x, number).tolist() == expected, number
            assert relation(number, x).tolist() == [relation(number, v) for v in values], number


def test_integers_compare_with_numbers_in_batches_and_methods() -> None:
    x = wg.tensor([[1, BIG], [BIG - 1, 300]])
    assert wg.vmap(lambda v: v == BIG)(x).tolist() == [[False, True], [False, False]]
    assert wg.vmap(lambda v: v.to(wg.uint8) < 300)(x).all()
    assert wg.tensor([5], dtype=wg.int8).lt(1000).tolist() == [True]
    assert wg.eq(wg.tensor([5], dtype=wg.uint8), 261).tolist() == [False]
    assert (wg.tensor([2**24 + 1]) == 2.0**24).tolist() == [False]
    assert (wg.tensor([1.0, math.inf]) < 2**70).tolist() == [True, False]
    assert (wg.tensor([1.0]) > -(10**400)).tolist() == [True]


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_closeness_of_large_integers(dtype: str) -> None:
    kind = getattr(wg, dtype)
    x, y = wg.tensor([BIG, 5], dtype=kind), wg.tensor([BIG - 1, 5], dtype=kind)
    assert not wg.allclose(x, y, rtol=0.0, atol=0.5)
    assert not x.allclose(y, 0.0, 0.0)
    assert wg.isclose(x, y, rtol=0.0, atol=0.0).tolist() == [False, True]
    assert wg.isclose(x, y, rtol=0.0, atol=1.0).tolist() == [True, True]
    assert wg.allclose(x, y)
    assert wg.allclose(x, x, rtol=0.0, atol=0.0)


def test_closeness_of_integers_far_apart() -> None:
    low, high = wg.tensor([-(2**63)]), wg.tensor([2**63 - 1])
    assert not wg.allclose(low, high, rtol=1e-3)
    assert not wg.allclose(high, low, rtol=1e-3)
    assert wg.allclose(low, high, rtol=2.5)
    assert wg.isclose(
        wg.tensor([-128], dtype=wg.int8), wg.tensor([127], dtype=wg.int8), atol=255.0, rtol=0.0
    ).all()
    assert not wg.isclose(
        wg.tensor([-128], dtype=wg.int8), wg.tensor([127], dtype=wg.int8), atol=254.0, rtol=0.0
    ).any()
    assert wg.isclose(wg.tensor([BIG]), 5).tolist() == [False]


def test_integers_are_found_among_any_numbers() -> None:
    x = wg.tensor([2**53, BIG, 3])
    assert wg.isin(x, BIG).tolist() == [False, True, False]
    assert wg.isin(x, 3.0).tolist() == [False, False, True]
    assert not wg.isin(x, 3.5).any()
    assert wg.isin(wg.tensor([44], dtype=wg.int8), 300).tolist() == [False]
    assert wg.isin(wg.tensor([2**24, 2**24 + 1]), 2.0**24).tolist() == [True, False]
    assert wg.searchsorted(wg.tensor([2**53, BIG]), BIG).item() == 1
    assert wg.searchsorted(wg.tensor([1, 2, 44], dtype=wg.int8), 300).item() == 3
    assert wg.bucketize(2.5, wg.tensor([1, 2, 3])).item() == 2
    assert wg.bucketize(wg.tensor([2**24 + 1]), wg.tensor([2.0**24])).item() == 1


@pytest.mark.parametrize("dtype", [wg.float64, wg.float32, wg.float16])
@pytest.mark.parametrize("place", [0, 1500, 2999])
def test_a_product_with_a_zero_is_zero(dtype: wg.dtype, place: int) -> None:
    values = np.full(3000, -3.0)
    values[place] = 0.0
    x = wg.tensor(values, dtype=dtype)
    assert x.prod().tolist() == 0.0
    assert str(x.prod().item()) == "-0.0"  # of 2,999 negative factors
    assert wg.stack([x, -x, x + 1]).prod(1).tolist()[:2] == [0.0, 0.0]
    assert wg.stack([x, -x], 1).prod(0).tolist() == [0.0, 0.0]
    for bad in (float("inf"), float("nan")):
        spoiled = x.clone()
        spoiled[7] = bad
        assert np.isnan(spoiled.prod().item())


@pytest.mark.parametrize("dtype", [wg.float64, wg.float32, wg.int64, wg.float16])
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 63, 64, 65, 200])
def test_few_rows_of_many_columns_have_their_sums(dtype: wg.dtype, rows: int) -> None:
    draws = np.random.default_rng(rows)
    values = draws.integers(-50, 50, (rows, 2600)).astype(np.float64)
    x = wg.tensor(values, dtype=dtype)
    assert x.sum(0).tolist() == values.sum(0).tolist()
    assert x[:, 3:2100].sum(0).tolist() == values[:, 3:2100].sum(0).tolist()
    assert x.mT.contiguous().mT.sum(0).tolist() == values.sum(0).tolist()
    assert x.amax(0).tolist() == values.max(0).tolist()
    assert wg.stack([x, 2 * x]).sum(1).tolist() == [values.sum(0).tolist(), (2 * values).sum(0).tolist()]
    zeros = wg.full((rows, 2600), -0.0, dtype=wg.float32).sum(0)
    assert not zeros.signbit().any()
