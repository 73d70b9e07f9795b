"""Records of indexing: basic and advanced indices, masks, gather and scatter."""

from __future__ import annotations

from typing import Any

import numpy as np
import wengert as wg
from support import Arg, Array, Case, Integers, Source, Truth

from samples.sample import Table

INDEXING = Table()
add = INDEXING.record


def basic_index(s: Source, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Integers, slices with any step, `None` and `...`."""
    index: list[Any] = []
    for d in shape[: s.integer(0, len(shape))]:
        kind = s.integer(0, 3)
        if kind == 0 and d > 0:
            index.append(s.integer(-d, d - 1))
        elif kind == 1:
            index.append(slice(s.choice([None, s.integer(-d - 1, d + 1)]), None, s.choice([1, 2, -1, -2])))
        elif kind == 2:
            index.append(slice(s.integer(-d - 1, d + 1), s.integer(-d - 1, d + 1)))
        else:
            index.append(slice(None))
    for extra in (None, Ellipsis):
        if s.integer(0, 2) == 0:
            index.insert(s.integer(0, len(index)) if extra is None else len(index), extra)
    return tuple(index)


def getitem_case(s: Source) -> Case:
    shape = s.shape(0, 3)
    return Case((Arg(shape),), {"index": basic_index(s, shape)})


def advanced_case(s: Source) -> Case:
    shape = s.shape(2, 3, least=1)
    count = s.shape(0, 2, least=1)
    i, j = (Arg(count, Integers(-d, d - 1)) for d in (shape[0], shape[-1]))
    kind = s.choice(["first", "last", "both", "outer"])
    chosen = {
        "first": (i,),
        "last": (j,),
        "both": (i, Arg(count, Integers(-shape[1], shape[1] - 1))),
        "outer": (i, j),
    }
    return Case((Arg(shape), *chosen[kind]), {"kind": kind})


def advanced(x: Any, *index: Any, kind: str) -> Any:
    """NumPy's advanced indexing."""
    if kind == "first":
        return x[index[0]]
    if kind == "last":
        return x[..., index[0]]
    if kind == "both":
        return x[index[0], index[1]]
    return x[index[0], ..., index[1]]


def mask_case(s: Source) -> Case:
    shape = s.shape(1, 3)
    return Case((Arg(shape), Arg(shape[: s.integer(1, len(shape))], Truth())))


def index_select_case(s: Source) -> Case:
    shape = s.shape(1, 3, least=1)
    axis = s.axis(len(shape))
    return Case(
        (Arg(shape), Arg((s.integer(1, 5),), Integers(0, shape[axis] - 1, s.choice(["int64", "int32"])))),
        {"dim": axis},
    )


def gather_shapes(s: Source) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    shape = s.shape(1, 3, least=1)
    axis = s.axis(len(shape))
    index = [s.integer(1, d) for d in shape]
    index[axis] = s.integer(1, 4)
    return shape, tuple(index), axis


def gather_case(s: Source) -> Case:
    shape, index, axis = gather_shapes(s)
    return Case((Arg(shape), Arg(index, Integers(0, shape[axis] - 1))), {"dim": axis})


def gather_reference(x: Array, index: Array, dim: int) -> Array:
    kept = tuple(slice(None) if i == dim % x.ndim else slice(n) for i, n in enumerate(index.shape))
    return np.take_along_axis(x[kept], index, dim)


def scatter_case(s: Source) -> Case:
    shape, index, axis = gather_shapes(s)
    source = tuple(d + s.integer(0, 1) for d in index)
    return Case((Arg(shape), Arg(index, Integers(0, shape[axis] - 1)), Arg(source)), {"dim": axis})


def scatter_reference(x: Array, index: Array, source: Array, dim: int) -> Array:
    out = np.array(x)
    for at in np.ndindex(index.shape):
        to = list(at)
        to[dim] = index[at]
        out[tuple(to)] += source[at]
    return out


def embedding_case(s: Source) -> Case:
    rows, width = s.integer(1, 5), s.integer(1, 4)
    return Case((Arg(s.shape(0, 2), Integers(0, rows - 1)), Arg((rows, width))))


add("getitem", lambda x, index: x[index], lambda x, index: x[index], getitem_case, rows=("Slice",))
add("getitem_index", advanced, advanced, advanced_case, rows=("Take", "TakeAdd"), empty=False)
add(
    "getitem_mask",
    lambda x, mask: x[mask],
    lambda x, mask: x[mask],
    mask_case,
    rows=("Take", "TakeAdd"),
    vmap=False,
)
add(
    "index_select",
    lambda x, index, dim: x.index_select(dim, index),
    lambda x, index, dim: np.take(x, index, dim),
    index_select_case,
    rows=("Take", "TakeAdd"),
    empty=False,
)
add(
    "gather",
    lambda x, index, dim: x.gather(dim, index),
    gather_reference,
    gather_case,
    rows=("Gather", "ScatterAdd"),
    empty=False,
)
add(
    "scatter_add",
    lambda x, i, y, dim: x.scatter_add(dim, i, y),
    scatter_reference,
    scatter_case,
    rows=("ScatterAdd",),
    empty=False,
    scale=4,
)
add(
    "embedding",
    lambda i, w: wg.nn.functional.embedding(i, w),
    lambda i, w: w[i],
    embedding_case,
    rows=("Take", "TakeAdd"),
    empty=False,
)


def put_case(s: Source) -> Case:
    """Distinct places along an axis, and what goes there."""
    shape = s.shape(1, 3, least=1)
    axis = s.axis(len(shape))
    length = shape[axis]
    count = s.integer(1, length)
    start = s.integer(0, length - count)
    value = tuple(count if k == axis % len(shape) else n for k, n in enumerate(shape))
    return Case((Arg(shape), Arg(value)), {"dim": axis, "index": list(range(start, start + count))[::-1]})


def put_reference(x: Array, value: Array, dim: int, index: list[int]) -> Array:
    out = np.array(x)
    out[(slice(None),) * (dim % x.ndim) + (index,)] = value
    return out


add(
    "put_rows",
    lambda x, y, dim, index: x.index_copy(dim, wg.tensor(index, device=x.device), y),
    put_reference,
    put_case,
    rows=("PutRows", "IsLast"),
    empty=False,
    gpu=False,
)
