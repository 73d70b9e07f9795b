"""Maxima of windows whose places follow from the output's size or from chance, and the inverse of max
pooling.

Windows are gathered by their positions in the flattened spatial axes, so every rule is that of gathering and
of `max`.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert import _core
from wengert._arguments import of_tensors
from wengert._core import Tensor
from wengert._values import not_negative
from wengert.composed._method import index_dtype

__all__ = [
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

Size = int | Sequence[int]


def _check_rank(name: str, input: Tensor, rank: int) -> None:
    if input.ndim not in (rank + 1, rank + 2) or 0 in input.shape[input.ndim - rank :]:
        raise _core.ShapeError(
            f"{name}: input of shape {tuple(input.shape)}; expected {rank + 2} axes (images, channels and "
            f"{rank} spatial axes, none of them empty) or {rank + 1} (one image)"
        )


def _each(name: str, what: str, given: Any, rank: int) -> list[Any]:
    """One entry per spatial axis, from one for all or one for each."""
    many = list(given) if isinstance(given, (tuple, list)) else [given] * rank
    if len(many) != rank:
        raise ValueError(
            f"{name}: {what} takes one number or one for each of the {rank} spatial axes, got {given}"
        )
    return many


def _indices(numbers: Any, like: Tensor) -> Tensor:
    return _core.tensor(numbers, dtype=index_dtype(like), device=like.device)


def _largest(input: Tensor, rank: int, places: Tensor, out: list[int]) -> tuple[Tensor, Tensor]:
    """The largest element of every window and its position, from positions `(.., windows, elements)`."""
    lead = tuple(input.shape[: input.ndim - rank])
    flat = input.flatten(len(lead))
    if places.ndim == 2:
        taken = flat.index_select(-1, places.reshape(-1)).reshape(*lead, *places.shape)
    else:
        taken = flat.gather(-1, places.flatten(len(lead))).reshape(*lead, *places.shape[-2:])
    values, which = taken.max(-1)
    index = places.expand(taken.shape).gather(-1, which.unsqueeze(-1)).squeeze(-1)
    return values.reshape(*lead, *out), index.reshape(*lead, *out)


def _adaptive(rank: int, input: Tensor, output_size: Any, return_indices: bool) -> Any:
    name = f"adaptive_max_pool{rank}d"
    _check_rank(name, input, rank)
    sizes = list(input.shape[input.ndim - rank :])
    wanted = _each(name, "output_size", output_size, rank)
    out = [n if o is None else int(o) for n, o in zip(sizes, wanted)]
    if min(out) < 1:
        raise ValueError(f"{name}: output_size must be 1 or more, got {output_size}")
    # Windows of fewer elements repeat their last one, behind all others: the first of equal elements is the
    # one. Raises where no axis is so long.
    _core.empty(0, *out, device="cpu")
    lines = []
    for n, o in zip(sizes, out):
        at = np.arange(o)
        begin, end = at * n // o, -(-(at + 1) * n // o)
        within = np.arange((end - begin).max())
        lines.append(np.minimum(begin[:, None] + within, end[:, None] - 1))
    places = lines[0]
    for n, line in zip(sizes[1:], lines[1:]):
        inner = places[:, None, :, None] * n + line[None, :, None, :]
        places = inner.reshape(len(places) * len(line), -1)
    values, index = _largest(input, rank, _indices(places, input), out)
    return (values, index) if return_indices else values


@of_tensors
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Returns the largest elements of `output_size` windows that together cover the spatial axis.

    Window i of n begins at `floor(i * length / n)` and ends before `ceil((i + 1) * length / n)`. None keeps
    an axis.

    Args:
        input: `(n, c, length)` or `(c, length)`.
        output_size: the number of windows along each axis, or one number for all.
        return_indices: return the pair of maxima and of their positions in the flattened spatial axes.

    Raises:
        ShapeError: for another number of axes, or an empty one.
        ValueError: for a size below 1.

    Example:
        >>> wg.nn.functional.adaptive_max_pool1d(wg.tensor([[[1.0, 2.0, 4.0, 3.0]]]), 2)
        tensor([[[2., 4.]]])
    """
    return _adaptive(1, input, output_size, return_indices)


