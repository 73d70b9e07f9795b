"""NumPy's sums, means, quantiles and covariances, beyond those of the standard."""

from typing import Any

import numpy as np

import wengert as wg
from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor

from ._creation import full_like
from ._elementwise import alike
from ._reductions import _inexact, cumulative_prod, cumulative_sum, max, mean, min, prod, sum
from ._rows import row
from ._searching import argmax, argmin, where

__all__ = [
    "average",
    "corrcoef",
    "cov",
    "cumprod",
    "cumsum",
    "median",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "percentile",
    "ptp",
    "quantile",
]


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """Returns the weighted mean over axes, all by default.

    Args:
        weights: of the shape of `a`, or a vector for one axis; all equal by default.
        returned: returns the pair of the mean and the sum of the weights.
    """
    x = _inexact("average", a)
    if weights is None:
        out = mean(x, axis, keepdims=keepdims)
        return (out, full_like(out, x.numel() / (out.numel() or 1))) if returned else out
    x, w = alike("average", x, operand("average", weights, x))
    if w.shape != x.shape:
        w = w.reshape([-1 if k == axis % x.ndim else 1 for k in range(x.ndim)]).broadcast_to(x.shape)
    total = sum(w, axis, keepdims=keepdims)
    out = sum(x * w, axis, keepdims=keepdims) / total
    return (out, total) if returned else out


def _quantiles(name: str, function: Any, a: Any, q: Any, axis: Any, method: str, keepdims: bool) -> Tensor:
    x = _inexact(name, a)
    if not isinstance(q, Tensor) and not np.all((np.asarray(q) >= 0) & (np.asarray(q) <= 1)):
        raise ValueError(f"{name}: q is out of range; quantiles are from 0 to 1, percentiles from 0 to 100")
    # A constant: numbers come as tensors of the host.
    q = operand(name, q, x).to(dtype=x.dtype, device=x.device)
    if isinstance(axis, tuple):
        gone = {k % x.ndim for k in axis}
        kept = [k for k in range(x.ndim) if k not in gone]
        flat = x.permute([*kept, *sorted(gone)]).reshape([*(x.shape[k] for k in kept), -1])
        out = function(flat, q, -1, interpolation=method)
        shape = [*q.shape, *(1 if k in gone else n for k, n in enumerate(x.shape))]
        return out.reshape(shape) if keepdims else out
    return function(x, q, axis, keepdims, interpolation=method)


def _quantile_rows(prefix: str, function: Any, kept: str) -> tuple[Any, Any, Any]:
    """The quantile, the percentile and the median of a kind."""
    return (
        row(
            f"{prefix}quantile",
            lambda a, q, axis=None, *, method="linear", keepdims=False: _quantiles(
                f"{prefix}quantile", function, a, q, axis, method, keepdims
            ),
            f"Returns the quantiles `q` (from 0 to 1) of the elements{kept} over axes, all by default; those "
            "of several `q` along a new first axis.",
        ),
        row(
            f"{prefix}percentile",
            lambda a, q, axis=None, *, method="linear", keepdims=False: _quantiles(
                f"{prefix}percentile", function, a, _hundredth(q), axis, method, keepdims
            ),
            f"Returns the percentiles `q` (from 0 to 100) of the elements{kept} over axes, all by default.",
        ),
        row(
            f"{prefix}median",
            lambda a, axis=None, *, keepdims=False: _quantiles(
                f"{prefix}median", function, a, 0.5, axis, "linear", keepdims
            ),
            f"Returns the median of the elements{kept} over axes, all by default; of an even number of "
            "elements the mean of the two in the middle.",
        ),
    )


def _hundredth(q: Any) -> Any:
    return operand("percentile", q) / 100 if isinstance(q, Tensor) else np.asarray(q) / 100


quantile, percentile, median = _quantile_rows("", wg.quantile, "")
nanquantile, nanpercentile, nanmedian = _quantile_rows("nan", wg.nanquantile, " that are not NaN")


def _filled(a: Any, value: float) -> Tensor:
    """A tensor with a number in the place of NaN."""
    x = operand("nan", a)
    return x.masked_fill(x.isnan(), value) if x.dtype.is_differentiable else x


def _extremum(function: Any, far: float, a: Any, axis: Any, keepdims: bool) -> Tensor:
    x = operand("nan", a)
    if not x.dtype.is_differentiable:
        return function(x, axis, keepdims=keepdims)
    nothing = wg.isnan(x).all(axis, keepdim=keepdims) if axis is not None else wg.isnan(x).all()
    return where(nothing, float("nan"), function(_filled(x, far), axis, keepdims=keepdims))


