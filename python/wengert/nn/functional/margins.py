"""Margin losses over classes and labels, and the cross-entropy of a linear layer without its logits."""

from collections.abc import Callable
from typing import Any

import wengert as wg
from wengert import _core
from wengert._arguments import of_tensors
from wengert._core import Tensor
from wengert._precision import in_float32
from wengert._values import not_negative

from .activation import logsigmoid
from .distance import _norm
from .layers import linear
from .loss import _reduce, cross_entropy

__all__ = [
    "linear_cross_entropy",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "triplet_margin_with_distance_loss",
]


def _rows(name: str, input: Tensor, target: Tensor, same: bool) -> tuple[Tensor, Tensor, bool]:
    """Scores `(N, C)` and targets, and whether there was no batch."""
    expected = input.shape if same else input.shape[:-1]
    if input.ndim not in (1, 2) or tuple(target.shape) != tuple(expected):
        raise _core.ShapeError(
            f"{name}: input of shape {tuple(input.shape)} and target of shape {tuple(target.shape)}; expected (N, "
            "C) and " + ("(N, C)" if same else "(N,)")
        )
    single = input.ndim == 1
    return (input.unsqueeze(0), target.unsqueeze(0), True) if single else (input, target, False)


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
    """`sum(max(0, margin - x[target] + x[i]) ** p) / C` over the other classes (Crammer & Singer 2001).

    Args:
        input: scores `(N, C)` or `(C,)`.
        target: class indices `(N,)` or `()`.
        p: 1 or 2.
        weight: a factor per class of the target.

    Raises:
        IndexError: for a class index out of range.
        ShapeError: for shapes that do not fit.
    """
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: p must be 1 or 2, got {p}")
    x, t, single = _rows("multi_margin_loss", input, target, False)
    if weight is not None and tuple(weight.shape) != (x.shape[1],):
        raise _core.ShapeError(
            f"multi_margin_loss: weight of shape {tuple(weight.shape)}, expected ({x.shape[1]},), one for each class"
        )
    t = not_negative("multi_margin_loss", "target", t, x.shape[1], "classes")
    index = t.unsqueeze(1)
    gap = (margin - x.gather(1, index) + x).relu()
    gap = gap if p == 1 else gap * gap
    if weight is not None:
        gap = gap * weight.take(t, 0).unsqueeze(1)
    others = _core.arange(0, x.shape[1], dtype=t.dtype, device=x.device) != index
    loss = (gap * others.to(x.dtype)).sum(1) / x.shape[1]
    return _reduce(loss.squeeze(0) if single else loss, reduction)


@of_tensors
@in_float32
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """`sum(max(0, 1 - x[j] + x[i])) / C` over labels `j` and other classes `i`.

    Args:
        input: scores `(N, C)` or `(C,)`.
        target: of the same shape: label indices, then -1, after which nothing counts.
    """
    x, t, single = _rows("multilabel_margin_loss", input, target, True)
    counts = (t < 0).to(_core.int32 if x.is_gpu else _core.int64).cumsum(1) == 0
    index = t.clamp(min=0)
    is_label = (
        _core.zeros(tuple(x.shape), dtype=x.dtype, device=x.device).scatter_add(1, index, counts.to(x.dtype))
        > 0
    )
    gap = (1.0 - x.gather(1, index).unsqueeze(2) + x.unsqueeze(1)).relu()
    used = counts.unsqueeze(2).logical_and(is_label.logical_not().unsqueeze(1))
    loss = (gap * used.to(x.dtype)).sum((1, 2)) / x.shape[1]
    return _reduce(loss.squeeze(0) if single else loss, reduction)


@of_tensors
@in_float32
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The mean over classes of binary cross-entropies of `sigmoid(input)`; shapes `(..., C)`."""
    if input.shape != target.shape:
        raise _core.ShapeError(
            f"multilabel_soft_margin_loss: input of shape {tuple(input.shape)} and target of shape "
            f"{tuple(target.shape)}"
        )
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    loss = loss if weight is None else loss * weight
    return _reduce(loss.mean(-1), reduction)


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
    """`max(0, d(anchor, positive) - d(anchor, negative) + margin)` with any distance, the Euclidean one by default.

    Args:
        distance_function: from two tensors to their distances.
        swap: use `d(positive, negative)` where it is smaller (Balntas et al. 2016).
    """
    distance = distance_function or (lambda x, y: _norm(x - y, 2.0))
    apart = distance(anchor, negative)
    if swap:
        apart = apart.minimum(distance(positive, negative))
    return _reduce((distance(anchor, positive) - apart + margin).relu(), reduction)


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
) -> Tensor:
    """`cross_entropy(input @ linear_weight.T + linear_bias, target)` of a large vocabulary in little memory.

    Rows are taken `chunk_size` at a time, and their logits are computed once more in backward, so that never more than
    one chunk of logits exists.

    Args:
        input: `(N, d)` or `(..., d)`.
        linear_weight: `(C, d)`.
        target: class indices `(N,)` or `(...)`.
        linear_bias: `(C,)`.
        weight: `(C,)`, one per class; the mean is weighted by them.
        ignore_index: targets that do not count, -100 by default.
    """
    from wengert.utils.checkpoint import checkpoint

    ignore_index = -100 if ignore_index is None else ignore_index
    if tuple(target.shape) != tuple(input.shape[:-1]) or linear_weight.ndim != 2:
        raise _core.ShapeError(
            f"linear_cross_entropy: input of shape {tuple(input.shape)}, weight {tuple(linear_weight.shape)} and "
            f"target {tuple(target.shape)}; expected (N, d), (C, d) and (N,)"
        )
    if chunk_size < 1:
        raise ValueError(f"linear_cross_entropy: chunk_size must be positive, got {chunk_size}")
    rows, labels = input.reshape(-1, input.shape[-1]), target.reshape(-1)

    def part(x: Tensor, w: Tensor, bias: Tensor | None, t: Tensor) -> Tensor:
        return cross_entropy(linear(x, w, bias), t, weight, ignore_index, "none", label_smoothing)

    losses: list[Any] = []
    for start in range(0, max(rows.shape[0], 1), chunk_size):
        size = min(chunk_size, rows.shape[0] - start)
        chunk = rows.narrow(0, start, size), linear_weight, linear_bias, labels.narrow(0, start, size)
        losses.append(checkpoint(part, *chunk) if rows.shape[0] > chunk_size else part(*chunk))
    loss = losses[0] if len(losses) == 1 else wg.cat(losses, 0)
    if reduction == "mean":
        counted = labels != ignore_index
        if weight is None:
            return loss.sum() / counted.sum().to(loss.dtype)
        shares = weight.take(labels.masked_fill(counted.logical_not(), 0), 0)
        return loss.sum() / shares.masked_fill(counted.logical_not(), 0.0).sum()
    return _reduce(loss.reshape(target.shape), reduction)
