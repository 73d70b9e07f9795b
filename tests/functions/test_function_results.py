"""Values, dtypes and shapes of functions where they are easily wrong: numbers worked out by hand,
and NumPy's.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.nn.functional as F
from wengert import Tensor

inf, nan = math.inf, math.nan
T = wg.tensor

# Name: the call, and what it gives: elements, dtype, shape (where the elements do not tell it).
RESULTS: dict[str, tuple[Callable[[], Tensor], Any, Any]] = {
    # Integers and truth values to the power of a float are floats, also of a whole one.
    "int ** 2.0": (lambda: T([1, 2, 3]) ** 2.0, [1.0, 4.0, 9.0], wg.float32),
    "bool ** 2.0": (lambda: T([True, False]) ** 2.0, [1.0, 0.0], wg.float32),
    "int ** 2": (lambda: T([1, 2, 3]) ** 2, [1, 4, 9], wg.int64),
    "int.pow(2.0)": (lambda: T([3]).pow(2.0), [9.0], wg.float32),
    "int ** 1.0": (lambda: T([3]) ** 1.0, [3.0], wg.float32),
    "half ** 2.0": (lambda: T([3.0], dtype=wg.float16) ** 2.0, [9.0], wg.float16),
    # A power of 2 is one of the result's type, not of a half exponent's.
    "ldexp of a half exponent": (
        lambda: wg.ldexp(T([1.0], dtype=wg.float64), T([0.5], dtype=wg.float16)),
        [math.sqrt(2.0)],
        wg.float64,
    ),
    # Squared lengths count 1e-12 more, so that short vectors have no angle.
    "cosine_embedding_loss of short vectors": (
        lambda: F.cosine_embedding_loss(
            T([[1e-7, 2e-7]], dtype=wg.float64),
            T([[3e-7, -1e-7]], dtype=wg.float64),
            T([1]),
            reduction="none",
        ),
        [1 - 1e-14 / math.sqrt(1.05e-12 * 1.1e-12)],
        wg.float64,
    ),
    # Products of integers have whole factors.
    "addmv": (
        lambda: wg.addmv(T([1, 2]), T([[1, 2], [3, 4]]), T([1, 1]), beta=0.2, alpha=0.6),
        [0, 0],
        wg.int64,
    ),
    "addmv, more": (
        lambda: wg.addmv(T([1, 2]), T([[1, 2], [3, 4]]), T([1, 1]), beta=2.9, alpha=3.9),
        [11, 25],
        wg.int64,
    ),
    "addmm": (lambda: wg.addmm(T([[1]]), T([[1]]), T([[3]]), beta=1.5, alpha=2.6), [[7]], wg.int64),
    "addbmm": (lambda: wg.addbmm(T([[1]]), T([[[1]]]), T([[[3]]]), beta=1.5, alpha=2.6), [[7]], wg.int64),
    "baddbmm": (
        lambda: wg.baddbmm(T([[[1]]]), T([[[1]]]), T([[[3]]]), beta=1.5, alpha=2.6),
        [[[7]]],
        wg.int64,
    ),
    "addmm of floats": (
        lambda: wg.addmm(T([[1.0]]), T([[1.0]]), T([[3.0]]), beta=1.5, alpha=2.5),
        [[9.0]],
        wg.float32,
    ),
    "addcmul": (lambda: wg.addcmul(T([1]), T([3]), T([2]), value=1.9), [7], wg.int64),
    "addcmul of floats": (lambda: wg.addcmul(T([1.0]), T([3]), T([2]), value=1.5), [10.0], wg.float32),
    "addr of bools": (lambda: wg.addr(T([[True]]), T([True]), T([False])), [[True]], wg.bool),
    # Products at a place do not meet those of others.
    "scatter, multiply": (
        lambda: T([1.0, -2.0]).scatter(0, T([0, 1]), inf, reduce="multiply"),
        [inf, -inf],
        wg.float32,
    ),
    "scatter_reduce, prod": (
        lambda: T([1.0, -2.0, 3.0]).scatter_reduce(0, T([0, 2, 0, 2]), T([inf, 5.0, 0.5, 2.0]), "prod"),
        [inf, -2.0, 30.0],
        wg.float32,
    ),
    "scatter_reduce, prod, without itself": (
        lambda: T([7.0, -2.0]).scatter_reduce(
            0, T([0, 0, 0]), T([2.0, 3.0, 4.0]), "prod", include_self=False
        ),
        [24.0, -2.0],
        wg.float32,
    ),
    "scatter_reduce, prod of large integers": (
        lambda: T([1]).scatter_reduce(0, T([0, 0]), T([2**31 - 1, 2**31 + 1]), "prod"),
        [2**62 - 1],
        wg.int64,
    ),
    # Moments of one variable are numbers.
    "cov of one row": (lambda: wg.cov(T([[1.0, 2.0, 3.0]])), 1.0, wg.float32),
    "corrcoef of one row": (lambda: wg.corrcoef(T([[1.0, 2.0, 4.0]])), 1.0, wg.float32),
    "cov of two rows": (
        lambda: wg.cov(T([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])),
        [[1.0, 2.0], [2.0, 4.0]],
        wg.float32,
    ),
    "cov of integers": (lambda: wg.cov(T([[1, 2, 3], [2, 4, 6]])), [[1.0, 2.0], [2.0, 4.0]], wg.float32),
    "cov of complex": (lambda: wg.cov(T([1 + 1j, 2 - 1j])), 2.5 + 0j, wg.complex64),
    "corrcoef of complex": (
        lambda: wg.corrcoef(T([[1j, -1j], [1.0, -1.0]])),
        [[1 + 0j, 1j], [-1j, 1 + 0j]],
        wg.complex64,
    ),
    "diff of bools": (lambda: wg.diff(T([True, True, False])), [False, True], wg.bool),
    "vander of small integers": (
        lambda: wg.vander(T([20], dtype=wg.uint8), 3),
        [[400, 20, 1]],
        wg.int64,
    ),
    # Functions made of others have the dtype of their operands together, as one step would.
    "ldexp of small integers": (
        lambda: wg.ldexp(T([1, 2], dtype=wg.uint8), T([1, -2])),
        [2.0, 0.5],
        wg.float32,
    ),
    "ldexp of float64": (lambda: wg.ldexp(T([0.5], dtype=wg.float64), T([1000])), [2.0**999], wg.float64),
    "ldexp by complex": (lambda: wg.ldexp(T([3.0]), T([1 + 0j])), [6 + 0j], wg.complex64),
    "ldexp of bools": (lambda: wg.ldexp(T([True, False]), T(3)), [8.0, 0.0], wg.float32),
    "logaddexp2 beside float64": (
        lambda: wg.logaddexp2(T([1, 3]), T(1.0, dtype=wg.float64)),
        [2.0, math.log2(10)],
        wg.float64,
    ),
    "logaddexp2 beside a half": (lambda: wg.logaddexp2(T([1]), T([1.0]).half()), [2.0], wg.float16),
    "dist beside float64": (
        lambda: wg.dist(T([0.5, 0.5]).half(), T(0.25, dtype=wg.float64), 1),
        0.5,
        wg.float16,
    ),
    "dist of complex": (lambda: wg.dist(T([3 + 0j]), T([0.0]).half()), 3.0, wg.float32),
    "nansum in another dtype": (lambda: wg.nansum(T([1.5, nan]), dtype=wg.float64), 1.5, wg.float64),
    "nanmean in another dtype": (lambda: wg.nanmean(T([1.5, nan]), 0, dtype=wg.float64), 1.5, wg.float64),
    "nan_to_num of None": (lambda: wg.nan_to_num(T([nan, 1.0]), None), [0.0, 1.0], wg.float32),
    "diff of order 0": (lambda: wg.diff(T([1.0, 2.0]), n=0, prepend=T([5.0])), [1.0, 2.0], wg.float32),
    "diff with prepend": (lambda: wg.diff(T([1.0, 2.0]), prepend=T([5.0])), [-4.0, 1.0], wg.float32),
    # Tensors without axes.
    "masked_select of a number": (lambda: T(5.0).masked_select(T(True)), [5.0], wg.float32),
    "masked_select of no number": (lambda: T(5.0).masked_select(T(False)), [], wg.float32),
    "unfold of a number": (lambda: T(5.0).unfold(0, 1, 1), [5.0], wg.float32),
    "prelu of a number": (lambda: F.prelu(T(-1.0), T([0.25])), -0.25, wg.float32),
    "gather by a number": (lambda: T([1.0, 2.0]).gather(0, T(1)), 2.0, wg.float32),
    "gather of a number": (lambda: T(3.0).gather(0, T(0)), 3.0, wg.float32),
    "gather of a number by several": (lambda: T(3.0).gather(-1, T([0, 0])), [3.0, 3.0], wg.float32),
    "scatter_add of a number": (lambda: T([1.0, 2.0]).scatter_add(0, T(1), T(5.0)), [1.0, 7.0], wg.float32),
    "scatter_add to a number": (lambda: T(1.0).scatter_add(0, T(0), T(5.0)), 6.0, wg.float32),
    "scatter_add to a number, twice": (
        lambda: T(1.0).scatter_add(0, T([0, 0]), T([5.0, 1.0])),
        7.0,
        wg.float32,
    ),
    "index_add to a number": (lambda: T(1.0).index_add(0, T(0), T(2.0)), 3.0, wg.float32),
    "index_add with a number": (lambda: T([1.0, 2.0]).index_add(0, T(1), T([2.0])), [1.0, 4.0], wg.float32),
    "index_select of a number": (lambda: T(1.0).index_select(0, T(0)), 1.0, wg.float32),
    "index_select by a number": (lambda: T([[1.0, 2.0]]).index_select(1, T(1)), [[2.0]], wg.float32),
    "movedim of a number": (lambda: T(1.0).movedim(0, 0), 1.0, wg.float32),
    "transpose of a number": (lambda: T(1.0).transpose(0, -1), 1.0, wg.float32),
    "mT of a number": (lambda: T(1.0).mT, 1.0, wg.float32),
    "mH of a number": (lambda: T(1.0 + 2.0j).mH, 1.0 - 2.0j, wg.complex64),
    "H of a number": (lambda: T(1.0).H, 1.0, wg.float32),
    "squeeze of no axes": (lambda: wg.zeros(1, 1, 2).squeeze(()), [[[0.0, 0.0]]], wg.float32),
    # Empty ones.
    "trapezoid of nothing": (lambda: wg.trapezoid(wg.ones(0)), 0.0, wg.float32),
    "trapezoid of rows of nothing": (lambda: wg.trapezoid(wg.ones(2, 0)), [0.0, 0.0], wg.float32),
    "trapezoid of nothing at nothing": (lambda: wg.trapezoid(wg.ones(0), wg.ones(0)), 0.0, wg.float32),
    "cumulative_trapezoid of nothing": (lambda: wg.cumulative_trapezoid(wg.ones(2, 0)), [[], []], wg.float32),
    "cat with nothing": (lambda: wg.cat([wg.zeros(0), wg.ones(2, 2)], dim=1), [[1.0, 1.0]] * 2, wg.float32),
    "cat of nothing": (lambda: wg.cat([wg.zeros(0), wg.zeros(0)]), [], wg.float32),
    "cat with nothing of another dtype": (
        lambda: wg.cat([wg.ones(1, 2), wg.zeros(0, dtype=wg.float64)], dim=-1),
        [[1.0, 1.0]],
        wg.float64,
    ),
    "index_add to nothing": (lambda: wg.zeros(0, 3).index_add(1, T([7]), wg.zeros(0, 1)), [], wg.float32),
    # Bounds.
    "logit of a large eps": (
        lambda: wg.logit(T([0.5], dtype=wg.float64), eps=0.6),
        [math.log(1.5)],
        wg.float64,
    ),
    "logit of a small eps": (
        lambda: wg.logit(T([0.0, 0.5, 1.0], dtype=wg.float64), eps=0.25),
        [-math.log(3), 0.0, math.log(3)],
        wg.float64,
    ),
    "hardtanh of integers": (lambda: F.hardtanh(T([-3, 0, 3]), -0.5, 0.5), [0, 0, 0], wg.int64),
    "sign of bools": (lambda: wg.sign(T([True, False])), [True, False], wg.bool),
    # Ranges of integers.
    "arange": (lambda: wg.arange(-0.9, 2.1, 2.0, dtype=wg.int64), [0, 2], wg.int64),
    "arange, more": (lambda: wg.arange(0.5, 5.5, 1.5, dtype=wg.int64), [0, 1, 2, 3], wg.int64),
    "arange of nothing": (lambda: wg.arange(0, 0, 2), [], wg.int64),
    "logspace": (lambda: wg.logspace(0, 1.2, 2, dtype=wg.int64), [1, 10], wg.int64),
    "linspace": (lambda: wg.linspace(0.9, 5.5, 4, dtype=wg.int64), [0, 1, 3, 5], wg.int64),
    # Sums of weights.
    "bincount of integers": (lambda: wg.bincount(T([1, 2]), weights=T([1, 2])), [0.0, 1.0, 2.0], wg.float64),
    "bincount of float32": (
        lambda: wg.bincount(T([1, 2]), weights=T([1.0, 2.0])),
        [0.0, 1.0, 2.0],
        wg.float32,
    ),
    "bincount of halves": (lambda: wg.bincount(T([1]), weights=T([1.5]).half()), [0.0, 1.5], wg.float64),
    "bincount": (lambda: wg.bincount(T([1, 1])), [0, 2], wg.int64),
    # Positions.
    "nonzero of complex": (lambda: T([1j, 0, 2]).nonzero(), [[0], [2]], wg.int64),
    "argwhere of complex": (lambda: wg.argwhere(T([[0, 1j]])), [[0, 1]], wg.int64),
    "where of complex": (lambda: wg.where(T([0, 1j]))[0], [1], wg.int64),
    "nonzero of a number": (lambda: T(5.0).nonzero(as_tuple=True)[0], [0], wg.int64),
    "nonzero of zero": (lambda: T(0.0).nonzero(as_tuple=True)[0], [], wg.int64),
    "where of a number": (lambda: wg.where(T(5.0))[0], [0], wg.int64),
    # Axes of length 1 in products over several axes stand for any length.
    "tensordot": (
        lambda: wg.tensordot(wg.ones(1, 1, 1), wg.ones(2, 1, 2), dims=[[0, 1], [2, 0]]),
        [[4.0]],
        wg.float32,
    ),
    "masked_scatter": (
        lambda: wg.zeros(2).masked_scatter(T([[True, False], [True, True]]), T([1.0, 2.0, 3.0])),
        [[1.0, 0.0], [2.0, 3.0]],
        wg.float32,
    ),
    "broadcast_shapes": (lambda: T(wg.broadcast_shapes(5, (3, 1))), [3, 5], wg.int64),
    "index_add, whole alpha": (
        lambda: T([1, 2]).index_add(0, T([1]), T([3]), alpha=2),
        [1, 8],
        wg.int64,
    ),
    # A list of lists of integers is one array of indices, as in NumPy.
    "a list of lists as index": (
        lambda: T(wg.arange(16).reshape(4, 4)[[[[1, 2], [0, 0]], [[0, 1], [1, 1]]]].shape),
        [2, 2, 2, 4],
        wg.int64,
    ),
    "cross along the first axis of length 3": (
        lambda: wg.cross(T([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), T([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])),
        [[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]],
        wg.float32,
    ),
    "cross of 3 by 3": (
        lambda: wg.cross(T([[1.0, 0, 0], [0, 0, 0], [0, 0, 0]]), T([[0.0, 0, 0], [1.0, 0, 0], [0, 0, 0]])),
        [[0.0, 0, 0], [0, 0, 0], [1.0, 0, 0]],
        wg.float32,
    ),
    "pinv of the lower triangle": (
        lambda: wg.linalg.pinv(T([[1.0, 9.0], [3.0, 5.0]], dtype=wg.float64), hermitian=True),
        [[-1.25, 0.75], [0.75, -0.25]],
        wg.float64,
    ),
    "matrix_rank by tensors": (
        lambda: wg.linalg.matrix_rank(wg.eye(3).expand(2, 3, 3), atol=T([0.5, 2.0])),
        [3, 0],
        wg.int64,
    ),
    "matrix_rank by a number in a tensor": (
        lambda: wg.linalg.matrix_rank(wg.eye(3), atol=T(0.5)),
        3,
        wg.int64,
    ),
    "cat of vectors without elements": (
        lambda: wg.cat([wg.zeros(0), wg.zeros(0)], dim=1),
        [],
        wg.float32,
    ),
    "softplus of a negative beta": (
        lambda: F.softplus(T([1.0, -1.0, 0.0]), beta=-1.0),
        [-math.log1p(math.exp(-1)), -math.log1p(math.exp(1)), -math.log(2)],
        wg.float32,
    ),
    "tensordot by a tensor": (
        lambda: wg.tensordot(wg.ones(2, 3), wg.ones(3, 2), dims=T(1)),
        [[3.0, 3.0], [3.0, 3.0]],
        wg.float32,
    ),
    "tensordot by a matrix": (
        lambda: wg.tensordot(wg.ones(2, 3), wg.ones(2, 3), dims=T([[1], [1]])),
        [[3.0, 3.0], [3.0, 3.0]],
        wg.float32,
    ),
    "logspace inside vmap": (
        lambda: wg.vmap(lambda x: wg.logspace(0.0, x, 3))(T([1.0, 2.0])),
        [[1.0, math.sqrt(10), 10.0], [1.0, 10.0, 100.0]],
        wg.float32,
    ),
    "pad of integers": (lambda: F.pad(T([1], dtype=wg.uint8), (1, 0), value=255), [255, 1], wg.uint8),
    "pinv by tensors": (
        lambda: wg.linalg.pinv(2 * wg.eye(2).expand(2, 2, 2), atol=T([0.5, 3.0])),
        [[[0.5, 0.0], [0.0, 0.5]], [[0.0, 0.0], [0.0, 0.0]]],
        wg.float32,
    ),
    # log(1 + exp(-x)) / -1 and log(1 + exp(-x / 2)) / -0.5.
    "softplus, negative beta": (
        lambda: F.softplus(T([5.0, -5.0, 30.0, -30.0], dtype=wg.float64), beta=-1.0, threshold=50.0),
        [
            -math.log1p(math.exp(-5)),
            -math.log1p(math.exp(5)),
            -math.log1p(math.exp(-30)),
            -30 - math.exp(-30),
        ],
        wg.float64,
    ),
    "softplus, negative beta, past the threshold": (
        lambda: F.softplus(T([-30.0, 4.0]), beta=-0.5, threshold=10.0),
        [-30.0, -2 * math.log1p(math.exp(-2))],
        wg.float32,
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_result(name: str) -> None:
    call, elements, dtype = RESULTS[name]
    found = call()
    assert found.dtype == dtype
    wanted = np.array(elements)
    got = np.array(found.tolist())
    assert found.tolist() == elements or np.allclose(got, wanted, rtol=1e-6, atol=1e-7, equal_nan=True)
    assert got.shape == wanted.shape


def test_results_without_axes_have_none() -> None:
    assert wg.cov(wg.ones(1, 3)).shape == wg.corrcoef(wg.tensor([[1.0, 2.0]])).shape == ()
    assert wg.zeros(1, 1, 1).squeeze(()).shape == (1, 1, 1)
    assert wg.zeros(0, 3).index_add(1, T([7]), wg.zeros(0, 1)).shape == (0, 3)
    assert wg.trapezoid(wg.ones(0, 2), dim=0).shape == (2,)
    assert wg.cumulative_trapezoid(wg.ones(1)).shape == (0,)


def test_gradients_through_numbers() -> None:
    x = wg.tensor(2.0, requires_grad=True)
    (
        x.gather(0, T([0, 0])).sum() + wg.zeros(2).scatter_add(0, T(1), x).sum() + x.index_select(0, T(0))
    ).backward()
    assert x.grad.item() == 4.0


@pytest.mark.parametrize("count", [9, 20])
def test_many_parts(count: int) -> None:
    x = wg.arange(2 * count)
    parts = x.split([2] * count)
    assert [p.tolist() for p in parts] == [[2 * i, 2 * i + 1] for i in range(count)]
    assert len(wg.split(x, [2] * count)) == len(x.split_with_sizes([2] * count)) == count
    assert len(x.tensor_split(list(range(1, count)))) == count


def test_lists_of_coordinates() -> None:
    rows, columns = wg.meshgrid([wg.ones(3), T(2.0)], indexing="ij")
    assert rows.shape == columns.shape == (3, 1)
    assert columns.tolist() == [[2.0]] * 3


def test_products_at_places_differentiate_at_zeros() -> None:
    x = T([0.0, 2.0, 0.0, 3.0], dtype=wg.float64, requires_grad=True)
    out = wg.ones(2, dtype=wg.float64).scatter_reduce(0, T([0, 0, 1, 1]), x, "prod")
    out.sum().backward()
    # d(ab)/da = b.
    assert x.grad.tolist() == [2.0, 0.0, 3.0, 0.0]
    assert wg.autograd.gradcheck(
        lambda x, y: y.scatter_reduce(0, T([1, 0, 1, 1, 2]), x, "prod"),
        (
            wg.tensor([0.5, 0.0, 2.0, -1.5, 3.0], dtype=wg.float64),
            wg.tensor([2.0, -1.0, 0.0], dtype=wg.float64),
        ),
    )


@pytest.mark.parametrize("reduce", ["amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_infinite_extremes_have_slopes(reduce: str, include_self: bool) -> None:
    """As PyTorch has them; what takes no part ties with nothing."""
    sign = 1.0 if reduce == "amax" else -1.0
    x = T([1.0, 5.0, -inf]) * sign
    source = T([inf, 2.0, -inf, inf]) * sign
    x.requires_grad_()
    source.requires_grad_()
    index = T([0, 0, 2, 0])
    out = x.scatter_reduce(0, index, source, reduce, include_self=include_self)
    assert out.tolist() == [inf * sign, 5.0 * sign, -inf * sign]
    (out * T([4.0, 2.0, 3.0])).sum().backward()
    tied = 1.5 if include_self else 0.0
    assert x.grad.tolist() == [0.0, 2.0, tied]
    assert source.grad.tolist() == [2.0, 0.0, 3.0 - tied, 2.0]


def test_medians_share_their_gradient() -> None:
    for f in (wg.median, wg.nanmedian):
        x = T([1.0, 2.0, 2.0, 2.0, 3.0], requires_grad=True)
        f(x).backward()
        np.testing.assert_allclose(x.grad.tolist(), [0, 1 / 3, 1 / 3, 1 / 3, 0], rtol=1e-6)
    x = T([-inf, -inf, 1.0], requires_grad=True)
    wg.median(x).backward()
    assert x.grad.tolist()[2] == 0
    assert wg.median(T([1.0, nan, 2.0])).isnan().item()
    assert wg.nanmedian(T([1.0, nan, 2.0])).item() == 1.0
    assert wg.median(T([3, 1, 2])).item() == 2


def test_results_lie_in_rows() -> None:
    x = wg.rand(2, 3, 4)
    for f in (wg.softmax, wg.log_softmax):
        for dim in range(3):
            y = f(x, dim)
            assert y.stride() == (12, 4, 1)
            y.view(-1)
    assert wg.hessian(lambda x: (x**3).sum())(wg.ones(2, 3)).is_contiguous()
    of_two = wg.hessian(lambda x, y: (x**2 * y).sum(), argnums=(0, 1))(wg.ones(2), wg.ones(2))
    assert all(block.is_contiguous() for row in of_two for block in row)


def test_strides_inside_vmap_are_those_of_an_example() -> None:
    seen: list[Any] = []

    def f(x: Tensor) -> Tensor:
        seen.append((x.stride(), x.stride(-1), x.is_contiguous(), x.mT.is_contiguous(), x.mT.stride()))
        return x

    wg.vmap(f)(wg.ones(2, 3, 4))
    wg.vmap(f, in_dims=2)(wg.ones(3, 4, 2))
    wg.jvp(f, (wg.ones(3, 4),), (wg.ones(3, 4),))
    assert seen == [
        ((4, 1), 1, True, False, (1, 4)),
        ((8, 2), 2, False, False, (2, 8)),
        ((4, 1), 1, True, False, (1, 4)),
    ]


def test_one_result_may_be_named_by_a_tuple() -> None:
    x = wg.arange(6.0).reshape(2, 3)
    assert wg.vmap(lambda x: x * 2, out_dims=(1,))(x).tolist() == (2 * x).T.tolist()


def test_linspace_between_tensors() -> None:
    out = wg.vmap(lambda a: wg.linspace(0.0, a, 3))(T([1.0, 2.0]))
    assert out.tolist() == [[0.0, 0.5, 1.0], [0.0, 1.0, 2.0]]
    assert wg.linspace(T(1.0), 2, 2).tolist() == [1.0, 2.0]
    slope = wg.jacrev(lambda a: wg.linspace(a, 2.0, 5))(T(0.3))
    np.testing.assert_allclose(slope.tolist(), [1, 0.75, 0.5, 0.25, 0], atol=1e-6)


def test_what_a_mask_selects_is_reduced_along_its_axis() -> None:
    x = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
    cases: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
        "logsumexp": (lambda s: wg.logsumexp(s, dim=0), lambda r: np.log(np.exp(r).sum())),
        "std": (lambda s: s.std(keepdim=True), lambda r: r.std(ddof=1, keepdims=True)),
        "std, dim": (lambda s: wg.std(s, dim=0, unbiased=False), lambda r: r.std()),
        "var": (lambda s: s.var(0, False), lambda r: r.var()),
        "var, bool": (lambda s: s.var(False), lambda r: r.var()),
        "mean": (lambda s: s.mean(dim=-1, keepdim=True), lambda r: r.mean(keepdims=True)),
        "sum": (lambda s: s.sum(0), lambda r: r.sum()),
        "amax": (lambda s: s.amax(axis=0, keepdims=True), lambda r: r.max(keepdims=True)),
        "norm": (lambda s: s.norm(2, 0), lambda r: np.sqrt((r**2).sum())),
    }
    for name, (ours, numpy) in cases.items():
        found = wg.vmap(lambda x, f=ours: f(x[x > 0]))(T(x))
        wanted = np.array([numpy(row[row > 0]) for row in x])
        assert found.shape == wanted.shape, name
        np.testing.assert_allclose(found.tolist(), wanted, rtol=1e-12, err_msg=name)
    with pytest.raises(IndexError, match="sum: axis 1 is out of range"):
        wg.vmap(lambda x: x[x > 0].sum(1))(T(x))


def test_errors_of_shapes_are_of_both_kinds() -> None:
    for kind in (wg.ShapeError, ValueError, RuntimeError):
        with pytest.raises(kind, match="do not broadcast"):
            wg.ones(2) + wg.ones(3)
    with pytest.raises(wg.ShapeError, match="add up to 4"):
        wg.ones(3).split([2, 2])
    error = pickle.loads(pickle.dumps(wg.ShapeError("text")))
    assert isinstance(error, wg.ShapeError)
    assert str(error) == "text"
