"""Sorting, the largest few, and drawing by weights: what the records of operations do not say."""

import math

import numpy as np
import pytest
import wengert as wg
from messages import Situations, message_tests
from support import array


def test_equal_elements_keep_their_order_and_nan_is_the_largest() -> None:
    x = wg.tensor([2.0, float("nan"), 1.0, 2.0, float("nan"), float("inf")])
    assert wg.argsort(x).tolist() == [2, 0, 3, 5, 1, 4]
    assert wg.sort(x, descending=True).indices.tolist() == [1, 4, 5, 0, 3, 2]
    assert x.topk(3, largest=False).values.tolist() == [1.0, 2.0, 2.0]


def test_pairs_have_names() -> None:
    values, indices = wg.tensor([[3, 1, 2]]).sort(dim=1)
    assert (values.tolist(), indices.tolist()) == ([[1, 2, 3]], [[1, 2, 0]])
    best = wg.topk(wg.tensor([[3, 1, 2]]), 2)
    assert (best.values.tolist(), best.indices.tolist()) == ([[3, 2]], [[0, 2]])


def test_numbers_and_empty_axes() -> None:
    x = wg.tensor(2.0, requires_grad=True)
    values, indices = x.sort()
    assert (values.shape, indices.shape, indices.item()) == ((), (), 0)
    assert x.topk(1).values.shape == ()
    assert x.topk(0).values.shape == (0,)
    assert wg.ones(2, 0).sort(dim=1).indices.shape == (2, 0)
    assert wg.ones(2, 0).topk(0).values.shape == (2, 0)


def test_gradient_of_the_largest_few_goes_to_where_they_were() -> None:
    x = wg.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]], requires_grad=True)
    (x.topk(2).values * wg.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0, 10.0], [0.0, 1.0, 10.0]]


def test_sorting_inside_transforms() -> None:
    x = wg.tensor(np.random.default_rng(0).normal(size=(4, 5)))
    rows = wg.vmap(lambda row: row.sort(descending=True).values)(x)
    assert np.array_equal(array(rows), -np.sort(-array(x), 1))
    # The sum of the two largest squares: its Hessian is 2 on the diagonal where they are.
    hessian = wg.hessian(lambda v: (v * v).topk(2).values.sum())(x[0])
    top = np.argsort(-(array(x[0]) ** 2))[:2]
    expected = np.zeros((5, 5))
    expected[top, top] = 2.0
    np.testing.assert_allclose(array(hessian), expected, atol=1e-12)


def test_frequencies_of_draws() -> None:
    weights = wg.tensor([0.0, 2.0, 5.0, 3.0, 0.0])
    wg.manual_seed(0)
    many = array(wg.multinomial(weights, 50_000, replacement=True))
    single = array(weights.expand(50_000, 5).multinomial(1))[:, 0]
    for found in (many, single):
        share = np.bincount(found, minlength=5) / len(found)
        np.testing.assert_allclose(share, [0.0, 0.2, 0.5, 0.3, 0.0], atol=0.01)


def test_draws_without_replacement() -> None:
    weights = wg.tensor([1.0, 2.0, 3.0, 4.0], dtype=wg.float64)
    wg.manual_seed(1)
    draws = array(weights.expand(40_000, 4).multinomial(4))
    assert np.array_equal(np.sort(draws, 1), np.broadcast_to(np.arange(4), draws.shape))
    # The second draw follows the weights of those that are left.
    after_last = draws[draws[:, 0] == 3][:, 1]
    np.testing.assert_allclose(
        np.bincount(after_last, minlength=4) / len(after_last), [1 / 6, 2 / 6, 3 / 6, 0], atol=0.02
    )


def test_draws_repeat_with_the_seed_and_have_no_gradient() -> None:
    weights = wg.rand(3, 9, requires_grad=True)
    wg.manual_seed(5)
    first = wg.multinomial(weights, 4)
    wg.manual_seed(5)
    assert wg.multinomial(weights, 4).tolist() == first.tolist()
    assert first.shape == (3, 4)
    assert first.dtype == wg.int64
    assert not first.requires_grad


@pytest.mark.parametrize("dtype", [wg.float16, wg.bfloat16, wg.float32, wg.float64])
@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_weights_of_draws_are_finite(dtype: wg.dtype, bad: float) -> None:
    for weights in ([1.0, bad, 2.0], [[1.0, 2.0], [bad, 0.0]]):
        with pytest.raises(ValueError, match="multinomial: finite weights of at least 0 expected"):
            wg.tensor(weights, dtype=dtype).multinomial(1)


ERRORS: Situations = {
    "more than there are": (
        lambda: wg.ones(2, 3).topk(4),
        ValueError,
        "topk: k = 4 elements asked for along axis 1 of length 3; k is between 0 and 3",
    ),
    "draws without replacement": (
        lambda: wg.ones(3).multinomial(4),
        ValueError,
        "multinomial: 4 draws from 3 categories are not possible; draw at least one, and without replacement "
        "at most as many as there are categories",
    ),
    "no weights": (
        lambda: wg.tensor([0.0, 1.0]).multinomial(2),
        ValueError,
        "multinomial: 2 categories with a weight above 0 needed in every row, got 1",
    ),
    "negative weights": (
        lambda: wg.tensor([-1.0, 1.0]).multinomial(1),
        ValueError,
        "multinomial: finite weights of at least 0 expected, got -1; softmax makes weights of any scores",
    ),
    "axes": (
        lambda: wg.ones(1, 1, 1).multinomial(1),
        ValueError,
        "multinomial: weights of shape (n,) or (rows, n) expected, got (1, 1, 1)",
    ),
}

test_errors = message_tests(ERRORS)
