"""Losses at odd targets, shapes and settings, and by the names and words of older programs."""

import math

import numpy as np
import pytest
import wengert as wg
from wengert import nn
from wengert.nn import functional as F


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape)


def test_hinge_losses_of_targets_other_than_one_and_minus_one():
    x = wg.tensor([2.0, 2.0, 0.25, 0.25])
    t = wg.tensor([0.0, 1.0, -1.0, 3.0])
    assert F.hinge_embedding_loss(x, t, reduction="none").tolist() == [2.0, 2.0, 0.75, 1.0]
    a, b = wg.tensor([[1.0, 0.0]] * 3), wg.tensor([[1.0, 0.0]] * 3)
    losses = F.cosine_embedding_loss(a, b, wg.tensor([1.0, -1.0, 0.0]), 0.5, "none")
    assert losses.tolist() == [0.0, 0.5, 0.0]


@pytest.mark.parametrize("shape", [(), (1,)], ids=str)
def test_margin_losses_without_a_batch(shape):
    x, target = np.array([0.1, 0.9, -0.3]), 2
    want = sum(max(0, 1 - x[target] + x[i]) for i in range(3) if i != target) / 3
    index = wg.full(shape, target, dtype=wg.int64)
    loss = F.multi_margin_loss(wg.tensor(x), index, reduction="none")
    assert loss.shape == shape
    np.testing.assert_allclose(loss.numpy(), np.full(shape, want))
    one = wg.tensor(0.3)
    assert F.multi_margin_loss(one, wg.zeros(shape, dtype=wg.int64)).item() == 0.0
    assert F.multilabel_margin_loss(one, wg.zeros(shape, dtype=wg.int64)).item() == 0.0
    assert F.multilabel_margin_loss(wg.tensor(x), wg.tensor([2, 0, -1]), "none").shape == ()
    with pytest.raises(wg.ShapeError, match="or both without N"):
        F.multi_margin_loss(wg.ones(2, 3), wg.tensor([1]))


@pytest.mark.parametrize("margin", [0, -1.0, math.nan])
def test_triplet_margins_are_positive(margin):
    x = wg.ones(2, 3)
    for call in (
        lambda: F.triplet_margin_loss(x, x, x, margin=margin),
        lambda: F.triplet_margin_with_distance_loss(x, x, x, margin=margin),
        lambda: nn.TripletMarginLoss(margin=margin),
        lambda: nn.TripletMarginWithDistanceLoss(margin=margin),
    ):
        with pytest.raises(ValueError, match="margin must be positive"):
            call()


@pytest.mark.parametrize("shape", [(4, 3), (1, 3), (4, 1), (4,), (1, 1)], ids=str)
def test_variances_of_gaussian_nll_broadcast(shape):
    x, t = numbers(4, 3), numbers(4, 3)[::-1].copy()
    var = np.abs(numbers(*shape)) + 0.1
    wide = var[:, None] if shape == (4,) else var
    want = (0.5 * (np.log(wide) + (x - t) ** 2 / wide)).mean()
    got = F.gaussian_nll_loss(wg.tensor(x), wg.tensor(t), wg.tensor(var))
    np.testing.assert_allclose(got.item(), want)


def test_variance_of_gaussian_nll_as_a_number():
    x, t = wg.tensor(numbers(4, 3)), wg.zeros(4, 3, dtype=wg.float64)
    want = (0.5 * (math.log(0.3) + numbers(4, 3) ** 2 / 0.3)).mean()
    np.testing.assert_allclose(F.gaussian_nll_loss(x, t, 0.3).item(), want)
    assert nn.GaussianNLLLoss()(wg.ones(4, 3, 2), wg.zeros(4, 3, 2), wg.ones(4, 1, 2)).item() == 0.5
    with pytest.raises(wg.ShapeError, match="gaussian_nll_loss: var of shape"):
        F.gaussian_nll_loss(x, t, wg.ones(2, 3))


def test_ignored_classes_are_no_setting_of_probabilities():
    with pytest.raises(ValueError, match="ignore_index = 1 names a class"):
        F.cross_entropy(wg.ones(2, 3), wg.full((2, 3), 1 / 3), ignore_index=1)


OLD = {
    (None, None): "mean", (True, None): "mean", (False, None): "sum", (None, True): "mean",
    (False, True): "sum",
    (None, False): "none", (True, False): "none",
}  # fmt: skip


