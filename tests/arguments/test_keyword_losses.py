"""Keywords of losses, distances and embeddings, of functions and layers: against their formulas in NumPy."""

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import wengert as wg
from scipy import special
from wengert import nn
from wengert.nn import functional as F

from arguments.rows import Array, Function, check, near, numbers, run

A, B, C = (numbers(3, 4, seed=k) for k in range(3))
P, W = special.expit(A), np.abs(C) + 0.5
BITS = np.float64(B > 0)
SIGNS = np.sign(B)
FEW = np.array([2, 0, 1])
EACH = np.array([0.5, 2.0, 1.5, 3.0])


def reduced(values: Array, reduction: str = "mean", weight: Any = None) -> Any:
    """What a loss makes of its values; a mean is weighted."""
    if reduction == "sum":
        return values.sum()
    return values.sum() / np.sum(weight) if weight is not None else values.mean()


def huber(x: Array, delta: float = 1.0) -> Array:
    return np.where(np.abs(x) < delta, x * x / 2, delta * (np.abs(x) - delta / 2))


def distance(x: Array, y: Array, p: float = 2.0, eps: float = 1e-6) -> Array:
    return (np.abs(x - y + eps) ** p).sum(-1) ** (1 / p)


def bce(p: Array, target: Array) -> Array:
    return -(target * np.log(p) + (1 - target) * np.log(1 - p))


def triplet(margin: float = 1.0, swap: bool = False, **how: Any) -> Array:
    far = distance(A, C, **how)
    return np.maximum(
        distance(A, B, **how) - (np.minimum(far, distance(B, C, **how)) if swap else far) + margin, 0
    )


def gaussian(variance: Array) -> Array:
    return (np.log(variance) + (A - B) ** 2 / variance) / 2


def stirling(t: Array) -> Array:
    return np.where(t > 1, t * np.log(t) - t + np.log(2 * np.pi * t) / 2, 0)


TINY = np.array([0.0, 1e-3, 0.5, 2.0]) * np.ones((3, 1))
COUNTS = np.array([[1.0, 2.0, 3.0, 5.0]] * 3)
RANKED = np.maximum(0.2 - SIGNS * (A - C), 0)
LOG = special.log_softmax(A, -1)
CHOSEN = -LOG[np.arange(3), FEW] * EACH[FEW]
CITY = lambda x, y: (x - y).abs().sum(-1)
BLOCKS = lambda x, y: np.abs(x - y).sum(-1)

LOSSES = [
    (F.l1_loss, (A, B), dict(weight=W), reduced(np.abs(A - B) * W, weight=W)),
    (F.mse_loss, (A, B), dict(weight=W), reduced((A - B) ** 2 * W, weight=W)),
    (F.huber_loss, (A, B), dict(weight=W, delta=0.3), (huber(A - B, 0.3) * W).mean()),
    (F.huber_loss, (A, B), dict(weight=W, reduction="sum"), reduced(huber(A - B) * W, "sum")),
    (F.binary_cross_entropy, (P, BITS), dict(weight=W), (bce(P, BITS) * W).mean()),
    (F.multilabel_soft_margin_loss, (A, BITS), dict(weight=EACH, reduction="sum"),
        (bce(P, BITS) * EACH).sum() / 4),
    (F.nll_loss, (LOG, FEW), dict(weight=EACH), reduced(CHOSEN, weight=EACH[FEW])),
    (F.nll_loss, (LOG, FEW), dict(ignore_index=0, reduction="sum"), -LOG[0, 2] - LOG[2, 1]),
    (F.nll_loss, (LOG, FEW), dict(weight=EACH, ignore_index=0),
        (CHOSEN[0] + CHOSEN[2]) / (EACH[2] + EACH[1])),
    (F.gaussian_nll_loss, (A, B, TINY), dict(eps=0.01), gaussian(np.maximum(TINY, 0.01)).mean()),
    (F.gaussian_nll_loss, (A, B, W), dict(reduction="sum"), gaussian(W).sum()),
    (F.gaussian_nll_loss, (A, B, W), dict(full=True, reduction="sum"),
        (gaussian(W) + np.log(2 * np.pi) / 2).sum()),
    (F.poisson_nll_loss, (TINY, COUNTS), dict(log_input=False, eps=0.01),
        (TINY - COUNTS * np.log(TINY + 0.01)).mean()),
    (F.poisson_nll_loss, (A, COUNTS), dict(full=True), (np.exp(A) - COUNTS * A + stirling(COUNTS)).mean()),
    (F.hinge_embedding_loss, (A, SIGNS), dict(margin=0.3),
        np.where(SIGNS > 0, A, np.maximum(0.3 - A, 0)).mean()),
    (F.margin_ranking_loss, (A, C, SIGNS), dict(margin=0.2, reduction="sum"), RANKED.sum()),
    (F.triplet_margin_loss, (A, B, C), dict(margin=2.0, p=3.0, eps=0.1), triplet(2.0, p=3.0, eps=0.1).mean()),
    (F.triplet_margin_loss, (A, B, C), dict(swap=True, reduction="sum"), triplet(swap=True).sum()),
    (
        F.triplet_margin_with_distance_loss,
        (A, B, C),
        dict(distance_function=CITY, margin=3.0, swap=True, reduction="sum"),
        np.maximum(BLOCKS(A, B) - np.minimum(BLOCKS(A, C), BLOCKS(B, C)) + 3, 0).sum(),
    ),
    (F.pairwise_distance, (A, B), dict(p=3.0, eps=0.1, keepdim=True), distance(A, B, 3.0, 0.1)[:, None]),
    (F.pdist, (A,), dict(p=3.0), distance(A[[0, 0, 1]], A[[1, 2, 2]], 3.0, 0.0)),
    (F.normalize, (np.array([[3e-3, 4e-3], [3.0, 4.0]]),), dict(eps=0.5),
        np.array([[6e-3, 8e-3], [0.6, 0.8]])),
    (F.cosine_similarity, (A, B * 1e-3), dict(eps=1.0), (A * B).sum(1) * 1e-3 / np.linalg.norm(A, axis=1)),
]  # fmt: skip
LAYERS = {
    F.pairwise_distance: nn.PairwiseDistance,
    F.cosine_similarity: nn.CosineSimilarity,
    F.triplet_margin_loss: nn.TripletMarginLoss,
    F.triplet_margin_with_distance_loss: nn.TripletMarginWithDistanceLoss,
    F.poisson_nll_loss: nn.PoissonNLLLoss,
    F.gaussian_nll_loss: nn.GaussianNLLLoss,
    F.hinge_embedding_loss: nn.HingeEmbeddingLoss,
    F.margin_ranking_loss: nn.MarginRankingLoss,
}


