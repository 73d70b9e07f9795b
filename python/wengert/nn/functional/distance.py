"""Distances between all pairs of vectors, and sums over bags of embeddings."""

import math
from typing import Any

import wengert as wg
from wengert import _core
from wengert._arguments import of_tensors
from wengert._core import Tensor

from .layers import embedding

__all__ = ["cdist", "embedding_bag", "pdist"]


def _norm(difference: Tensor, p: float) -> Tensor:
    """The `p`-norm over the last axis; its gradient at zero is zero."""
    if p < 0:
        raise ValueError(f"a norm has an exponent p from 0 to infinity, got {p}")
    if difference.shape[-1] == 0:
        return difference.sum(-1)
    if p == math.inf:
        return difference.abs().amax(-1)
    return difference.norm(p, -1)


@of_tensors
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    """The `p`-norm distance of each row of `x1` `(..., P, M)` to each row of `x2` `(..., R, M)`: `(..., P, R)`.

    Differences are formed, which needs `P R M` elements but is exact for close points, where the expansion of the
    square is not. At distance 0 the gradient is 0.
    """
    if min(x1.ndim, x2.ndim) < 2 or x1.shape[-1] != x2.shape[-1]:
        raise _core.ShapeError(
            f"cdist: vectors of one length in (..., P, M) and (..., R, M) expected, got shapes {tuple(x1.shape)} and "
            f"{tuple(x2.shape)}"
        )
    return _norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


@of_tensors
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The `p`-norm distances of all pairs of rows of a matrix, row by row of the upper triangle."""
    if input.ndim != 2:
        raise _core.ShapeError(f"pdist: a matrix expected, got shape {tuple(input.shape)}")
    pairs = wg.triu_indices(input.shape[0], input.shape[0], 1)
    first, second = (pairs.int() if input.is_gpu else pairs).to(input.device).unbind(0)
    return _norm(input.index_select(0, first) - input.index_select(0, second), p)


@of_tensors
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    mode: str = "mean",
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of bags of rows of a table.

    Args:
        input: indices, one bag per row `(B, L)`; or a vector of them with the start of each bag in `offsets`.
        weight: the table `(V, D)`.
        mode: `"sum"`, `"mean"` or `"max"`; an empty bag gives zero.
        per_sample_weights: a factor for each index, with `"sum"` only.
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: an index that does not count.

    Returns:
        `(B, D)`.
    """
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag: mode must be 'sum', 'mean' or 'max', got {mode!r}")
    if per_sample_weights is not None and mode != "sum":
        raise ValueError(f"embedding_bag: per_sample_weights need mode 'sum', got {mode!r}")
    if (input.ndim == 2) == (offsets is not None) or input.ndim not in (1, 2):
        raise _core.ShapeError(
            f"embedding_bag: indices of shape {tuple(input.shape)} need "
            + ("no offsets" if input.ndim == 2 else "a vector of offsets, or two axes")
        )
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise _core.ShapeError(
            f"embedding_bag: per_sample_weights of shape {tuple(per_sample_weights.shape)} for indices of shape "
            f"{tuple(input.shape)}"
        )
    flat = input.reshape(-1)
    dtype = _core.int32 if weight.is_gpu else _core.int64
    at = _core.arange(0, flat.shape[0], dtype=dtype, device=weight.device)
    if offsets is None:
        count = input.shape[0]
        bag = at.floor_divide(max(input.shape[1], 1))
    else:
        starts = offsets.narrow(0, 0, offsets.shape[0] - 1) if include_last_offset else offsets
        count = starts.shape[0]
        bag = wg.searchsorted(starts, at, right=True).to(dtype) - 1
    rows = embedding(flat, weight, padding_idx)
    counts: Any = _core.ones((flat.shape[0],), dtype=weight.dtype, device=weight.device)
    if padding_idx is not None:
        counts = (flat != padding_idx).to(weight.dtype)
    start = _core.zeros((count, weight.shape[1]), dtype=weight.dtype, device=weight.device)
    if mode == "max":
        kept = (
            rows if padding_idx is None else rows.masked_fill((flat == padding_idx).unsqueeze(1), -math.inf)
        )
        out = start.scatter_reduce(0, bag.unsqueeze(1).expand(rows.shape), kept, "amax", include_self=False)
        return out.masked_fill(out.detach() == -math.inf, 0.0)
    factor = counts if per_sample_weights is None else counts * per_sample_weights.reshape(-1)
    total = start.index_add(0, bag, rows * factor.unsqueeze(1))
    if mode == "sum":
        return total
    sizes = _core.zeros((count,), dtype=weight.dtype, device=weight.device).index_add(0, bag, counts)
    return total / sizes.clamp(min=1).unsqueeze(1)