nansum = row(
    "nansum",
    lambda a, axis=None, dtype=None, *, keepdims=False: sum(_filled(a, 0.0), axis, dtype, keepdims=keepdims),
    "Returns the sum of the elements that are not NaN over axes, all by default.",
)
nanprod = row(
    "nanprod",
    lambda a, axis=None, dtype=None, *, keepdims=False: prod(_filled(a, 1.0), axis, dtype, keepdims=keepdims),
    "Returns the product of the elements that are not NaN over axes, all by default.",
)
nanmax = row(
    "nanmax",
    lambda a, axis=None, *, keepdims=False: _extremum(max, float("-inf"), a, axis, keepdims),
    "Returns the largest of the elements that are not NaN over axes, all by default; NaN where there are "
    "none.",
)
nanmin = row(
    "nanmin",
    lambda a, axis=None, *, keepdims=False: _extremum(min, float("inf"), a, axis, keepdims),
    "Returns the smallest of the elements that are not NaN over axes, all by default; NaN where there are "
    "none.",
)
nanargmax = row(
    "nanargmax",
    lambda a, axis=None, *, keepdims=False: argmax(_filled(a, float("-inf")), axis, keepdims=keepdims),
    "Returns the place of the first maximum along an axis, or in the flattened tensor, of what is not NaN.",
)
nanargmin = row(
    "nanargmin",
    lambda a, axis=None, *, keepdims=False: argmin(_filled(a, float("inf")), axis, keepdims=keepdims),
    "Returns the place of the first minimum along an axis, or in the flattened tensor, of what is not NaN.",
)
nanmean = row(
    "nanmean",
    lambda a, axis=None, dtype=None, *, keepdims=False: (
        sum(_filled(a, 0.0), axis, dtype, keepdims=keepdims)
        / sum(wg.isnan(a).logical_not(), axis, keepdims=keepdims)
    ),
    "Returns the mean of the elements that are not NaN over axes, all by default.",
)


def nanvar(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """Returns the variance of the elements that are not NaN over axes, all by default, divided by
    `n - ddof`."""
    x = _inexact("nanvar", a)
    there = x.isnan().logical_not()
    deviation = where(there, x - nanmean(x, axis, keepdims=True), 0.0).abs()
    return sum(deviation * deviation, axis, keepdims=keepdims) / (sum(there, axis, keepdims=keepdims) - ddof)


nanstd = row(
    "nanstd",
    lambda a, axis=None, *, ddof=0, keepdims=False: nanvar(a, axis, ddof=ddof, keepdims=keepdims).sqrt(),
    "Returns the standard deviation of the elements that are not NaN: the square root of `nanvar`.",
)


def _flat(name: str, a: Any, axis: int | None) -> Tensor:
    x = operand(name, a)
    return x.reshape(-1) if axis is None else x


cumsum = row(
    "cumsum",
    lambda a, axis=None, dtype=None: cumulative_sum(_flat("cumsum", a, axis), axis, dtype),
    "Returns the sum of the elements so far along an axis, of the flattened tensor by default.",
)
cumprod = row(
    "cumprod",
    lambda a, axis=None, dtype=None: cumulative_prod(_flat("cumprod", a, axis), axis, dtype),
    "Returns the product of the elements so far along an axis, of the flattened tensor by default.",
)
nancumsum = row("nancumsum", lambda a, axis=None, dtype=None: cumsum(_filled(a, 0.0), axis, dtype), cumsum)
nancumprod = row(
    "nancumprod", lambda a, axis=None, dtype=None: cumprod(_filled(a, 1.0), axis, dtype), cumprod
)
ptp = row(
    "ptp",
    lambda a, axis=None, *, keepdims=False: max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims),
    "Returns the distance between the largest and the smallest element over axes, all by default.",
)


def _variables(name: str, m: Any, y: Any, rowvar: bool) -> Tensor:
    """Variables in rows, observed in columns."""
    x = _inexact(name, m)
    x = x.mT if x.ndim == 2 and not rowvar and x.shape[0] != 1 else x
    if y is None:
        return x
    y = _inexact(name, y)
    y = y.mT if y.ndim == 2 and not rowvar and y.shape[0] != 1 else y
    return _core.cat([wg.atleast_2d(x), wg.atleast_2d(y)], 0)


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Tensor:
    """Returns the covariance matrix of variables.

    Args:
        m: variables in rows, observed in columns; one variable where it is a vector.
        y: more variables.
        rowvar: `False` where variables are in columns.
        bias: divides by the number of observations, not by one less.
        ddof: what is subtracted from that number, in the place of `bias`.
        fweights: how often each observation counts, integers.
        aweights: how much each observation weighs.
    """
    correction = (0 if bias else 1) if ddof is None else ddof
    return wg.cov(
        _variables("cov", m, y, rowvar), correction=correction, fweights=fweights, aweights=aweights
    )


corrcoef = row(
    "corrcoef",
    lambda x, y=None, rowvar=True: wg.corrcoef(_variables("corrcoef", x, y, rowvar)),
    "Returns the matrix of correlation coefficients of variables; see `cov`.",
)
