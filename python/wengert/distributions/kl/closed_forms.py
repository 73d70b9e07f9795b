"""Divergences within a family, and those of distributions that are made of others."""

from typing import Any

import wengert as wg
from wengert._core import Tensor

from ..beta import Dirichlet
from ..binary import Bernoulli, Geometric
from ..categorical import Categorical, OneHotCategorical
from ..counts import Binomial, Poisson
from ..exp_family import ExponentialFamily
from ..independent import Independent
from ..location_scale import Cauchy
from ..matrices import Wishart
from ..multivariate_normal import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    half_log_det,
    squared_norm,
)
from ..normal import HalfNormal, Normal
from ..numerics.special import in_double as wide
from ..parameters import times
from ..transformed_distribution import TransformedDistribution
from ..transforms.base import sum_last
from .registry import in_double, kl_divergence, register_kl

__all__: list[str] = []


# ---- numbers -------------------------------------------------------------------------------------


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    apart = ((p.loc - q.loc) / q.scale).square()
    return 0.5 * (ratio + apart - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    wide = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return (wide / (4 * p.scale * q.scale)).log()


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    yes, no, log_yes, log_no = p._odds()
    _, _, other_yes, other_no = q._odds()
    return times(yes, log_yes) - times(yes, other_yes) + times(no, log_no) - times(no, other_no)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    """Finite for equal numbers of trials; more of them in `p` are out of the reach of `q`."""
    one = p.total_count * _bernoulli(p, q)
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "kl_divergence: Binomials whose second one has more trials have no closed form; got total_count "
            f"{p.total_count.tolist()} and {q.total_count.tolist()}"
        )
    return wg.where(p.total_count > q.total_count, wg.inf, one)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return _bernoulli(p, q) / p.probs


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    dtype = wg.result_type(p.rate, q.rate)
    p, q = in_double(p), in_double(q)
    # Logarithms of 0 with different signs make infinities where they belong.
    return (p.rate.xlogy(p.rate) - p.rate.xlogy(q.rate) - (p.rate - q.rate)).to(dtype)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs.xlogy(q.rate) - q.rate)


@register_kl(Poisson, Bernoulli)
@register_kl(Poisson, Binomial)
def _unbounded(p: Poisson, q: Any) -> Tensor:
    return wg.full_like(p.rate + q.mean, wg.inf)


# ---- vectors -------------------------------------------------------------------------------------


@register_kl(Categorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def _categorical(p: Any, q: Any) -> Tensor:
    return (times(p.probs, p.logits) - times(p.probs, q.logits)).sum(-1)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    dtype = wg.result_type(p.concentration, q.concentration)
    a, b = in_double(p).concentration, in_double(q).concentration
    total, other = a.sum(-1), b.sum(-1)
    normalizers = total.lgamma() - other.lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return (normalizers + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)).to(dtype)


def _log_det(p: Any) -> Tensor:
    """The logarithm of the determinant of the covariance."""
    if isinstance(p, LowRankMultivariateNormal):
        return p.log_det()
    return 2 * half_log_det(p._factor)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _multivariate(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"kl_divergence: events have different shapes, {tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )
    batch = wg.broadcast_shapes(p.batch_shape, q.batch_shape)
    n = p.event_shape[0]
    factor, other = (x.scale_tril.expand(*batch, n, n) for x in (q, p))
    trace = wg.linalg.solve_triangular(factor, other, upper=False).square().sum((-2, -1))
    apart = (p.loc - q.loc).expand(*batch, n)
    return 0.5 * (_log_det(q) - _log_det(p) + trace + squared_norm(factor, apart) - n)


@register_kl(Wishart, Wishart)
def _wishart(p: Any, q: Any) -> Tensor:
    """As of an exponential family: `E log det X` is a sum of digammas and the log determinant of the
    scale."""
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"kl_divergence: events have different shapes, {tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )
    return _wishart_divergence(p.df, p._factor, q.df, q._factor)


@wide
def _wishart_divergence(a: Tensor, p: Tensor, b: Tensor, q: Tensor) -> Tensor:
    """Of degrees of freedom and Cholesky factors."""
    n = p.shape[-1]
    shape = wg.broadcast_shapes(p.shape, q.shape)
    ratio = wg.linalg.solve_triangular(q.expand(*shape), p.expand(*shape), upper=False)
    digammas = sum((0.5 * (a - i)).digamma() for i in range(1, n)) + (0.5 * a).digamma()
    normalizers = (0.5 * b).mvlgamma(n) - (0.5 * a).mvlgamma(n)
    apart = b * (half_log_det(q) - half_log_det(p))
    return normalizers + 0.5 * (a - b) * digammas + apart + 0.5 * a * (ratio.square().sum((-2, -1)) - n)


# ---- made of others ------------------------------------------------------------------------------


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    n = p.reinterpreted_batch_ndims
    if n != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence: Independents with different reinterpreted_batch_ndims, "
            f"{n} and {q.reinterpreted_batch_ndims}"
        )
    return sum_last(kl_divergence(p.base_dist, q.base_dist), n)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """That of the bases: a bijection changes nothing."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "kl_divergence: TransformedDistributions with different transforms or events"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Tensor:
    """The Bregman divergence of the normaliser (Nielsen and Nock 2010)."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"kl_divergence: no rule for {type(p).__name__} and {type(q).__name__}; those of exponential "
            "families follow from their normalisers within one family only"
        )
    normalizer, means = p._normalizer_and_means()
    total = q._log_normalizer(*q._natural_params) - normalizer
    for mine, other, mean in zip(p._natural_params, q._natural_params, means):
        total = total - p._summed((other - mine) * mean)
    return total
