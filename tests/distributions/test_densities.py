"""Densities, distribution functions, quantiles and moments against SciPy, numerical integrals and closed
forms."""

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.special as sp
import scipy.stats as st
import wengert as wg
import wengert.distributions as D
from distributions.families import FAMILIES, Array, Family, tensor

COUNT = 200

# SciPy's own overflows.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def near(got: wg.Tensor, expected: Any, rtol: float = 1e-9, atol: float = 1e-9) -> None:
    np.testing.assert_allclose(got.numpy(), np.broadcast_to(expected, got.shape), rtol=rtol, atol=atol)


def values(family: Family, parameters: list[Array], seed: int = 1) -> tuple[Array, Array]:
    """Values in the support, with probabilities from 1e-14 to nearly 1 below them."""
    q = np.random.default_rng(seed).uniform(size=COUNT)
    q[::5] = 10 ** np.random.default_rng(seed).uniform(-14, -2, q[::5].size)
    v = family.scipy(*parameters).ppf(q)
    if family.name in ("Gamma", "Chi2", "InverseGamma", "FisherSnedecor", "Weibull", "Beta"):
        v = np.clip(v, 1e-300, 1e300)
    if family.name == "Beta":
        v = np.clip(v, 0, 1 - 1e-16)
    return np.where(np.isfinite(v), v, parameters[0] if family.name == "Pareto" else 1.0), q


