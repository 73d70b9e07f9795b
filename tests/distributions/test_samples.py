"""Samples: their distribution by Kolmogorov and Smirnov's test and chi-squared, moments, seeds, extremes."""

from typing import Any

import numpy as np
import pytest
import scipy.stats as st
import wengert as wg
import wengert.distributions as D
from distributions.families import Array, tensor
from wengert.distributions.numerics.samplers import (
    binomial_sample,
    gamma_sample,
    log_gamma_sample,
    poisson_sample,
    von_mises_sample,
)

N = 40_000
# The seed is fixed, so that this is no matter of luck: a wrong sampler fails by many powers of ten.
LEAST = 1e-4


def fits(x: Array, cdf: Any) -> bool:
    return bool(st.kstest(x, cdf).pvalue > LEAST)


def counts_fit(x: Array, dist: Any) -> bool:
    low, high = int(x.min()), int(x.max())
    k = np.arange(low, high + 1)
    expected, found = dist.pmf(k) * x.size, np.bincount((x - low).astype(int), minlength=k.size)
    often = expected > 10
    groups = [np.append(v[often], x.size - v[often].sum()) for v in (found, expected)]
    groups = [g[:-1] if groups[1][-1] < 5 else g for g in groups]
    return bool(st.chisquare(groups[0], groups[1] * groups[0].sum() / groups[1].sum()).pvalue > LEAST)


CONTINUOUS = [
    (D.Normal(1.0, 2.0), st.norm(1, 2)),
    (D.LogNormal(0.5, 0.7), st.lognorm(0.7, scale=np.exp(0.5))),
    (D.HalfNormal(2.0), st.halfnorm(scale=2)),
    (D.Cauchy(1.0, 2.0), st.cauchy(1, 2)),
    (D.HalfCauchy(2.0), st.halfcauchy(scale=2)),
    (D.Laplace(1.0, 2.0), st.laplace(1, 2)),
    (D.Gumbel(1.0, 2.0), st.gumbel_r(1, 2)),
    (D.Uniform(-1.0, 3.0), st.uniform(-1, 4)),
    (D.VonMises(1.0, 2.0), st.vonmises(2, 1)),
    (D.Exponential(2.0), st.expon(scale=0.5)),
    (D.Weibull(2.0, 1.5), st.weibull_min(1.5, scale=2)),
    (D.Pareto(2.0, 1.5), st.pareto(1.5, scale=2)),
    (D.GeneralizedPareto(1.0, 2.0, 0.0), st.genpareto(0, 1, 2)),
    (D.GeneralizedPareto(1.0, 2.0, -0.4), st.genpareto(-0.4, 1, 2)),
    (D.Gamma(0.3, 2.0), st.gamma(0.3, scale=0.5)),
    (D.Gamma(30.0, 2.0), st.gamma(30, scale=0.5)),
    (D.Chi2(3.0), st.chi2(3)),
    (D.InverseGamma(3.0, 2.0), st.invgamma(3, scale=2)),
    (D.StudentT(3.0, 1.0, 2.0), st.t(3, 1, 2)),
    (D.FisherSnedecor(3.0, 5.0), st.f(3, 5)),
    (D.Beta(0.5, 2.0), st.beta(0.5, 2)),
    (D.Kumaraswamy(1.0, 2.0), st.beta(1, 2)),
]
DISCRETE = [
    (D.Bernoulli(0.3), st.bernoulli(0.3)),
    (D.Geometric(0.2), st.geom(0.2, loc=-1)),
    (D.Poisson(0.5), st.poisson(0.5)),
    (D.Poisson(60.0), st.poisson(60)),
    (D.Binomial(7, 0.3), st.binom(7, 0.3)),
    (D.Binomial(200, 0.7), st.binom(200, 0.7)),
    (D.NegativeBinomial(2.5, 0.4), st.nbinom(2.5, 0.6)),
]
name = lambda d: type(d).__name__ if isinstance(d, D.Distribution) else ""


@pytest.mark.parametrize(("d", "reference"), CONTINUOUS, ids=name)
def test_continuous(d: D.Distribution, reference: Any) -> None:
    x = d.sample((N,))
    assert x.dtype == wg.float32
    low, high = (-np.pi, np.pi) if isinstance(d, D.VonMises) else (-np.inf, np.inf)
    x = x.double().numpy()
    assert ((low <= x) & (x <= high + 1e-6)).all()
    x = np.where(x < 1 - np.pi, x + 2 * np.pi, x) if isinstance(d, D.VonMises) else x
    assert fits(x, reference.cdf)


