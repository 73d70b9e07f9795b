"""Rows of tables picked by integers, one by one or added up in bags."""

import itertools
import math
from typing import Any

import wengert as wg
from wengert import _core
from wengert._arguments import of_tensors
from wengert._core import Tensor
from wengert._values import not_negative
from wengert.composed._method import index_dtype

__all__ = ["embedding", "embedding_bag"]


def _check(name: str, input: Tensor, weight: Tensor, sparse: bool) -> None:
    if input.dtype.is_floating_point or input.dtype == wg.bool:
        raise TypeError(f"{name}: integer indices expected, got {input.dtype}; convert with .long()")
    if weight.ndim != 2:
        raise wg.ShapeError(f"{name}: weight of shape (rows, features) expected, got {tuple(weight.shape)}")
    if sparse:
        raise ValueError(
            f"{name}: sparse gradients are not available; leave sparse out, the gradient is a dense tensor"
        )


def _shorten(input: Tensor, weight: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the rows that are picked to a norm of at most `max_norm`, in place and without recording."""
    with wg.no_grad():
        rows = input.reshape(-1).unique()
        picked = weight.detach().index_select(0, rows)
        norm = picked.norm(norm_type, 1, keepdim=True)
        factor = wg.where(norm > max_norm, max_norm / (norm + 1e-7), wg.ones_like(norm))
        weight[rows] = picked * factor


def _evened(out: Tensor, input: Tensor, rows: int) -> Tensor:
    """The picked rows, with gradients divided by how often each of them is picked."""
    flat = input.reshape(-1)
    one = _core.ones((flat.shape[0],), dtype=out.dtype, device=out.device)
    counts = _core.zeros((rows,), dtype=out.dtype, device=out.device).index_add(0, flat, one)
    share = counts.take(input, 0).clamp(min=1).reciprocal().unsqueeze(-1)
    return out * share + (out - out * share).detach()


@of_tensors
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Returns the rows of `weight` picked by integers.

    Args:
        input: integers of any shape.
        weight: `(rows, features)`.
        padding_idx: a row that gets no gradient.
        max_norm: rows that are picked and longer are scaled to this norm first, in place.
        norm_type: which norm.
        scale_grad_by_freq: divide each row's gradient by how often it is picked.
        sparse: only False.

    Returns:
        `input.shape + (features,)`.

    Raises:
        IndexError: for an index outside the rows.
        TypeError: for indices that are no integers.
        ValueError: for `sparse`.

    Example:
        >>> wg.nn.functional.embedding(wg.tensor([1, 0]), wg.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[3., 4.],
                [1., 2.]])
    """
    _check("embedding", input, weight, sparse)
    input = not_negative("embedding", "index", input, weight.shape[0], "rows")
    if max_norm is not None:
        _shorten(input, weight, max_norm, norm_type)
    out = weight.take(input, dim=0)
    if scale_grad_by_freq:
        out = _evened(out, input, weight.shape[0])
    if padding_idx is None:
        return out
    row = padding_idx if padding_idx >= 0 else padding_idx + weight.shape[0]
    return wg.where((input == row).unsqueeze(-1), out.detach(), out)


def _check_offsets(offsets: Tensor, count: int, with_end: bool) -> None:
    """Raises for starts of bags that are not in order, or leave indices out."""
    if offsets.ndim != 1 or offsets.dtype.is_floating_point or offsets.dtype == wg.bool:
        raise _core.ShapeError(
            f"embedding_bag: offsets must be a vector of integers, got {offsets.dtype} of shape "
            f"{tuple(offsets.shape)}"
        )
    if offsets.shape[0] == 0:
        return
    try:
        starts = offsets.tolist()
    except TypeError:  # inside vmap and jvp values cannot be looked at
        return
    falls = any(a > b for a, b in itertools.pairwise(starts))
    if starts[0] != 0 or falls or starts[-1] > count or (with_end and starts[-1] != count):
        shown = starts if len(starts) < 9 else [*starts[:4], "...", *starts[-3:]]
        raise ValueError(
            f"embedding_bag: offsets must begin with 0, never decrease, and end at {count}"
            f"{'' if with_end else ' or before'}, the number of indices; got {shown}"
        )


@of_tensors
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Returns sums, means or maxima of bags of rows of a table.

    Args:
        input: indices, one bag per row `(B, L)`; or a vector of them with the start of each bag in `offsets`.
        weight: the table `(V, D)`.
        offsets: where each bag starts.
        max_norm: rows that are picked and longer are scaled to this norm first, in place.
        norm_type: which norm.
        scale_grad_by_freq: divide each row's gradient by how often it is picked; not with `"max"`.
        mode: `"sum"`, `"mean"` or `"max"`; an empty bag gives zero.
        sparse: only False.
        per_sample_weights: a factor for each index, with `"sum"` only.
        include_last_offset: the last offset is the end of the last bag, the number of indices.
        padding_idx: an index that does not count.

    Returns:
        `(B, D)`.

    Raises:
        IndexError: for an index outside the rows.
        ShapeError: for shapes that do not fit.
        TypeError: for indices that are no integers.
        ValueError: for offsets that do not begin with 0, decrease, or lie behind the indices; for modes and
            arguments that exclude each other.

    Example:
        >>> weight = wg.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
        >>> wg.nn.functional.embedding_bag(wg.tensor([[0, 2]]), weight, mode="sum")
        tensor([[3., 2.]])
    """
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: mode must be 'sum', 'mean' or 'max', got {mode!r}")
    _check("embedding_bag", input, weight, sparse)
    if scale_grad_by_freq and mode == "max":
        raise ValueError("embedding_bag: scale_grad_by_freq has no meaning for mode 'max'")
    if per_sample_weights is not None and mode != "sum":
        raise ValueError(f"embedding_bag: per_sample_weights need mode 'sum', got {mode!r}")
    if (input.ndim == 2) == (offsets is not None) or input.ndim not in (1, 2):
        raise _core.ShapeError(
            f"embedding_bag: indices of shape {tuple(input.shape)} need "
            + ("no offsets" if input.ndim == 2 else "a vector of offsets, or two axes")
        )
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise _core.ShapeError(
            f"embedding_bag: per_sample_weights of shape {tuple(per_sample_weights.shape)} for indices of "
            f"shape {tuple(input.shape)}"
        )
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    flat = input.reshape(-1)
    dtype = index_dtype(weight)
    at = _core.arange(0, flat.shape[0], dtype=dtype, device=weight.device)
    if offsets is None:
        count = input.shape[0]
        bag = at.floor_divide(max(input.shape[1], 1))
    else:
        _check_offsets(offsets, flat.shape[0], include_last_offset)
        starts = offsets.narrow(0, 0, offsets.shape[0] - 1) if include_last_offset else offsets
        count = starts.shape[0]
        bag = wg.searchsorted(starts, at, right=True).to(dtype) - 1
    rows = embedding(flat, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)
    counts: Any = _core.ones((flat.shape[0],), dtype=weight.dtype, device=weight.device)
    if padding_idx is not None:
        counts = (flat != padding_idx).to(weight.dtype)
    start = _core.zeros((count, weight.shape[1]), dtype=weight.dtype, device=weight.device)
    if mode == "max":
        kept = (
            rows if padding_idx is None else rows.masked_fill((flat == padding_idx).unsqueeze(1), -math.inf)
        )
        out = start.scatter_reduce(0, bag.unsqueeze(1).expand(rows.shape), kept, "amax", include_self=False)
        sizes = _core.zeros((count,), dtype=weight.dtype, device=weight.device).index_add(0, bag, counts)
        return out.masked_fill((sizes == 0).unsqueeze(1), 0.0)
    factor = counts if per_sample_weights is None else counts * per_sample_weights.reshape(-1)
    total = start.index_add(0, bag, rows * factor.unsqueeze(1))
    if mode == "sum":
        return total
    sizes = _core.zeros((count,), dtype=weight.dtype, device=weight.device).index_add(0, bag, counts)
    return total / sizes.clamp(min=1).unsqueeze(1)
