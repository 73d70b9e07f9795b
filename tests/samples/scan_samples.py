"""Records of scans, order statistics and counting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
from support import Arg, Array, Case, Domain, Grid, Integers, Real, Source

from samples.sample import ANY, Table

SCANS = Table()
distinct = Grid(distinct=True)


def add(name: str, fn: Any, reference: Any, case: Callable[[Source], Case], **more: Any) -> None:
    """A record without axes of length 0, which most of these have no answer for."""
    SCANS.record(name, fn, reference, case, **{"rows": (), "empty": False, "scale": 8, **more})


def along(domain: Domain = ANY, keepdim: bool = False, **kwargs: Any) -> Callable[[Source], Case]:
    """One operand and an axis."""

    def case(s: Source) -> Case:
        shape = s.shape(1, 3, least=1)
        drawn = {"dim": s.axis(len(shape)), **kwargs}
        return Case((Arg(shape, domain),), {**drawn, "keepdim": s.flag()} if keepdim else drawn)

    return case


def method(name: str) -> Callable[..., Any]:
    """The method of this name; a pair of results as a tuple."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        out = getattr(x, name)(*args, **kwargs)
        return tuple(out) if isinstance(out, tuple) else out

    return call


def kept(x: Array, dim: int, keepdim: bool) -> Array:
    return np.expand_dims(x, dim) if keepdim else x


# ---- scans ----

FACTORS = Real(-1.5, 1.5)
add(
    "cumprod",
    method("cumprod"),
    lambda x, dim: np.cumprod(x, dim),
    along(FACTORS),
    rows=("CumProd", "Recurrence"),
)
add(
    "cumprod_with_zeros",
    method("cumprod"),
    lambda x, dim: np.cumprod(x, dim),
    along(Grid(step=1.0, steps=1)),
    rows=("CumProd", "Recurrence"),
    integers=True,
)


def recurrence_case(s: Source) -> Case:
    shape = s.shape(1, 3, least=1)
    decay = tuple(n if s.flag() else 1 for n in shape)
    return Case((Arg(shape), Arg(decay, FACTORS)), {"dim": s.axis(len(shape)), "reverse": s.flag()})


def recurrence(x: Array, decay: Array, dim: int, reverse: bool) -> Array:
    x, decay = (np.moveaxis(a, dim, 0) for a in np.broadcast_arrays(x, decay))
    out = np.array(x, dtype=np.float64)
    steps = range(len(x) - 2, -1, -1) if reverse else range(1, len(x))
    for i in steps:
        out[i] += decay[i] * out[i + 1 if reverse else i - 1]
    return np.moveaxis(out, 0, dim)


add("linear_recurrence", method("linear_recurrence"), recurrence, recurrence_case, rows=("Recurrence",))


def running(ufunc: Any) -> Callable[..., Any]:
    def reference(x: Array, dim: int) -> tuple[Array, Array]:
        top = ufunc.accumulate(x, dim)
        at = np.arange(x.shape[dim]).reshape([-1 if k == dim % x.ndim else 1 for k in range(x.ndim)])
        return top, np.maximum.accumulate(np.where(x == top, at, 0), dim)

    return reference


add("cummax", method("cummax"), running(np.maximum), along(distinct), rows=("ArgScan",))
add("cummin", method("cummin"), running(np.minimum), along(distinct), rows=("ArgScan",))
add(
    "logcumsumexp",
    method("logcumsumexp"),
    lambda x, dim: np.logaddexp.accumulate(x, dim),
    along(Real(-20, 20)),
)

# ---- order statistics ----


def kth(x: Array, k: int, dim: int, keepdim: bool) -> tuple[Array, Array]:
    order = np.argsort(x, dim, kind="stable")
    index = np.take(order, [k - 1], dim)
    values = np.take_along_axis(x, index, dim)
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


def kth_case(s: Source) -> Case:
    shape = s.shape(1, 3, least=1)
    axis = s.axis(len(shape))
    return Case((Arg(shape, distinct),), {"k": s.integer(1, shape[axis]), "dim": axis, "keepdim": s.flag()})


