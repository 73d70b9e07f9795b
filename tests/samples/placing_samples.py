"""Records of operations in `wengert.composed` with places, parts, frames and PyTorch's further arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
from scipy import special
from support import Arg, Array, Case, Grid, Integers, Real, Source

from samples.sample import ANY, Table

PLACING = Table()
#: The reductions of `scatter_reduce` and `index_reduce`.
REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def add(name: str, fn: Any, reference: Any, case: Callable[[Source], Case], **more: Any) -> None:
    """A record that covers no entry of the compiled list unless it says so."""
    PLACING.record(name, fn, reference, case, **{"rows": (), "empty": False, "scale": 8, **more})


def matrix(low: int = 1, high: int = 4, domain: Any = ANY, **kwargs: Any) -> Callable[[Source], Case]:
    return lambda s: Case((Arg((s.integer(low, high), s.integer(low, high)), domain),), kwargs)


def broadcast(domain: Any) -> Callable[[Source], Case]:
    return lambda s: Case(tuple(Arg(x, domain) for x in s.broadcast(2)))


# ---- further arguments ----

pair = lambda s: Case(tuple(Arg(x) for x in s.broadcast(2)))
far = lambda s: Case((Arg((x := s.broadcast(2))[0], Grid(offset=0.1)), Arg(x[1], Real(2.1, 2.2))))
add("add_alpha", lambda x, y: wg.add(x, y, alpha=0.5), lambda x, y: x + 0.5 * y, pair)
add("sub_alpha", lambda x, y: wg.sub(x, y, alpha=2), lambda x, y: x - 2 * y, pair)
add("div_floor", lambda x, y: wg.div(x, y, rounding_mode="floor"), np.floor_divide, far, order=0)
add("div_trunc", lambda x, y: wg.div(x, y, rounding_mode="trunc"), lambda x, y: np.trunc(x / y), far, order=0)
add(
    "round_places",
    lambda x: wg.round(x, decimals=1),
    lambda x: np.round(x, 1),
    matrix(),
    order=0,
    dtypes=("float64", "float32"),
)
add(
    "diff_ends",
    lambda x, y: wg.diff(x, dim=0, prepend=y, append=1.0),
    lambda x, y: np.diff(x, axis=0, prepend=y, append=1.0),
    lambda s: Case((Arg((s.integer(1, 3), n := s.integer(1, 3))), Arg((2, n)))),
)
add(
    "norm_nuc",
    lambda x: x.norm("nuc"),
    lambda x: np.linalg.norm(x, "nuc"),
    lambda s: Case((Arg((2, 3), Grid(distinct=True)),)),
    dtypes=("float64", "float32"),
    gpu=False,
    scale=64,
    order=1,
)
add(
    "einsum_lists",
    lambda x, y: wg.einsum(x, [0, 1], y, [1, 2], [0, 2]),
    lambda x, y: x @ y,
    lambda s: Case((Arg((s.integer(1, 3), n := s.integer(1, 3))), Arg((n, 2)))),
)

# ---- elements ----

INTEGERS = Integers(-3, 3)
add("fmax_integers", wg.fmax, np.maximum, broadcast(INTEGERS), order=0)
add("fmin_integers", wg.fmin, np.minimum, broadcast(INTEGERS), order=0)
add("heaviside_integers", wg.heaviside, np.heaviside, broadcast(INTEGERS), order=0)
add(
    "mvlgamma",
    lambda x: wg.mvlgamma(x, 3),
    lambda x: special.multigammaln(x, 3),
    matrix(domain=Real(1.5, 6)),
    scale=32,
    order=1,
)

# ---- parts ----

add(
    "tensor_split",
    lambda x, **kw: wg.tensor_split(x, **kw),
    lambda x, indices_or_sections, dim: tuple(np.array_split(x, indices_or_sections, dim)),
    lambda s: Case(
        (Arg((s.integer(2, 5), 2)),),
        {"indices_or_sections": s.choice([1, 2, [1, 2], [2, 1], [-1, 7]]), "dim": 0},
    ),
)
add(
    "split_with_sizes",
    lambda x: x.split_with_sizes([1, 3], 1),
    lambda x: tuple(np.split(x, [1], 1)),
    lambda s: Case((Arg((s.integer(1, 3), 4)),)),
)
three = lambda s: Case((Arg((2, 4, s.choice([2, 6]))),))
add("hsplit", lambda x: wg.hsplit(x, 2), lambda x: tuple(np.hsplit(x, 2)), three)
add("vsplit", lambda x: wg.vsplit(x, 2), lambda x: tuple(np.vsplit(x, 2)), three)
add("dsplit", lambda x: wg.dsplit(x, 2), lambda x: tuple(np.dsplit(x, 2)), three)
add("fliplr", wg.fliplr, np.fliplr, matrix())
add("flipud", wg.flipud, np.flipud, matrix())
add("adjoint", wg.adjoint, lambda x: np.conj(np.swapaxes(x, -1, -2)), matrix())
add("msort", wg.msort, lambda x: np.sort(x, 0), matrix(domain=Grid(distinct=True)))
add("diagflat", lambda x: wg.diagflat(x, 1), lambda x: np.diagflat(x, 1), matrix(high=2))

# ---- places ----


def replaced(x: Array, y: Array, key: Any) -> Array:
    out = x.copy()
    out[key] = y
    return out


add(
    "select_scatter",
    lambda x, y, index: x.select_scatter(y, 1, index),
    lambda x, y, index: replaced(x, y, (slice(None), index)),
    lambda s: Case(
        (Arg((m := s.integer(1, 3), n := s.integer(1, 3))), Arg((m,))), {"index": s.integer(-n, n - 1)}
    ),
)
add(
    "slice_scatter",
    lambda x, y: x.slice_scatter(y, 1, 1, None, 2),
    lambda x, y: replaced(x, y, (slice(None), slice(1, None, 2))),
    lambda s: Case((Arg((m := s.integer(1, 3), n := s.integer(2, 5))), Arg((m, n // 2)))),
)
add(
    "diagonal_scatter",
    lambda x, y: x.diagonal_scatter(y, 1),
    lambda x, y: replaced(x, y, (np.arange(len(y)), np.arange(len(y)) + 1)),
    lambda s: Case((Arg((n := s.integer(2, 4), n)), Arg((n - 1,)))),
)


def rows_case(s: Source) -> Case:
    rows, count = s.integer(1, 3), s.integer(1, 4)
    drawn = {"reduce": s.choice([r for r in REDUCTIONS if r[0] != "a"]), "include_self": s.flag()}
    return Case((Arg((rows, 2)), Arg((count,), Integers(0, rows - 1)), Arg((count, 2))), drawn)


def reduced(x: Array, index: Array, y: Array, reduce: str, include_self: bool) -> Array:
    fold = {"sum": np.sum, "prod": np.prod, "mean": np.mean}[reduce]
    out = x.copy()
    for row in set(index.astype(int).tolist()):
        met = y[index == row]
        out[row] = fold(np.concatenate([x[row : row + 1], met]) if include_self else met, axis=0)
    return out


add("index_reduce", lambda x, i, y, **kw: x.index_reduce(0, i, y, **kw), reduced, rows_case, scale=16)


def limited(x: Array) -> Array:
    size = np.sqrt((x * x).sum(1, keepdims=True))
    return x * np.where(size > 2, 2 / (size + 1e-7), 1.0)


add(
    "renorm",
    lambda x: wg.renorm(x, 2, 0, 2.0),
    limited,
    lambda s: Case((Arg((s.integer(1, 3), 2), s.choice([Real(0.1, 1.2), Real(1.6, 3)])),)),
    scale=32,
)
add(
    "isin",
    wg.isin,
    np.isin,
    lambda s: Case((Arg(s.shape(0, 2, least=1), Integers(0, 6)), Arg((s.integer(1, 4),), Integers(0, 6)))),
    order=0,
)
add("isreal", wg.isreal, np.isreal, matrix(), order=0)
add(
    "clamp_min", lambda x: wg.clamp_min(x, 0.3), lambda x: np.maximum(x, 0.3), matrix(domain=Grid(offset=0.1))
)
add(
    "clamp_max", lambda x: wg.clamp_max(x, 0.3), lambda x: np.minimum(x, 0.3), matrix(domain=Grid(offset=0.1))
)

# ---- frames ----

WINDOW = np.array([0.25, 1.0, 0.75, 0.5])


def framed(x: Array) -> Array:
    wide = np.pad(x, (2, 2), mode="reflect")
    frames = [np.fft.rfft(wide[i : i + 4] * WINDOW) for i in range(0, len(wide) - 3, 3)]
    out = np.stack(frames, 1)
    return np.stack([out.real, out.imag], -1)


add(
    "stft",
    lambda x: wg.stft(
        x, 4, 3, window=wg.tensor(WINDOW, dtype=x.dtype, device=x.device), return_complex=False
    ),
    framed,
    lambda s: Case((Arg((s.integer(5, 12),)),)),
    dtypes=("float64", "float32"),
    scale=16,
)


def overlapped(x: Array) -> Array:
    frames = np.fft.irfft(x[..., 0] + 1j * x[..., 1], 4, axis=0)
    total, power = np.zeros(4 + 3 * (x.shape[1] - 1)), np.zeros(4 + 3 * (x.shape[1] - 1))
    for t in range(x.shape[1]):
        total[3 * t : 3 * t + 4] += frames[:, t] * WINDOW
        power[3 * t : 3 * t + 4] += WINDOW**2
    return total / power


add(
    "istft",
    lambda x: wg.istft(
        wg.view_as_complex(x), 4, 3, window=wg.tensor(WINDOW, dtype=x.dtype, device=x.device), center=False
    ),
    overlapped,
    lambda s: Case((Arg((3, s.integer(1, 4), 2)),)),
    dtypes=("float64", "float32"),
    scale=32,
)


# ---- elements by position, sums to a shape ----


def placed(x: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """Stores or adds at positions of the flattened array, one after the other."""
    out = x.copy().reshape(-1)
    for i, value in zip(index.reshape(-1), source.reshape(-1), strict=True):
        out[i] = out[i] + value if accumulate else value
    return out.reshape(x.shape)


def put_case(s: Source) -> Case:
    shape = s.shape(1, 3, least=1)
    count = int(np.prod(shape))
    places = (s.integer(1, 3),)
    return Case((Arg(shape), Arg(places, Integers(-count, count - 1)), Arg(places)), {"accumulate": s.flag()})


def summed(x: Array, size: tuple[int, ...]) -> Array:
    """Sums over the axes that `size` has not, or has with length 1."""
    lead = x.ndim - len(size)
    axes = (*range(lead), *(lead + i for i, n in enumerate(size) if n != x.shape[lead + i]))
    return x.sum(axes).reshape(size)


def sum_case(s: Source) -> Case:
    shape = s.shape(1, 3, least=1)
    kept = shape[s.integer(0, len(shape)) :]
    return Case((Arg(shape),), {"size": tuple(1 if s.flag() else n for n in kept)})


add("put", wg.put, placed, put_case)
add("sum_to_size", lambda x, size: x.sum_to_size(size), summed, sum_case)
