"""Divergences against integrals, sums over supports and means of samples; registering rules."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import wengert as wg
import wengert.distributions as D
from distributions.families import tensor

inf = np.inf

NUMBERS: dict[str, D.Distribution] = {
    "Beta": D.Beta(tensor(2.5), tensor(1.7)),
    "ContinuousBernoulli": D.ContinuousBernoulli(tensor(0.3)),
    "Exponential": D.Exponential(tensor(1.3)),
    "Gamma": D.Gamma(tensor(2.2), tensor(1.6)),
    "Gumbel": D.Gumbel(tensor(0.3), tensor(1.4)),
    "Laplace": D.Laplace(tensor(0.2), tensor(0.8)),
    "Normal": D.Normal(tensor(0.4), tensor(1.2)),
    "Pareto": D.Pareto(tensor(0.6), tensor(3.5)),
    "Uniform": D.Uniform(tensor(0.7), tensor(0.9)),
}
OTHERS: dict[str, D.Distribution] = {
    "Beta": D.Beta(tensor(0.8), tensor(3.0)),
    "ContinuousBernoulli": D.ContinuousBernoulli(tensor(0.9)),
    "Exponential": D.Exponential(tensor(0.7)),
    "Gamma": D.Gamma(tensor(0.6), tensor(0.9)),
    "Gumbel": D.Gumbel(tensor(-0.5), tensor(2.0)),
    "Laplace": D.Laplace(tensor(-0.3), tensor(1.1)),
    "Normal": D.Normal(tensor(-0.2), tensor(0.9)),
    "Pareto": D.Pareto(tensor(0.5), tensor(2.0)),
    "Uniform": D.Uniform(tensor(-0.5), tensor(1.5)),
}
ENDS = {
    "Beta": (0.0, 1.0),
    "ContinuousBernoulli": (0.0, 1.0),
    "Exponential": (0.0, 40.0),
    "Gamma": (0.0, 40.0),
    "Gumbel": (-5.0, 50.0),
    "Laplace": (-30.0, 30.0),
    "Normal": (-12.0, 12.0),
    "Pareto": (0.6, inf),
    "Uniform": (0.7, 0.9),
}
# What has no closed form, or no rule.
WITHOUT = {
    ("Beta", "Gumbel"), ("Beta", "Laplace"), ("ContinuousBernoulli", "Beta"), ("ContinuousBernoulli", "Gamma"),
    ("ContinuousBernoulli", "Gumbel"), ("ContinuousBernoulli", "Laplace"), ("Exponential", "Laplace"),
    ("Gamma", "Laplace"), ("Gumbel", "Laplace"), ("Laplace", "Gumbel"), ("Pareto", "Gumbel"), ("Pareto", "Laplace"),
    ("Uniform", "Laplace"),
}  # fmt: skip


def by_integration(p: D.Distribution, q: D.Distribution, low: float, high: float) -> float:
    """The divergence by quadrature, infinite where q has no density."""
    p, q = p.expand((1,)), q.expand((1,))
    p._validate_args = q._validate_args = False
    if q.log_prob(tensor(np.linspace(low, min(high, 50), 203)[1:-1])).isinf().any():
        return inf

    def integrand(x: float) -> float:
        log_p = p.log_prob(tensor(x)).item()
        return float(np.exp(log_p)) * (log_p - q.log_prob(tensor(x)).item()) if log_p > -700 else 0.0

    edges = [low, *[e for e in (0.2, 1.0, 5.0) if low < e < high], high]
    return sum(scipy.integrate.quad(integrand, a, b, limit=200)[0] for a, b in itertools.pairwise(edges))


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize(
    ("p", "q"), [pair for pair in itertools.product(NUMBERS, OTHERS) if pair not in WITHOUT]
)
def test_pairs_of_distributions_of_numbers(p: str, q: str) -> None:
    got = D.kl_divergence(NUMBERS[p], OTHERS[q]).item()
    expected = by_integration(NUMBERS[p], OTHERS[q], *ENDS[p])
    assert got == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert got > 0


@pytest.mark.parametrize(("p", "q"), sorted(WITHOUT))
def test_pairs_without_a_rule(p: str, q: str) -> None:
    with pytest.raises(NotImplementedError, match="no rule for"):
        D.kl_divergence(NUMBERS[p], OTHERS[q])


def test_supports_that_depend_on_parameters() -> None:
    u = lambda a, b: D.Uniform(tensor(a), tensor(b))
    assert D.kl_divergence(u(-0.1, 0.5), D.Beta(2.0, 2.0)).item() == inf
    assert D.kl_divergence(u(-0.1, 0.5), D.Exponential(2.0)).item() == inf
    assert D.kl_divergence(u(0.1, 0.5), u(0.2, 0.9)).item() == inf
    assert D.kl_divergence(u(0.1, 0.5), u(0.1, 0.5)).item() == 0
    assert D.kl_divergence(u(1.0, 2.0), D.Pareto(1.5, 1.0)).item() == inf
    assert D.kl_divergence(D.Pareto(1.0, 1.0), D.Pareto(2.0, 1.0)).item() == inf
    assert D.kl_divergence(D.Pareto(1.0, 0.5), D.Exponential(2.0)).item() == inf
    assert D.kl_divergence(D.Beta(1.0, 2.0), u(0.2, 2.0)).item() == inf
    assert D.kl_divergence(D.Poisson(1.0), D.Binomial(3, tensor(0.5))).item() == inf
    assert D.kl_divergence(D.Bernoulli(0.5), D.Bernoulli(0.0)).item() == inf
    assert D.kl_divergence(D.Bernoulli(0.0), D.Bernoulli(0.5)).item() == pytest.approx(np.log(2))
    assert D.kl_divergence(D.Poisson(1.0), D.Poisson(0.0)).item() == inf
    assert D.kl_divergence(D.Poisson(0.0), D.Poisson(2.0)).item() == 2


def by_sum(p: D.Distribution, q: D.Distribution, values: wg.Tensor) -> float:
    log_p = p.log_prob(values)
    terms = log_p.exp() * (log_p - q.log_prob(values))
    return float(wg.where(log_p.isinf(), 0.0, terms).sum().item())


@pytest.mark.parametrize(
    ("p", "q", "values"),
    [
        (D.Bernoulli(tensor(0.3)), D.Bernoulli(logits=tensor(1.3)), wg.arange(2.0, dtype=wg.float64)),
        (D.Bernoulli(tensor(0.3)), D.Poisson(tensor(1.3)), wg.arange(2.0, dtype=wg.float64)),
        (D.Binomial(7, tensor(0.3)), D.Binomial(7, tensor(0.6)), wg.arange(8.0, dtype=wg.float64)),
        (D.Geometric(tensor(0.3)), D.Geometric(tensor(0.6)), wg.arange(200.0, dtype=wg.float64)),
        (D.Poisson(tensor(3.0)), D.Poisson(tensor(2.2)), wg.arange(80.0, dtype=wg.float64)),
        (D.Categorical(tensor([0.3, 0.0, 0.7])), D.Categorical(tensor([0.2, 0.3, 0.5])), wg.arange(3)),
        (D.OneHotCategorical(tensor([0.3, 0.7])), D.OneHotCategorical(tensor([0.2, 0.8])), wg.eye(2)),
    ],
)
def test_of_counts(p: D.Distribution, q: D.Distribution, values: wg.Tensor) -> None:
    assert D.kl_divergence(p, q).item() == pytest.approx(by_sum(p, q, values), rel=1e-9)


def test_binomials_with_other_numbers_of_trials() -> None:
    p, q = D.Binomial(tensor(5.0), tensor(0.3)), D.Binomial(tensor(4.0), tensor(0.3))
    assert D.kl_divergence(p, q).item() == inf
    with pytest.raises(NotImplementedError, match="more trials"):
        D.kl_divergence(q, p)


def covariance(n: int, seed: int) -> wg.Tensor:
    a = np.random.default_rng(seed).normal(size=(n, n))
    return tensor(a @ a.T + np.eye(n))


def low_rank(seed: int) -> D.LowRankMultivariateNormal:
    rng = np.random.default_rng(seed)
    return D.LowRankMultivariateNormal(
        *map(tensor, (rng.normal(size=3), rng.normal(size=(3, 1)), rng.uniform(1, 2, 3)))
    )


VECTORS: list[tuple[Any, Any]] = [
    (D.Dirichlet(tensor([0.7, 2.0, 3.0])), D.Dirichlet(tensor([1.0, 1.5, 0.6]))),
    (
        D.MultivariateNormal(tensor([0.0, 1.0, 2.0]), covariance(3, 0)),
        D.MultivariateNormal(tensor([0.5, 1.0, 1.0]), precision_matrix=covariance(3, 1)),
    ),
    (low_rank(0), low_rank(1)),
    (low_rank(0), D.MultivariateNormal(tensor([0.5, 1.0, 1.0]), covariance(3, 1))),
    (D.MultivariateNormal(tensor([0.5, 1.0, 1.0]), covariance(3, 1)), low_rank(0)),
    (
        D.Independent(D.Normal(tensor([0.0, 1.0]), tensor([1.0, 2.0])), 1),
        D.Independent(D.Normal(tensor([0.5, 0.0]), tensor([1.0, 1.0])), 1),
    ),
    (D.LogNormal(tensor(0.2), tensor(0.7)), D.LogNormal(tensor(0.0), tensor(1.0))),
    (D.HalfNormal(tensor(0.7)), D.HalfNormal(tensor(1.0))),
    (D.Cauchy(tensor(0.2), tensor(0.7)), D.Cauchy(tensor(0.0), tensor(1.0))),
    (D.InverseGamma(tensor(3.0), tensor(2.0)), D.InverseGamma(tensor(2.0), tensor(3.0))),
    (D.Chi2(tensor(3.0)), D.Gamma(tensor(2.0), tensor(0.4))),
    (D.Wishart(tensor(4.5), covariance(3, 0)), D.Wishart(tensor(2.2), precision_matrix=covariance(3, 1))),
    (D.LogisticNormal(tensor([0.1, 0.2]), tensor(0.5)), D.LogisticNormal(tensor([0.0, 0.0]), tensor(1.0))),
]


@pytest.mark.parametrize(("p", "q"), VECTORS, ids=lambda d: type(d).__name__)
def test_means_of_samples(p: D.Distribution, q: D.Distribution) -> None:
    x = p.sample((60_000,))
    terms = p.log_prob(x) - q.log_prob(x)
    error = 5 * (terms.std() / terms.numel() ** 0.5).item()
    assert D.kl_divergence(p, q).item() == pytest.approx(terms.mean().item(), abs=error)


def test_of_wishart_distributions() -> None:
    """In one dimension they are gamma distributions."""
    make = lambda df, v: D.Wishart(tensor(df), tensor([[v]]))
    got = D.kl_divergence(make(3.4, 0.7), make(5.0, 2.0)).item()
    gamma = lambda df, v: D.Gamma(tensor(df / 2), tensor(1 / (2 * v)))
    assert got == pytest.approx(D.kl_divergence(gamma(3.4, 0.7), gamma(5.0, 2.0)).item(), rel=1e-12)
    p = D.Wishart(tensor([[3.0], [4.0]]), covariance(3, 0))
    assert D.kl_divergence(p, p).abs().max() < 1e-13
    assert D.kl_divergence(p, D.Wishart(tensor([3.0, 5.0, 7.0]), covariance(3, 1))).shape == (2, 3)
    with pytest.raises(ValueError, match=r"events have different shapes, \(3, 3\) and \(2, 2\)"):
        D.kl_divergence(p, D.Wishart(tensor(3.0), covariance(2, 0)))
    given = [covariance(2, s).cholesky().requires_grad_() for s in (3, 4)]
    given += [tensor(3.5).requires_grad_(), tensor(2.5).requires_grad_()]
    assert wg.testing.gradcheck(
        lambda a, b, n, m: D.kl_divergence(
            D.Wishart(n, scale_tril=a.tril(), validate_args=False),
            D.Wishart(m, scale_tril=b.tril(), validate_args=False),
        ),
        given,
    )


def test_of_float32_is_computed_in_float64() -> None:
    # Terms of the size of 6000 cancel to this.
    got = D.kl_divergence(D.Gamma(wg.tensor(1000.0), 1.0), D.Gamma(wg.tensor(1001.0), 1.0))
    assert got.dtype == wg.float32
    wide = D.kl_divergence(D.Gamma(tensor(1000.0), 1.0), D.Gamma(tensor(1001.0), 1.0)).item()
    assert got.item() == pytest.approx(wide, rel=1e-6)
    assert wide == pytest.approx(0.5e-3, rel=1e-2)


def test_shapes_and_gradients() -> None:
    p, q = D.Normal(wg.zeros(3, 1), 1.0), D.Normal(wg.zeros(4), 2.0)
    assert D.kl_divergence(p, q).shape == (3, 4)
    assert D.kl_divergence(D.Gamma(wg.ones(3, 1), 1.0), D.Gamma(wg.ones(4), 2.0)).shape == (3, 4)
    assert D.kl_divergence(D.Normal(wg.zeros(3), 1.0), D.Beta(1.0, 2.0)).tolist() == [inf] * 3
    assert D.kl_divergence(D.Independent(p, 2), D.Independent(p, 2)).shape == ()
    full = D.MultivariateNormal(wg.zeros(3, 1, 2), wg.eye(2))
    assert D.kl_divergence(full, D.MultivariateNormal(wg.zeros(4, 2), wg.eye(2))).shape == (3, 4)
    make = lambda a, b: D.kl_divergence(D.Gamma(a, b), D.Gamma(b, a))
    given = [tensor([0.5, 2.0]).requires_grad_(), tensor([1.5, 0.7]).requires_grad_()]
    assert wg.testing.gradcheck(make, given)
    assert wg.testing.gradcheck(lambda a, b: D.kl_divergence(D.Normal(a, b), D.Gumbel(b, a)), given)


# ---- exponential families ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Normal(tensor([0.0, 1.0]), 2.0), D.Normal(tensor([1.0, 1.0]), 1.0)),
        (D.Gamma(tensor(2.0), 3.0), D.Gamma(tensor(1.0), 2.0)),
        (D.Beta(tensor(2.0), 3.0), D.Beta(tensor(1.0), 0.5)),
        (D.Dirichlet(tensor([2.0, 3.0])), D.Dirichlet(tensor([1.0, 0.5]))),
        (D.Bernoulli(tensor(0.3)), D.Bernoulli(tensor(0.6))),
        (D.Exponential(tensor(0.3)), D.Exponential(tensor(0.6))),
        (D.ContinuousBernoulli(tensor(0.3)), D.ContinuousBernoulli(tensor(0.6))),
    ],
    ids=lambda d: type(d).__name__,
)
def test_of_exponential_families_follow_from_the_normaliser(
    p: D.ExponentialFamily, q: D.ExponentialFamily
) -> None:
    np.testing.assert_allclose(D.ExponentialFamily.entropy(p).numpy(), p.entropy().numpy(), rtol=1e-9)
    from wengert.distributions.kl.closed_forms import _exponential_family

    np.testing.assert_allclose(_exponential_family(p, q).numpy(), D.kl_divergence(p, q).numpy(), rtol=1e-9)


def test_a_family_of_ones_own() -> None:
    class Rayleigh(D.ExponentialFamily):
        """`x exp(-x^2 / (2 s^2)) / s^2`."""

        arg_constraints = {"scale": D.constraints.positive}  # noqa: RUF012
        support = D.constraints.positive

        def __init__(self, scale: wg.Tensor) -> None:
            self.scale = scale
            super().__init__(scale.shape)

        _natural_params = property(lambda self: (-0.5 / self.scale.square(),))
        # The carrier is log(x), of mean log(s) + (log(2) - euler) / 2.
        _mean_carrier_measure = property(lambda self: self.scale.log() + 0.5 * (np.log(2) - np.euler_gamma))

        def _log_normalizer(self, *natural_params: wg.Tensor) -> wg.Tensor:
            return -(-2 * natural_params[0]).log()

    p, q = Rayleigh(tensor(1.5)), Rayleigh(tensor(0.7))
    assert p.entropy().item() == pytest.approx(1 + np.log(1.5 / np.sqrt(2)) + np.euler_gamma / 2)
    ratio = (1.5 / 0.7) ** 2
    assert D.kl_divergence(p, q).item() == pytest.approx(ratio - 1 - np.log(ratio))
    assert wg.grad(lambda s: Rayleigh(s).entropy())(tensor(1.5)).item() == pytest.approx(1 / 1.5)
    with pytest.raises(NotImplementedError, match="within one family only"):
        D.kl_divergence(p, D.Normal(0.0, 1.0))


def test_registering() -> None:
    class Mine(D.Normal):
        pass

    p = Mine(tensor(0.0), tensor(1.0))
    assert D.kl_divergence(p, D.Normal(tensor(1.0), tensor(1.0))).item() == 0.5

    @D.register_kl(Mine, D.Normal)
    def rule(p: Any, q: Any) -> wg.Tensor:
        return wg.tensor(7.0)

    assert D.kl_divergence(p, D.Normal(0.0, 1.0)).item() == 7
    assert D.kl_divergence(p, p).item() == 7
    assert D.kl_divergence(D.Normal(0.0, 1.0), p).item() == 0
    with pytest.raises(TypeError, match="a subclass of Distribution expected"):
        D.register_kl(int, D.Normal)
    with pytest.raises(NotImplementedError, match="no rule for Normal and Cauchy"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Cauchy(0.0, 1.0))
    with pytest.raises(NotImplementedError, match="different transforms"):
        D.kl_divergence(
            D.LogNormal(0.0, 1.0), D.TransformedDistribution(D.Normal(0.0, 1.0), D.TanhTransform())
        )
    base = D.Normal(wg.zeros(2, 3), 1.0)
    with pytest.raises(NotImplementedError, match="different reinterpreted_batch_ndims"):
        D.kl_divergence(D.Independent(base, 1), D.Independent(base, 2))
