"""Margin losses of pairs, triplets, classes and labels, and the cross-entropy of a linear layer without its
logits."""

import math
from collections.abc import Callable
from typing import Any

import wengert as wg
from wengert import _core
from wengert._arguments import of_tensors
from wengert._core import Tensor
from wengert._precision import in_float32, in_floats
from wengert._values import not_negative
from wengert.composed._method import index_dtype

from .activation import logsigmoid
from .distance import _norm
from .layers import linear, pairwise_distance
from .loss import cross_entropy
from .reduction import check_margin, check_ranks, reduce_losses, reduced

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "linear_cross_entropy",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def _rows(name: str, input: Tensor, target: Tensor, same: bool) -> tuple[Tensor, Tensor]:
    """Scores `(N, C)` and targets `(N,)`, or `(N, C)` with `same`; without a batch N is 1."""
    x = input if input.ndim == 2 else input.reshape(1, -1)
    wanted = tuple(x.shape) if same else (x.shape[0],)
    # Without a batch, and for one class, an axis of length 1 may be there or not.
    fits = tuple(target.shape) == wanted or (
        input.ndim < 2 and target.ndim < 2 and target.numel() == math.prod(wanted)
    )
    if input.ndim > 2 or not fits:
        raise _core.ShapeError(
            f"{name}: input of shape {tuple(input.shape)} and target of shape {tuple(target.shape)}; "
            f"expected (N, "
            "C) and " + ("(N, C)" if same else "(N,)") + ", or both without N"
        )
    return x, target.reshape(wanted)


@reduced
@of_tensors
@in_float32
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Returns `input` where the `target` is 1, `max(0, margin - input)` where it is -1; for any other target
    the sum of both.

    `reduction` is "mean", "sum" or "none".

    Example:
        >>> wg.nn.functional.hinge_embedding_loss(wg.tensor([0.25, 0.25]), wg.tensor([1.0, -1.0]), reduction="none")
        tensor([0.25, 0.75])
    """
    apart = wg.where(target != 1, (margin - input).clamp(min=0.0), 0.0)
    return reduce_losses(apart + wg.where(target != -1, input, 0.0), reduction)


@reduced
@of_tensors
@in_float32
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Returns `max(0, margin - target (input1 - input2))` for targets 1 (the first ranks higher) and -1.

    The three have as many axes. `reduction` is "mean", "sum" or "none".

    Example:
        >>> wg.nn.functional.margin_ranking_loss(wg.tensor([1.0]), wg.tensor([3.0]), wg.tensor([1.0]))
        tensor(2.)
    """
    check_ranks("margin_ranking_loss", input1=input1, input2=input2, target=target)
    return reduce_losses((margin - target * (input1 - input2)).clamp(min=0.0), reduction)


@reduced
@of_tensors
@in_floats
@in_float32
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Returns `log(1 + exp(-target * input))` for targets 1 and -1; `reduction` is "mean", "sum" or "none".

    Example:
        >>> wg.nn.functional.soft_margin_loss(wg.tensor([0.0]), wg.tensor([1.0]))
        tensor(0.6931)
    """
    return reduce_losses((-target * input).softplus(1.0, 1e30), reduction)


@reduced
@of_tensors
@in_float32
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Returns `max(0, d(anchor, positive) - d(anchor, negative) + margin)` over the last axis.

    d is the `p`-norm of the difference, to which `eps` is added. With `swap`, `d(positive, negative)` stands
    for `d(anchor, negative)` where it is smaller (Balntas et al. 2016). `reduction` is "mean", "sum" or
    "none".

    Raises:
        ValueError: for a margin that is not positive, with which the loss could be 0 everywhere.

    Example:
        >>> wg.nn.functional.triplet_margin_loss(wg.zeros(1, 2), wg.ones(1, 2), wg.ones(1, 2))
        tensor(1.)
    """
    check_margin("triplet_margin_loss", margin)
    check_ranks("triplet_margin_loss", anchor=anchor, positive=positive, negative=negative)
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))
    return reduce_losses((near - far + margin).clamp(min=0.0), reduction)


