"""Functions whose results are floats compute in floats, whatever integers they are given: nothing wraps
on the way.
Expected are the formulas in NumPy's float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.nn.functional as F
from wengert import Tensor

# The extremes of the types, whose differences and squares they do not hold.
ELEMENTS = {
    "uint8": [[0, 1, 3], [200, 255, 7]],
    "int8": [[-128, 127, 3], [-5, 100, -7]],
    "int16": [[-32768, 1, 3], [300, 32767, 0]],
    "int32": [[-(2**31), 7, 3], [2, 2**31 - 1, 0]],
    "uint32": [[0, 1, 3], [4 * 10**9, 2**32 - 1, 7]],
    "bool": [[0, 1, 1], [1, 0, 1]],
}


def lengths(x: Any, p: float = 2.0) -> Any:
    return (np.abs(x) ** p).sum(-1) ** (1 / p)


def softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


FUNCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Any], Any]]] = {
    "norm": (lambda x: x.norm(), lambda x: lengths(x.reshape(-1))),
    "norm 3": (lambda x: x.norm(3, 1), lambda x: lengths(x, 3)),
    "norm 1/2": (lambda x: x.norm(0.5, 1), lambda x: lengths(x, 0.5)),
    "norm inf": (lambda x: x.norm(float("inf"), 1), lambda x: np.abs(x).max(-1)),
    "vector_norm": (lambda x: wg.linalg.vector_norm(x, dim=1), lengths),
    "matrix_norm": (wg.linalg.matrix_norm, lambda x: lengths(x.reshape(-1))),
    "matrix_norm 1": (lambda x: wg.linalg.matrix_norm(x, 1), lambda x: np.abs(x).sum(0).max()),
    "dist": (lambda x: wg.dist(x[:1], x[1:]), lambda x: lengths(x[0] - x[1])),
    "dist, number": (lambda x: wg.dist(x[0], 3), lambda x: lengths(x[0] - 3)),
    "cdist": (lambda x: wg.cdist(x, x), lambda x: lengths(x[:, None] - x[None])),
    "pdist": (wg.pdist, lambda x: lengths(x[:1] - x[1:])),
    "pairwise_distance": (
        lambda x: F.pairwise_distance(x[0], x[1]),
        lambda x: lengths(x[0] - x[1] + 1e-6),
    ),
    "normalize": (F.normalize, lambda x: x / lengths(x)[:, None]),
    "cosine_similarity": (
        lambda x: F.cosine_similarity(x[0], x[1], dim=0),
        lambda x: x[0] @ x[1] / lengths(x[0]) / lengths(x[1]),
    ),
    "logsigmoid": (F.logsigmoid, lambda x: -softplus(-x)),
    "softmin": (
        lambda x: F.softmin(x, 1),
        lambda x: (
            np.exp(x.min(1, keepdims=True) - x) / np.exp(x.min(1, keepdims=True) - x).sum(1, keepdims=True)
        ),
    ),
    "trapezoid": (wg.trapezoid, lambda x: ((x[:, 1:] + x[:, :-1]) / 2).sum(1)),
    "trapezoid at points": (
        lambda x: wg.trapezoid(x[0], x[1]),
        lambda x: ((x[0, 1:] + x[0, :-1]) / 2 * np.diff(x[1])).sum(),
    ),
    "cumulative_trapezoid": (
        wg.cumulative_trapezoid,
        lambda x: ((x[:, 1:] + x[:, :-1]) / 2).cumsum(1),
    ),
    "binary_cross_entropy_with_logits": (
        lambda x: F.binary_cross_entropy_with_logits(x[0], x[1], reduction="none"),
        lambda x: softplus(x[0]) - x[0] * x[1],
    ),
    "kl_div": (
        lambda x: F.kl_div(x[0], wg.tensor([1, 1, 2]), reduction="none"),
        lambda x: np.array([1, 1, 2]) * (np.log([1, 1, 2]) - x[0]),
    ),
    "soft_margin_loss": (
        lambda x: F.soft_margin_loss(x, wg.tensor([[1, -1, 1]]), reduction="none"),
        lambda x: softplus(-np.array([[1, -1, 1]]) * x),
    ),
    "multilabel_soft_margin_loss": (
        lambda x: F.multilabel_soft_margin_loss(x, wg.tensor([[1, 0, 1]]), reduction="none"),
        lambda x: (softplus(x) - np.array([[1, 0, 1]]) * x).mean(1),
    ),
    "poisson_nll_loss": (
        lambda x: F.poisson_nll_loss(wg.tensor([[1, 2, 0]]), x, reduction="none"),
        lambda x: np.exp([[1, 2, 0]]) - x * np.array([[1, 2, 0]]),
    ),
    "gaussian_nll_loss": (
        lambda x: F.gaussian_nll_loss(x[0], x[1], 2.0, reduction="none"),
        lambda x: (np.log(2) + (x[0] - x[1]) ** 2 / 2) / 2,
    ),
}


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_do_not_wrap(name: str, dtype: str) -> None:
    ours, theirs = FUNCTIONS[name]
    elements = np.array(ELEMENTS[dtype], dtype=dtype)
    got = ours(wg.tensor(elements))
    assert got.dtype == wg.float32
    np.testing.assert_allclose(got.numpy(), theirs(elements.astype("float64")), rtol=3e-6, atol=1e-6)


def test_choices_of_integers_are_random() -> None:
    """The noise, which has no whole part, is not cut off."""
    wg.manual_seed(0)
    drawn = F.gumbel_softmax(wg.zeros(400, 2, dtype=wg.int64), dim=1)
    assert drawn.dtype == wg.float32
    assert len(set(drawn[:, 0].tolist())) > 390
