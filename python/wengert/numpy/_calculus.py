"""NumPy's differences, integrals, interpolation, convolutions and polynomials."""

from typing import Any

import wengert as wg
from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor

from ._elementwise import alike
from ._reductions import _inexact, diff
from ._rows import row
from ._searching import where

__all__ = ["convolve", "correlate", "ediff1d", "gradient", "interp", "polyval", "trapezoid", "trapz"]


def gradient(f: Any, *varargs: Any, axis: int | tuple[int, ...] | None = None, edge_order: int = 1) -> Any:
    """Returns the slopes of values on a grid, by differences of second order inside and of `edge_order` at
    the ends: one tensor for each axis, or a single one.

    Args:
        varargs: the distance of neighbours (1 by default), or one for each axis; or vectors of coordinates.
        axis: along which to differentiate, all by default.
        edge_order: 1 or 2.

    Raises:
        ValueError: fewer than `edge_order + 1` values along an axis, another `edge_order`, or another number
            of distances than one or that of the axes.
    """
    x = _inexact("gradient", f)
    axes = list(range(x.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    steps = [operand("gradient", step, x) for step in varargs or (1.0,)]
    steps = steps * len(axes) if len(steps) == 1 else steps
    slopes = wg.gradient(x, spacing=steps, dim=axes, edge_order=edge_order)
    return slopes[0] if len(slopes) == 1 else slopes


trapezoid = trapz = row(
    "trapezoid",
    lambda y, x=None, dx=1.0, axis=-1: wg.trapezoid(y, x, dx=dx, dim=axis),
    "Returns the integral along an axis by the trapezoidal rule, at points `x` or at steps of `dx`.",
)
ediff1d = row(
    "ediff1d",
    lambda ary: diff(operand("ediff1d", ary).reshape(-1)),
    "Returns the differences of neighbours in the flattened tensor.",
)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Tensor:
    """Returns the values at `x` of the line through the points (`xp`, `fp`).

    Args:
        xp: ascending numbers, at least two.
        left, right: the values before and behind them; the first and the last of `fp` by default.
    """
    points, at = alike("interp", _inexact("interp", xp), _inexact("interp", x))
    values = operand("interp", fp, points)
    place = wg.searchsorted(points.detach(), at.detach(), side="right").clamp(1, points.numel() - 1)
    before, behind = points[place - 1], points[place]
    low, high = values[place - 1], values[place]
    out = low + (high - low) * ((at - before) / (behind - before))
    out = where(at < points[0], values[0] if left is None else left, out)
    return where(at > points[-1], values[-1] if right is None else right, out)


def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """Returns the discrete convolution of two vectors.

    Args:
        mode: `"full"`, `"same"` (as long as the longer one) or `"valid"` (where both overlap completely).

    Raises:
        ValueError: another mode, or a tensor that is no vector.
    """
    a, v = alike("convolve", operand("convolve", a), operand("convolve", v))
    if a.ndim != 1 or v.ndim != 1 or mode not in ("full", "same", "valid"):
        raise ValueError(
            f"convolve: vectors and mode 'full', 'same' or 'valid' expected, got shapes {tuple(a.shape)} and "
            f"{tuple(v.shape)}, and {mode!r}"
        )
    a, v = (a, v) if a.numel() >= v.numel() else (v, a)
    long, short = a.numel(), v.numel()
    ends = _core.zeros(short - 1, dtype=a.dtype, device=a.device)
    full = _core.cat([ends, a, ends]).unfold(0, short, 1) @ v.flip(0)
    start, length = {
        "full": (0, long + short - 1),
        "same": ((short - 1) // 2, long),
        "valid": (short - 1, long - short + 1),
    }[mode]
    return full.narrow(0, start, length)


def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """Returns the products of one vector with another, conjugated and moved along it; see `convolve` for
    `mode`."""
    v = operand("correlate", v)
    return convolve(a, (v.conj() if v.is_complex() else v).flip(0), mode)


def polyval(p: Any, x: Any) -> Tensor:
    """Returns the values at `x` of the polynomial with the coefficients `p`, the highest power first."""
    x, p = alike("polyval", operand("polyval", x), operand("polyval", p))
    out = _core.zeros_like(x)
    for coefficient in p.unbind(0):
        out = out * x + coefficient
    return out