@reduced
@of_tensors
@in_float32
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Returns `1 - cos` where the `target` is 1, `max(0, cos - margin)` where it is -1, and 0 for any other
    target.

    cos is that of `input1` and `input2` over the last axis, `(N, D)` with targets `(N,)`, or without N. The
    squared lengths that it is divided by are 1e-12 larger than they are. `reduction` is "mean", "sum" or
    "none".

    Example:
        >>> wg.nn.functional.cosine_embedding_loss(wg.ones(1, 2), wg.ones(1, 2), wg.tensor([-1.0]))
        tensor(1.)
    """
    if not input1.ndim == input2.ndim == target.ndim + 1:
        raise wg.ShapeError(
            f"cosine_embedding_loss: inputs of shapes {tuple(input1.shape)} and {tuple(input2.shape)} with "
            f"target of shape {tuple(target.shape)}; expected (N, D) twice and (N,), or (D,) twice and ()"
        )
    first, second = ((x.square().sum(-1) + 1e-12).sqrt() for x in (input1, input2))
    cosine = (input1 * input2).sum(-1) / first / second
    near = wg.where(target == 1, 1.0 - cosine, 0.0)
    return reduce_losses(near + wg.where(target == -1, (cosine - margin).clamp(min=0.0), 0.0), reduction)


@reduced
@of_tensors
@in_float32
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Returns `sum(max(0, margin - x[target] + x[i]) ** p) / C` over the other classes (Crammer & Singer
    2001).

    Args:
        input: scores x, `(N, C)`, `(C,)`, or `()` of one class.
        target: class indices `(N,)`; for one row `()` or `(1,)`.
        p: 1 or 2.
        margin: by how much the target's score should exceed the others.
        weight: `(C,)`, a factor per class of the target.
        reduction: "mean", "sum" or "none" over rows.

    Raises:
        IndexError: for a class index out of range.
        ShapeError: for shapes that do not fit.

    Example:
        >>> wg.nn.functional.multi_margin_loss(wg.tensor([[0.5, 0.0]]), wg.tensor([0]))
        tensor(0.25)
    """
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: p must be 1 or 2, got {p}")
    x, t = _rows("multi_margin_loss", input, target, False)
    if weight is not None and tuple(weight.shape) != (x.shape[1],):
        raise _core.ShapeError(
            f"multi_margin_loss: weight of shape {tuple(weight.shape)}, expected ({x.shape[1]},), one for "
            f"each class"
        )
    t = not_negative("multi_margin_loss", "target", t, x.shape[1], "classes")
    index = t.unsqueeze(1)
    gap = (margin - x.gather(1, index) + x).relu()
    gap = gap if p == 1 else gap * gap
    if weight is not None:
        gap = gap * weight.take(t, 0).unsqueeze(1)
    others = _core.arange(0, x.shape[1], dtype=t.dtype, device=x.device) != index
    loss = (gap * others.to(x.dtype)).sum(1) / x.shape[1]
    return reduce_losses(loss.reshape(target.shape), reduction)


@reduced
@of_tensors
@in_float32
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Returns `sum(max(0, 1 - x[j] + x[i])) / C` over labels `j` and other classes `i`.

    Args:
        input: scores x, `(N, C)` or `(C,)`.
        target: of the same shape: label indices, then -1, after which nothing counts.
        reduction: "mean", "sum" or "none" over rows.

    Example:
        >>> wg.nn.functional.multilabel_margin_loss(wg.tensor([0.1, 0.9]), wg.tensor([1, -1]))
        tensor(0.1)
    """
    x, t = _rows("multilabel_margin_loss", input, target, True)
    counts = (t < 0).to(index_dtype(x)).cumsum(1) == 0
    index = t.clamp(min=0)
    is_label = (
        _core.zeros(tuple(x.shape), dtype=x.dtype, device=x.device).scatter_add(1, index, counts.to(x.dtype))
        > 0
    )
    gap = (1.0 - x.gather(1, index).unsqueeze(2) + x.unsqueeze(1)).relu()
    used = counts.unsqueeze(2).logical_and(is_label.logical_not().unsqueeze(1))
    loss = (gap * used.to(x.dtype)).sum((1, 2)) / x.shape[1]
    return reduce_losses(loss if input.ndim == 2 else loss.squeeze(0), reduction)


@reduced
@of_tensors
@in_floats
@in_float32
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Returns the mean over classes of binary cross-entropies of `sigmoid(input)`; shapes `(..., C)`.

    `target` is from 0 to 1, of the same shape; `weight` `(C,)` multiplies the losses of each class;
    `reduction` of the means over classes is "mean", "sum" or "none".

    Example:
        >>> wg.nn.functional.multilabel_soft_margin_loss(wg.zeros(1, 2), wg.tensor([[1.0, 0.0]]))
        tensor(0.6931)
    """
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    loss = loss if weight is None else loss * weight
    return reduce_losses(loss.mean(-1), reduction)


