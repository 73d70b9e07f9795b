"""Writing elements to places that an index names, as functions of the whole.

Where several elements go to one place, the last one in the order of the index stays: always the same one.
"""

from collections.abc import Sequence
from typing import Any

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor
from wengert._precision import in_widest
from wengert._types import Operand, TensorLike

from ._method import index_dtype, method, on_axis
from .joining import broadcast_shapes

__all__ = [
    "index_copy",
    "index_fill",
    "index_put",
    "masked_scatter",
    "scatter",
    "scatter_reduce",
]

#: The reductions of `scatter`, as `scatter_reduce` calls them.
_COMBINED = {"add": "sum", "multiply": "prod"}


def same_dtype(name: str, x: Tensor, source: Operand) -> None:
    """Raises for a source of another dtype than the tensor that it is written to;
    under autocast they may differ.
    """
    if isinstance(source, Tensor) and source.dtype != x.dtype and not _core.is_autocast_enabled():
        raise TypeError(
            f"{name}: the source is {source.dtype.name} and the tensor {x.dtype.name}, one dtype expected; "
            "convert one of them with .to()"
        )


def scatter_operands(
    name: str, x: Tensor, dim: int, index: TensorLike, source: Tensor | complex
) -> tuple[int, Tensor, Tensor]:
    """The axis, the index, and the part of the source that it names."""
    x, axis = on_axis(name, x, dim)
    same_dtype(name, x, source)
    index = operand(name, index)
    index = index if index.ndim else index.reshape(1)
    if not isinstance(source, Tensor):
        source = _core.full(tuple(index.shape), source, dtype=x.dtype, device=x.device)
    source = source if source.ndim else source.reshape(1)
    fits = index.ndim == x.ndim == source.ndim and all(
        n <= source.shape[k] and (k == axis or n <= x.shape[k]) for k, n in enumerate(index.shape)
    )
    if not fits:
        raise _core.ShapeError(
            f"{name}: index of shape {tuple(index.shape)} does not fit a source of shape {tuple(source.shape)} "
            "and a tensor "
            f"of shape {tuple(x.shape)}: as many axes, and no longer on any but axis {axis} of the tensor"
        )
    for k, n in enumerate(index.shape):
        source = source if source.shape[k] == n else source.narrow(k, 0, n)
    return axis, index, source.to(x.dtype)


def _padded(part: Tensor, like: Tensor, value: float) -> Tensor:
    """A tensor that lies in the front of `like`, with `value` behind it."""
    if part.shape == like.shape:
        return part
    return _core._pad(
        part, [w for n, m in zip(like.shape[::-1], part.shape[::-1]) for w in (0, n - m)], value
    )


@method
def scatter(
    input: Tensor,
    dim: int,
    index: TensorLike,
    src: Tensor | complex | None = None,
    *,
    value: complex | None = None,
    reduce: str | None = None,
) -> Tensor:
    """Returns `input` with `out[index[i, j, …], j, …] = src[i, j, …]` for axis 0, and so on.

    Args:
        index: integers, with as many axes as `input`.
        src: a tensor at least as long as the index on every axis, or a number (also as `value`).
        reduce: `"add"` or `"multiply"` to combine with what is there.

    Gradients go to the elements that stayed: those of `src` that were written last, and what was not overwritten.

    Raises:
        IndexError: an index out of range.
        ShapeError: shapes that do not fit.
        TypeError: `src` has another dtype than `input`.

    Example:
        >>> wg.scatter(wg.zeros(3), 0, wg.tensor([2, 0]), wg.tensor([5.0, 6.0]))
        tensor([6., 0., 5.])
    """
    src = value if src is None else src
    if src is None:
        raise TypeError("scatter: a source is missing; pass a tensor or a number")
    if reduce is not None:
        if reduce not in _COMBINED:
            raise ValueError(f"scatter: reduce must be 'add' or 'multiply', got {reduce!r}")
        return scatter_reduce(input, dim, index, src, _COMBINED[reduce])
    axis, index, source = scatter_operands("scatter", input, dim, index, src)
    x = input if input.ndim else input.reshape(1)
    if index.numel() == 0:
        return input.clone()
    if not x.is_gpu:
        out = x._scatter(axis, index, source)
        return out if input.ndim else out.reshape(())
    last = index._scatter_last(axis, x.shape[axis])
    written = source.gather(axis, last.clamp(min=0))
    out = _core.where(_padded(last, x, -1) >= 0, _padded(written, x, 0), x)
    return out if input.ndim else out.reshape(())


