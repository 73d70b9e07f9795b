"""Functions of layers in the form that PyTorch gives them at its top level, against those of `nn.functional`."""

from typing import Any

import numpy as np
import pytest
import wengert as wg
from support import array
from wengert.nn import functional as F

RNG = np.random.default_rng(0)
NAMES = """
    batch_norm binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss dropout embedding feature_dropout
    hinge_embedding_loss instance_norm kl_div layer_norm margin_ranking_loss max_pool1d_with_indices poisson_nll_loss
    triplet_margin_loss adaptive_avg_pool1d adaptive_max_pool1d
""".split()


def drawn(*shape: int) -> wg.Tensor:
    return wg.tensor(RNG.uniform(0.1, 0.9, shape))


def same(a: Any, b: Any) -> None:
    np.testing.assert_allclose(array(a), array(b), rtol=1e-12)


def test_they_are_there() -> None:
    assert set(NAMES) <= set(dir(wg))
    assert wg.adaptive_avg_pool1d is F.adaptive_avg_pool1d


def test_normalisations_take_weights_before_statistics() -> None:
    x, w, b, mean, var = drawn(3, 2, 4), drawn(2), drawn(2), drawn(2), drawn(2)
    same(wg.batch_norm(x, w, b, mean, var, False, 0.1, 1e-5, True), F.batch_norm(x, mean, var, w, b))
    moved, other = mean.clone(), mean.clone()
    same(
        wg.batch_norm(x, w, b, moved, None, training=True, momentum=0.3, eps=1e-3, cudnn_enabled=False),
        F.batch_norm(x, other, None, w, b, True, 0.3, 1e-3),
    )
    same(moved, other)
    same(
        wg.instance_norm(
            x, w, b, mean, var, use_input_stats=False, momentum=0.3, eps=1e-2, cudnn_enabled=True
        ),
        F.instance_norm(x, mean, var, w, b, False, 0.3, 1e-2),
    )
    same(
        wg.layer_norm(x, (4,), drawn(4) * 0 + 2, drawn(4) * 0 + 1, eps=0.1, cudnn_enable=False),
        F.layer_norm(x, (4,), wg.full((4,), 2.0).double(), wg.ones(4).double(), 0.1),
    )


def test_embedding_takes_the_table_first() -> None:
    table, rows = drawn(4, 3), wg.tensor([1, 1, 3])
    same(wg.embedding(table, rows), F.embedding(rows, table))
    f = lambda t: wg.embedding(t, rows, padding_idx=3, scale_grad_by_freq=True, sparse=False).sum()
    assert wg.grad(f)(table).tolist() == [[0] * 3, [1] * 3, [0] * 3, [0] * 3]
    last = wg.grad(lambda t: wg.embedding(t, rows, -1).sum())(table)
    assert last[3].tolist() == [1, 1, 1]


def test_dropout() -> None:
    x = wg.ones(50, 4, 3)
    for drop in (
        lambda: wg.dropout(x, 0.5, True),
        lambda: wg.dropout(x, p=0.5, train=True),
        lambda: wg.dropout(x, 0.5),
    ):
        assert set(drop().unique().tolist()) == {0, 2}
    assert wg.equal(wg.dropout(x, 0.5, train=False), x)
    assert wg.equal(wg.dropout(x, 0.5, training=False), x)
    assert wg.dropout(y := wg.ones(3), 1.0, inplace=True) is y
    channels = wg.feature_dropout(x, p=0.5, train=True)
    assert set(channels.unique().tolist()) == {0, 2}
    assert wg.equal(channels, channels[:, :, :1].expand(50, 4, 3))
    assert wg.feature_dropout(x, 0.5, False) is x
    with pytest.raises(wg.ShapeError, match=r"feature_dropout: input of shape \(N, C, ...\) expected"):
        wg.feature_dropout(wg.ones(3), 0.5, True)
    with pytest.raises(ValueError, match="feature_dropout: p is a probability"):
        wg.feature_dropout(x, 1.5, True)