@of_tensors
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Returns `adaptive_max_pool1d` over two spatial axes of `input`, with its `return_indices`;
    `output_size` is one number or a pair.

    Example:
        >>> wg.nn.functional.adaptive_max_pool2d(wg.arange(16.0).reshape(1, 4, 4), 2)
        tensor([[[ 5.,  7.],
                 [13., 15.]]])
    """
    return _adaptive(2, input, output_size, return_indices)


@of_tensors
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Returns `adaptive_max_pool1d` over three spatial axes of `input`, with its `return_indices`;
    `output_size` is one number or three.

    Example:
        >>> wg.nn.functional.adaptive_max_pool3d(wg.ones(1, 4, 4, 4), 2).shape
        (1, 2, 2, 2)
    """
    return _adaptive(3, input, output_size, return_indices)


def _starts(size: int, kernel: int, out: int, u: Tensor) -> Tensor:
    """Where windows begin: steps of one of two lengths, in an order that the number `u` in [0, 1) chooses."""
    at = _core.arange(0, out, dtype=u.dtype, device=u.device)
    alpha = (size - kernel) / (out - 1) if out > 1 else 0.0
    u = u.unsqueeze(-1)
    found = ((at + u) * alpha).floor() - (u * alpha).floor()
    # The last window always ends where the axis does.
    return found.masked_fill(at == out - 1, size - kernel).to(index_dtype(u))


def _chosen(name: str, samples: Tensor, lead: tuple[int, ...], rank: int) -> Tensor:
    """Given random numbers `(images, channels, rank)`, of which the first images use the first."""
    images = lead[0] if len(lead) == 2 else 1
    fits = samples.ndim == 3 and samples.shape[0] >= images and tuple(samples.shape[1:]) == (lead[-1], rank)
    if not fits:
        raise _core.ShapeError(
            f"{name}: random samples of shape {tuple(samples.shape)}, expected {(images, lead[-1], rank)}, "
            "or more of the first axis"
        )
    return samples.narrow(0, 0, images).reshape(*lead, rank)


def _fractional(
    rank: int,
    input: Tensor,
    kernel_size: Size,
    output_size: Any,
    output_ratio: Any,
    return_indices: bool,
    samples: Tensor | None,
) -> Any:
    name = f"fractional_max_pool{rank}d"
    _check_rank(name, input, rank)
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{name}: give either output_size or output_ratio")
    sizes = list(input.shape[input.ndim - rank :])
    kernel = _each(name, "kernel_size", kernel_size, rank)
    if output_size is None:
        ratios = _each(name, "output_ratio", output_ratio, rank)
        output_size = [int(n * ratio) for n, ratio in zip(sizes, ratios)]
    out = _each(name, "output_size", output_size, rank)
    for n, k, o in zip(sizes, kernel, out):
        if not (1 <= k <= n and 1 <= o <= n - k + 1):
            raise ValueError(
                f"{name}: {o} windows of {k} do not fit an axis of {n}; from 1 to {max(n - k + 1, 0)} of "
                f"them do"
            )
    lead = tuple(input.shape[: input.ndim - rank])
    if samples is None:
        samples = _core.rand(*lead, rank, dtype=_core.float32, device=input.device)
    else:
        samples = _chosen(name, samples, lead, rank)
    # With two axes the first number is that of the last axis.
    order = [1, 0] if rank == 2 else list(range(rank))
    places = None
    for axis, (n, k, o) in enumerate(zip(sizes, kernel, out)):
        begin = _starts(n, k, o, samples.select(-1, order[axis]))
        window = begin.unsqueeze(-1) + _core.arange(0, k, dtype=begin.dtype, device=begin.device)
        if places is None:
            places = window
            continue
        rows = places.unsqueeze(-2).unsqueeze(-1) * n + window.unsqueeze(-3).unsqueeze(-2)
        places = rows.reshape(*lead, rows.shape[-4] * o, rows.shape[-2] * k)
    assert places is not None
    values, index = _largest(input, rank, places, out)
    return (values, index) if return_indices else values


