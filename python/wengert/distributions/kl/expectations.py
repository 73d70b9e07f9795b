"""Divergences of distributions of numbers, as a cross entropy less an entropy.

`KL(p || q) = -E log q(x) - H(p)`, and `E log q(x)` needs some means under `p` only: of `x`, `x^2`, `log(x)`,
`log(1 - x)`, `exp(-x)` or `|x|`. So a table of means for each `p`, and one of cross entropies for each `q`,
give all pairs; what lies outside of the support of `q` is infinite. Computed in float64, rounded once.
"""

import math
from collections.abc import Callable
from typing import Any

import wengert as wg
from wengert._core import Tensor

from ..beta import Beta
from ..binary import ContinuousBernoulli, log_mean_exp
from ..gamma import Gamma
from ..location_scale import Gumbel, Laplace, Uniform
from ..normal import Normal
from ..numerics.special import log_beta
from ..positive import Exponential, Pareto
from .registry import in_double, register_kl

__all__: list[str] = []

_EULER = 0.57721566490153286061


def _of(table: dict[type[Any], Any], distribution: Any) -> Any:
    """The entry of a distribution's nearest class."""
    return next(table[kind] for kind in type(distribution).__mro__ if kind in table)


# ---- means under p -------------------------------------------------------------------------------


def _over_interval(integral: Callable[[Tensor], Tensor], p: Any) -> Tensor:
    """The mean over a uniform distribution, by an antiderivative."""
    return (integral(p.high) - integral(p.low)) / (p.high - p.low)


def _x_log_x(x: Tensor) -> Tensor:
    return x.xlogy(x) - x


#: The mean of `log(x)`.
_LOG: dict[type[Any], Callable[[Any], Tensor]] = {
    Exponential: lambda p: -p.rate.log() - _EULER,
    Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Uniform: lambda p: _over_interval(_x_log_x, p),
    Pareto: lambda p: p.scale.log() + 1 / p.alpha,
}
#: The mean of `log(1 - x)`.
_LOG_REST: dict[type[Any], Callable[[Any], Tensor]] = {
    Beta: lambda p: p.concentration0.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Uniform: lambda p: -_over_interval(lambda x: _x_log_x(1 - x), p),
}
#: The mean of `exp(-t x)`.
_EXPONENTIAL: dict[type[Any], Callable[[Any, Tensor], Tensor]] = {
    Normal: lambda p, t: (0.5 * (t * p.scale).square() - t * p.loc).exp(),
    Exponential: lambda p, t: 1 / (1 + t / p.rate),
    Gamma: lambda p, t: (-p.concentration * (t / p.rate).log1p()).exp(),
    Uniform: lambda p, t: -((-t * p.high).exp() - (-t * p.low).exp()) / (t * (p.high - p.low)),
    Gumbel: lambda p, t: ((1 + t * p.scale).lgamma() - t * p.loc).exp(),
}
#: The mean of `|x - m|`.
_DISTANCE: dict[type[Any], Callable[[Any, Tensor], Tensor]] = {
    Laplace: lambda p, m: (p.loc - m).abs() + p.scale * (-(p.loc - m).abs() / p.scale).exp(),
    Normal: lambda p, m: (
        p.scale * math.sqrt(2 / math.pi) * (-0.5 * ((p.loc - m) / p.scale).square()).exp()
        + (p.loc - m) * ((p.loc - m) / (p.scale * math.sqrt(2))).erf()
    ),
}

# ---- cross entropies with q ----------------------------------------------------------------------


def _with_normal(p: Any, q: Normal) -> Tensor:
    spread = p.variance + (p.mean - q.loc).square()
    return 0.5 * spread / q.variance + q.scale.log() + 0.5 * math.log(2 * math.pi)


def _with_exponential(p: Any, q: Exponential) -> Tensor:
    return q.rate * p.mean - q.rate.log()


