"""Calls that are refused, since whatever they gave would be a surprise: the class of the error,
and what it says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import wengert as wg

T = wg.tensor


def half() -> wg.Tensor:
    return wg.zeros(2, dtype=wg.float16)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    # Sources of another dtype than what they are written to.
    "scatter": (
        lambda: half().scatter(0, T([0]), T([1.0])),
        TypeError,
        "source is float32 and the tensor float16",
    ),
    "scatter_": (lambda: half().scatter_(0, T([0]), T([1.0])), TypeError, "scatter: the source is float32"),
    "scatter_add": (lambda: half().scatter_add(0, T([0]), T([1.0])), TypeError, "one dtype expected"),
    "scatter_reduce": (
        lambda: half().scatter_reduce(0, T([0]), T([1.0]), "sum"),
        TypeError,
        "one dtype expected",
    ),
    "index_add": (
        lambda: half().index_add(0, T([0]), T([1.0])),
        TypeError,
        "index_add: the source is float32",
    ),
    "index_add, alpha": (
        lambda: T([1]).index_add(0, T([0]), T([1]), alpha=1.5),
        TypeError,
        "source is float32",
    ),
    "index_copy": (
        lambda: half().index_copy(0, T([0]), T([1.0])),
        TypeError,
        "index_copy: the source is float32",
    ),
    "index_put": (
        lambda: half().index_put((T([0]),), T([1.0])),
        TypeError,
        "index_put: the source is float32",
    ),
    "index_reduce": (lambda: half().index_reduce(0, T([0]), T([1.0]), "prod"), TypeError, "index_reduce"),
    "masked_scatter": (
        lambda: half().masked_scatter(T([True, False]), T([1.0])),
        TypeError,
        "masked_scatter",
    ),
    # Ranges.
    "linspace of bools": (
        lambda: wg.linspace(5, 10, 3, dtype=wg.bool),
        TypeError,
        "a dtype of numbers expected",
    ),
    "logspace of bools": (
        lambda: wg.logspace(0, 1, 3, dtype=wg.bool),
        TypeError,
        "a dtype of numbers expected",
    ),
    "arange of bools": (lambda: wg.arange(0, 3, dtype=wg.bool), TypeError, "a dtype of numbers expected"),
    "arange up": (lambda: wg.arange(0, -3, 2), ValueError, "steps of 2 lead away from -3, starting at 0"),
    "arange down": (lambda: wg.arange(0, 3, -2), ValueError, "steps of -2 lead away from 3"),
    "arange, large": (lambda: wg.arange(2**60, 0, 3), ValueError, "lead away"),
    # Values, weights, tolerances.
    "masked_fill": (
        lambda: wg.zeros(3).masked_fill(T([True] * 3), T([1.0])),
        wg.ShapeError,
        "a number expected",
    ),
    "masked_fill_": (
        lambda: wg.zeros(3).masked_fill_(T([True] * 3), T([1.0])),
        wg.ShapeError,
        "a number expected",
    ),
    "tensordot, no such axis": (
        lambda: wg.tensordot(wg.ones(2, 3), wg.ones(3, 2), [[5], [0]]),
        IndexError,
        "tensordot: axis 5 is out of range",
    ),
    "tensordot, less than no axes": (
        lambda: wg.tensordot(wg.ones(2, 3), wg.ones(3, 2), -1),
        ValueError,
        "dims cannot be negative, got -1",
    ),
    "tensordot, lists of two lengths": (
        lambda: wg.tensordot(wg.ones(2, 3), wg.ones(3, 2), [[1], [0, 1]]),
        ValueError,
        "as many axes expected of both",
    ),
    "tensordot, three lists": (
        lambda: wg.tensordot(wg.ones(2, 3), wg.ones(3, 2), [[1], [0], [1]]),
        TypeError,
        "a pair of lists of axes",
    ),
    "weight_norm, no such axis": (
        lambda: wg.nn.utils.parametrizations.weight_norm(wg.nn.Linear(2, 3), dim=5),
        IndexError,
        "weight_norm: axis 5 is out of range",
    ),
    "index_fill": (
        lambda: wg.zeros(3, 2).index_fill(0, T([0]), wg.zeros(1, 2)),
        wg.ShapeError,
        "a number expected",
    ),
    "index_fill_": (
        lambda: wg.zeros(3, 2).index_fill_(0, T([0]), wg.zeros(2)),
        wg.ShapeError,
        "a number expected",
    ),
    "aweights": (
        lambda: wg.cov(wg.rand(2, 3), aweights=T([-1.0, 1, 1])),
        ValueError,
        "aweights must lie between 0",
    ),
    "fweights": (
        lambda: wg.cov(wg.rand(2, 3), fweights=T([-1, 1, 1])),
        ValueError,
        "fweights must lie between 0",
    ),
    "fweights of floats": (
        lambda: wg.cov(wg.rand(2, 3), fweights=T([1.0, 1, 1])),
        TypeError,
        "must be integers",
    ),
    "isclose": (lambda: wg.isclose(T(1.0), T(1.0), rtol=-1), ValueError, "tolerances cannot be negative"),
    "allclose": (lambda: wg.allclose(T(1.0), T(1.0), atol=-1), ValueError, "tolerances cannot be negative"),
    # Axes.
    "movedim from": (
        lambda: wg.ones(2, 3).movedim((0, 0), (0, 1)),
        ValueError,
        "axis 0 appears twice in source",
    ),
    "movedim to": (
        lambda: wg.ones(2, 3).movedim((0, 1), (0, 0)),
        ValueError,
        "axis 0 appears twice in destination",
    ),
    "movedim to, negative": (
        lambda: wg.ones(2, 3).movedim((0, 1), (0, -2)),
        ValueError,
        "axis -2 appears twice",
    ),
    "cross": (lambda: wg.cross(wg.rand(2, 2, 3), wg.rand(2, 3)), wg.ShapeError, "as many axes expected"),
    "linalg.cross": (lambda: wg.linalg.cross(wg.rand(2, 2, 3), wg.rand(2, 3)), wg.ShapeError, "as many axes"),
    "cross of no axis of 3": (lambda: wg.cross(wg.rand(2, 2), wg.rand(2, 2)), wg.ShapeError, "length 3"),
    "tensordot": (
        lambda: wg.tensordot(wg.ones(2, 3), wg.ones(4, 2), dims=([1], [0])),
        wg.ShapeError,
        "differ in length",
    ),
    "tensordot of fewer than no axes": (
        lambda: wg.tensordot(wg.ones(2), wg.ones(2), dims=-1),
        ValueError,
        "dims cannot be negative",
    ),
    "permute": (lambda: wg.ones(2, 2).permute(0), wg.ShapeError, "1 axes given for a tensor with 2"),
    # Functions of real numbers.
    "logit": (lambda: wg.logit(T([0.5 + 1j])), TypeError, "logit: not defined for complex64"),
    "entr": (lambda: wg.special.entr(T([0.5 + 1j])), TypeError, "entr: not defined for complex64"),
    "mvlgamma": (lambda: wg.mvlgamma(T([5 + 1j]), 2), TypeError, "mvlgamma: not defined for complex64"),
    "complex": (
        lambda: wg.complex(T([1j]), T([1.0])),
        TypeError,
        "complex: real tensors expected, got complex64",
    ),
    "polar": (lambda: wg.polar(T([1.0]), T([1j])), TypeError, "polar: real tensors expected, got complex64"),
    "trapezoid of a number": (lambda: wg.trapezoid(T(1.0)), wg.ShapeError, "at least one axis expected"),
    "cat with nothing": (
        lambda: wg.cat([wg.zeros(0), wg.ones(2, 2)], dim=2),
        IndexError,
        "axis 2 is out of range",
    ),
    "split": (lambda: wg.arange(3).split([4, -1]), ValueError, "split: a size cannot be negative"),
    "index_select": (lambda: T(1.0).index_select(0, T([0, 0])), wg.ShapeError, "one index expected"),
    "index_select by a matrix": (
        lambda: wg.ones(2).index_select(0, T([[0]])),
        wg.ShapeError,
        "a vector of indices",
    ),
    "gather of a matrix": (lambda: wg.ones(2, 2).gather(0, T(0)), wg.ShapeError, "gather: index of shape"),
    "gather of a number": (lambda: T(1.0).gather(1, T(0)), IndexError, "out of range"),
    "index_add of a number": (lambda: T(1.0).index_add(0, T(0), T([2.0])), IndexError, "no axes"),
    "pinv": (
        lambda: wg.linalg.pinv(wg.ones(2, 3), hermitian=True),
        wg.ShapeError,
        "square matrices expected",
    ),
}


# What writes a number into integers.
WRITES: dict[str, Callable[[wg.Tensor, float], Any]] = {
    "tensor": lambda x, v: wg.tensor([v], dtype=x.dtype),
    "tensor of a number": lambda x, v: wg.tensor(v, dtype=x.dtype),
    "full": lambda x, v: wg.full((2,), v, dtype=x.dtype),
    "full_like": wg.full_like,
    "new_full": lambda x, v: x.new_full((2,), v),
    "fill_": lambda x, v: x.fill_(v),
    "setitem": lambda x, v: x.__setitem__(0, v),
    "setitem of an index": lambda x, v: x.__setitem__(T([0]), v),
    "setitem of a mask": lambda x, v: x.__setitem__(x == 0, v),
    "index_fill": lambda x, v: x.index_fill(0, T([0]), v),
    "masked_fill": lambda x, v: x.masked_fill(x == 0, v),
    "scatter": lambda x, v: x.scatter(0, T([0]), v),
    "pad": lambda x, v: wg.nn.functional.pad(x, (1, 0), value=v),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64", "uint64"])
def test_integers_do_not_hold(name: str, dtype: str) -> None:
    """Infinities, NaN and floats beyond the range, which NumPy and PyTorch refuse."""
    for value in (float("inf"), -float("inf"), float("nan"), 1e30, -1e30):
        x = wg.zeros(2, dtype=getattr(wg, dtype))
        with pytest.raises(ValueError, match=r"does not fit into|holds"):
            WRITES[name](x, value)
        assert x.tolist() == [0, 0]
    WRITES[name](wg.zeros(2, dtype=getattr(wg, dtype)), 2.7)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        call()


def test_dtypes_may_differ_under_autocast() -> None:
    with wg.autocast("cpu", dtype=wg.bfloat16):
        low = wg.ones(2, 2) @ wg.ones(2, 2)
        assert low.scatter_add(0, T([[0, 0]]), wg.ones(1, 2)).tolist() == [[3, 3], [2, 2]]
        assert low.scatter(0, T([[0, 0]]), wg.ones(1, 2)).tolist() == [[1, 1], [2, 2]]


def test_parts_are_converted_where_they_replace() -> None:
    assert half().select_scatter(T(1.0), 0, 0).tolist() == [1, 0]
    assert half().slice_scatter(T([1.0]), 0, 0, 1).tolist() == [1, 0]
    assert wg.zeros(2, 2).half().diagonal_scatter(T([1.0, 2.0])).tolist() == [[1, 0], [0, 2]]
    assert half().index_fill(0, T([0]), T(1.0)).dtype == wg.float16