@pytest.mark.parametrize(("size_average", "reduce"), OLD, ids=str)
def test_older_words_for_the_reduction(size_average, reduce):
    words = {"size_average": size_average, "reduce": reduce}
    x, t = wg.tensor(numbers(4, 3)), wg.zeros(4, 3, dtype=wg.float64)
    want = F.mse_loss(x, t, reduction=OLD[size_average, reduce]).tolist()
    labels = wg.tensor([0, 1, 2, 0])
    if words != {"size_average": None, "reduce": None}:
        with pytest.warns(UserWarning, match="older words; write reduction="):
            assert F.mse_loss(x, t, **words).tolist() == want
        with pytest.warns(UserWarning, match="MSELoss: size_average and reduce are older words"):
            assert nn.MSELoss(**words)(x, t).tolist() == want
        with pytest.warns(UserWarning, match="cross_entropy"):
            found = F.cross_entropy(x, labels, **words)
        assert found.tolist() == F.cross_entropy(x, labels, reduction=OLD[size_average, reduce]).tolist()
    else:
        assert F.mse_loss(x, t, **words).tolist() == want
        assert nn.MSELoss(**words)(x, t).tolist() == want


def test_linear_cross_entropy_of_probabilities_and_several_choices():
    x, w, b = wg.tensor(numbers(5, 4)), wg.tensor(numbers(3, 2, 4)), wg.tensor(numbers(3, 2))
    logits = np.einsum("nd,cod->nco", numbers(5, 4), numbers(3, 2, 4)) + numbers(3, 2)
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    labels = np.array([[0, 1], [2, 0], [1, 1], [0, 2], [2, 2]])
    want = -np.take_along_axis(logs, labels[:, None], 1).mean()
    got = F.linear_cross_entropy(x, w, wg.tensor(labels), linear_bias=b, chunk_size=2)
    np.testing.assert_allclose(got.item(), want)
    likely = np.abs(numbers(5, 3, 2))
    got = F.linear_cross_entropy(x, w, wg.tensor(likely), linear_bias=b, chunk_size=2)
    np.testing.assert_allclose(got.item(), -(likely * logs).sum(1).mean())
    one = F.linear_cross_entropy(x[0], w[:, 0], wg.tensor(likely[0, :, 0]), linear_bias=b[:, 0])
    np.testing.assert_allclose(one.item(), -(likely[0, :, 0] * logs[0, :, 0]).sum())
    layer = nn.LinearCrossEntropyLoss(4, 3, out_features=(2,), bias=True, dtype=wg.float64)
    assert tuple(layer.linear.weight.shape) == (6, 4)
    layer.load_state_dict({"linear.weight": w.reshape(6, 4), "linear.bias": b.reshape(6)})
    np.testing.assert_allclose(layer(x, wg.tensor(labels)).item(), want)
    with pytest.raises(ValueError, match="targets are probabilities"):
        F.linear_cross_entropy(x, w[:, 0], wg.ones(5, 3, dtype=wg.float64), ignore_index=1)


def test_clusters_as_narrow_as_nothing():
    layer = nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3, 7])
    widths = [tuple(part[0].weight.shape) for part in layer.tail]
    assert widths == [(1, 4), (0, 4)]
    x = wg.tensor(numbers(2, 4), dtype=wg.float32)
    likely = layer.log_prob(x).exp()
    np.testing.assert_allclose(likely.sum(1).detach().numpy(), [1, 1], rtol=1e-5)
    # The last cluster has no features: its classes share what its entry of the head has.
    np.testing.assert_allclose(likely[:, 7].detach().numpy(), likely[:, 9].detach().numpy(), rtol=1e-6)
    found = layer(input_=x, target_=wg.tensor([8, 1]))
    np.testing.assert_allclose(
        found.output.exp().tolist(), [likely[0, 8].item(), likely[1, 1].item()], rtol=1e-5
    )
    found.loss.backward()


def test_losses_take_their_inputs_by_name():
    x, t = wg.tensor([1.0, 3.0]), wg.tensor([0.0, 1.0])
    assert nn.MSELoss()(input=x, target=t).item() == 2.5
    assert nn.CrossEntropyLoss()(x.view(1, 2), target=wg.tensor([0])).item() == pytest.approx(
        math.log1p(math.exp(2))
    )
    found = nn.TripletMarginLoss(eps=0.0)(anchor=x, positive=x, negative=t)
    assert found.item() == 0.0