A, B, C, SIGNS = drawn(3, 4), drawn(3, 4), drawn(3, 4), wg.tensor([1.0, -1.0, 1.0])
LOSSES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "kl_div": ((A.log(), B.log()), dict(log_target=True)),
    "hinge_embedding_loss": ((A[:, 0], SIGNS), dict(margin=0.4)),
    "margin_ranking_loss": ((A[:, 0], B[:, 0], SIGNS), dict(margin=0.4)),
    "cosine_embedding_loss": ((A, B, SIGNS), dict(margin=0.4)),
    "triplet_margin_loss": ((A, B, C), dict(margin=0.4, p=1.0, eps=0.1, swap=True)),
    "poisson_nll_loss": ((A, B), dict(log_input=False, full=True, eps=0.2)),
    "binary_cross_entropy_with_logits": ((A, B), dict(weight=C, pos_weight=drawn(4))),
    "ctc_loss": (
        (drawn(6, 2, 4).log_softmax(2), wg.tensor([[1, 2], [2, 1]]), wg.tensor([6, 2]), wg.tensor([2, 2])),
        dict(blank=3, zero_infinity=True),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_take_numbers_for_words(name: str) -> None:
    args, settings = LOSSES[name]
    whole, part = getattr(wg, name), getattr(F, name)
    for number, word in enumerate(("none", "mean", "sum")):
        expected = part(*args, reduction=word, **settings)
        same(whole(*args, reduction=number, **settings), expected)
        same(whole(*args, reduction=word, **settings), expected)
    if name != "poisson_nll_loss":
        same(whole(*args, **settings), part(*args, **settings))
    with pytest.raises(
        ValueError, match=rf"{name}: reduction must be 0 \('none'\), 1 \('mean'\) or 2 \('sum'\), got 3"
    ):
        whole(*args, reduction=3, **settings)


POOLS: dict[str, tuple[int, list[dict[str, Any]]]] = {
    "max_pool1d": (
        1,
        [dict(kernel_size=2, stride=1, padding=1, dilation=2, ceil_mode=True), dict(kernel_size=3)],
    ),
    "max_pool2d": (
        2,
        [dict(kernel_size=2, stride=1, padding=1, dilation=2, ceil_mode=True), dict(kernel_size=3)],
    ),
    "max_pool3d": (
        3,
        [dict(kernel_size=2, stride=1, padding=1, dilation=2, ceil_mode=True), dict(kernel_size=3)],
    ),
    "adaptive_max_pool1d": (1, [dict(output_size=4)]),
    "adaptive_max_pool2d": (2, [dict(output_size=4), dict(output_size=(None, 2))]),
    "adaptive_max_pool3d": (3, [dict(output_size=4)]),
}


@pytest.mark.parametrize("name", POOLS)
def test_pools_with_indices(name: str) -> None:
    rank, rows = POOLS[name]
    x = wg.tensor(RNG.normal(size=(2, 3, *[6] * rank)))
    for settings in rows:
        got = getattr(F, f"{name}_with_indices")(x, **settings)
        expected = getattr(F, name)(x, return_indices=True, **settings)
        assert all(wg.equal(a, b) for a, b in zip(got, expected, strict=True))


def test_max_pools_by_name() -> None:
    """The functions of all ranks, called by their own names."""
    line, plane, block = (wg.tensor(RNG.normal(size=(1, 2, *[6] * rank))) for rank in (1, 2, 3))
    calls = [
        (
            F.max_pool1d_with_indices(line, 2, stride=1, padding=1, dilation=2, ceil_mode=True),
            F.max_pool1d,
            line,
        ),
        (
            F.max_pool2d_with_indices(plane, 2, stride=1, padding=1, dilation=2, ceil_mode=True),
            F.max_pool2d,
            plane,
        ),
        (
            F.max_pool3d_with_indices(block, 2, stride=1, padding=1, dilation=2, ceil_mode=True),
            F.max_pool3d,
            block,
        ),
    ]
    for got, pool, x in calls:
        expected = pool(x, 2, 1, 1, 2, True, True)
        assert all(wg.equal(a, b) for a, b in zip(got, expected, strict=True))
    assert wg.max_pool1d_with_indices(wg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)[1].tolist() == [[1, 2]]
    assert (
        F.adaptive_max_pool2d_with_indices(plane, (1, 1))[1].tolist()
        == plane.flatten(2).argmax(2)[..., None, None].tolist()
    )


def test_fractional_pools_with_indices() -> None:
    draws = {rank: wg.full((1, 2, rank), 0.3, dtype=wg.float64) for rank in (2, 3)}
    plane, block = (wg.tensor(RNG.normal(size=(1, 2, *[6] * rank))) for rank in (2, 3))
    pairs = [
        (
            F.fractional_max_pool2d_with_indices(plane, 2, output_size=3, _random_samples=draws[2]),
            F.fractional_max_pool2d(plane, 2, output_size=3, _random_samples=draws[2], return_indices=True),
        ),
        (
            F.fractional_max_pool2d_with_indices(plane, 2, output_ratio=0.5, _random_samples=draws[2]),
            F.fractional_max_pool2d(
                plane, 2, output_ratio=0.5, _random_samples=draws[2], return_indices=True
            ),
        ),
        (
            F.fractional_max_pool3d_with_indices(block, 2, output_size=3, _random_samples=draws[3]),
            F.fractional_max_pool3d(block, 2, output_size=3, _random_samples=draws[3], return_indices=True),
        ),
        (
            F.fractional_max_pool3d_with_indices(block, 2, output_ratio=0.5, _random_samples=draws[3]),
            F.fractional_max_pool3d(
                block, 2, output_ratio=0.5, _random_samples=draws[3], return_indices=True
            ),
        ),
    ]
    for got, expected in pairs:
        assert all(wg.equal(a, b) for a, b in zip(got, expected, strict=True))
