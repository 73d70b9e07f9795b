"""Convolution and pooling by definition, in NumPy: one slice of the padded input per element of the
window."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Size = int | Sequence[int]


def each(value: Size, rank: int) -> tuple[int, ...]:
    """One number for each axis."""
    return (value,) * rank if isinstance(value, int) else tuple(value)


def windows(
    x: Array, kernel: Size, stride: Size, padding: Any, dilation: Size, fill: float = 0.0, counts: Any = None
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """For each element of the windows over the last axes: its coordinates, and its value in all windows.

    `padding` has a number or a pair for each axis; `counts` gives the number of windows along each axis.
    """
    rank = len(tuple(kernel)) if not isinstance(kernel, int) else 1
    kernel, stride, dilation = (each(v, rank) for v in (kernel, stride, dilation))
    pads = [(p, p) if isinstance(p, int) else tuple(p) for p in padding]
    lengths = x.shape[x.ndim - rank :]
    room = [n + a + b - d * (k - 1) for n, (a, b), d, k in zip(lengths, pads, dilation, kernel, strict=True)]
    counts = counts or [(r - 1) // s + 1 for r, s in zip(room, stride, strict=True)]
    more = [max(0, (c - 1) * s + 1 - r) for c, s, r in zip(counts, stride, room, strict=True)]
    widths = [(0, 0)] * (x.ndim - rank) + [(a, b + m) for (a, b), m in zip(pads, more, strict=True)]
    x = np.pad(x, widths, constant_values=fill)
    for k in product(*(range(n) for n in kernel)):
        at = [
            slice(i * d, i * d + (c - 1) * s + 1, s)
            for i, d, c, s in zip(k, dilation, counts, stride, strict=True)
        ]
        yield k, x[(..., *at)]


def pairs(padding: Any, kernel: Sequence[int], dilation: Sequence[int]) -> list[tuple[int, int]]:
    """What `padding` means at both ends of each axis."""
    if padding == "valid":
        padding = 0
    if padding == "same":
        totals = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return [(t // 2, t - t // 2) for t in totals]
    return [(p, p) for p in each(padding, len(kernel))]


def conv(
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    stride: Size = 1,
    padding: Any = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Array:
    """Convolution over as many axes as the weight has beyond two."""
    rank = w.ndim - 2
    if x.ndim == rank + 1:
        return conv(x[None], w, b, stride=stride, padding=padding, dilation=dilation, groups=groups)[0]
    dilation, kernel = each(dilation, rank), w.shape[2:]
    grouped = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    total: Any = 0.0
    for k, part in windows(x, kernel, each(stride, rank), pairs(padding, kernel, dilation), dilation):
        part = part.reshape(x.shape[0], groups, w.shape[1], *part.shape[2:])
        total = total + np.einsum("ngc...,goc->ngo...", part, grouped[(..., *k)])
    out = total.reshape(x.shape[0], w.shape[0], *total.shape[3:])
    return out if b is None else out + b.reshape(-1, *[1] * rank)


def conv_transpose(
    y: Array,
    w: Array,
    b: Array | None = None,
    *,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Array:
    """The transpose of `conv` with respect to its input: every element adds a window."""
    rank = w.ndim - 2
    if y.ndim == rank + 1:
        more = {"output_padding": output_padding, "groups": groups, "dilation": dilation}
        return conv_transpose(y[None], w, b, stride=stride, padding=padding, **more)[0]
    stride, padding, dilation = (each(v, rank) for v in (stride, padding, dilation))
    extra = each(output_padding, rank)
    full = [
        (n - 1) * s + d * (k - 1) + 1 + max(e, 2 * p)
        for n, s, d, k, e, p in zip(y.shape[2:], stride, dilation, w.shape[2:], extra, padding, strict=True)
    ]
    lengths = [
        (n - 1) * s + d * (k - 1) + 1 + e - 2 * p
        for n, s, d, k, e, p in zip(y.shape[2:], stride, dilation, w.shape[2:], extra, padding, strict=True)
    ]
    grouped = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    from_groups = y.reshape(y.shape[0], groups, -1, *y.shape[2:])
    out = np.zeros((y.shape[0], groups * w.shape[1], *full))
    for k in product(*(range(n) for n in w.shape[2:])):
        part = np.einsum("ngo...,goc->ngc...", from_groups, grouped[(..., *k)])
        at = [
            slice(i * d, i * d + (n - 1) * s + 1, s)
            for i, d, n, s in zip(k, dilation, y.shape[2:], stride, strict=True)
        ]
        out[(..., *at)] += part.reshape(y.shape[0], -1, *y.shape[2:])
    out = out[(..., *[slice(p, p + n) for p, n in zip(padding, lengths, strict=True)])]
    return out if b is None else out + b.reshape(-1, *[1] * rank)


def pooled_lengths(x: Array, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> list[int]:
    """How many windows there are along each axis."""
    out = []
    lengths = x.shape[x.ndim - len(kernel) :]
    for n, k, s, p, d in zip(lengths, kernel, stride, padding, dilation, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = (-(-room // s) if ceil else room // s) + 1
        out.append(count - 1 if ceil and (count - 1) * s >= n + p else count)
    return out


def max_pool(
    x: Array, *, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool = False
) -> Array:
    """The maximum of every window; all attributes are tuples."""
    counts = pooled_lengths(x, kernel_size, stride, padding, dilation, ceil_mode)
    parts = windows(x, kernel_size, stride, padding, dilation, -np.inf, counts)
    return np.stack([part for _, part in parts]).max(0)


def avg_pool(
    x: Array,
    *,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """The average of every window; all attributes are tuples."""
    ones = (1,) * len(kernel_size)
    counts = pooled_lengths(x, kernel_size, stride, padding, ones, ceil_mode)
    sums = sum(part for _, part in windows(x, kernel_size, stride, padding, ones, 0.0, counts))
    marks = np.ones_like(x)
    if count_include_pad:
        widths = [(0, 0)] * (x.ndim - len(kernel_size)) + [(p, p) for p in padding]
        marks, padding = np.pad(marks, widths, constant_values=1.0), (0,) * len(kernel_size)
    return sums / sum(part for _, part in windows(marks, kernel_size, stride, padding, ones, 0.0, counts))


def adaptive_avg_pool(x: Array, *, output_size: Any) -> Array:
    """Averages of windows that together cover each axis."""
    for i, size in enumerate(output_size):
        axis = x.ndim - len(output_size) + i
        n = x.shape[axis]
        size = n if size is None else size
        parts = [
            np.take(x, range(k * n // size, -(-(k + 1) * n // size)), axis).mean(axis) for k in range(size)
        ]
        x = np.stack(parts, axis)
    return x


def unfold(x: Array, *, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Array:
    """Windows over the last two axes as columns."""
    parts = [part for _, part in windows(x, kernel_size, stride, padding, dilation)]
    columns = np.stack(parts, axis=x.ndim - 2)
    return columns.reshape(*x.shape[:-3], x.shape[-3] * len(parts), -1)
