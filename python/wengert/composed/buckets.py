"""Searching in ordered sequences, and counting what falls between their elements."""

import math
from typing import Any, NamedTuple

from wengert import _core
from wengert._arguments import compared, operand
from wengert._core import Tensor
from wengert._types import TensorLike

from ._method import floating, index_dtype, method

__all__ = ["bincount", "bucketize", "histc", "histogram", "isin", "searchsorted"]


class Histogram(NamedTuple):
    """Counts or densities of bins, and the edges between them."""

    hist: Tensor
    bin_edges: Tensor


def searchsorted(
    sorted_sequence: TensorLike,
    input: TensorLike,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: TensorLike | None = None,
) -> Tensor:
    """Returns the index at which each element of `input` belongs in an ascending sequence, over the last
    axis.

    Args:
        sorted_sequence: one axis, or the shape of `input` but for the last axis: one sequence for each of its
            lines.
        out_int32: give int32 rather than int64.
        right: behind equal elements rather than before them; `side="right"` says the same.
        sorter: the order that sorts the sequence, from `argsort`.

    Returns:
        Indices from 0 to the length of the sequence, of the shape of `input`.

    Example:
        >>> wg.searchsorted(wg.tensor([1.0, 3.0, 5.0]), wg.tensor([2.0, 5.0]))
        tensor([1, 2])
    """
    if side not in (None, "left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    if right and side == "left":
        raise ValueError("searchsorted: right=True and side='left' contradict each other; give one of them")
    sequence, values = compared("searchsorted", sorted_sequence, input)
    if sorter is not None:
        sequence = sequence.gather(-1, operand("searchsorted", sorter))
    found = sequence._search_sorted(values, right or side == "right")
    return found.int() if out_int32 else found


def bucketize(
    input: TensorLike, boundaries: TensorLike, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Returns the number of the bucket between ascending `boundaries` that each element falls into.

    Bucket `i` is `boundaries[i-1] < x <= boundaries[i]`; with `right`,
    `boundaries[i-1] <= x < boundaries[i]`.

    Example:
        >>> wg.bucketize(wg.tensor([0.5, 3.0]), wg.tensor([1.0, 2.0]))
        tensor([0, 2])
    """
    sequence, values = compared("bucketize", boundaries, input)
    found = sequence._search_sorted(values, right)
    return found.int() if out_int32 else found


def isin(
    elements: TensorLike, test_elements: TensorLike, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Tells where `elements` are equal to any of `test_elements`. NaN is equal to nothing.

    Args:
        assume_unique: accepted; the result does not depend on it.
        invert: where they are equal to none instead.

    Example:
        >>> wg.isin(wg.tensor([1, 2, 3]), wg.tensor([2, 9]))
        tensor([False,  True, False])
    """
    x, tests = compared("isin", elements, test_elements)
    x, tests = x.detach(), tests.detach().reshape(-1)
    if x.dtype == _core.bool:
        x, tests = x.to(_core.int32), tests.to(_core.int32)
    count = tests.shape[0]
    if count == 0:
        found = _core.zeros_like(x, dtype=_core.bool)
    elif x.is_complex():
        found = (x.unsqueeze(-1) == tests).any(-1)
    else:
        ascending = tests.sort(0).values
        place = ascending._search_sorted(x, False)
        found = ascending.take(place.clamp(max=count - 1), 0) == x
    return found.logical_not() if invert else found


@method
def bincount(input: Tensor, weights: TensorLike | None = None, minlength: int = 0) -> Tensor:
    """Counts how often each of the numbers 0, 1, 2, … occurs in a vector of integers, or the sum of their
    `weights`.

    Sums are float32 for weights of that dtype, else float64 (float32 on a GPU).

    Raises:
        ValueError: negative numbers, a negative `minlength`.
        TypeError: no integers.

    Example:
        >>> wg.bincount(wg.tensor([0, 2, 2]))
        tensor([1, 0, 2])
    """
    if input.is_floating_point() or input.dtype == _core.bool:
        raise TypeError(f"bincount: integers expected, got {input.dtype}; convert with .long() first")
    if input.ndim != 1:
        raise _core.ShapeError(
            f"bincount: a vector expected, got shape {tuple(input.shape)}; call flatten() first"
        )
    if minlength < 0:
        raise ValueError(f"bincount: minlength must not be negative, got {minlength}")
    if input.numel():
        low, high = input.min().item(), input.max().item()
        if low < 0:
            raise ValueError(f"bincount: numbers from 0 expected, got {low}")
        minlength = max(minlength, high + 1)
    has_weights = weights is not None
    if weights is None:
        weights = _core.ones(input.shape[0], dtype=index_dtype(input), device=input.device)
    weights = operand("bincount", weights)
    if weights.shape != input.shape:
        raise _core.ShapeError(
            f"bincount: weights of shape {tuple(weights.shape)} for numbers of shape {tuple(input.shape)}"
        )
    if has_weights and weights.dtype not in (_core.float32, _core.float64):
        weights = weights.to(_core.float32 if input.is_gpu else _core.float64)
    start = _core.zeros(minlength, dtype=weights.dtype, device=input.device)
    return start.index_add(0, input.to(index_dtype(input)), weights)


def _check_range(name: str, low: float, high: float) -> None:
    """Raises unless bins can lie between these."""
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(
            f"{name}: bins from {low} to {high} have no width; give a finite range, or leave out what is not "
            "finite"
        )


@method
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Counts how many elements fall into each of `bins` equal parts of `min` to `max`, the last of which
    includes `max`.

    Where both are equal, they are the extremes of the data. Elements outside and NaN are not counted.

    Example:
        >>> wg.histc(wg.tensor([1.0, 2.0, 2.5]), bins=2, min=1, max=3)
        tensor([1., 2.])
    """
    x = floating("histc", input).detach().reshape(-1)
    if bins < 1:
        raise ValueError(f"histc: at least one bin expected, got {bins}")
    if min > max:
        raise ValueError(f"histc: max = {max} is less than min = {min}")
    if min == max and x.numel():
        min, max = x.min().item(), x.max().item()
    _check_range("histc", min, max)
    if min == max:
        min, max = min - 1, max + 1
    inside = (x >= min).logical_and(x <= max)
    place = _core.where(inside, ((x - min) * (bins / (max - min))).floor().clamp(0, bins - 1), 0.0)
    return _core.zeros(bins, dtype=x.dtype, device=x.device).index_add(
        0, place.to(index_dtype(x)), inside.to(x.dtype)
    )


@method
def histogram(
    input: TensorLike,
    bins: Any = 100,
    *,
    range: tuple[float, float] | None = None,
    weight: TensorLike | None = None,
    density: bool = False,
) -> Histogram:
    """Counts (or sums of `weight`) of elements between edges, the last of which belongs to the last bin.

    Args:
        bins: how many equal bins, or an ascending vector of edges.
        range: the outer edges of equal bins; the extremes of the data by default.
        density: divide so that the sum over bins times their widths is 1.

    Returns:
        The pair (hist, bin_edges).

    Example:
        >>> wg.histogram(wg.tensor([1.0, 2.0, 1.5]), 2)
        Histogram(hist=tensor([1., 2.]), bin_edges=tensor([1.0, 1.5, 2.0]))
    """
    x = floating("histogram", input).detach().reshape(-1)
    if isinstance(bins, Tensor):
        edges = bins.clone() if bins.dtype == x.dtype else bins.to(x.dtype)
    else:
        low, high = (
            range if range is not None else ((x.min().item(), x.max().item()) if x.numel() else (0.0, 1.0))
        )
        _check_range("histogram", low, high)
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = _core.linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)
    if edges.ndim != 1 or edges.shape[0] < 2:
        raise _core.ShapeError(
            f"histogram: a vector of at least 2 edges expected, got shape {tuple(edges.shape)}"
        )
    last = edges.shape[0] - 2
    place = (edges._search_sorted(x, True) - 1).masked_fill(x == edges[-1], last)
    inside = (place >= 0).logical_and(place <= last)
    each = _core.ones_like(x) if weight is None else operand("histogram", weight).reshape(-1)
    start = _core.zeros(last + 1, dtype=each.dtype, device=x.device)
    hist = start.index_add(0, _core.where(inside, place, 0), _core.where(inside, each, 0.0))
    if density:
        hist = hist / (hist.sum() * edges.diff())
    return Histogram(hist, edges)
