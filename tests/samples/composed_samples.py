"""Records of the operations in `wengert.composed`: functions of elements, shapes, products, moments,
scattering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
from scipy import linalg, special
from support import Arg, Array, Case, Domain, Grid, Integers, Real, Source, Truth

from samples.sample import ANY, Table

COMPOSED = Table()
distinct = Grid(distinct=True)


def add(name: str, fn: Any, reference: Any, case: Callable[[Source], Case], **more: Any) -> None:
    """A record that covers no entry of the compiled list unless it says so."""
    COMPOSED.record(name, fn, reference, case, **{"rows": (), "empty": False, "scale": 8, **more})


def broadcast(*domains: Domain, **kwargs: Any) -> Callable[[Source], Case]:
    """Operands that broadcast together."""
    return lambda s: Case(tuple(Arg(x, d) for x, d in zip(s.broadcast(len(domains)), domains)), kwargs)


def of_one_rank(shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Shapes with axes of length 1 in front, so that all have as many."""
    rank = max(len(shape) for shape in shapes)
    return [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]


def shaped(domain: Domain = ANY, low: int = 0, high: int = 3, **kwargs: Any) -> Callable[[Source], Case]:
    """One operand of any shape."""
    return lambda s: Case((Arg(s.shape(low, high, least=1), domain),), kwargs)


# ---- elements ----

add("lerp", wg.lerp, lambda x, y, w: x + w * (y - x), broadcast(ANY, ANY, ANY))
add(
    "addcmul",
    lambda x, a, b: wg.addcmul(x, a, b, value=0.5),
    lambda x, a, b: x + 0.5 * a * b,
    broadcast(ANY, ANY, ANY),
)
add(
    "addcdiv",
    lambda x, a, b: wg.addcdiv(x, a, b, value=0.5),
    lambda x, a, b: x + 0.5 * a / b,
    broadcast(ANY, ANY, Real(0.5, 2)),
)
add("ldexp", wg.ldexp, lambda x, k: np.ldexp(x, k), broadcast(ANY, Integers(-2, 3)))
add("logaddexp2", wg.logaddexp2, np.logaddexp2, broadcast(ANY, ANY))
add("logit", wg.logit, special.logit, shaped(Real(0.1, 0.9)), rows=("logit",))
add("signbit", wg.signbit, np.signbit, shaped(Grid(offset=0.1)), order=0)
add("isposinf", wg.isposinf, np.isposinf, shaped(), order=0)
add("isneginf", wg.isneginf, np.isneginf, shaped(), order=0)
add("lcm", wg.lcm, np.lcm, broadcast(Integers(-12, 12), Integers(-12, 12)), order=0)
add("deg2rad", wg.deg2rad, np.deg2rad, shaped())
add("rad2deg", wg.rad2deg, np.rad2deg, shaped())
add("nan_to_num", wg.nan_to_num, np.nan_to_num, shaped())

# ---- shapes ----


def repeat_case(s: Source) -> Case:
    shape = s.shape(1, 3, least=1)
    return Case((Arg(shape),), {"repeats": s.integer(0, 3), "dim": s.axis(len(shape))})


def counted_case(s: Source) -> Case:
    n = s.integer(1, 4)
    return Case((Arg((n, 2)),), {"repeats": [s.integer(0, 3) for _ in range(n)], "dim": 0})


def numpy_repeat(x: Array, repeats: Any, dim: int) -> Array:
    return np.repeat(x, repeats, dim)


add("repeat_interleave", lambda x, **kw: x.repeat_interleave(**kw), numpy_repeat, repeat_case)
add("repeat_interleave_counts", lambda x, **kw: x.repeat_interleave(**kw), numpy_repeat, counted_case)
add(
    "rot90",
    lambda x, k, dims: x.rot90(k, dims),
    lambda x, k, dims: np.rot90(x, k, dims),
    lambda s: Case(
        (Arg(s.shape(2, 3, least=1)),), {"k": s.integer(-2, 5), "dims": (0, 1) if s.flag() else (1, 0)}
    ),
)
add(
    "diag_embed",
    lambda x, offset: x.diag_embed(offset),
    lambda x, offset: np.apply_along_axis(np.diag, -1, x, offset),
    lambda s: Case((Arg(s.shape(1, 2, least=1)),), {"offset": s.integer(-2, 2)}),
)


def unfold_case(s: Source) -> Case:
    shape = s.shape(1, 3, least=1)
    axis = s.axis(len(shape))
    return Case(
        (Arg(shape),), {"dimension": axis, "size": s.integer(1, shape[axis]), "step": s.integer(1, 3)}
    )


def windows(x: Array, dimension: int, size: int, step: int) -> Array:
    dimension %= x.ndim
    all_of_them = np.lib.stride_tricks.sliding_window_view(x, size, dimension)
    return np.moveaxis(np.moveaxis(all_of_them, dimension, 0)[::step], 0, dimension)