def _with_gamma(p: Any, q: Gamma) -> Tensor:
    a, rate = q.concentration, q.rate
    return rate * p.mean - (a - 1) * _of(_LOG, p)(p) + a.lgamma() - a * rate.log()


def _with_beta(p: Any, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    return log_beta(a, b) - (a - 1) * _of(_LOG, p)(p) - (b - 1) * _of(_LOG_REST, p)(p)


def _with_continuous(p: Any, q: ContinuousBernoulli) -> Tensor:
    return log_mean_exp(q.logits) - q.logits * p.mean


def _with_gumbel(p: Any, q: Gumbel) -> Tensor:
    t = 1 / q.scale
    return q.scale.log() + t * (p.mean - q.loc) + (t * q.loc).exp() * _of(_EXPONENTIAL, p)(p, t)


def _with_laplace(p: Any, q: Laplace) -> Tensor:
    return (2 * q.scale).log() + _of(_DISTANCE, p)(p, q.loc) / q.scale


def _with_pareto(p: Any, q: Pareto) -> Tensor:
    return (q.alpha + 1) * _of(_LOG, p)(p) - q.alpha.log() - q.alpha * q.scale.log()


def _with_uniform(p: Any, q: Uniform) -> Tensor:
    return (q.high - q.low).log()


_CROSS: dict[type[Any], Callable[[Any, Any], Tensor]] = {
    Normal: _with_normal,
    Exponential: _with_exponential,
    Gamma: _with_gamma,
    Beta: _with_beta,
    ContinuousBernoulli: _with_continuous,
    Gumbel: _with_gumbel,
    Laplace: _with_laplace,
    Pareto: _with_pareto,
    Uniform: _with_uniform,
}

# ---- pairs ---------------------------------------------------------------------------------------


def _ends(p: Any) -> tuple[Any, Any]:
    """The least and the largest value."""
    if isinstance(p, Uniform):
        return p.low, p.high
    if isinstance(p, Pareto):
        return p.scale, math.inf
    if isinstance(p, (Beta, ContinuousBernoulli)):
        return 0.0, 1.0
    return (0.0, math.inf) if isinstance(p, (Exponential, Gamma)) else (-math.inf, math.inf)


def _by_means(p: Any, q: Any) -> Tensor:
    """The divergence of two distributions of the tables."""
    dtype = wg.result_type(p.mean, q.mean)
    p, q = in_double(p), in_double(q)
    found = _of(_CROSS, q)(p, q) - p.entropy()
    (low, high), (least, most) = _ends(p), _ends(q)
    outside = (wg.as_tensor(low) < least) | (wg.as_tensor(high) > most)
    return wg.where(outside.to(found.device), wg.inf, found).to(dtype)


# Means of p by families of q: those whose support may hold p.
_PAIRS: dict[type[Any], tuple[type[Any], ...]] = {
    Beta: (Beta, ContinuousBernoulli, Exponential, Gamma, Normal, Uniform),
    ContinuousBernoulli: (ContinuousBernoulli, Exponential, Normal, Uniform),
    Exponential: (Exponential, Gamma, Gumbel, Normal),
    Gamma: (Exponential, Gamma, Gumbel, Normal),
    Gumbel: (Gumbel, Normal),
    Laplace: (Laplace, Normal),
    Normal: (Gumbel, Laplace, Normal),
    Pareto: (Exponential, Gamma, Normal, Pareto),
    Uniform: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Normal, Pareto, Uniform),
}
# Divergences that are infinite, whatever the parameters.
_BEYOND: dict[type[Any], tuple[type[Any], ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
}


def _infinite(p: Any, q: Any) -> Tensor:
    return wg.full_like(p.mean + q.mean, wg.inf)


for _p, _qs in _PAIRS.items():
    for _q in _qs:
        register_kl(_p, _q)(_by_means)
for _p, _qs in _BEYOND.items():
    for _q in _qs:
        register_kl(_p, _q)(_infinite)