@pytest.mark.parametrize("name", FAMILIES)
def test_log_prob_and_distribution_functions(name: str) -> None:
    family = FAMILIES[name]
    parameters = family.parameters(COUNT)
    d, reference = family.make(*map(tensor, parameters)), family.scipy(*parameters)
    v, q = values(family, parameters)
    discrete = isinstance(reference.dist, st.rv_discrete)
    # SciPy's negative binomial is given 1 - p, which has lost digits.
    rtol = 1e-6 if name == "NegativeBinomial" else 1e-9
    near(d.log_prob(tensor(v)), (reference.logpmf if discrete else reference.logpdf)(v), rtol, 1e-8)
    if "cdf" not in family.without:
        near(d.cdf(tensor(v)), reference.cdf(v), 1e-9, 1e-11)
    if "icdf" not in family.without:
        near(d.icdf(tensor(q)), reference.ppf(q), 1e-9, 1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_moments_and_entropy(name: str) -> None:
    family = FAMILIES[name]
    parameters = family.parameters(COUNT)
    d, reference = family.make(*map(tensor, parameters)), family.scipy(*parameters)
    # SciPy takes differences where a probability is near 0 or 1.
    rtol = 1e-4 if name in ("NegativeBinomial", "Binomial", "Geometric") else 1e-8
    for what, expected in (("mean", reference.mean), ("variance", reference.var)):
        if what not in family.without:
            near(getattr(d, what), expected(), rtol, 0)
    if "variance" not in family.without:
        near(d.stddev, reference.std(), rtol, 0)
    if "entropy" not in family.without:
        near(d.entropy(), reference.entropy(), 1e-8, 1e-9)


@pytest.mark.parametrize("name", FAMILIES)
def test_float32_is_computed_in_float64_where_terms_cancel(name: str) -> None:
    family = FAMILIES[name]
    parameters = [p.astype(np.float32) for p in family.parameters(COUNT)]
    d = family.make(*map(wg.tensor, parameters), validate_args=False)
    reference = family.scipy(*[p.astype(float) for p in parameters])
    v, _ = values(family, [p.astype(float) for p in parameters])
    v = v.astype(np.float32)
    log = reference.logpmf if isinstance(reference.dist, st.rv_discrete) else reference.logpdf
    expected = log(v.astype(float))
    keep = np.isfinite(v) & np.isfinite(expected)
    got = d.log_prob(wg.tensor(v))
    error = np.abs(got.numpy() - expected) / np.maximum(1, np.abs(expected))
    assert got.dtype == wg.float32
    # Those without gamma functions divide in float32 first, and shapes multiply that error.
    plain = "Normal LogNormal HalfNormal Laplace Gumbel Cauchy HalfCauchy Exponential Weibull Pareto GeneralizedPareto "
    limit = 1e-4 if name in (plain + "Bernoulli Geometric").split() else 1e-6
    assert error[keep].max() < limit


def at(d: D.Distribution, *value: float) -> list[float]:
    return d.log_prob(tensor(value)).tolist()


def test_log_prob_at_the_ends_of_the_support() -> None:
    inf = np.inf
    a = tensor([0.5, 1.0, 2.0])
    assert D.Gamma(a, 1.0).log_prob(tensor(0.0)).tolist() == [inf, 0.0, -inf]
    assert D.Beta(a, 1.0).log_prob(tensor(0.0)).tolist() == [inf, 0.0, -inf]
    assert D.Beta(1.0, a).log_prob(tensor(1.0)).tolist() == [inf, 0.0, -inf]
    assert D.Weibull(1.0, a, validate_args=False).log_prob(tensor(0.0)).tolist() == [inf, 0.0, -inf]
    assert D.Kumaraswamy(a, 1.0).log_prob(tensor(0.0)).tolist() == [inf, 0.0, -inf]
    assert D.FisherSnedecor(2 * a, 1.0, validate_args=False).log_prob(tensor(0.0)).tolist()[::2] == [
        inf,
        -inf,
    ]
    assert at(D.Uniform(0.0, 1.0), 0.0, 1.0) == [0.0, -inf]
    assert at(D.Exponential(2.0), 0.0) == [pytest.approx(np.log(2))]
    assert at(D.Poisson(0.0), 0.0, 1.0) == [0.0, -inf]
    assert at(D.Bernoulli(0.0), 0.0, 1.0) == [0.0, -inf]
    assert at(D.Bernoulli(1.0), 0.0, 1.0) == [-inf, 0.0]
    assert at(D.Geometric(1.0), 0.0, 1.0) == [0.0, -inf]
    assert at(D.Binomial(2, tensor(1.0)), 0.0, 1.0, 2.0) == [-inf, -inf, 0.0]
    assert at(D.Binomial(2, tensor(0.0)), 0.0, 1.0, 2.0) == [0.0, -inf, -inf]
    assert at(D.Binomial(0, tensor(0.3)), 0.0) == [0.0]
    assert at(D.NegativeBinomial(0.0, tensor(0.5)), 0.0, 1.0) == [0.0, -inf]
    assert D.Categorical(tensor([1.0, 0.0])).log_prob(wg.tensor([0, 1])).tolist() == [0.0, -inf]
    assert D.Multinomial(2, tensor([1.0, 0.0])).log_prob(tensor([[0, 2], [2, 0]])).tolist() == [-inf, 0.0]
    assert D.OneHotCategorical(tensor([1.0, 0.0])).log_prob(tensor([[1, 0], [0, 1]])).tolist() == [0.0, -inf]
    # Logits far beyond where probabilities underflow.
    assert at(D.Bernoulli(logits=tensor(-2000.0)), 0.0, 1.0) == [0.0, -2000.0]
    near(D.Binomial(3, logits=tensor(-2000.0)).log_prob(tensor([0.0, 1.0])), [0.0, np.log(3) - 2000])
    near(D.Geometric(logits=tensor(-800.0)).log_prob(tensor(1.0)), -800.0)


@pytest.mark.parametrize(
    "d",
    [
        D.Exponential(1.0, validate_args=False),
        D.Gamma(2.0, 1.0, validate_args=False),
        D.InverseGamma(2.0, 1.0, validate_args=False),
        D.LogNormal(0.0, 1.0, validate_args=False),
        D.HalfNormal(1.0, validate_args=False),
        D.HalfCauchy(1.0, validate_args=False),
        D.Weibull(1.0, 2.0, validate_args=False),
        D.Pareto(1.0, 2.0, validate_args=False),
        D.GeneralizedPareto(0.0, 1.0, 0.5, validate_args=False),
        D.FisherSnedecor(3.0, 4.0, validate_args=False),
        D.Beta(2.0, 3.0, validate_args=False),
        D.Kumaraswamy(2.0, 3.0, validate_args=False),
        D.ContinuousBernoulli(0.3, validate_args=False),
        D.Uniform(0.0, 1.0, validate_args=False),
        D.Poisson(2.0, validate_args=False),
        D.Binomial(3, 0.5, validate_args=False),
        D.NegativeBinomial(3.0, 0.5, validate_args=False),
    ],
    ids=lambda d: type(d).__name__,
)
def test_outside_of_the_support_the_density_is_0(d: D.Distribution) -> None:
    x = wg.tensor(-1.0, requires_grad=True)
    log = d.log_prob(x)
    assert log.item() == -np.inf
    if log.requires_grad:
        log.backward()
        assert x.grad is None or x.grad.item() == 0


@pytest.mark.parametrize(
    "name", [n for n, f in FAMILIES.items() if n not in ("Bernoulli", "Binomial", "Beta")]
)
def test_at_infinity_the_density_is_0(name: str) -> None:
    parameters = [tensor(p) for p in FAMILIES[name].parameters(20, extreme=False)]
    d = FAMILIES[name].make(*parameters, validate_args=False)
    assert (d.log_prob(tensor(np.inf)) < -1e100).all()
    if "cdf" not in FAMILIES[name].without:
        assert (d.cdf(tensor(np.inf)) == 1).all()


def test_von_mises() -> None:
    k, m = np.array([1e-3, 0.3, 2.0, 40.0, 1e4]), np.array([0.0, 1.0, -2.0, 3.0, 0.5])
    x = np.array([0.1, 3.0, -1.0, 2.9, 0.51])
    d, reference = D.VonMises(tensor(m), tensor(k)), st.vonmises(k, m)
    near(d.log_prob(tensor(x)), reference.logpdf(x))
    near(d.entropy(), reference.entropy(), 1e-8)
    near(d.variance, 1 - sp.i1e(k) / sp.i0e(k))


def test_uniform() -> None:
    d, reference = D.Uniform(tensor([0.0, -5.0]), tensor([1.0, 3.0])), st.uniform([0, -5], [1, 8])
    near(d.log_prob(tensor(0.5)), reference.logpdf(0.5))
    near(d.cdf(tensor(0.5)), reference.cdf(0.5))
    near(d.variance, reference.var())
    near(d.entropy(), reference.entropy())


@pytest.mark.parametrize(
    "logits", [-1000.0, -40.0, -3.0, -0.4999, -1e-5, 0.0, 1e-9, 0.501, 3.0, 29.0, 31.0, 1000.0]
)
def test_continuous_bernoulli(logits: float) -> None:
    d = D.ContinuousBernoulli(logits=tensor(logits))
    # The mass lies within a few units of 1 / logits from one end.
    width = min(1.0, 60 / max(1.0, abs(logits)))
    low, high = (0.0, width) if logits < 0 else (1 - width, 1.0)

    def mean(f: Any) -> float:
        found, _ = scipy.integrate.quad(
            lambda x: f(x) * float(np.exp(d.log_prob(tensor(x)).item())),
            low,
            high,
            epsabs=1e-13,
            epsrel=1e-12,
        )
        return float(found)

    assert mean(lambda x: 1.0) == pytest.approx(1, abs=1e-10)
    first = mean(lambda x: x)
    assert d.mean.item() == pytest.approx(first, rel=1e-10)
    assert d.variance.item() == pytest.approx(mean(lambda x: (x - first) ** 2), rel=1e-6)
    assert d.entropy().item() == pytest.approx(
        -mean(lambda x: d.log_prob(tensor(x)).item()), rel=1e-8, abs=1e-9
    )
    x = low + 0.3 * (high - low)
    below, _ = scipy.integrate.quad(
        lambda t: float(np.exp(d.log_prob(tensor(t)).item())), 0 if logits > 0 else low, x
    )
    assert d.cdf(tensor(x)).item() == pytest.approx(below, rel=1e-7)
    for q in (1e-9, 0.2, 0.9):
        assert d.cdf(d.icdf(tensor(q))).item() == pytest.approx(q, rel=1e-9)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (2.0, 3.0), (1.0, 1.0), (30.0, 0.7)])