add("windows", lambda x, **kw: x.unfold(**kw), windows, unfold_case)
add(
    "as_strided",
    lambda x: x.as_strided((3, 2), (1, 2), 1),
    lambda x: x[np.add.outer(np.arange(3), 2 * np.arange(2)) + 1],
    lambda s: Case((Arg((s.integer(6, 8),)),)),
)
add(
    "block_diag",
    wg.block_diag,
    linalg.block_diag,
    lambda s: Case(tuple(Arg((s.integer(1, 3), s.integer(1, 3))) for _ in range(s.integer(1, 3)))),
)
add(
    "cartesian_prod",
    wg.cartesian_prod,
    lambda x, y: np.stack([a.ravel() for a in np.meshgrid(x, y, indexing="ij")], 1),
    lambda s: Case((Arg((s.integer(1, 3),)), Arg((s.integer(1, 3),)))),
)
add(
    "combinations",
    wg.combinations,
    lambda x: np.array([[x[i], x[j]] for i in range(len(x)) for j in range(i + 1, len(x))]).reshape(-1, 2),
    lambda s: Case((Arg((s.integer(1, 4),)),)),
)
add(
    "vander", lambda x: wg.vander(x, 3), lambda x: np.vander(x, 3), lambda s: Case((Arg((s.integer(1, 4),)),))
)
add("atleast_3d", wg.atleast_3d, np.atleast_3d, shaped())
add(
    "dstack",
    lambda x, y: wg.dstack([x, y]),
    lambda x, y: np.dstack([x, y]),
    lambda s: Case((Arg(a := s.shape(0, 3)), Arg(a))),
)
add(
    "column_stack",
    lambda x, y: wg.column_stack([x, y]),
    lambda x, y: np.column_stack([x, y]),
    lambda s: Case((Arg((n := s.integer(1, 4),)), Arg((n, 2)))),
)

# ---- products ----


def matrices(s: Source) -> tuple[int, int, int, int]:
    return s.integer(1, 3), s.integer(1, 3), s.integer(1, 3), s.integer(1, 3)


def batched_case(s: Source) -> Case:
    b, m, k, n = matrices(s)
    return Case((Arg((m, n)), Arg((b, m, k)), Arg((b, k, n))))


def whole_batch_case(s: Source) -> Case:
    b, m, k, n = matrices(s)
    return Case((Arg((b, m, n)), Arg((b, m, k)), Arg((b, k, n))))


add(
    "baddbmm",
    lambda x, a, b: wg.baddbmm(x, a, b, beta=0.5),
    lambda x, a, b: 0.5 * x + a @ b,
    whole_batch_case,
)
add(
    "addbmm",
    lambda x, a, b: wg.addbmm(x, a, b, alpha=0.5),
    lambda x, a, b: x + 0.5 * (a @ b).sum(0),
    batched_case,
    scale=16,
)
add(
    "addmv",
    wg.addmv,
    lambda x, a, v: x + a @ v,
    lambda s: Case((Arg((m := s.integer(1, 3),)), Arg((m, k := s.integer(1, 3))), Arg((k,)))),
)
add(
    "addr",
    wg.addr,
    lambda x, a, b: x + np.outer(a, b),
    lambda s: Case((Arg((m := s.integer(1, 3), n := s.integer(1, 3))), Arg((m,)), Arg((n,)))),
)
add("vdot", wg.vdot, np.vdot, lambda s: Case((Arg((n := s.integer(1, 4),)), Arg((n,)))))
add(
    "inner",
    wg.inner,
    np.inner,
    lambda s: Case((Arg((*s.shape(0, 2), n := s.integer(1, 3))), Arg((*s.shape(0, 1), n)))),
)
add("kron", wg.kron, np.kron, lambda s: Case((Arg(s.shape(0, 2)), Arg(s.shape(0, 2)))))
add(
    "cross",
    lambda x, y: wg.cross(x, y, dim=-1),
    np.cross,
    lambda s: Case(tuple(Arg((*shape, 3)) for shape in of_one_rank(s.broadcast(2)))),
    rows=("Cross",),
)
add(
    "chain_matmul",
    wg.chain_matmul,
    lambda *x: np.linalg.multi_dot(x),
    lambda s: Case(
        (Arg((s.integer(1, 3), a := s.integer(1, 4))), Arg((a, b := s.integer(1, 4))), Arg((b, 2)))
    ),
    scale=32,
)

# ---- moments ----


def axis_case(s: Source) -> Case:
    shape = s.shape(1, 3, least=1)
    return Case((Arg(shape, distinct),), {"dim": s.axis(len(shape)), "keepdim": s.flag()})


def both(first: Any, second: Any) -> Callable[..., Any]:
    return lambda x, dim, keepdim: (
        first(x, axis=dim, keepdims=keepdim),
        second(x, axis=dim, keepdims=keepdim),
    )


