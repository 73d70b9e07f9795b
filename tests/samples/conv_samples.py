"""Records of convolution, its transpose, pooling, and windows as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import references.conv_reference as reference
from support import Arg, Array, Case, Grid, Source
from wengert.nn import functional as F

from samples.sample import Table

CONVOLUTIONS = Table()
add = CONVOLUTIONS.record


def per_axis(s: Source, rank: int, low: int, high: int) -> Any:
    """One number for all axes, or one for each."""
    if s.flag():
        return s.integer(low, high)
    return tuple(s.integer(low, high) for _ in range(rank))


def conv_case(rank: int) -> Any:
    """A convolution over `rank` axes."""

    def case(s: Source) -> Case:
        groups, inputs, outputs = s.choice([1, 1, 2]), s.integer(1, 2), s.integer(1, 2)
        window = tuple(s.integer(1, 3) for _ in range(rank))
        dilation = per_axis(s, rank, 1, 2)
        padding = s.choice([0, 1, "same", "valid", tuple(s.integer(0, 2) for _ in range(rank))])
        stride = 1 if padding == "same" else per_axis(s, rank, 1, 2)
        steps = reference.each(dilation, rank)
        lengths = [d * (k - 1) + 1 + s.integer(0, 2) for d, k in zip(steps, window, strict=True)]
        front = (s.integer(1, 2),) if s.integer(0, 3) else ()
        args = [Arg((*front, groups * inputs, *lengths)), Arg((groups * outputs, inputs, *window))]
        if s.flag():
            args.append(Arg((groups * outputs,)))
        kwargs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        return Case(tuple(args), kwargs)

    return case


def transposed_case(rank: int) -> Any:
    """A transposed convolution over `rank` axes."""

    def case(s: Source) -> Case:
        groups, inputs, outputs = s.choice([1, 1, 2]), s.integer(1, 2), s.integer(1, 2)
        window = tuple(s.integer(1, 3) for _ in range(rank))
        stride, dilation = per_axis(s, rank, 1, 3), per_axis(s, rank, 1, 2)
        padding = s.choice([0, 0, 1])
        least = min(
            max(a, b)
            for a, b in zip(reference.each(stride, rank), reference.each(dilation, rank), strict=True)
        )
        front = (s.integer(1, 2),) if s.integer(0, 3) else ()
        lengths = [s.integer(3 if padding else 1, 3) for _ in range(rank)]
        args = [Arg((*front, groups * inputs, *lengths)), Arg((groups * inputs, outputs, *window))]
        if s.flag():
            args.append(Arg((groups * outputs,)))
        kwargs = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        return Case(tuple(args), {**kwargs, "output_padding": s.integer(0, least - 1)})

    return case


def pool_case(rank: int, dilated: bool, distinct: bool) -> Any:
    """Windows over `rank` axes."""

    def case(s: Source) -> Case:
        window = tuple(s.integer(1, 3) for _ in range(rank))
        dilation = tuple(s.integer(1, 2) if dilated else 1 for _ in range(rank))
        padding = tuple(s.integer(0, k // 2) for k in window)
        lengths = [d * (k - 1) + 1 + s.integer(0, 2) for d, k in zip(dilation, window, strict=True)]
        front = (s.integer(1, 2),) if s.integer(0, 3) else ()
        domain = Grid(distinct=True) if distinct else Grid()
        kwargs: dict[str, Any] = {
            "kernel_size": window,
            "stride": tuple(s.integer(1, 3) for _ in range(rank)),
            "padding": padding,
            "ceil_mode": s.flag(),
        }
        kwargs |= {"dilation": dilation} if dilated else {"count_include_pad": s.flag()}
        return Case((Arg((*front, s.integer(1, 2), *lengths), domain),), kwargs)

    return case


def adaptive_case(rank: int) -> Any:
    """Any number of windows, up to more than there are elements."""

    def case(s: Source) -> Case:
        shape = (s.integer(1, 2), s.integer(1, 2), *(s.integer(1, 5) for _ in range(rank)))
        return Case((Arg(shape),), {"output_size": tuple(s.choice([1, 2, 3, 6, None]) for _ in range(rank))})

    return case


def unfold_case(s: Source) -> Case:
    window, dilation = (tuple(s.integer(1, high) for _ in range(2)) for high in (3, 2))
    lengths = [d * (k - 1) + 1 + s.integer(0, 2) for d, k in zip(dilation, window, strict=True)]
    kwargs = {
        "kernel_size": window,
        "dilation": dilation,
        "padding": tuple(s.integer(0, 1) for _ in range(2)),
        "stride": tuple(s.integer(1, 2) for _ in range(2)),
    }
    front = (s.integer(1, 2),) if s.flag() else ()
    return Case((Arg((*front, s.integer(1, 2), *lengths)),), kwargs)


def fold_case(s: Source) -> Case:
    case = unfold_case(s)
    *front, height, width = case.args[0].shape
    columns = reference.unfold(np.zeros(case.args[0].shape), **case.kwargs)
    del front
    return Case((Arg(columns.shape),), {**case.kwargs, "output_size": (height, width)})


def fold(columns: Array, output_size: Any, **kwargs: Any) -> Array:
    """The transpose of `unfold`, from its matrix."""
    count = columns.shape[-2] // int(np.prod(kwargs["kernel_size"]))
    shape = (*columns.shape[:-2], count, *output_size)
    size = int(np.prod(shape))
    basis = np.eye(size).reshape(size, *shape)
    rows = np.stack([reference.unfold(e, **kwargs).ravel() for e in basis])
    return (rows @ columns.ravel()).reshape(shape)


CONV_ROWS = ("Conv", "ConvBias")
for rank in (1, 2, 3):
    more = {"empty": False, "scale": 16, "gpu_scale": 4.0}
    add(f"conv{rank}d", getattr(F, f"conv{rank}d"), reference.conv, conv_case(rank), rows=CONV_ROWS, **more)
    add(
        f"conv_transpose{rank}d",
        getattr(F, f"conv_transpose{rank}d"),
        reference.conv_transpose,
        transposed_case(rank),
        rows=CONV_ROWS,
        **more,
    )
    add(
        f"max_pool{rank}d",
        getattr(F, f"max_pool{rank}d"),
        reference.max_pool,
        pool_case(rank, dilated=True, distinct=True),
        rows=("MaxPool", "Maxima"),
        empty=False,
    )
    add(
        f"avg_pool{rank}d",
        getattr(F, f"avg_pool{rank}d"),
        reference.avg_pool,
        pool_case(rank, dilated=False, distinct=False),
        rows=CONV_ROWS,
        **more,
    )
    add(
        f"adaptive_avg_pool{rank}d",
        getattr(F, f"adaptive_avg_pool{rank}d"),
        reference.adaptive_avg_pool,
        adaptive_case(rank),
        rows=("Matmul",),
        **more,
    )
add("unfold", F.unfold, reference.unfold, unfold_case, rows=("Take",), empty=False)
add("fold", F.fold, fold, fold_case, rows=("TakeAdd",), empty=False, scale=4)
