"""Integers of every width: conversion, wrapping arithmetic, reductions, order and indexing, against NumPy."""

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg

INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


def some(dtype: str, shape: tuple[int, ...] = (5, 7), seed: int = 0) -> np.ndarray[Any, Any]:
    """Numbers from the whole range of the type, its ends among them."""
    limits = np.iinfo(dtype)
    x = np.random.default_rng(seed).integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    x.flat[: 3 if x.size > 3 else 0] = [limits.min, limits.max, 0]
    return x


def layouts(x: np.ndarray[Any, Any]) -> list[wg.Tensor]:
    """The same matrix in several layouts."""
    double = np.repeat(np.repeat(x, 2, 0), 2, 1)
    return [wg.tensor(x), wg.tensor(np.ascontiguousarray(x.T)).mT, wg.tensor(double)[::2, ::2]]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_numbers_go_in_and_out_unchanged(dtype: str) -> None:
    x, kind = some(dtype), getattr(wg, dtype)
    t = wg.from_numpy(x)
    assert t.dtype == kind
    assert np.array_equal(t.numpy(), x)
    assert np.shares_memory(t.numpy(), x)
    assert t.tolist() == x.tolist()
    assert wg.tensor(x.tolist(), dtype=kind).tolist() == x.tolist()
    assert [v.item() for v in t[0]] == x[0].tolist()
    assert np.array_equal(np.from_dlpack(t), x)
    assert np.array_equal(wg.from_dlpack(x).numpy(), x)
    limits, own = np.iinfo(dtype), wg.iinfo(kind)
    assert (own.min, own.max, own.bits) == (limits.min, limits.max, limits.bits)
    assert (
        wg.full((2,), int(limits.max) & (2**63 - 1), dtype=kind).tolist()
        == [int(limits.max) & (2**63 - 1)] * 2
    )
    assert wg.arange(3, dtype=kind).tolist() == [0, 1, 2]
    beyond = int(limits.max) + 1 if dtype != "uint64" else -1
    with pytest.raises(
        ValueError, match=f"does not fit into {dtype}, which holds {limits.min} to {limits.max}"
    ):
        wg.tensor([beyond], dtype=kind)
    with pytest.raises(ValueError, match="the integer 18446744073709551616 does not fit into int64"):
        wg.tensor([2**64], dtype=kind)