def test_kumaraswamy(a: float, b: float) -> None:
    d = D.Kumaraswamy(tensor(a), tensor(b))
    # x^a is a beta variate with concentrations 1 and b.
    x = np.array([1e-6, 0.2, 0.7, 0.999])
    near(d.cdf(tensor(x)), st.beta(1, b).cdf(x**a))
    near(d.log_prob(tensor(x)), st.beta(1, b).logpdf(x**a) + np.log(a) + (a - 1) * np.log(x), 1e-8)
    near(d.cdf(d.icdf(tensor([1e-8, 0.3, 0.9]))), [1e-8, 0.3, 0.9], 1e-7)
    near(d.mean, st.beta(1, b).expect(lambda y: y ** (1 / a)), 1e-6)
    near(
        d.variance,
        st.beta(1, b).expect(lambda y: y ** (2 / a)) - st.beta(1, b).expect(lambda y: y ** (1 / a)) ** 2,
        1e-5,
    )
    near(d.entropy(), -st.beta(1, b).expect(lambda y: d.log_prob(tensor(y ** (1 / a))).item()), 1e-5, 1e-6)


def test_large_parameters_do_not_cancel() -> None:
    # Differences of numbers of the size of these parameters times their logarithm.
    near(D.Poisson(tensor(1e10)).log_prob(tensor(1e10 + 3e5)), -0.5 * np.log(2 * np.pi * 1e10) - 4.5, 1e-5)
    near(D.Gamma(tensor(1e10), tensor(1.0)).log_prob(tensor(1e10)), -0.5 * np.log(2 * np.pi * 1e10), 1e-8)
    near(D.Beta(tensor(1e9), tensor(1e9)).log_prob(tensor(0.5)), 0.5 * np.log(4 * 2e9 / (2 * np.pi)), 1e-8)
    near(D.Binomial(10**12, tensor(0.5)).log_prob(tensor(5e11)), -0.5 * np.log(np.pi * 5e11), 1e-8)
    near(D.StudentT(tensor(1e12)).log_prob(tensor(2.0)), st.norm.logpdf(2.0), 1e-9)
    near(D.VonMises(tensor(0.0), tensor(1e8)).log_prob(tensor(1e-4)), st.norm.logpdf(1) + np.log(1e4), 1e-7)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_multivariate_normal(n: int) -> None:
    rng = np.random.default_rng(n)
    root, loc, x = rng.normal(size=(n, n)), rng.normal(size=n), rng.normal(size=(4, n))
    covariance = root @ root.T + np.eye(n)
    reference = st.multivariate_normal(loc, covariance)
    for given in (
        {"covariance_matrix": covariance},
        {"precision_matrix": np.linalg.inv(covariance)},
        {"scale_tril": np.linalg.cholesky(covariance)},
    ):
        d = D.MultivariateNormal(tensor(loc), **{k: tensor(v) for k, v in given.items()})
        near(d.log_prob(tensor(x)), reference.logpdf(x))
        near(d.entropy(), reference.entropy())
        near(d.covariance_matrix, covariance)
        near(d.precision_matrix, np.linalg.inv(covariance))
        near(d.scale_tril, np.linalg.cholesky(covariance))
        near(d.variance, np.diag(covariance))


