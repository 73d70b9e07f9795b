"""Functions of layers as PyTorch has them at its top level: with other orders of arguments, and numbers for
words.

`wengert.batch_norm`, `wengert.instance_norm` and `wengert.embedding` take their arguments in another order
than the functions of these names in `wengert.nn.functional`, and losses take a `reduction` as a number: 0 for
"none", 1 for "mean", 2 for "sum".
"""

from typing import Any

from wengert import _core
from wengert._arguments import of_tensors
from wengert._core import Tensor

from . import alignment, batch, layers, loss, margins, tables
from .dropout import _by_channel, _dropped
from .indices import max_pool1d_with_indices

__all__ = [
    "batch_norm",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "ctc_loss",
    "dropout",
    "embedding",
    "feature_dropout",
    "hinge_embedding_loss",
    "instance_norm",
    "kl_div",
    "layer_norm",
    "margin_ranking_loss",
    "max_pool1d_with_indices",
    "poisson_nll_loss",
    "triplet_margin_loss",
]

_WORDS = ("none", "mean", "sum")


def _word(name: str, reduction: int | str) -> str:
    """The word for a reduction that may be a number."""
    if isinstance(reduction, str):
        return reduction
    if isinstance(reduction, int) and 0 <= reduction < len(_WORDS):
        return _WORDS[reduction]
    raise ValueError(f"{name}: reduction must be 0 ('none'), 1 ('mean') or 2 ('sum'), got {reduction!r}")


@of_tensors
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Tensor:
    """Returns `nn.functional.batch_norm` of the arguments in this order; `cudnn_enabled` changes nothing.

    Example:
        >>> wg.batch_norm(wg.tensor([[1.0], [3.0]]), None, None, None, None, True, 0.1, 0.0001)
        tensor([[-1.],
                [ 1.]])
    """
    return batch.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@of_tensors
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Tensor:
    """Returns `nn.functional.instance_norm` of the arguments in this order; `cudnn_enabled` changes nothing.

    Example:
        >>> wg.instance_norm(wg.tensor([[[1.0, 3.0]]]), None, None, None, None, True, 0.1, 1e-5)
        tensor([[[-1.,  1.]]])
    """
    return batch.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


@of_tensors
def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """Returns `nn.functional.layer_norm` of these arguments; `cudnn_enable` changes nothing.

    Example:
        >>> wg.layer_norm(wg.tensor([1.0, 3.0]), (2,))
        tensor([-1.,  1.])
    """
    return layers.layer_norm(input, normalized_shape, weight, bias, eps)


@of_tensors
def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Returns the rows of `weight` that `indices` pick: `nn.functional.embedding` with the table first.

    Args:
        weight: `(rows, features)`.
        indices: integers of any shape.
        padding_idx: a row that gets no gradient; -1 for none.
        scale_grad_by_freq: whether to divide each row's gradient by how often it is picked.
        sparse: only False.

    Raises:
        IndexError: for an index outside of the rows.

    Example:
        >>> wg.embedding(wg.tensor([[1.0, 2.0], [3.0, 4.0]]), wg.tensor([1, 0]))
        tensor([[3., 4.],
                [1., 2.]])
    """
    row = None if padding_idx == -1 else padding_idx
    return tables.embedding(indices, weight, row, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def dropout(
    input: Tensor, p: float = 0.5, train: bool | None = None, *, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes elements with probability `p` and divides the others by `1 - p`, in training.

    `train`, PyTorch's name at its top level, is `training`; the rest is `nn.functional.dropout`.

    Example:
        >>> wg.dropout(wg.ones(2), 0.5, False)
        tensor([1., 1.])
    """
    return layers.dropout(input, p, training if train is None else train, inplace)