def test_how_they_print() -> None:
    assert repr(wg.tensor([-1, 2], dtype=wg.int8)) == "tensor([-1,  2], dtype=int8)"
    assert repr(wg.tensor(2**64 - 1, dtype=wg.uint64)) == "tensor(18446744073709551615, dtype=uint64)"
    assert wg.short is wg.int16


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "lt": operator.lt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_wraps_as_in_numpy(name: str, dtype: str) -> None:
    f, a, b = ARITHMETIC[name], some(dtype, seed=1), some(dtype, seed=2)
    if name in ("floordiv", "mod"):
        b[b == 0] = 3
    with np.errstate(all="ignore"):
        expected = f(a, b)
    for x in layouts(a):
        for y in layouts(b):
            assert np.array_equal(f(x, y).numpy(), expected)
            assert f(x, y).numpy().dtype == expected.dtype
    one = b[2, 3]
    with np.errstate(all="ignore"):
        assert np.array_equal(f(wg.tensor(a), wg.tensor(b)[2, 3]).numpy(), f(a, one))
    if name not in ("lt", "ge", "eq", "ne"):
        t = wg.tensor(a.T.copy()).mT
        getattr(operator, f"i{name}")(t, wg.tensor(b))
        assert np.array_equal(t.numpy(), expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_one_number(dtype: str) -> None:
    a = some(dtype)
    with np.errstate(all="ignore"):
        for x in layouts(a):
            assert np.array_equal((-x).numpy(), np.negative(a))
            assert np.array_equal(x.abs().numpy(), np.abs(a))
            assert np.array_equal(x.sign().numpy(), np.sign(a))
            assert np.array_equal(x.square().numpy(), a * a)
            assert np.array_equal((x**3).numpy(), a**3)
            assert np.array_equal(x.relu().numpy(), np.maximum(a, 0))
            assert np.array_equal(x.clamp(3, 100).numpy(), a.clip(3, 100))
            assert np.array_equal(x.clamp(min=-(10**30)).numpy(), a)
            assert np.array_equal(x.clamp(min=5).numpy(), a.clip(5))
            assert np.array_equal(
                x.clamp(max=10**10).numpy(), np.minimum(a, min(10**10, np.iinfo(dtype).max))
            )
            assert x.floor().dtype == x.dtype
            np.testing.assert_allclose(x.exp().numpy(), np.exp(a.astype("float32")), rtol=1e-5)
            assert (x / 2).dtype == wg.float32


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions_and_order(axis: int | None, dtype: str) -> None:
    a = some(dtype, (6, 5), seed=3)
    total = "uint64" if dtype == "uint64" else "int64"
    flat = {} if axis is None else {"axis": axis}
    for x in layouts(a):
        for name in ("sum", "prod"):
            got = getattr(x, name)(**flat)
            assert got.dtype == getattr(wg, total)
            assert np.array_equal(got.numpy(), getattr(a, name)(axis=axis, dtype=total))
        for name, reference in (("amax", "max"), ("amin", "min"), ("argmax", "argmax"), ("argmin", "argmin")):
            got = getattr(x, name)(**flat)
            assert np.array_equal(got.numpy(), getattr(a, reference)(axis=axis)), name
        assert x.amax().dtype == x.dtype
        if axis is None:
            continue
        for descending in (False, True):
            values, places = x.sort(axis, descending=descending)
            expected = np.sort(a, axis=axis)
            assert np.array_equal(values.numpy(), np.flip(expected, axis) if descending else expected)
            assert np.array_equal(np.take_along_axis(a, places.numpy(), axis), values.numpy())
        assert np.array_equal(x.cumsum(axis).numpy(), a.cumsum(axis=axis, dtype=total))
        assert np.array_equal(x.cumprod(axis).numpy(), a.cumprod(axis=axis, dtype=total))
        assert np.array_equal(x.cummax(axis)[0].numpy(), np.maximum.accumulate(a, axis=axis))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_products_of_matrices_wrap(dtype: str) -> None:
    a, b = some(dtype, (4, 9), seed=4), some(dtype, (9, 3), seed=5)
    assert np.array_equal((wg.tensor(a) @ wg.tensor(b)).numpy(), a @ b)
    assert (wg.tensor(a) @ wg.tensor(b)).numpy().dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_every_integer_is_an_index(dtype: str) -> None:
    x = wg.arange(12.0, requires_grad=True)
    places = wg.tensor([3, 0, 3, 11], dtype=getattr(wg, dtype))
    assert x[places].tolist() == [3.0, 0.0, 3.0, 11.0]
    assert x.gather(0, places).tolist() == [3.0, 0.0, 3.0, 11.0]
    assert x.index_select(0, places).tolist() == [3.0, 0.0, 3.0, 11.0]
    x[places].sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1, 0, 0, 2] + [0] * 7 + [1]
    y = wg.zeros(12, dtype=getattr(wg, dtype))
    y[places] = 7
    assert y.tolist() == [7, 0, 0, 7] + [0] * 7 + [7]
    assert wg.zeros(12, dtype=y.dtype).scatter_add(0, places, y[:4]).sum().item() == 14
    table = wg.nn.functional.embedding(places, wg.eye(12))
    assert table.argmax(1).tolist() == [3, 0, 3, 11]
    loss = wg.nn.functional.cross_entropy(wg.zeros(4, 12), places)
    assert loss.item() == pytest.approx(np.log(12))


def test_an_unsigned_index_does_not_count_from_the_end() -> None:
    with pytest.raises(
        IndexError, match="index 18446744073709551615 is out of range for an axis of length 3"
    ):
        wg.ones(3).take(wg.tensor([2**64 - 1], dtype=wg.uint64), 0)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float64"])