def test_multivariate_normal_in_batches() -> None:
    rng = np.random.default_rng(0)
    loc, factor, x = (
        rng.normal(size=(3, 1, 2)),
        np.tril(rng.normal(size=(4, 2, 2))),
        rng.normal(size=(5, 1, 4, 2)),
    )
    factor[:, [0, 1], [0, 1]] = np.abs(factor[:, [0, 1], [0, 1]]) + 0.5
    d = D.MultivariateNormal(tensor(loc), scale_tril=tensor(factor))
    got = d.log_prob(tensor(x))
    assert d.batch_shape == (3, 4)
    assert got.shape == (5, 3, 4)
    for i, j, k in np.ndindex(5, 3, 4):
        one = st.multivariate_normal(loc[j, 0], factor[k] @ factor[k].T)
        assert got[i, j, k].item() == pytest.approx(one.logpdf(x[i, 0, k]))


def test_low_rank_multivariate_normal() -> None:
    rng = np.random.default_rng(0)
    loc, w, diagonal, x = (
        rng.normal(size=5),
        rng.normal(size=(5, 2)),
        rng.uniform(0.5, 2, 5),
        rng.normal(size=(3, 5)),
    )
    covariance = w @ w.T + np.diag(diagonal)
    d, reference = (
        D.LowRankMultivariateNormal(*map(tensor, (loc, w, diagonal))),
        st.multivariate_normal(loc, covariance),
    )
    near(d.log_prob(tensor(x)), reference.logpdf(x))
    near(d.entropy(), reference.entropy())
    near(d.covariance_matrix, covariance)
    near(d.precision_matrix, np.linalg.inv(covariance))
    near(d.scale_tril, np.linalg.cholesky(covariance))
    near(d.variance, np.diag(covariance))