@pytest.mark.parametrize(("d", "reference"), DISCRETE, ids=name)
def test_discrete(d: D.Distribution, reference: Any) -> None:
    x = d.sample((N,)).numpy()
    assert (x == np.floor(x)).all()
    assert counts_fit(x, reference)


@pytest.mark.parametrize("a", [1e-3, 0.05, 0.5, 0.99, 1.0, 1.5, 10.0, 1e3, 1e6])
def test_gamma_sampler(a: float) -> None:
    # Where a variate underflows, its distribution function is x^a / gamma(a + 1).
    log_x = log_gamma_sample(wg.full((N,), a, dtype=wg.float64)).numpy()
    q = np.where(
        log_x < -600, np.exp(np.minimum(a * log_x, 0)), st.gamma.cdf(np.exp(np.maximum(log_x, -600)), a)
    )
    assert fits(q, "uniform")


@pytest.mark.parametrize("rate", [0.01, 1.0, 9.9, 10.0, 31.0, 1000.0])
def test_poisson_sampler(rate: float) -> None:
    assert counts_fit(poisson_sample(wg.full((N,), rate)).numpy(), st.poisson(rate))


@pytest.mark.parametrize(("n", "p"), [(1, 0.3), (5, 0.9), (20, 0.5), (21, 0.5), (1000, 0.011), (1000, 0.99)])
def test_binomial_sampler(n: int, p: float) -> None:
    got = binomial_sample(wg.tensor(float(n)), wg.full((N,), p, dtype=wg.float64))
    assert counts_fit(got.numpy(), st.binom(n, p))


@pytest.mark.parametrize("k", [1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6])
def test_von_mises_sampler(k: float) -> None:
    assert fits(von_mises_sample(wg.full((N,), k, dtype=wg.float64)).numpy(), st.vonmises(k).cdf)


def test_samplers_at_extremes() -> None:
    assert poisson_sample(wg.tensor([0.0, 1e-30])).tolist() == [0, 0]
    assert binomial_sample(wg.tensor([0.0, 5.0, 5.0]), wg.tensor([0.5, 0.0, 1.0])).tolist() == [0, 0, 5]
    big = poisson_sample(wg.full((1000,), 1e12, dtype=wg.float64)).numpy()
    assert abs((big - 1e12).std() / 1e6 - 1) < 0.1
    many = binomial_sample(
        wg.tensor(1e12, dtype=wg.float64), wg.full((1000,), 1e-3, dtype=wg.float64)
    ).numpy()
    assert abs((many - 1e9).std() / np.sqrt(1e9) - 1) < 0.1
    assert gamma_sample(wg.zeros(0)).shape == (0,)
    # NaN is no reason to draw for ever.
    assert gamma_sample(wg.tensor([wg.nan])).isnan().all()
    assert von_mises_sample(wg.tensor([wg.nan])).isnan().all()


def test_samples_lie_where_the_density_is_finite() -> None:
    for d in (
        D.Beta(wg.full((2000,), 1e-3), 1e-3),
        D.Gamma(wg.full((2000,), 1e-3), 1.0),
        D.Dirichlet(wg.full((500, 3), 1e-3)),
        D.Kumaraswamy(wg.full((2000,), 1e-2), 1e-2),
        D.RelaxedBernoulli(wg.tensor(0.01), wg.full((2000,), 0.5)),
    ):
        x = d.sample()
        assert x.isfinite().all()
        assert d.log_prob(x).isfinite().all(), type(d).__name__


def test_categories() -> None:
    p = np.array([0.1, 0.0, 0.6, 0.3])
    x = D.Categorical(tensor(p)).sample((N,)).numpy()
    found = np.bincount(x, minlength=4)
    assert found[1] == 0
    assert st.chisquare(found[p > 0], N * p[p > 0]).pvalue > LEAST
    one = D.OneHotCategorical(tensor(p)).sample((N,))
    assert (one.sum(-1) == 1).all()
    assert st.chisquare(one.sum(0).numpy()[p > 0], N * p[p > 0]).pvalue > LEAST
    many = D.Multinomial(5, tensor(p)).sample((N,))
    assert (many.sum(-1) == 5).all()
    assert counts_fit(many[:, 2].numpy(), st.binom(5, 0.6))
    d = D.Categorical(tensor([[1.0, 0.0], [0.0, 1.0]]))
    assert d.sample((3,)).tolist() == [[0, 1]] * 3
    assert d.sample((0,)).shape == (0, 2)


