"""Random calls of functions along axes: reductions, scans, shapes, indices, products and ranges, with every
dtype from bool to complex, axes of length 0 and 1, and every keyword. `function_draws.py` says what is
expected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import wengert as wg
from hypothesis import given, strategies as st
from robustness.function_draws import Draw, judged, kind_of, promoted, widened, wrapped
from support import examples

# ---- reductions ----

# Name: NumPy's function, the kinds that have it, the dtype of the result.
REDUCTIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...], str]] = {
    "sum": (np.sum, (0, 1, 2, 3), "sum"),
    "prod": (np.prod, (0, 1, 2, 3), "sum"),
    "mean": (np.mean, (2, 3), "same"),
    "amax": (np.max, (0, 1, 2), "same"),
    "amin": (np.min, (0, 1, 2), "same"),
    "any": (np.any, (0, 1, 2, 3), "bool"),
    "all": (np.all, (0, 1, 2, 3), "bool"),
    "nansum": (np.nansum, (0, 1, 2), "sum"),
    "count_nonzero": (np.count_nonzero, (0, 1, 2, 3), "int64"),
    "var": (lambda x, **k: np.var(x, **k), (2,), "same"),
    "std": (lambda x, **k: np.std(x, **k), (2,), "same"),
}


@examples(200)
@given(st.data())
def test_reductions(data: st.DataObject) -> None:
    draw = Draw(data)
    name = draw.one(REDUCTIONS)
    function, kinds, rule = REDUCTIONS[name]
    x = draw.array(draw.shape(), dtype := draw.dtype(), special=name not in ("var", "std"))
    axes = draw.axes(x.ndim)
    if name == "prod" and isinstance(axes, tuple):
        axes = axes[0]
    ours: dict[str, Any] = {"dim": axes}
    numpy: dict[str, Any] = {"axis": axes}
    if name != "count_nonzero" and axes is not None and draw.flag():
        ours["keepdim"] = numpy["keepdims"] = True
    if name in ("var", "std"):
        ours["correction"] = numpy["ddof"] = draw.integer(0, 1)
    if name in ("sum", "prod", "mean") and draw.integer(0, 3) == 0:
        ours["dtype"] = wanted_dtype = draw.dtype((2,)) if kind_of(dtype) < 3 else "complex128"
    else:
        wanted_dtype = {"sum": dtype if kind_of(dtype) > 1 else "int64", "same": dtype}.get(rule, rule)
    wide = widened(x, dtype)
    if wide.dtype == bool and name in ("sum", "prod", "nansum", "mean"):
        wide = wide.astype(np.int64)
    counted = [x.shape[k] for k in ((axes,) if isinstance(axes, int) else axes or range(x.ndim))]
    # Variances of too few elements are NaN in both, and NumPy divides by zero on the way.
    few = name in ("var", "std") and math.prod(counted) <= ours["correction"]
    shape = {key: value for key, value in numpy.items() if key != "ddof"}
    judged(
        f"{name} of {dtype} {x.shape}, {ours}",
        lambda: getattr(wg, name)(wg.tensor(x), **ours),
        lambda: np.mean(wide, **shape) * np.nan if few else function(wide, **numpy),
        wanted_dtype,
        kind_of(dtype) not in kinds,
    )


SCANS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "cumsum": (np.cumsum, (0, 1, 2, 3)),
    "cumprod": (np.cumprod, (0, 1, 2, 3)),
    "argmax": (np.argmax, (0, 1, 2)),
    "argmin": (np.argmin, (0, 1, 2)),
    "sort": (np.sort, (0, 1, 2)),
    "flip": (np.flip, (0, 1, 2, 3)),
    "diff": (np.diff, (0, 1, 2, 3)),
    "roll": (lambda x, axis: np.roll(x, 2, axis), (0, 1, 2, 3)),
}


@examples(100)
@given(st.data())
def test_along_an_axis(data: st.DataObject) -> None:
    draw = Draw(data)
    name = draw.one(SCANS)
    function, kinds = SCANS[name]
    x = draw.array(draw.shape(low=1), dtype := draw.dtype())
    axis = draw.axis(x.ndim)
    wide = widened(x, dtype)
    if name in ("cumsum", "cumprod"):
        wide, out = (wide.astype(np.int64), "int64") if kind_of(dtype) < 2 else (wide, dtype)
    else:
        out = "int64" if name.startswith("arg") else dtype
    keywords: dict[str, Any] = {"shifts": 2, "dims": axis} if name == "roll" else {"dim": axis}
    keywords = {"dims": (axis,)} if name == "flip" else keywords
    numpy: dict[str, Any] = {"axis": axis}
    if name == "diff":
        n = draw.integer(0, 3)
        keywords["n"] = numpy["n"] = n
        if draw.flag():
            ends = draw.array(x.shape, dtype, special=False)
            keywords["prepend"], numpy["prepend"] = wg.tensor(ends), widened(ends, dtype)
    if name in ("sort", "argmax", "argmin"):
        x = np.asarray(np.nan_to_num(x))
        wide = widened(x, dtype)
    call = lambda: getattr(wg, name)(wg.tensor(x), **keywords)
    judged(
        f"{name} of {dtype} {x.shape}, {keywords}",
        (lambda: call().values) if name == "sort" else call,
        lambda: wrapped(function(wide, **numpy), out),
        out,
        kind_of(dtype) not in kinds,
    )


# ---- shapes, indices, ranges ----


def _joined(draw: Draw) -> tuple[str, Any, Any, str]:
    shape = list(draw.shape(low=1))
    axis = draw.axis(len(shape))
    parts = []
    for _ in range(draw.integer(1, 3)):
        shape[axis] = draw.integer(0, 2)
        parts.append(draw.array(tuple(shape), draw.dtype()))
    dtype = promoted([np.ones(1, p.dtype) for p in parts])
    return (
        f"cat of {[(str(p.dtype), p.shape) for p in parts]} along {axis}",
        lambda: wg.cat([wg.tensor(p) for p in parts], axis),
        lambda: np.concatenate([widened(p, dtype) for p in parts], axis),
        dtype,
    )


def _moved(draw: Draw) -> tuple[str, Any, Any, str]:
    x = draw.array(draw.shape(), dtype := draw.dtype())
    if x.ndim == 0:
        return "movedim of a number", lambda: wg.movedim(wg.tensor(x), 0, -1), lambda: x, dtype
    count = draw.integer(1, x.ndim)
    source, target = [[draw.axis(x.ndim) for _ in range(count)] for _ in range(2)]
    return (
        f"movedim of {x.shape} from {source} to {target}",
        lambda: wg.movedim(wg.tensor(x), source, target),
        lambda: np.moveaxis(x, source, target),
        dtype,
    )


def _gathered(draw: Draw) -> tuple[str, Any, Any, str]:
    x = draw.array(draw.shape(least=1), dtype := draw.dtype())
    axis = draw.axis(x.ndim)
    shape = tuple(draw.integer(0, n) for n in x.shape)
    length = x.shape[axis] if x.ndim else 1
    index = np.random.default_rng(draw.integer(0, 99)).integers(-length, length, shape)
    places = np.asarray(index)
    part = x[tuple(slice(0, n) if k != axis % max(x.ndim, 1) else slice(None) for k, n in enumerate(shape))]
    return (
        f"gather of {x.shape} by {shape} along {axis}",
        lambda: wg.gather(wg.tensor(x), axis, wg.tensor(index)),
        lambda: np.take_along_axis(part, places, axis) if x.ndim else x,
        dtype,
    )


def _placed(draw: Draw) -> tuple[str, Any, Any, str]:
    x = draw.array(draw.shape(least=1), dtype := draw.dtype((1, 2)), special=False)
    axis = draw.axis(x.ndim)
    flat = x.reshape(1) if x.ndim == 0 else x
    index = np.random.default_rng(draw.integer(0, 99)).integers(0, flat.shape[axis], x.shape)
    source = draw.array(x.shape, dtype, special=False)

    def wanted() -> Any:
        out = widened(flat, dtype).copy()
        for at in np.ndindex(flat.shape):
            to = list(at)
            to[axis] = index.reshape(flat.shape)[at]
            out[tuple(to)] += widened(source.reshape(flat.shape)[at], dtype)
        return wrapped(out.reshape(x.shape), dtype)

    return (
        f"scatter_add to {dtype} {x.shape} along {axis}",
        lambda: wg.scatter_add(wg.tensor(x), axis, wg.tensor(index), wg.tensor(source)),
        wanted,
        dtype,
    )


def _positions(draw: Draw) -> tuple[str, Any, Any, str]:
    x = draw.array(draw.shape(), dtype := draw.dtype())
    return (
        f"nonzero of {dtype} {x.shape}",
        lambda: wg.tensor(x).nonzero(),
        lambda: np.argwhere(x),
        "int64",
    )


def _selected(draw: Draw) -> tuple[str, Any, Any, str]:
    x = draw.array(draw.shape(), dtype := draw.dtype())
    mask = draw.array(draw.stretched(x.shape), "bool")
    return (
        f"masked_select of {x.shape} by {mask.shape}",
        lambda: wg.masked_select(wg.tensor(x), wg.tensor(mask)),
        lambda: x[np.broadcast_to(mask, x.shape)],
        dtype,
    )


def _integral(draw: Draw) -> tuple[str, Any, Any, str]:
    y = draw.array(draw.shape(low=1), dtype := draw.dtype((2,)), special=False)
    axis = draw.axis(y.ndim)
    x = draw.array((y.shape[axis],), dtype, special=False) if draw.flag() else None
    return (
        f"trapezoid of {dtype} {y.shape} along {axis}",
        lambda: wg.trapezoid(wg.tensor(y), None if x is None else wg.tensor(x), dim=axis),
        lambda: np.trapezoid(widened(y, dtype), None if x is None else widened(x, dtype), axis=axis),
        dtype,
    )


def _covariance(draw: Draw) -> tuple[str, Any, Any, str]:
    x = draw.array(draw.shape(1, 2, least=2), dtype := draw.dtype((2,)), special=False)
    return (
        f"cov of {dtype} {x.shape}",
        lambda: wg.cov(wg.tensor(x)),
        lambda: np.cov(widened(x, dtype)),
        dtype,
    )


def _counted(draw: Draw) -> tuple[str, Any, Any, str]:
    x = np.random.default_rng(draw.integer(0, 99)).integers(0, 4, draw.integer(0, 5))
    weights = draw.array(x.shape, draw.dtype((1, 2)), special=False) if draw.flag() else None
    least = draw.integer(0, 6)
    dtype = "int64" if weights is None else "float32" if weights.dtype == np.float32 else "float64"
    return (
        f"bincount with {None if weights is None else weights.dtype}",
        lambda: wg.bincount(wg.tensor(x), None if weights is None else wg.tensor(weights), least),
        lambda: np.bincount(x, weights, least),
        dtype,
    )


def _contracted(draw: Draw) -> tuple[str, Any, Any, str]:
    dtype = draw.dtype((1, 2, 3))
    a = draw.array(draw.shape(1, 3, least=1), dtype, special=False)
    count = draw.integer(0, a.ndim)
    left = list(draw.data.draw(st.permutations(range(a.ndim))))[:count]
    b = draw.array((*draw.shape(0, 1), *(a.shape[k] for k in left)), dtype, special=False)
    right = list(range(b.ndim - count, b.ndim))
    return (
        f"tensordot of {dtype} {a.shape} and {b.shape} over {left} and {right}",
        lambda: wg.tensordot(wg.tensor(a), wg.tensor(b), dims=(left, right)),
        lambda: wrapped(np.tensordot(widened(a, dtype), widened(b, dtype), (left, right)), dtype),
        dtype,
    )


def _squeezed(draw: Draw) -> tuple[str, Any, Any, str]:
    x = draw.array(tuple(draw.one([1, 1, 2]) for _ in range(draw.integer(0, 4))), dtype := draw.dtype())
    ones = [k for k, n in enumerate(x.shape) if n == 1]
    axes = draw.one([None, tuple(ones[: draw.integer(0, len(ones))])])
    return (
        f"squeeze of {x.shape}, {axes}",
        lambda: wg.tensor(x).squeeze() if axes is None else wg.tensor(x).squeeze(axes),
        lambda: np.squeeze(x, axes),
        dtype,
    )


OTHERS = (
    _joined,
    _moved,
    _gathered,
    _placed,
    _positions,
    _selected,
    _integral,
    _covariance,
    _counted,
    _contracted,
    _squeezed,
)


@examples(250)
@given(st.data())
def test_shapes_indices_and_products(data: st.DataObject) -> None:
    draw = Draw(data)
    name, call, wanted, dtype = draw.one(OTHERS)(draw)
    judged(name, call, wanted, dtype, may_refuse=False)


@examples(100)
@given(st.data())
def test_ranges(data: st.DataObject) -> None:
    """A range counts from its start by its step; one of integers takes the whole parts of both."""
    draw = Draw(data)
    numbers = [0, 1, 2, -3, 5, 0.5, -0.9, 2.25, 5.5]
    start, end, step = draw.one(numbers), draw.one(numbers), draw.one([1, 2, -1, -2, 0.5, 1.5, -0.75])
    dtype = draw.one([None, "int64", "int32", "float32", "float64"])
    natural = "int64" if all(isinstance(v, int) for v in (start, end, step)) else "float32"

    def wanted() -> Any:
        if (end - start) * step < 0:
            raise ValueError("no way there")
        count = math.ceil((end - start) / step)
        whole = (dtype or natural).startswith("int")
        first, by = (int(start), int(step)) if whole else (start, step)
        return np.array([first + k * by for k in range(count)])

    judged(
        f"arange({start}, {end}, {step}, dtype={dtype})",
        lambda: wg.arange(start, end, step, dtype=dtype),
        wanted,
        dtype or natural,
        may_refuse=False,
    )
