"""Order statistics and distinct elements, by sorting and gathering."""

from typing import Any

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor
from wengert._results import Along
from wengert._types import TensorLike

from ._method import floating, index_dtype, method, on_axis, positions_like

__all__ = [
    "kthvalue",
    "median",
    "mode",
    "nanmedian",
    "nanquantile",
    "quantile",
    "unique",
    "unique_consecutive",
]


def _along(x: Tensor, index: Tensor, dim: int, keepdim: bool, scalar: bool) -> Along:
    """The elements at one index per line, without the axis unless it is to stay."""
    values = x.gather(dim, index)
    if scalar:
        return Along(values.reshape(()), index.reshape(()))
    return Along(values, index) if keepdim else Along(values.squeeze(dim), index.squeeze(dim))


@method
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Along:
    """Returns the `k`-th smallest element along `dim` (1 is the smallest), and its index: the pair (values, indices).

    NaN counts as the largest. The gradient goes to where the element is.

    Raises:
        ValueError: `k` is not between 1 and the length of the axis.

    Example:
        >>> wg.kthvalue(wg.tensor([3.0, 1.0, 2.0]), 2)
        Along(values=tensor(2.), indices=tensor(2))
    """
    x, axis = on_axis("kthvalue", input, dim)
    length = x.shape[axis]
    if not isinstance(k, int) or not 1 <= k <= length:
        raise ValueError(
            f"kthvalue: k = {k!r} is out of range for axis {dim} of length {length}; k is between 1 and {length}"
        )
    index = x.topk(k, axis, largest=False).indices.narrow(axis, k - 1, 1)
    return _along(x, index, axis, keepdim, input.ndim == 0)