add("aminmax", lambda x, **kw: tuple(wg.aminmax(x, **kw)), both(np.min, np.max), axis_case)
add(
    "var_mean", lambda x, **kw: wg.var_mean(x, correction=0, **kw), both(np.var, np.mean), axis_case, scale=16
)
add(
    "std_mean",
    lambda x, **kw: wg.std_mean(x, correction=0, **kw),
    both(np.std, np.mean),
    lambda s: Case((Arg((2, s.integer(2, 4)), distinct),), {"dim": 1, "keepdim": s.flag()}),
    scale=32,
)
add("nansum", wg.nansum, lambda x, dim, keepdim: np.nansum(x, axis=dim, keepdims=keepdim), axis_case)
add("nanmean", wg.nanmean, lambda x, dim, keepdim: np.nanmean(x, axis=dim, keepdims=keepdim), axis_case)
add(
    "dist",
    wg.dist,
    lambda x, y: np.sqrt(((x - y) ** 2).sum()),
    lambda s: Case((Arg((n := s.integer(1, 4),), Real(1, 2)), Arg((n,), Real(-2, -1)))),
)
add("cov", wg.cov, np.cov, lambda s: Case((Arg((s.integer(2, 3), s.integer(3, 5))),)), scale=32)
add(
    "corrcoef",
    wg.corrcoef,
    np.corrcoef,
    lambda s: Case((Arg((s.integer(2, 3), s.integer(4, 6))),)),
    scale=64,
    order=1,
)
add(
    "trapezoid",
    wg.trapezoid,
    np.trapezoid,
    lambda s: Case((Arg((2, n := s.integer(2, 5))), Arg((n,)))),
)
add(
    "cumulative_trapezoid",
    lambda y: wg.cumulative_trapezoid(y, dx=0.5),
    lambda y: np.cumsum((y[..., 1:] + y[..., :-1]) / 4, -1),
    lambda s: Case((Arg((2, s.integer(2, 5))),)),
)

# ---- scattering ----


def scatter_case(domain: Domain, **kwargs: Any) -> Callable[[Source], Case]:
    def case(s: Source) -> Case:
        shape = s.shape(1, 3, least=1)
        axis = s.axis(len(shape))
        index = tuple(s.integer(1, 5) if k == axis else s.integer(1, n) for k, n in enumerate(shape))
        drawn = {"dim": axis, **{name: s.choice(options) for name, options in kwargs.items()}}
        return Case((Arg(shape, domain), Arg(index, Integers(0, shape[axis] - 1)), Arg(index, domain)), drawn)

    return case


def scattered(x: Array, index: Array, source: Array, dim: int) -> Array:
    out = x.copy()
    for at in np.ndindex(*index.shape):
        out[tuple(int(index[at]) if k == dim % x.ndim else i for k, i in enumerate(at))] = source[at]
    return out


def reduced(x: Array, index: Array, source: Array, dim: int, reduce: str, include_self: bool) -> Array:
    met: dict[tuple[int, ...], list[float]] = {}
    for at in np.ndindex(*index.shape):
        place = tuple(int(index[at]) if k == dim % x.ndim else i for k, i in enumerate(at))
        met.setdefault(place, [x[place]] if include_self else []).append(source[at])
    fold = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[reduce]
    out = x.copy()
    for place, values in met.items():
        out[place] = fold(values)
    return out


def call(name: str) -> Callable[..., Any]:
    return lambda x, index, source, dim, **kw: getattr(x, name)(dim, index, source, **kw)


add("scatter", call("scatter"), scattered, scatter_case(ANY), rows=("ScatterLast",))
FOLDS = {"reduce": ["sum", "prod", "mean"], "include_self": [True, False]}
add("scatter_reduce", call("scatter_reduce"), reduced, scatter_case(ANY, **FOLDS), scale=16)
add(
    "scatter_extremes",
    call("scatter_reduce"),
    reduced,
    scatter_case(Real(-3, 3), reduce=["amax", "amin"], include_self=[True, False]),
    rows=("ScatterExtreme",),
)


def rows_case(s: Source) -> Case:
    rows, count = s.integer(1, 4), s.integer(1, 5)
    return Case((Arg((rows, 2)), Arg((count,), Integers(0, rows - 1)), Arg((count, 2))))


def assigned(x: Array, index: Array, y: Any) -> Array:
    out = x.copy()
    out[index] = y
    return out


def added(x: Array, index: Array, y: Array) -> Array:
    out = x.copy()
    np.add.at(out, index, y)
    return out


def masked(x: Array, mask: Array, source: Array) -> Array:
    out = x.copy()
    out[mask] = source[: mask.sum()]
    return out


add("index_copy", lambda x, i, y: x.index_copy(0, i, y), assigned, rows_case)
add("index_fill", lambda x, i, y: x.index_fill(0, i, 2.5), lambda x, i, y: assigned(x, i, 2.5), rows_case)
add("index_put_add", lambda x, i, y: x.index_put((i,), y, accumulate=True), added, rows_case)
add(
    "masked_scatter",
    lambda x, mask, y: x.masked_scatter(mask, y),
    masked,
    lambda s: Case((Arg(shape := s.shape(1, 2, least=1)), Arg(shape, Truth()), Arg((int(np.prod(shape)),)))),
)