@pytest.mark.parametrize(("function", "args", "settings", "expected"), LOSSES)
def test_losses_and_distances(function: Function, args: Any, settings: dict[str, Any], expected: Any) -> None:
    if function is F.cosine_similarity:
        expected = expected / np.maximum(np.linalg.norm(B * 1e-3, axis=1), 1.0)
    check(function, args, settings, expected)
    if function in LAYERS:
        check(lambda *args, **k: LAYERS[function](**k)(*args), args, settings, expected)


# The same settings for the layers, by name.
DISTANCES = [
    (nn.PairwiseDistance, dict(p=3.0, eps=0.1, keepdim=True), distance(A, B, 3.0, 0.1)[:, None]),
    (nn.CosineSimilarity, dict(dim=0, eps=100.0), (A * B).sum(0) / 100.0 / 100.0),
]


@pytest.mark.parametrize(("layer", "settings", "expected"), DISTANCES)
def test_layers_of_distances(layer: Any, settings: dict[str, Any], expected: Array) -> None:
    check(lambda x, y, **k: layer(**k)(x, y), (A, B), settings, expected)


def test_ctc_loss() -> None:
    """One label in two steps: it is said twice, or before or after a blank. Three labels do not fit."""
    p = special.softmax(numbers(2, 1, 3), -1)
    label, blank = p[:, 0, 1], p[:, 0, 2]
    expected = -np.log(label[0] * label[1] + label[0] * blank[1] + blank[0] * label[1])
    check(F.ctc_loss, (np.log(p), np.array([[1]]), [2], [1]), dict(blank=2), expected)
    long = (np.log(p), np.array([[1, 2, 1]]), [2], [3])
    check(F.ctc_loss, long, dict(zero_infinity=True), 0.0)
    assert run(F.ctc_loss, long, {}).item() == np.inf


def linear_cross_entropy(smoothing: float = 0.0, keep: Any = slice(None)) -> Array:
    log = special.log_softmax(A @ W.T, -1)
    values = -(1 - smoothing) * log[np.arange(3), FEW] - smoothing * log.mean(-1)
    return values[keep]


def test_linear_cross_entropy() -> None:
    f, args = F.linear_cross_entropy, (A, W, FEW)
    check(f, args, dict(reduction="sum", label_smoothing=0.2), linear_cross_entropy(0.2).sum())
    check(f, args, dict(ignore_index=0), linear_cross_entropy(keep=[0, 2]).mean())

    def layer(x: wg.Tensor, target: wg.Tensor, **settings: Any) -> wg.Tensor:
        made = nn.LinearCrossEntropyLoss(4, 3, dtype=wg.float64, **settings)
        with wg.no_grad():
            made.linear.weight.copy_(wg.tensor(W))
        return made(x, target)

    check(layer, (A, FEW), dict(ignore_index=0, reduction="sum"), linear_cross_entropy(keep=[0, 2]).sum())


TABLE = numbers(5, 3)
AT = np.array([[1, 4, 1], [2, 2, 2]])


def shrunk(rows: Array, most: float, p: float = 2.0) -> Array:
    """The table after its rows that are looked up were scaled to norms of at most `most`."""
    norms = (np.abs(TABLE) ** p).sum(1, keepdims=True) ** (1 / p)
    short = TABLE * np.where(norms > most, most / (norms + 1e-7), 1.0)
    return np.where(np.isin(np.arange(5), rows)[:, None], short, TABLE)