def _middle(name: str, input: Tensor, dim: int | None, keepdim: bool, skip_nan: bool) -> Any:
    if dim is None:
        flat = input.reshape(-1)
        if flat.numel() == 0:
            if not flat.is_floating_point():
                raise ValueError(
                    f"{name}: no elements, the shape is {tuple(input.shape)}, and {input.dtype} has no NaN to say so"
                )
            return flat.sum() * float("nan")
        value = _middle(name, flat.detach(), 0, False, skip_nan).values
        if not flat.is_floating_point():
            return value
        # The same as the largest of the elements equal to it, which share the gradient.
        same = (flat.detach() == value) | flat.detach().isnan() & value.isnan()
        # Of infinite ones too: those that are not the same lie on the other side of all numbers.
        side = _core.where(value > 0, _core.ones_like(value), -_core.ones_like(value))
        return (flat * side).masked_fill(same.logical_not(), float("-inf")).amax() * side
    x, axis = on_axis(name, input, dim)
    length = x.shape[axis]
    if length == 0:
        raise ValueError(f"{name}: axis {dim} of shape {tuple(input.shape)} is empty and has no median")
    order = x.argsort(axis)
    index = order.narrow(axis, (length - 1) // 2, 1)
    if x.is_floating_point():
        nan = x.detach().isnan()
        # NaN sorts to the end, behind so many others.
        count = nan.logical_not().sum(axis, keepdim=True)
        if skip_nan:
            index = order.gather(axis, ((count - 1) // 2).clamp(min=0).to(order.dtype))
        else:
            first = order.gather(axis, count.clamp(max=length - 1).to(order.dtype))
            index = _core.where(nan.any(axis, keepdim=True), first, index)
    return _along(x, index, axis, keepdim, input.ndim == 0)


@method
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Returns the median: the middle element in sorted order, the lower one of two; NaN of none, or with a NaN.

    Args:
        dim: the axis; without it, of all elements.
        keepdim: keep the axis with length 1.

    Returns:
        The pair (values, indices) along `dim`, whose gradient goes to where the element is; or one value,
        whose gradient is shared by the elements equal to it.

    Raises:
        ValueError: of no elements along `dim`, or of no integers.

    Example:
        >>> wg.median(wg.tensor([3.0, 1.0, 4.0, 2.0]))
        tensor(2.)
    """
    return _middle("median", input, dim, keepdim, False)


@method
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Returns `median` of the elements that are not NaN; NaN where there are none.

    Example:
        >>> wg.nanmedian(wg.tensor([float("nan"), 1.0, 2.0, 5.0]))
        tensor(2.)
    """
    return _middle("nanmedian", input, dim, keepdim, True)


@method
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Along:
    """Returns the most frequent element along `dim`, the smallest of several, and the index of its last occurrence.

    Example:
        >>> wg.mode(wg.tensor([2, 1, 2, 1, 3]))
        Along(values=tensor(1), indices=tensor(3))
    """
    x, axis = on_axis("mode", input, dim)
    length = x.shape[axis]
    if length == 0:
        raise ValueError(f"mode: axis {dim} of shape {tuple(input.shape)} is empty and has no mode")
    line = x.detach().movedim(axis, -1)
    order = line.argsort(-1)
    sorted_line = line.gather(-1, order)
    begins = sorted_line.narrow(-1, 1, length - 1) != sorted_line.narrow(-1, 0, length - 1)
    begins = _core.cat([_core.ones_like(sorted_line.narrow(-1, 0, 1), dtype=_core.bool), begins], -1)
    at = positions_like(x, length).expand_as(order)
    start = _core.where(begins, at, 0).cummax(-1).values
    # The longest run so far ends here; the first of equal lengths has the smallest value.
    end = (at - start).argmax(-1, keepdim=True)
    return _along(x, order.gather(-1, end).movedim(-1, axis), axis, keepdim, input.ndim == 0)


INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    name: str, input: TensorLike, q: TensorLike, dim: int | None, keepdim: bool, how: str, skip_nan: bool
) -> Tensor:
    if how not in INTERPOLATIONS:
        raise ValueError(f"{name}: interpolation must be one of {', '.join(INTERPOLATIONS)}, got {how!r}")
    x = floating(name, input)
    if isinstance(q, (int, float)) and not 0 <= q <= 1:
        raise ValueError(f"{name}: q = {q} is out of range; it is a probability between 0 and 1")
    q = q if isinstance(q, Tensor) else _core.tensor(q, dtype=x.dtype, device=x.device)
    if q.ndim > 1:
        raise _core.ShapeError(f"{name}: q must be a number or a vector, got shape {tuple(q.shape)}")
    line, axis = (x.reshape(-1), 0) if dim is None else on_axis(name, x, dim)
    line = line.movedim(axis, -1)
    length = line.shape[-1]
    if length == 0:
        raise ValueError(
            f"{name}: a quantile of no elements, the shape is {tuple(x.shape)}; pass at least one"
        )
    values = line.sort(-1).values
    nan = line.detach().isnan()
    if skip_nan:
        last = (nan.logical_not().sum(-1, keepdim=True) - 1).clamp(min=0).to(x.dtype)
    else:
        last = _core.full((*line.shape[:-1], 1), float(length - 1), dtype=x.dtype, device=x.device)
    place = q.to(x.dtype).reshape(-1) * last
    below, above = place.detach().floor(), place.detach().ceil()
    if how == "lower":
        above = place = below
    elif how == "higher":
        below = place = above
    elif how == "nearest":
        below = above = place = place.detach().round()
    dtype = index_dtype(x)
    low, high = values.gather(-1, below.to(dtype)), values.gather(-1, above.to(dtype))
    weight = (above - below) * 0.5 if how == "midpoint" else place - below
    # Between equal neighbours there is nothing to weigh, infinite ones included; beside an infinite one the nearer
    # counts.
    between = _core.where(weight < 0.5, low + (high - low) * weight, high - (high - low) * (1 - weight))
    out = _core.where(below == above, low, between)
    missing = nan.all(-1, keepdim=True) if skip_nan else nan.any(-1, keepdim=True)
    out = out.masked_fill(missing, float("nan")).movedim(-1, 0)
    if keepdim:
        kept = [1] * x.ndim if dim is None else [1 if i == axis else d for i, d in enumerate(x.shape)]
        out = out.reshape(out.shape[0], *kept)
    return out if q.ndim else out.squeeze(0)


@method
def quantile(
    input: Tensor,
    q: TensorLike,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Returns the quantiles of probability `q` along `dim`, or of all elements; NaN where there is a NaN.

    Args:
        q: a probability, or a vector of them, whose axis then comes first in the result.
        interpolation: how to choose between the neighbours `a` and `b` of a place: `"linear"`, `"lower"`, `"higher"`,
            `"midpoint"` or `"nearest"`.

    Raises:
        TypeError: integers, which have no quantiles between them.
        ValueError: a probability outside of 0 to 1, no elements.

    Example:
        >>> wg.quantile(wg.tensor([0.0, 1.0, 2.0]), 0.25)
        tensor(0.5)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@method
def nanquantile(
    input: Tensor,
    q: TensorLike,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Returns `quantile` of the elements that are not NaN; NaN where there are none.

    Example:
        >>> wg.nanquantile(wg.tensor([0.0, float("nan"), 2.0]), 0.5)
        tensor(1.)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


def _distinct(rows: Tensor, order: Tensor | None, inverse: bool, counts: bool) -> Any:
    """The first of each run of equal rows (`[n, width]`), after sorting by `order`."""
    count = rows.shape[0]
    placed = rows if order is None else rows.index_select(0, order)
    begins = _core.ones(count, dtype=_core.bool, device=rows.device)
    if count > 1:
        differ = (placed.narrow(0, 1, count - 1) != placed.narrow(0, 0, count - 1)).any(1)
        begins = _core.cat([begins.narrow(0, 0, 1), differ])
    first = begins.nonzero().reshape(-1)
    found = [placed.index_select(0, first)]
    if inverse:
        group = begins.cumsum(0).to(index_dtype(rows)) - 1
        found.append(group if order is None else group.index_select(0, order.argsort(0)))
    if counts:
        ends = _core.cat([first, _core.full((1,), count, dtype=first.dtype, device=rows.device)])
        found.append(ends.diff())
    return found


def _all_distinct(
    name: str, input: TensorLike, dim: int | None, inverse: bool, counts: bool, is_sorted: bool
) -> Any:
    x = operand(name, input)
    if dim is None:
        rows, front = x.reshape(-1, 1), None
    else:
        x, axis = on_axis(name, x, dim)
        front = x.movedim(axis, 0)
        rows = front.reshape(x.shape[axis], -1) if x.numel() else front.reshape(x.shape[axis], 0)
    order = None
    if not is_sorted:
        order = positions_like(x, rows.shape[0])
        keys = rows.detach()
        if keys.is_complex():
            keys = _core.view_as_real(keys).flatten(1)
        # Stable sorts from the last column to the first order the rows as words are ordered.
        for column in reversed(range(keys.shape[1])):
            order = order.index_select(0, keys.select(1, column).index_select(0, order).argsort(0))
    values, *rest = _distinct(rows, order, inverse, counts)
    if front is None:
        values = values.reshape(-1)
        rest = [r.reshape(x.shape) if inverse and i == 0 else r for i, r in enumerate(rest)]
    else:
        values = values.reshape(values.shape[0], *front.shape[1:]).movedim(0, axis)
    return (values, *rest) if rest else values


@method
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Returns the distinct elements, ascending; along `dim`, the distinct slices. Each NaN is distinct.

    Complex numbers ascend by their real parts, then by their imaginary ones, as in NumPy.

    Args:
        sorted: accepted; the result is always sorted.
        return_inverse: also return where each element is in the result.
        return_counts: also return how often each one occurs.

    Returns:
        The elements, or a tuple of them and what was asked for. The gradient goes to the first of equal elements.

    Example:
        >>> wg.unique(wg.tensor([3, 1, 3]), return_counts=True)
        (tensor([1, 3]), tensor([1, 2]))
    """
    return _all_distinct("unique", input, dim, return_inverse, return_counts, False)


@method
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Returns `unique` of neighbours only: the first of each run of equal elements, in their order.

    Example:
        >>> wg.unique_consecutive(wg.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    return _all_distinct("unique_consecutive", input, dim, return_inverse, return_counts, True)