@of_tensors
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zeroes whole channels (axis 1) of `input` `(N, C, ...)` with probability `p`, and divides the others by
    `1 - p`; returns the input unless `train`.

    Raises:
        ShapeError: for an input with fewer than two axes.
        ValueError: for a `p` that is no probability.

    Example:
        >>> wg.feature_dropout(wg.ones(1, 2), 0.5, False)
        tensor([[1., 1.]])
    """
    if input.ndim < 2:
        raise _core.ShapeError(
            f"feature_dropout: input of shape (N, C, ...) expected, got {tuple(input.shape)}"
        )
    shape = (*input.shape[:2], *[1] * (input.ndim - 2))
    return _dropped("feature_dropout", _by_channel, input, shape, p, train, False)


def kl_div(input: Tensor, target: Tensor, reduction: int | str = 1, *, log_target: bool = False) -> Tensor:
    """Returns `nn.functional.kl_div`; `reduction` is a number or its word, so in the losses below.

    `log_target` tells whether `target` holds logarithms.

    Example:
        >>> wg.kl_div(wg.tensor([0.5, 0.5]).log(), wg.tensor([1.0, 0.0]), 2)
        tensor(0.6931)
    """
    return loss.kl_div(input, target, _word("kl_div", reduction), log_target)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int | str = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """Returns `nn.functional.ctc_loss` of these arguments; `reduction` is a number or its word.

    Example:
        >>> wg.ctc_loss(wg.zeros(1, 1, 2), wg.tensor([[1]]), (1,), (1,))
        tensor(0.)
    """
    word = _word("ctc_loss", reduction)
    return alignment.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, word, zero_infinity)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int | str
) -> Tensor:
    """Returns `nn.functional.poisson_nll_loss` of these arguments; `reduction` is a number or its word.

    Example:
        >>> wg.poisson_nll_loss(wg.zeros(1), wg.ones(1), True, False, 1e-8, 1)
        tensor(1.)
    """
    return loss.poisson_nll_loss(input, target, log_input, full, eps, _word("poisson_nll_loss", reduction))


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int | str = 1
) -> Tensor:
    """Returns `nn.functional.hinge_embedding_loss` of these arguments; `reduction` is a number or its word.

    Example:
        >>> wg.hinge_embedding_loss(wg.tensor([0.25]), wg.tensor([-1.0]), 1.0, 2)
        tensor(0.75)
    """
    return margins.hinge_embedding_loss(input, target, margin, _word("hinge_embedding_loss", reduction))


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int | str = 1
) -> Tensor:
    """Returns `nn.functional.margin_ranking_loss` of these arguments; `reduction` is a number or its word.

    Example:
        >>> wg.margin_ranking_loss(wg.tensor([1.0]), wg.tensor([3.0]), wg.tensor([1.0]))
        tensor(2.)
    """
    return margins.margin_ranking_loss(
        input1, input2, target, margin, _word("margin_ranking_loss", reduction)
    )


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int | str = 1
) -> Tensor:
    """Returns `nn.functional.cosine_embedding_loss` of these arguments; `reduction` is a number or its word.

    Example:
        >>> wg.cosine_embedding_loss(wg.ones(1, 2), wg.ones(1, 2), wg.tensor([-1.0]))
        tensor(1.)
    """
    return margins.cosine_embedding_loss(
        input1, input2, target, margin, _word("cosine_embedding_loss", reduction)
    )


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int | str = 1,
) -> Tensor:
    """Returns `nn.functional.triplet_margin_loss` of these arguments; `reduction` is a number or its word.

    Example:
        >>> wg.triplet_margin_loss(wg.zeros(1, 2), wg.zeros(1, 2), wg.zeros(1, 2))
        tensor(1.)
    """
    word = _word("triplet_margin_loss", reduction)
    return margins.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, word)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int | str = 1,
) -> Tensor:
    """Returns `nn.functional.binary_cross_entropy_with_logits` of these arguments; `reduction` is a number or
    its word.

    Example:
        >>> wg.binary_cross_entropy_with_logits(wg.zeros(2), wg.ones(2))
        tensor(0.6931)
    """
    word = _word("binary_cross_entropy_with_logits", reduction)
    return loss.binary_cross_entropy_with_logits(input, target, weight, reduction=word, pos_weight=pos_weight)