@method
def scatter_(
    input: Tensor,
    dim: int,
    index: TensorLike,
    src: Tensor | complex | None = None,
    *,
    value: complex | None = None,
    reduce: str | None = None,
) -> Tensor:
    """Computes `scatter` in place."""
    source = value if src is None else src
    if reduce in _COMBINED and source is not None:
        return input.scatter_reduce_(dim, operand("scatter", index), source, _COMBINED[reduce])
    if reduce is not None or source is None or input.is_gpu or input.ndim == 0:
        return input._in_place("scatter", dim, index, src, value=value, reduce=reduce)
    axis, index, source = scatter_operands("scatter", input, dim, index, source)
    return input._scatter_("scatter", axis, index, source)


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@method
def scatter_reduce(
    input: Tensor,
    dim: int,
    index: TensorLike,
    src: Tensor | complex,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Returns `input` with the elements of `src` combined at the places that `index` names along `dim`.

    Args:
        reduce: `"sum"`, `"prod"`, `"mean"`, `"amax"` or `"amin"`; ties for an extreme share the gradient evenly.
        include_self: whether what is there takes part; places that nothing is written to keep it in any case.

    Example:
        >>> wg.scatter_reduce(wg.zeros(2), 0, wg.tensor([1, 1]), wg.tensor([5.0, 6.0]), "amax")
        tensor([0., 6.])
    """
    if reduce not in REDUCTIONS:
        raise ValueError(f"scatter_reduce: reduce must be one of {', '.join(REDUCTIONS)}, got {reduce!r}")
    axis, index, source = scatter_operands("scatter_reduce", input, dim, index, src)
    x = input if input.ndim else input.reshape(1)
    one = _core.ones(tuple(index.shape), dtype=index_dtype(x), device=x.device)
    count = _core.zeros(tuple(x.shape), dtype=one.dtype, device=x.device).scatter_add(axis, index, one)
    combine = {"sum": _sums, "mean": _means, "prod": _products}.get(reduce)
    if combine is not None:
        out = combine(x, axis, index, source, count, include_self)
    else:
        out = _extremes(x, axis, index, source, count, include_self, reduce == "amax")
    return out if input.ndim else out.reshape(())


def _start(x: Tensor, count: Tensor, include_self: bool, neutral: Any) -> Tensor:
    return x if include_self else _core.where(count > 0, neutral, x)


def _sums(x: Tensor, axis: int, index: Tensor, source: Tensor, count: Tensor, include_self: bool) -> Tensor:
    return _start(x, count, include_self, 0).scatter_add(axis, index, source)


def _means(x: Tensor, axis: int, index: Tensor, source: Tensor, count: Tensor, include_self: bool) -> Tensor:
    total = _sums(x, axis, index, source, count, include_self)
    parts = count + 1 if include_self else count.clamp(min=1)
    return total / parts.to(x.dtype) if x.dtype.is_differentiable else total.floor_divide(parts.to(x.dtype))


def _products(
    x: Tensor, axis: int, index: Tensor, source: Tensor, count: Tensor, include_self: bool
) -> Tensor:
    """Sorted by place, runs of one place are multiplied up in pairs, in pairs of pairs, and so on.

    Nothing is multiplied by what belongs to another place, so infinities and NaN stay where they are.
    """
    if index.numel() == 0:
        return x.clone()
    place = index % x.shape[axis]
    order = place.argsort(axis)
    place, factor = place.gather(axis, order), source.gather(axis, order)
    length, step = index.shape[axis], 1
    while step < length:
        rest = length - step
        same = place.narrow(axis, step, rest) == place.narrow(axis, 0, rest)
        before = _core.where(same, factor.narrow(axis, 0, rest), _one(x))
        factor = _core.cat([factor.narrow(axis, 0, step), factor.narrow(axis, step, rest) * before], axis)
        step *= 2
    # The last of a place has them all, and the last one is what stays.
    product = scatter(_core.ones(tuple(x.shape), dtype=x.dtype, device=x.device), axis, place, factor)
    return _start(x, count, include_self, _one(x)) * product


def _one(x: Tensor) -> Tensor:
    return _core.ones((), dtype=x.dtype, device=x.device)


def _extremes(
    x: Tensor, axis: int, index: Tensor, source: Tensor, count: Tensor, include_self: bool, largest: bool
) -> Tensor:
    if x.is_floating_point():
        worst: Any = float("-inf") if largest else float("inf")
    else:
        from wengert._info import iinfo

        worst = iinfo(x.dtype).min if largest else iinfo(x.dtype).max
    start = _start(x, count, include_self, worst)
    out = start.detach()._scatter_extreme(axis, index, source.detach(), largest)
    if not x.is_floating_point():
        return out
    # What ties for the extreme carries the gradient in equal shares; the value itself stays exact.
    ours = start == out if include_self else (start == out).logical_and(count == 0)
    theirs = source == out.gather(axis, index)
    ties = ours.to(x.dtype).scatter_add(axis, index, theirs.to(x.dtype))
    share = _core.where(ours, start, 0.0).scatter_add(axis, index, _core.where(theirs, source, 0.0)) / ties
    # An infinite extreme is the share itself; of a finite one only the slope is taken.
    finite = out + _core.where(out.isfinite(), share - share.detach(), 0.0)
    return _core.where(out.isinf(), share, finite)


def _slices(
    name: str, input: Tensor, dim: int, index: TensorLike, source: Tensor | complex
) -> tuple[int, Tensor, Tensor]:
    """The axis, the index and the source of slices, which must fit."""
    x, axis = on_axis(name, input, dim)
    same_dtype(name, x, source)
    index, source = operand(name, index), operand(name, source, input)
    source = source if source.ndim else source.reshape(1)
    expected = [index.numel() if k == axis else n for k, n in enumerate(x.shape)]
    if index.ndim > 1 or list(source.shape) != expected:
        raise _core.ShapeError(
            f"{name}: index of shape {tuple(index.shape)} and source of shape {tuple(source.shape)} for "
            f"axis {axis} of "
            f"a tensor of shape {tuple(x.shape)}; expected a vector and a source of shape {tuple(expected)}"
        )
    return axis, index, source


@method
@in_widest
def index_copy(input: Tensor, dim: int, index: TensorLike, source: Tensor | complex) -> Tensor:
    """Returns `input` with the slices along `dim` at the indices `index` replaced by those of `source`.

    Example:
        >>> wg.index_copy(wg.zeros(3), 0, wg.tensor([2, 0]), wg.tensor([5.0, 6.0]))
        tensor([6., 0., 5.])
    """
    x = input if input.ndim else input.reshape(1)
    axis, index, source = _slices("index_copy", input, dim, index, source)
    if not x.is_gpu:
        out = x._put_slices("index_copy", axis, index, source)
        return out if input.ndim else out.reshape(())
    places = index.reshape([-1 if k == axis else 1 for k in range(x.ndim)]).expand(source.shape)
    out = scatter(x, axis, places, source)
    return out if input.ndim else out.reshape(())


@method
def index_copy_(input: Tensor, dim: int, index: TensorLike, source: Tensor | complex) -> Tensor:
    """Computes `index_copy` in place."""
    if input.is_gpu or input.ndim == 0:
        return input._in_place("index_copy", dim, index, source)
    axis, index, source = _slices("index_copy", input, dim, index, source)
    return input._put_slices_("index_copy", axis, index, source)


def _filler(x: Tensor, value: Operand) -> Tensor:
    """A number as a tensor of the dtype and device of `x`."""
    return x._filling("index_fill", value).to(x.device)


@method
def index_fill(input: Tensor, dim: int, index: TensorLike, value: Operand) -> Tensor:
    """Returns `input` with the slices along `dim` at the indices `index` filled with a number.

    Example:
        >>> wg.index_fill(wg.zeros(3), 0, wg.tensor([0, 2]), 7.0)
        tensor([7., 0., 7.])
    """
    x, axis = on_axis("index_fill", input, dim)
    index = operand("index_fill", index).reshape(-1)
    if not x.is_gpu:
        out = x._put_slices("index_fill", axis, index, _filler(x, value))
        return out if input.ndim else out.reshape(())
    here = _core.zeros(x.shape[axis], dtype=index_dtype(x), device=x.device).index_add(
        0, index, _core.ones(index.shape[0], dtype=index_dtype(x), device=x.device)
    )
    mask = (here > 0).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
    out = _core.where(mask, _filler(x, value), x)
    return out if input.ndim else out.reshape(())


@method
def index_fill_(input: Tensor, dim: int, index: TensorLike, value: Operand) -> Tensor:
    """Computes `index_fill` in place."""
    if input.is_gpu or input.ndim == 0:
        return input._in_place("index_fill", dim, index, value)
    _, axis = on_axis("index_fill", input, dim)
    index = operand("index_fill", index).reshape(-1)
    return input._put_slices_("index_fill", axis, index, _filler(input, value))


@method
@in_widest
def index_put(
    input: Tensor, indices: Sequence[TensorLike], values: Operand, accumulate: bool = False
) -> Tensor:
    """Returns `input` after `input[indices] = values`, or `+=` that counts every index, with `accumulate`.

    Example:
        >>> wg.index_put(wg.zeros(3), (wg.tensor([1, 1]),), wg.tensor([2.0, 3.0]), accumulate=True)
        tensor([0., 5., 0.])
    """
    key = tuple(indices)
    same_dtype("index_put", input, values)
    if not accumulate or _adds(input):
        return input._written(key, values, accumulate)
    # The linear index of every element says where its value is added.
    places = _core.arange(0, input.numel(), dtype=index_dtype(input), device=input.device).reshape(
        input.shape
    )[key]
    values = operand("index_put", values, input).to(input.dtype).expand(places.shape)
    return input.reshape(-1).index_add(0, places.reshape(-1), values.reshape(-1)).reshape(input.shape)


@method
def index_put_(
    input: Tensor, indices: Sequence[TensorLike], values: Operand, accumulate: bool = False
) -> Tensor:
    """Computes `index_put` in place."""
    same_dtype("index_put", input, values)
    if accumulate and not _adds(input):
        return input._in_place("index_put", indices, values, accumulate)
    return input._write("index_put", tuple(indices), values, accumulate)


def _adds(x: Tensor) -> bool:
    """Whether elements are added where they stand; float16 and bfloat16 are added up in float32 first."""
    return not x.is_gpu and x.dtype not in (_core.bool, _core.float16, _core.bfloat16)


def _together(input: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """A tensor and a mask, expanded to their common shape."""
    shape = broadcast_shapes(input.shape, mask.shape)
    return input.expand(shape), mask.expand(shape)


@method
def masked_scatter(input: Tensor, mask: TensorLike, source: Tensor | complex) -> Tensor:
    """Returns `input` with the elements where `mask` is true replaced by those of `source`, in their order.

    The two broadcast; `source` has the dtype of `input`.

    Example:
        >>> wg.masked_scatter(wg.zeros(3), wg.tensor([True, False, True]), wg.tensor([5.0, 6.0]))
        tensor([5., 0., 6.])
    """
    mask, source = operand("masked_scatter", mask), operand("masked_scatter", source, input).reshape(-1)
    if mask.dtype != _core.bool:
        raise TypeError(f"masked_scatter: a bool mask expected, got {mask.dtype}; compare, as in mask != 0")
    same_dtype("masked_scatter", input, source)
    input, mask = _together(input, mask)
    place = mask.reshape(-1).to(index_dtype(input)).cumsum(0) - 1
    if source.numel() == 0:
        return input.clone()
    taken = source.to(input.dtype).take(place.clamp(min=0), 0).reshape(input.shape)
    return _core.where(mask, taken, input)
