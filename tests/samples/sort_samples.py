"""Records of sorting: the order along an axis, the sorted values, the first few of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from support import Arg, Array, Case, Domain, Grid, Source

from samples.sample import Table

SORTING = Table()
add = SORTING.record
distinct = Grid(distinct=True)


def stable_order(x: Array, dim: int, descending: bool) -> Array:
    """Positions in sorted order; equal elements keep theirs."""
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    backwards = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
    return x.shape[dim] - 1 - np.flip(backwards, dim)


def sort_case(domain: Domain) -> Callable[[Source], Case]:
    """An axis and a direction."""

    def case(s: Source) -> Case:
        shape = s.shape(1, 3)
        return Case((Arg(shape, domain),), {"dim": s.axis(len(shape)), "descending": s.flag()})

    return case


def topk_case(s: Source) -> Case:
    shape = s.shape(1, 3)
    axis = s.axis(len(shape))
    return Case((Arg(shape, distinct),), {"k": s.integer(0, shape[axis]), "dim": axis, "largest": s.flag()})


def sort_reference(x: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    order = stable_order(x, dim, descending)
    return np.take_along_axis(x, order, dim), order


def topk_reference(x: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    order = np.take(stable_order(x, dim, largest), np.arange(k), dim)
    return np.take_along_axis(x, order, dim), order


add(
    "argsort",
    lambda x, **kw: x.argsort(**kw),
    stable_order,
    sort_case(Grid(steps=2)),
    rows=("ArgSort",),
    order=0,
    integers=True,
)
add(
    "sort",
    lambda x, **kw: tuple(x.sort(**kw)),
    sort_reference,
    sort_case(distinct),
    rows=("ArgSort", "Gather"),
)
add(
    "topk",
    lambda x, **kw: tuple(x.topk(**kw)),
    topk_reference,
    topk_case,
    rows=("ArgSort", "Gather"),
)