@of_tensors
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Size,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Returns the largest elements of windows at random steps, so many that the output has a given size
    (Graham 2014).

    Args:
        input: `(n, c, height, width)` or `(c, height, width)`.
        kernel_size: the lengths of a window.
        output_size: the number of windows along each axis; either this or the next.
        output_ratio: that number as a share of the length.
        return_indices: return the pair of maxima and of their positions in the flattened spatial axes.
        _random_samples: the numbers in [0, 1) that choose the steps, `(n, c, 2)`, of the width, then of the
            height; n is 1 for one image, and may be more than the images.

    Raises:
        ShapeError: for another number of axes.
        ValueError: for windows that do not fit.

    Example:
        >>> wg.nn.functional.fractional_max_pool2d(wg.ones(1, 1, 5, 5), 2, output_size=3).shape
        (1, 1, 3, 3)
    """
    return _fractional(2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


@of_tensors
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Size,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Returns `fractional_max_pool2d` over three spatial axes of `input` `(n, c, depth, height, width)`.

    `kernel_size`, `output_size`, `output_ratio` and `return_indices` are as there, one number or three;
    `_random_samples` `(n, c, 3)` has the numbers of depth, height and width.

    Example:
        >>> wg.nn.functional.fractional_max_pool3d(wg.ones(1, 1, 5, 5, 5), 2, output_size=3).shape
        (1, 1, 3, 3, 3)
    """
    return _fractional(3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def _unpool(
    rank: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None,
    padding: Size,
    output_size: Any,
) -> Tensor:
    name = f"max_unpool{rank}d"
    _check_rank(name, input, rank)
    if tuple(indices.shape) != tuple(input.shape):
        raise _core.ShapeError(
            f"{name}: indices of shape {tuple(indices.shape)}, expected {tuple(input.shape)} as the input"
        )
    kernel = _each(name, "kernel_size", kernel_size, rank)
    steps = kernel if stride is None else _each(name, "stride", stride, rank)
    pads = _each(name, "padding", padding, rank)
    lead = tuple(input.shape[: input.ndim - rank])
    natural = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(input.shape[len(lead) :], steps, pads, kernel)]
    out = natural if output_size is None else [int(n) for n in output_size][-rank:]
    if len(out) != rank or any(not n - s < o < n + s for o, n, s in zip(out, natural, steps)):
        raise ValueError(
            f"{name}: output_size {tuple(output_size)} cannot come from input of shape {tuple(input.shape)}; "
            f"each length is less than one stride from {tuple(natural)}"
        )
    count = math.prod(out)
    indices = not_negative(name, "index", indices, count, "places")
    empty = _core.zeros((*lead, count), dtype=input.dtype, device=input.device)
    placed = empty.scatter(len(lead), indices.flatten(len(lead)), input.flatten(len(lead)))
    return placed.reshape(*lead, *out)


@of_tensors
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Any = None,
) -> Tensor:
    """Returns zeros with the elements of `input` at the positions that `max_pool1d` returned.

    Args:
        input: maxima, `(n, c, length)` or `(c, length)`.
        indices: their positions in the flattened spatial axes. Of several at one place the last stays.
        kernel_size: the window of the pooling.
        stride: its steps, the window's length by default.
        padding: its padding.
        output_size: the spatial shape of what was pooled, where the window's numbers leave it open.

    Raises:
        ShapeError: for shapes that do not fit.
        ValueError: for a size that cannot have been pooled to this.
        IndexError: for a position outside.

    Example:
        >>> values, places = wg.nn.functional.max_pool1d(wg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2, return_indices=True)
        >>> wg.nn.functional.max_unpool1d(values, places, 2)
        tensor([[0., 3., 2., 0.]])
    """
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


@of_tensors
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Any = None,
) -> Tensor:
    """Returns `max_unpool1d` over two spatial axes.

    `input`, `indices`, `kernel_size`, `stride`, `padding` and `output_size` are as there, numbers or pairs.

    Example:
        >>> values, places = wg.nn.functional.max_pool2d(wg.arange(4.0).view(1, 2, 2), 2, return_indices=True)
        >>> wg.nn.functional.max_unpool2d(values, places, 2)
        tensor([[[0., 0.],
                 [0., 3.]]])
    """
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


@of_tensors
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Any = None,
) -> Tensor:
    """Returns `max_unpool1d` over three spatial axes.

    `input`, `indices`, `kernel_size`, `stride`, `padding` and `output_size` are as there, one number or
    three.

    Example:
        >>> values, places = wg.nn.functional.max_pool3d(wg.ones(1, 2, 2, 2), 2, return_indices=True)
        >>> wg.nn.functional.max_unpool3d(values, places, 2).sum()
        tensor(1.)
    """
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)