def test_sums_have_the_dtype_that_was_asked_for(dtype: str) -> None:
    a = np.array([[200, 100], [7, 250]], "uint8")
    x, kind = wg.tensor(a), getattr(wg, dtype)
    for ours, theirs in (
        (x.sum(dtype=kind), a.sum(dtype=dtype)),
        (x.prod(1, dtype=kind), a.prod(1, dtype=dtype)),
        (x.cumsum(1, dtype=kind), a.cumsum(1, dtype=dtype)),
        (x.cumprod(0, dtype=kind), a.cumprod(0, dtype=dtype)),
    ):
        assert ours.dtype == kind
        assert np.array_equal(ours.numpy(), theirs)


def test_mixed_signs_promote_as_in_numpy() -> None:
    for a in INTEGERS:
        for b in INTEGERS:
            x, y = wg.ones(2, dtype=getattr(wg, a)), wg.ones(2, dtype=getattr(wg, b))
            assert (x + y).dtype == getattr(wg, np.promote_types(a, b).name), (a, b)
            assert (x < y).dtype == wg.bool
            assert wg.where(x > 0, x, y).dtype == (x + y).dtype
    low, high = wg.tensor([-1], dtype=wg.int8), wg.tensor([255], dtype=wg.uint8)
    assert (low + high).tolist() == [254]
    assert (low < high).tolist() == [True]
    big = wg.tensor([2**63 + 1], dtype=wg.uint64)
    assert (big * 1).tolist() == [2**63 + 1]
    with pytest.raises(ValueError, match="-1 does not fit into uint64"):
        big + -1


@pytest.mark.parametrize("dtype", INTEGERS)
def test_casts_of_every_value(dtype: str) -> None:
    a = some(dtype, (40, 40), seed=6)
    for to in [*INTEGERS, "float32", "float64", "bool"]:
        for x in layouts(a):
            assert np.array_equal(x.to(getattr(wg, to)).numpy(), a.astype(to)), to
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        halves = a.astype("float16")
    assert np.array_equal(wg.tensor(a).half().numpy(), halves)
    floats = np.array([0.0, 1.9, 100.5, -1.5, -100.9], "float64")
    kept = floats if dtype[0] == "i" else np.abs(floats)
    assert np.array_equal(wg.tensor(kept).to(getattr(wg, dtype)).numpy(), kept.astype(dtype))


def test_large_uint64_are_rounded_once() -> None:
    rng = np.random.default_rng(7)
    a = rng.integers(0, 2**64 - 1, 4000, dtype="uint64", endpoint=True) >> rng.integers(0, 40, 4000).astype(
        "uint64"
    )
    ties = np.array([2**24 + 1, 2**63 + 2**39, 2**63 + 2**39 + 1, 2**64 - 1, 2**53 + 1], "uint64")
    for x in (a, ties):
        assert np.array_equal(wg.tensor(x).float().numpy(), x.astype("float32"))
        assert np.array_equal(wg.tensor(x).double().numpy(), x.astype("float64"))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_large_operands_are_walked_in_pieces(dtype: str) -> None:
    a, b = some(dtype, (300, 517), seed=8), some(dtype, (300, 517), seed=9)
    with np.errstate(all="ignore"):
        assert np.array_equal((wg.tensor(a) + wg.tensor(b)).numpy(), a + b)
        assert np.array_equal((wg.tensor(a.T.copy()).mT * wg.tensor(b[:1])).numpy(), a * b[:1])
        assert np.array_equal((wg.tensor(a) * wg.tensor(b[:, :1].copy())).numpy(), a * b[:, :1])
        assert np.array_equal((wg.tensor(a)[:, ::3] + 1).numpy(), a[:, ::3] + np.ones((), dtype))
    assert wg.tensor(a).amax().item() == a.max()
    assert np.array_equal(wg.tensor(a).to(wg.float32).numpy(), a.astype("float32"))
