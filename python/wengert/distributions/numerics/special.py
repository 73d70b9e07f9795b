"""Functions of densities that the core lacks, written so that large parameters do not cancel."""

import functools
import math
from collections.abc import Callable
from typing import Any, ParamSpec

import wengert as wg
from wengert._core import Tensor

P = ParamSpec("P")

__all__ = [
    "common_dtype",
    "expm1_over",
    "half_step",
    "in_double",
    "log1p_over",
    "log_beta",
    "log_beta_density",
    "log_gamma_density",
]

# From here on Stirling's series with four terms is exact in float64.
_LARGE = 30.0


def common_dtype(tensors: list[Tensor]) -> Any:
    """The floating point dtype of a result; numbers and tensors without axes follow others. The default dtype
    for integers.
    """
    floats = [x for x in tensors if x.is_floating_point()]
    floats = [x for x in floats if x.ndim] or floats
    return functools.reduce(wg.promote_types, [x.dtype for x in floats]) if floats else wg.get_default_dtype()


def in_double(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """A function of tensors that computes in float64 and rounds once; on a GPU, which has no float64, as it
    is.

    Sums of large terms that nearly cancel, as in most densities, then keep the digits of float32.
    """

    @functools.wraps(function)
    def wide(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        tensors = [x for x in args if isinstance(x, Tensor)]
        dtype = common_dtype(tensors)
        if dtype == wg.float64 or any(x.is_gpu for x in tensors):
            return function(*args, **kwargs)
        doubles = [x.to(wg.float64) if isinstance(x, Tensor) else x for x in args]
        return function(*doubles, **kwargs).to(dtype)  # type: ignore[arg-type]

    return wide


def log_gamma_density(a: Tensor, x: Tensor, log_x: Tensor | None = None) -> Tensor:
    """Returns `log(x^(a - 1) exp(-x) / Gamma(a))`: the gamma density in `x`, and Poisson probabilities in
    `a - 1`.

    Other families are differences of these. From `a = 31` on this is the saddle-point form of Loader (2000),
    in which no large numbers cancel.
    """
    log_x = x.log() if log_x is None else log_x
    k = a - 1
    n = wg.where(k >= _LARGE, k, _LARGE)
    d = (x - n) / n
    deviance = d - wg.where(d > -0.5, d.log1p(), log_x - n.log())
    r = 1 / n.square()
    series = (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r / 1680))) / n
    large = -n * deviance - 0.5 * (2 * math.pi * n).log() - series
    # 0 log(0) is 0.
    finite = wg.where((k == 0) & (log_x == -wg.inf), 0.0, log_x)
    return wg.where(x == wg.inf, -wg.inf, wg.where(k >= _LARGE, large, k * finite - x - a.lgamma()))


def log_beta_density(a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Returns `log(x^(a - 1) y^(b - 1) / B(a, b))` for `x + y = 1`: the beta density, as a ratio of gamma
    densities."""
    s = a + b
    return s.log() + log_gamma_density(a, s * x) + log_gamma_density(b, s * y) - log_gamma_density(s, s)


def log_beta(a: Tensor, b: Tensor) -> Tensor:
    """Returns the logarithm of the beta function."""
    return a.lgamma() + b.lgamma() - (a + b).lgamma()


def half_step(x: Tensor) -> Tensor:
    """Returns `lgamma(x + 1/2) - lgamma(x)`, by its asymptotic series from 30 on."""
    n = x.clamp_min(_LARGE)
    r = 1 / n.square()
    series = 0.5 * n.log() - (1 / 8 - r * (1 / 192 - r * (1 / 640 - r * 17 / 14336))) / n
    return wg.where(x >= _LARGE, series, (x + 0.5).lgamma() - x.lgamma())


def log1p_over(z: Tensor, c: Tensor) -> Tensor:
    """Returns `log(1 + c z) / c`, by its series where `c z` is small: `z` for `c = 0`."""
    t = c * z
    small = t.abs() < 1e-3
    series = z * (1 - t * (1 / 2 - t * (1 / 3 - t * (1 / 4 - t / 5))))
    safe = wg.where(small, 1.0, c)
    return wg.where(small, series, t.log1p() / safe)


def expm1_over(z: Tensor, c: Tensor) -> Tensor:
    """Returns `(exp(c z) - 1) / c`, likewise."""
    t = c * z
    small = t.abs() < 1e-3
    series = z * (1 + t * (1 / 2 + t * (1 / 6 + t * (1 / 24 + t / 120))))
    return wg.where(small, series, t.expm1() / wg.where(small, 1.0, c))