@of_tensors
@in_float32
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Returns `max(0, d(anchor, positive) - d(anchor, negative) + margin)` with any distance, the Euclidean
    one by default.

    Args:
        distance_function: d, from two tensors to their distances.
        margin: positive.
        swap: use `d(positive, negative)` where it is smaller (Balntas et al. 2016).
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: for a margin that is not positive.

    Example:
        >>> wg.nn.functional.triplet_margin_with_distance_loss(wg.zeros(1, 2), wg.zeros(1, 2), wg.zeros(1, 2))
        tensor(1.)
    """
    check_margin("triplet_margin_with_distance_loss", margin)
    check_ranks("triplet_margin_with_distance_loss", anchor=anchor, positive=positive, negative=negative)
    distance = distance_function or (lambda x, y: _norm(x - y, 2.0))
    apart = distance(anchor, negative)
    if swap:
        apart = apart.minimum(distance(positive, negative))
    return reduce_losses((distance(anchor, positive) - apart + margin).relu(), reduction)


@of_tensors
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    chunk_size: int = 1024,
    options: Any = None,
) -> Tensor:
    """Returns `cross_entropy(input @ linear_weight.T + linear_bias, target)` of a large vocabulary in little
    memory.

    Rows are taken `chunk_size` at a time, and their logits are computed once more in backward, so that never
    more than one chunk of logits exists.

    Args:
        input: `(d,)`, `(N, d)` or `(..., d)`.
        linear_weight: `(C, d)`, or `(C, out..., d)` for as many choices per row.
        target: class indices `(..., out...)`, or probabilities `(..., C, out...)`.
        linear_bias: `(C, out...)`.
        weight: `(C,)`, one per class; the mean is weighted by them.
        reduction: "mean", "sum" or "none".
        ignore_index: class indices that do not count, -100 by default.
        label_smoothing: the share of the target spread evenly over the classes.
        chunk_size: the most rows whose logits exist at once.
        options: `nn.LinearCrossEntropyOptions`, whose `batch_chunk_size` takes the place of `chunk_size`.

    Raises:
        ShapeError: for shapes that do not fit.
        ValueError: for settings out of range, and a `ignore_index` beside probabilities.

    Example:
        >>> wg.nn.functional.linear_cross_entropy(wg.zeros(1, 2), wg.zeros(3, 2), wg.tensor([0]))
        tensor(1.0986)
    """
    name = "linear_cross_entropy"
    likely = target.dtype.is_floating_point
    lead, (classes, *out) = tuple(input.shape[:-1]), linear_weight.shape[:-1] or (0,)
    wanted = (*lead, classes, *out) if likely else (*lead, *out)
    if linear_weight.ndim < 2 or not input.ndim or tuple(target.shape) != wanted:
        raise _core.ShapeError(
            f"{name}: input of shape {tuple(input.shape)}, weight {tuple(linear_weight.shape)} and target "
            f"{tuple(target.shape)}; expected (N, d), (C, d) and class indices (N,) or probabilities (N, C)"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *out):
        raise _core.ShapeError(
            f"{name}: linear_bias of shape {tuple(linear_bias.shape)}, expected {(classes, *out)}"
        )
    chunk_size = getattr(options, "batch_chunk_size", None) or chunk_size
    if chunk_size < 1:
        raise ValueError(f"{name}: chunk_size must be positive, got {chunk_size}")
    if likely and ignore_index is not None:
        raise ValueError(
            f"{name}: ignore_index names a class, but the targets are probabilities; leave it out"
        )
    ignored = -100 if ignore_index is None else ignore_index
    rows = input.reshape(-1, input.shape[-1])
    labels = target.reshape(rows.shape[0], *wanted[len(lead) :])
    flat = linear_weight.reshape(-1, linear_weight.shape[-1])
    offset = None if linear_bias is None else linear_bias.reshape(-1)
    loss = _chunked_losses(
        rows, flat, offset, labels, out, chunk_size, (weight, ignored, "none", label_smoothing)
    )
    if reduction == "mean" and not likely:
        counted = labels != ignored
        if weight is None:
            return loss.sum() / counted.sum().to(loss.dtype)
        shares = weight.take(labels.masked_fill(counted.logical_not(), 0), 0)
        return loss.sum() / shares.masked_fill(counted.logical_not(), 0.0).sum()
    return reduce_losses(loss.reshape(*lead, *out), reduction)


def _chunked_losses(
    rows: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, out: Any, size: int, settings: Any
) -> Tensor:
    """The cross-entropies `(rows, out...)`, a chunk of rows at a time."""
    from wengert.utils.checkpoint import checkpoint

    def part(x: Tensor, w: Tensor, b: Tensor | None, t: Tensor) -> Tensor:
        logits = linear(x, w, b)
        logits = logits.reshape(x.shape[0], w.shape[0] // max(math.prod(out), 1), *out) if out else logits
        return cross_entropy(logits, t, *settings)

    losses: list[Tensor] = []
    count = rows.shape[0]
    for start in range(0, max(count, 1), size):
        length = min(size, count - start)
        chunk = rows.narrow(0, start, length), weight, bias, labels.narrow(0, start, length)
        losses.append(checkpoint(part, *chunk) if count > size else part(*chunk))
    return losses[0] if len(losses) == 1 else wg.cat(losses, 0)
