"""The distributions of numbers, with parameters from easy to extreme, and SciPy's distribution of the same
name."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.stats as st
import wengert as wg
import wengert.distributions as D

Array = np.ndarray[Any, Any]


def tensor(x: Any) -> wg.Tensor:
    return wg.tensor(np.asarray(x, dtype=np.float64))


@dataclass(frozen=True)
class Family:
    """A distribution, the ranges of its parameters, and the reference."""

    make: Callable[..., D.Distribution]
    scipy: Callable[..., Any]
    #: A kind for each parameter: see `draw`.
    kinds: tuple[str, ...]
    #: What SciPy has and we have not, or defines otherwise.
    without: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        return self.make.__name__

    def parameters(self, count: int, seed: int = 0, extreme: bool = True) -> list[Array]:
        rng = np.random.default_rng(seed)
        return [draw(kind, rng, count, extreme) for kind in self.kinds]


def draw(kind: str, rng: np.random.Generator, count: int, extreme: bool) -> Array:
    """Parameters of a kind; extreme ones span several powers of ten."""
    if kind == "real":
        return np.asarray(rng.normal(size=count) * (5 if extreme else 1))
    if kind == "shape":  # of tails and peaks
        return np.asarray(10 ** rng.uniform(*((-3, 3) if extreme else (-0.3, 0.7)), count))
    if kind == "scale":
        return np.asarray(10 ** rng.uniform(*((-2, 2) if extreme else (-0.3, 0.3)), count))
    if kind == "mild":
        return np.asarray(10 ** rng.uniform(*((-1.2, 1.2) if extreme else (-0.3, 0.3)), count))
    if kind == "count":
        return (
            rng.integers(0, 300, count).astype(float) if extreme else rng.integers(3, 9, count).astype(float)
        )
    if kind == "tail":
        c = np.asarray(rng.normal(size=count) * 0.4)
        c[:4] = [0.0, 1e-9, -1e-6, 1e-4][:count]
        return c
    assert kind == "probability"
    p = np.asarray(rng.uniform(0.05, 0.95, count))
    if extreme:
        p[::4] = 10 ** rng.uniform(-12, -2, p[::4].size)
        p[1::4] = 1 - 10 ** rng.uniform(-6, -2, p[1::4].size)
    return p


FAMILIES = {
    family.name: family
    for family in (
        Family(D.Normal, st.norm, ("real", "scale")),
        Family(D.LogNormal, lambda m, s: st.lognorm(s, scale=np.exp(m)), ("real", "mild")),
        Family(D.HalfNormal, lambda s: st.halfnorm(scale=s), ("scale",)),
        Family(D.Cauchy, st.cauchy, ("real", "scale"), ("variance",)),
        Family(D.HalfCauchy, lambda s: st.halfcauchy(scale=s), ("scale",)),
        Family(D.Laplace, st.laplace, ("real", "scale")),
        Family(D.Gumbel, st.gumbel_r, ("real", "scale")),
        Family(D.Exponential, lambda r: st.expon(scale=1 / r), ("scale",)),
        Family(D.Weibull, lambda s, k: st.weibull_min(k, scale=s), ("scale", "mild")),
        Family(D.Pareto, lambda s, a: st.pareto(a, scale=s), ("scale", "shape")),
        Family(
            D.GeneralizedPareto,
            lambda m, s, c: st.genpareto(c, m, s),
            ("real", "scale", "tail"),
            ("variance",),
        ),
        Family(D.Gamma, lambda a, r: st.gamma(a, scale=1 / r), ("shape", "scale"), ("icdf",)),
        Family(D.Chi2, st.chi2, ("shape",), ("icdf",)),
        Family(D.InverseGamma, lambda a, r: st.invgamma(a, scale=r), ("shape", "scale"), ("icdf",)),
        Family(D.StudentT, st.t, ("shape", "real", "scale"), ("cdf", "icdf", "mean")),
        Family(D.FisherSnedecor, st.f, ("shape", "shape"), ("cdf", "icdf", "mean", "variance", "entropy")),
        Family(D.Beta, st.beta, ("shape", "shape"), ("cdf", "icdf")),
        Family(D.Bernoulli, st.bernoulli, ("probability",), ("cdf", "icdf")),
        Family(D.Geometric, lambda p: st.geom(p, loc=-1), ("probability",), ("cdf", "icdf")),
        Family(D.Poisson, st.poisson, ("shape",), ("cdf", "icdf", "entropy")),
        Family(D.Binomial, st.binom, ("count", "probability"), ("cdf", "icdf", "entropy")),
        Family(
            D.NegativeBinomial,
            lambda r, p: st.nbinom(r, 1 - p),
            ("shape", "probability"),
            ("cdf", "icdf", "entropy"),
        ),
    )
}

# Those without a counterpart in SciPy, or with a slow one.
OTHERS = {
    family.name: family
    for family in (
        Family(D.Uniform, lambda a, b: st.uniform(a, b - a), ("real", "real")),
        Family(D.VonMises, lambda m, k: st.vonmises(k, m), ("real", "mild")),
        Family(D.Kumaraswamy, lambda a, b: None, ("mild", "mild")),
        Family(D.ContinuousBernoulli, lambda p: None, ("probability",)),
    )
}