def test_vectors_and_matrices() -> None:
    rng = np.random.default_rng(0)
    v = np.array([[2.0, 0.5], [0.5, 1.0]])
    for d in (
        D.MultivariateNormal(tensor([1.0, -1.0]), tensor(v)),
        D.MultivariateNormal(tensor([1.0, -1.0]), precision_matrix=tensor(np.linalg.inv(v))),
        D.LowRankMultivariateNormal(tensor([1.0, -1.0]), tensor([[1.0], [0.5]]), tensor([1.0, 0.75])),
    ):
        x = d.sample((N,)).numpy()
        np.testing.assert_allclose(np.cov(x.T), v, atol=0.05)
        along = rng.normal(size=2)
        scale = np.sqrt(along @ v @ along)
        assert fits(x @ along, st.norm(along @ [1, -1], scale).cdf)
    # The projection of a Wishart matrix on a vector is chi-squared.
    w = D.Wishart(tensor(3.5), tensor(v)).sample((N,)).numpy()
    assert fits(np.einsum("i,nij,j->n", along, w, along) / scale**2, st.chi2(3.5).cdf)
    # Correlations of LKJ's distribution are beta variates on [-1, 1].
    factors = D.LKJCholesky(4, tensor(1.5)).sample((N,))
    assert D.constraints.corr_cholesky.check(factors).all()
    correlations = (factors @ factors.mT).numpy()
    for i, j in ((1, 0), (3, 1), (3, 2)):
        assert fits(correlations[:, i, j] / 2 + 0.5, st.beta(2.5, 2.5).cdf)
    dirichlet = D.Dirichlet(tensor([0.5, 2.0, 3.0])).sample((N,)).numpy()
    assert fits(dirichlet[:, 0], st.beta(0.5, 5).cdf)


def test_relaxations() -> None:
    x = D.RelaxedBernoulli(tensor(0.5), logits=tensor(1.0)).sample((N,)).numpy()
    # A logistic variate around the logits, over the temperature.
    assert fits(0.5 * np.log(x / (1 - x)), st.logistic(1, 1).cdf)
    y = D.RelaxedOneHotCategorical(tensor(0.5), tensor([0.2, 0.5, 0.3])).sample((N,))
    np.testing.assert_allclose(y.sum(-1).numpy(), 1)
    found = np.bincount(y.argmax(-1).numpy(), minlength=3)
    assert st.chisquare(found, N * np.array([0.2, 0.5, 0.3])).pvalue > LEAST


def test_mixtures() -> None:
    d = D.MixtureSameFamily(D.Categorical(tensor([0.3, 0.7])), D.Normal(tensor([-1.0, 2.0]), tensor(0.5)))
    x = d.sample((N,)).numpy()
    assert fits(x, lambda v: 0.3 * st.norm.cdf(v, -1, 0.5) + 0.7 * st.norm.cdf(v, 2, 0.5))


@pytest.mark.parametrize(
    "d",
    [
        *(d for d, _ in CONTINUOUS + DISCRETE),
        D.Dirichlet(wg.ones(3)),
        D.LKJCholesky(3),
        D.Wishart(4.0, wg.eye(3)),
    ],
    ids=name,
)
def test_a_seed_gives_the_same_samples(d: D.Distribution) -> None:
    wg.manual_seed(5)
    first, second = d.sample((50,)), d.sample((50,))
    wg.manual_seed(5)
    assert wg.equal(first, d.sample((50,)))
    assert not wg.equal(first, second)


def test_samples_are_constants() -> None:
    scale = wg.tensor(2.0, requires_grad=True)
    for d in (D.Normal(0.0, scale), D.Gamma(scale, scale), D.LogNormal(0.0, scale), D.Poisson(scale)):
        assert not d.sample((3,)).requires_grad
    assert D.Gamma(scale, 1.0).rsample().requires_grad
    value, moved = wg.jvp(lambda s: D.Normal(0.0, s).sample() * s, (wg.tensor(2.0),), (wg.tensor(1.0),))
    assert moved.item() == pytest.approx(value.item() / 2)


def test_a_pathwise_gradient_trains() -> None:
    """Matches a gamma distribution to another by the gradient of samples alone."""
    wg.manual_seed(0)
    log_a, log_b = (wg.zeros((), requires_grad=True) for _ in range(2))
    optimiser = wg.optim.Adam([log_a, log_b], lr=0.05)
    target = D.Gamma(3.0, 2.0)
    for _ in range(250):
        q = D.Gamma(log_a.exp(), log_b.exp())
        x = q.rsample((64,))
        loss = (q.log_prob(x) - target.log_prob(x)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert log_a.exp().item() == pytest.approx(3, abs=0.4)
    assert log_b.exp().item() == pytest.approx(2, abs=0.4)