@pytest.mark.parametrize("a", [[0.01, 0.5, 3.0], [1.0, 1.0, 1.0], [1e4, 2e4, 5.0]])
def test_dirichlet(a: list[float]) -> None:
    d, reference = D.Dirichlet(tensor(a)), st.dirichlet(a)
    x = np.array([0.2, 0.3, 0.5])
    near(d.log_prob(tensor(x)), reference.logpdf(x), 1e-8)
    near(d.entropy(), reference.entropy(), 1e-7)
    near(d.mean, reference.mean())
    near(d.variance, reference.var())


def test_multinomial_and_categorical() -> None:
    p, k = np.array([0.1, 0.2, 0.7]), np.array([2, 0, 3])
    d, reference = D.Multinomial(5, tensor(p)), st.multinomial(5, p)
    near(d.log_prob(tensor(k)), reference.logpmf(k))
    near(d.entropy(), reference.entropy())
    near(d.mean, 5 * p)
    near(D.Multinomial(5, logits=tensor(np.log(p) + 3)).log_prob(tensor(k)), reference.logpmf(k))
    for c in (D.Categorical(tensor(2 * p)), D.Categorical(logits=tensor(np.log(p) - 7))):
        near(c.probs, p)
        near(c.logits, np.log(p))
        near(c.log_prob(wg.tensor([0, 2])), np.log(p[[0, 2]]))
        near(c.entropy(), -(p * np.log(p)).sum())
    binomial = D.Binomial(tensor([3.0, 50.0]), tensor(0.3))
    near(binomial.entropy(), [st.binom(3, 0.3).entropy(), st.binom(50, 0.3).entropy()])


@pytest.mark.parametrize("df", [2.5, 4.0, 30.0])
def test_wishart(df: float) -> None:
    v, x = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[3.0, 1.0], [1.0, 4.0]])
    reference = st.wishart(df, v)
    for given in (
        {"covariance_matrix": v},
        {"precision_matrix": np.linalg.inv(v)},
        {"scale_tril": np.linalg.cholesky(v)},
    ):
        d = D.Wishart(tensor(df), **{k: tensor(m) for k, m in given.items()})
        near(d.log_prob(tensor(x)), reference.logpdf(x))
        near(d.entropy(), reference.entropy())
        near(d.mean, reference.mean())
        near(d.variance, reference.var())


def test_lkj_integrates_to_1() -> None:
    # With r the correlation, the factor of size 2 is [[1, 0], [r, sqrt(1 - r^2)]] and its density is in r.
    for concentration in (0.5, 1.0, 3.0):
        d = D.LKJCholesky(2, tensor(concentration))

        def density(r: float, d: D.Distribution = d) -> float:
            return float(np.exp(d.log_prob(tensor([[1, 0], [r, np.sqrt(1 - r * r)]])).item()))

        total, _ = scipy.integrate.quad(density, -1 + 1e-12, 1 - 1e-12)
        assert total == pytest.approx(1, abs=1e-4)


def test_mixtures_and_transformed() -> None:
    weights, loc = np.array([0.3, 0.7]), np.array([-1.0, 2.0])
    d = D.MixtureSameFamily(D.Categorical(tensor(weights)), D.Normal(tensor(loc), tensor(0.5)))
    x = np.array([-2.0, 0.0, 50.0])
    parts = np.log(weights) + st.norm(loc, 0.5).logpdf(x[:, None])
    near(d.log_prob(tensor(x)), sp.logsumexp(parts, -1))
    near(d.cdf(tensor(x)), (weights * st.norm(loc, 0.5).cdf(x[:, None])).sum(-1))
    near(d.mean, (weights * loc).sum())
    near(d.variance, 0.25 + (weights * loc**2).sum() - (weights * loc).sum() ** 2)
    vectors = D.MixtureSameFamily(
        D.Categorical(tensor(weights)),
        D.Independent(D.Normal(tensor(np.ones((2, 3))), tensor(loc**2)[:, None]), 1),
    )
    near(vectors.mean, np.ones(3))
    logistic = D.TransformedDistribution(
        D.Uniform(tensor(0.0), tensor(1.0)),
        [D.SigmoidTransform().inv, D.AffineTransform(tensor(1.0), tensor(-2.0))],
    )
    near(logistic.log_prob(tensor(x)), st.logistic(1, 2).logpdf(x))
    near(logistic.cdf(tensor(x[:2])), st.logistic(1, 2).cdf(x[:2]))
    near(logistic.icdf(tensor([0.1, 0.9])), st.logistic(1, 2).ppf([0.1, 0.9]))