def looked_up(settings: dict[str, Any]) -> tuple[Array, Array]:
    """The values and the gradient of their sum, by definition."""
    used = shrunk(AT, settings["max_norm"], settings["norm_type"]) if "max_norm" in settings else TABLE
    counts = np.bincount(AT.ravel(), minlength=5).astype(float)
    gradient = np.where(counts > 0, 1.0, 0.0) if settings.get("scale_grad_by_freq") else counts
    if "padding_idx" in settings:
        gradient[settings["padding_idx"]] = 0.0
    return used[AT], gradient[:, None] * np.ones(3)


EMBEDDINGS = [
    (F.embedding, nn.Embedding, dict(max_norm=1.0, norm_type=1.0)),
    (F.embedding, nn.Embedding, dict(padding_idx=2)),
    (F.embedding, nn.Embedding, dict(padding_idx=-4, scale_grad_by_freq=True)),
]


@pytest.mark.parametrize(("function", "layer", "settings"), EMBEDDINGS)
def test_embeddings(function: Function, layer: Any, settings: dict[str, Any]) -> None:
    def call(function: Function, at: wg.Tensor, table: wg.Tensor, **settings: Any) -> Any:
        out = function(at, table.requires_grad_(), **settings)
        return out, gradient(out, table)

    def gradient(out: wg.Tensor, table: wg.Tensor) -> wg.Tensor:
        return wg.autograd.grad(out.sum(), table)[0]

    def module(at: wg.Tensor, table: wg.Tensor, **settings: Any) -> Any:
        made = layer(5, 3, _weight=table.detach(), **settings)
        out = made(at)
        return out, gradient(out, made.weight)

    check(partial(call, function), (AT, TABLE), settings, looked_up(settings))
    check(module, (AT, TABLE), settings, looked_up(settings))


FLAT = np.array([1, 4, 1, 2, 2, 0])
STARTS = np.array([0, 2, 5])
ENDS = np.array([0, 2, 6])


def bags(
    mode: str = "mean", padding_idx: int | None = None, max_norm: float = 1e9, norm_type: float = 2.0,
    ends: Any = None
) -> Array:  # fmt: skip
    """The sums, means or maxima of the rows from each start to the next."""
    used, ends = shrunk(FLAT, max_norm, norm_type), [*STARTS, 6] if ends is None else ends
    rows = [[used[i] for i in FLAT[a:b] if i != padding_idx] for a, b in pairwise(ends)]
    return np.stack([getattr(np, mode)(r, axis=0) for r in rows])


def bag_gradient() -> Array:
    """The gradient of the sum of means, each row of which counts once however often it stands there."""
    share = np.zeros(5)
    for a, b in pairwise([*STARTS, 6]):
        for i in FLAT[a:b]:
            share[i] += 1 / (b - a)
    return (share / np.maximum(np.bincount(FLAT, minlength=5), 1))[:, None] * np.ones(3)


BAGS = [
    (F.embedding_bag, nn.EmbeddingBag, dict(max_norm=1.0, norm_type=1.0), bags(max_norm=1.0, norm_type=1.0)),
    (F.embedding_bag, nn.EmbeddingBag, dict(padding_idx=2, mode="sum"), bags("sum", padding_idx=2)),
    (F.embedding_bag, nn.EmbeddingBag, dict(mode="max"), bags("max")),
    (F.embedding_bag, nn.EmbeddingBag, dict(include_last_offset=True), bags(ends=ENDS)),
]


@pytest.mark.parametrize(("function", "layer", "settings", "expected"), BAGS)
def test_bags(function: Function, layer: Any, settings: dict[str, Any], expected: Array) -> None:
    starts = ENDS if "include_last_offset" in settings else STARTS
    check(function, (FLAT, TABLE, starts), settings, expected)
    module = lambda at, table, starts, **k: layer(5, 3, _weight=table, **k)(at, starts)
    check(module, (FLAT, TABLE, starts), settings, expected)


def test_gradients_of_bags_by_frequency() -> None:
    def module(at: wg.Tensor, table: wg.Tensor, starts: wg.Tensor, **settings: Any) -> Any:
        made = nn.EmbeddingBag(5, 3, _weight=table, **settings)
        return wg.autograd.grad(made(at, starts).sum(), made.weight)[0]

    check(module, (FLAT, TABLE, STARTS), dict(scale_grad_by_freq=True), bag_gradient())
    with pytest.raises(ValueError, match="sparse"):
        nn.EmbeddingBag(5, 3, sparse=True)(wg.tensor(FLAT), wg.tensor(STARTS))
    with pytest.raises(ValueError, match="sparse"):
        nn.Embedding(5, 3, sparse=True)(wg.tensor(FLAT))


def test_table_is_shrunk_in_place() -> None:
    table = wg.tensor(TABLE)
    F.embedding(wg.tensor(AT), table, max_norm=0.5)
    near(table, shrunk(AT, 0.5))
    table = wg.tensor(TABLE)
    F.embedding_bag(wg.tensor(FLAT), table, wg.tensor(STARTS), max_norm=0.5)
    near(table, shrunk(FLAT, 0.5))