def median(x: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    return kth(x, (x.shape[dim] + 1) // 2, dim, keepdim)


add("kthvalue", method("kthvalue"), kth, kth_case)
add("median", method("median"), median, along(distinct, keepdim=True))
add("nanmedian", method("nanmedian"), median, along(distinct, keepdim=True))
add(
    "mode",
    method("mode"),
    lambda x, dim, keepdim: tuple(kept(a, dim, keepdim) for a in most_frequent(x, dim)),
    along(Integers(0, 2), keepdim=True),
    order=0,
)


def most_frequent(x: Array, dim: int) -> tuple[Array, Array]:
    def one(line: Array) -> Array:
        values, counts = np.unique(line, return_counts=True)
        best = values[counts.argmax()]
        return np.array([best, np.flatnonzero(line == best)[-1]])

    both = np.apply_along_axis(one, dim, x)
    return np.take(both, 0, dim), np.take(both, 1, dim)


def quantile_case(s: Source) -> Case:
    shape = s.shape(1, 3, least=1)
    q = [s.integer(0, 8) / 8 for _ in range(s.integer(1, 3))]
    return Case(
        (Arg(shape, distinct),),
        {
            "q": q[0] if s.flag() else q,
            "dim": s.choice([None, s.axis(len(shape))]),
            "keepdim": s.flag(),
            "interpolation": s.choice(["linear", "lower", "higher", "midpoint", "nearest"]),
        },
    )


def quantile(x: Array, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Array:
    return np.quantile(x, q, axis=dim, keepdims=keepdim, method=interpolation)


def call_quantile(name: str) -> Callable[..., Any]:
    def call(x: Any, q: Any, **kwargs: Any) -> Any:
        of_x = {"dtype": x.dtype, "device": x.device}
        return getattr(x, name)(wg.tensor(q, **of_x) if isinstance(q, list) else q, **kwargs)

    return call


add("quantile", call_quantile("quantile"), quantile, quantile_case)
add("nanquantile", call_quantile("nanquantile"), quantile, quantile_case)

# ---- distinct elements, searching, counting ----


def unique(x: Any) -> Any:
    return wg.unique(x, return_inverse=True, return_counts=True)


def numpy_unique(x: Array) -> tuple[Array, ...]:
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return values, inverse.reshape(x.shape), counts


def unique_rows(x: Any) -> Any:
    return wg.unique(x, dim=0)


def vectors(domain: Domain) -> Callable[[Source], Case]:
    return lambda s: Case((Arg((s.integer(1, 6),), domain),))


add("unique", unique, numpy_unique, lambda s: Case((Arg(s.shape(1, 2), Grid(steps=2)),)), vmap=False, order=0)
add(
    "unique_dim",
    unique_rows,
    lambda x: np.unique(x, axis=0),
    lambda s: Case((Arg((s.integer(1, 5), 2), Grid(steps=1)),)),
    vmap=False,
    order=0,
)
add(
    "unique_consecutive",
    wg.unique_consecutive,
    lambda x: x[np.r_[True, x[1:] != x[:-1]]],
    vectors(Grid(steps=1)),
    vmap=False,
    order=0,
)
add(
    "searchsorted",
    lambda a, x, **kw: wg.searchsorted(a.sort(-1).values, x, **kw),
    lambda a, x, right: np.searchsorted(np.sort(a), x, "right" if right else "left"),
    lambda s: Case((Arg((s.integer(1, 6),), Grid()), Arg(s.shape(0, 2), Grid())), {"right": s.flag()}),
    rows=("SearchSorted",),
    order=0,
)
add(
    "bucketize",
    lambda x, edges: wg.bucketize(x, edges.sort().values),
    lambda x, edges: np.digitize(x, np.sort(edges), right=True),
    lambda s: Case((Arg(s.shape(0, 2), Grid()), Arg((s.integer(1, 4),), Grid()))),
    order=0,
)
add(
    "bincount",
    lambda x, w: wg.bincount(x, w, minlength=5),
    lambda x, w: np.bincount(x, w, minlength=5),
    lambda s: Case((Arg((n := s.integer(1, 6),), Integers(0, 7)), Arg((n,)))),
    vmap=False,
)
add(
    "histc",
    lambda x: x.histc(4, -2, 2),
    lambda x: np.histogram(x, 4, (-2, 2))[0].astype(np.float64),
    lambda s: Case((Arg(s.shape(0, 2), Real(-3, 3)),)),
    order=0,
)
add(
    "histogram",
    lambda x, w: tuple(wg.histogram(x, 4, range=(-2.0, 2.0), weight=w)),
    lambda x, w: np.histogram(x, 4, (-2, 2), weights=w),
    lambda s: Case((Arg((n := s.integer(1, 6),), Real(-3, 3)), Arg((n,)))),
    order=0,
    vmap=False,
)
