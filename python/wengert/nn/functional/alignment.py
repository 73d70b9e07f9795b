"""Connectionist temporal classification (Graves et al. 2006): the likelihood of a labelling over all its
alignments."""

import math
from typing import Any

import wengert as wg
from wengert import _core
from wengert._arguments import of_tensors
from wengert._core import Tensor
from wengert.control import scan

__all__ = ["ctc_loss"]


def _lengths(name: str, given: Any, count: int, most: int) -> list[int]:
    values = given.reshape(-1).tolist() if isinstance(given, Tensor) else given
    values = [int(v) for v in values] if isinstance(values, (list, tuple)) else [int(values)]
    if len(values) != count or not all(0 <= v <= most for v in values):
        raise ValueError(f"ctc_loss: {name} must be {count} lengths between 0 and {most}, got {values}")
    return values


def _padded_targets(targets: Tensor, lengths: list[int], blank: int) -> Tensor:
    """Targets `(N, S)`; those of a concatenated vector are cut apart."""
    if targets.ndim == 2:
        return targets
    width, parts, at = max(lengths, default=0), [], 0
    if sum(lengths) != targets.numel():
        raise _core.ShapeError(
            f"ctc_loss: {targets.numel()} concatenated targets for lengths that add up to {sum(lengths)}"
        )
    for n in lengths:
        parts.append(_core._pad(targets.narrow(0, at, n), [0, width - n], float(blank)))
        at += n
    return _core.stack(parts, 0)


def _shifted(alpha: Tensor, by: int) -> Tensor:
    """Scores of the states `by` before."""
    return _core._pad(alpha, [by, 0], -math.inf).narrow(-1, 0, alpha.shape[-1])


@of_tensors
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Returns `-log p(targets)`, summed over all alignments in which labels may repeat and blanks may stand
    between them.

    Args:
        log_probs: logarithms of class probabilities, `(T, N, C)` or `(T, C)`.
        targets: labels `(N, S)`, `(S,)`, or those of the whole batch one after the other.
        input_lengths: how many of the `T` steps of each example count.
        target_lengths: how many labels each example has.
        blank: the class of the blank.
        reduction: `"none"`, `"sum"`, or `"mean"`: of each loss divided by the number of its labels.
        zero_infinity: zero, with a gradient of zero, for labellings that do not fit into the steps.

    Raises:
        ShapeError, ValueError: the shapes or lengths do not fit.

    Example:
        >>> log_probs = wg.log_softmax(wg.zeros(3, 1, 2), dim=2)
        >>> wg.nn.functional.ctc_loss(log_probs, wg.tensor([[1]]), wg.tensor([3]), wg.tensor([1]))
        tensor(0.2877)
    """
    if log_probs.ndim not in (2, 3):
        raise _core.ShapeError(
            f"ctc_loss: log_probs must be (T, N, C) or (T, C), got {tuple(log_probs.shape)}"
        )
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f"ctc_loss: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    batched = log_probs.ndim == 3
    scores = log_probs if batched else log_probs.unsqueeze(1)
    steps, count, classes = scores.shape
    if not 0 <= blank < classes:
        raise ValueError(f"ctc_loss: blank = {blank} is no class, there are {classes}")
    inputs = _lengths("input_lengths", input_lengths, count, steps)
    most = targets.shape[1] if targets.ndim == 2 else targets.numel()
    labels = _lengths("target_lengths", target_lengths, count, most)
    table = _padded_targets(
        targets if batched or targets.ndim == 2 else targets.reshape(1, -1), labels, blank
    )
    if table.shape[0] != count:
        raise _core.ShapeError(f"ctc_loss: targets of shape {tuple(targets.shape)} for {count} examples")
    losses = _losses(scores, table, inputs, labels, blank)
    if zero_infinity:
        losses = losses.masked_fill(losses.detach() == math.inf, 0.0)
    if reduction == "mean":
        size = _core.tensor([float(max(n, 1)) for n in labels], dtype=losses.dtype, device=losses.device)
        return (losses / size).mean()
    if reduction == "sum":
        return losses.sum()
    return losses if batched else losses.squeeze(0)


def _losses(scores: Tensor, table: Tensor, inputs: list[int], labels: list[int], blank: int) -> Tensor:
    """The forward variables over the states blank, label, blank, …, label, blank."""
    steps, count, _ = scores.shape
    width = table.shape[1]
    # A blank before each label, and one behind the last.
    blanks = _core.full((count, width + 1), blank, dtype=table.dtype, device=table.device)
    pairs = wg.stack([blanks.narrow(1, 0, width), table], 2).reshape(count, 2 * width)
    states = wg.cat([pairs, blanks.narrow(1, width, 1)], 1)
    size = states.shape[1]
    emitted = scores.gather(2, states.unsqueeze(0).expand(steps, count, size))
    # A blank between two labels may be left out if they differ.
    skips = _core.zeros((count, size), dtype=_core.bool, device=table.device)
    if size > 2:
        later, earlier = states.narrow(1, 2, size - 2), states.narrow(1, 0, size - 2)
        differ = (later != blank).logical_and(later != earlier)
        skips = wg.cat([skips.narrow(1, 0, 2), differ], 1)
    lowest = _core.full((count, size), -math.inf, dtype=scores.dtype, device=scores.device)
    place = _core.arange(0, size, dtype=_core.float32, device=scores.device)
    alpha = wg.where(place < 2, emitted.select(0, 0), lowest) if steps else lowest
    length = _core.tensor([float(n) for n in inputs], dtype=_core.float32, device=scores.device).unsqueeze(1)

    def step(alpha: Tensor, now: tuple[Tensor, Tensor]) -> tuple[Tensor, None]:
        is_over, emitted = now
        met = alpha.logaddexp(_shifted(alpha, 1)).logaddexp(wg.where(skips, _shifted(alpha, 2), lowest))
        return wg.where(is_over, alpha, met + emitted), None

    last = max(inputs, default=0)
    if last > 1:
        times = _core.arange(1, last, dtype=_core.float32, device=scores.device).reshape(-1, 1, 1)
        alpha, _ = scan(step, alpha, (length <= times, emitted.narrow(0, 1, last - 1)))
    ends = _core.tensor([float(2 * n) for n in labels], dtype=_core.float32, device=scores.device).unsqueeze(
        1
    )
    final = (place >= ends - 1).logical_and(place <= ends)
    total = wg.where(final, alpha, lowest).logsumexp(1)
    # No steps at all fit no labels only.
    none = _core.tensor([n == 0 for n in inputs], device=scores.device)
    empty = _core.tensor(
        [0.0 if n == 0 else -math.inf for n in labels], dtype=scores.dtype, device=scores.device
    )
    return -wg.where(none, empty, total)
