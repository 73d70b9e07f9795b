"""Distributions inside `vmap` and the other transforms: the same as in a loop, with validation left out."""

from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.distributions as D
from distributions.families import FAMILIES, OTHERS, tensor

ALL = FAMILIES | OTHERS
COUNT = 5


def given(name: str) -> tuple[wg.Tensor, ...]:
    found = [tensor(p) for p in ALL[name].parameters(COUNT, seed=2, extreme=False)]
    if name == "Uniform":
        found[1] = found[0] + found[1].exp()
    return tuple(found)


def assert_same(got: wg.Tensor, expected: wg.Tensor) -> None:
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ALL)
def test_densities(name: str) -> None:
    family, parameters = ALL[name], given(name)
    if name == "Binomial":  # its support has a length that depends on values
        parameters = (wg.full_like(parameters[0], 7.0), parameters[1])
    value = family.make(*parameters).sample()
    for what in ("log_prob", "cdf", "entropy", "mean", "variance"):
        if name == "Binomial" and what == "entropy":
            continue

        def f(x: wg.Tensor, *p: wg.Tensor, what: str = what) -> Any:
            found = getattr(family.make(*p), what)
            return found(x) if what in ("log_prob", "cdf") else found() if what == "entropy" else found

        try:
            expected = f(value, *parameters)
        except NotImplementedError:
            continue
        assert_same(wg.vmap(f)(value, *parameters), expected)
        if what == "log_prob":
            floats = tuple(range(1, len(parameters) + 1))
            one = wg.vmap(wg.grad(lambda *a: f(*a).sum(), argnums=floats))(value, *parameters)
            all_ = wg.grad(lambda *a: f(*a).sum(), argnums=floats)(value, *parameters)
            for x, y in zip(one, all_):
                assert_same(x, y)


@pytest.mark.parametrize("name", ALL)
def test_samples(name: str) -> None:
    """Drawn in a batch they have the right mean, and differ from each other."""
    family = ALL[name]
    parameters = tuple(p[:1].expand(4000) for p in given(name))
    wg.manual_seed(0)
    got = wg.vmap(lambda *p: family.make(*p).sample(), randomness="different")(*parameters)
    assert got.shape == (4000,)
    assert len(set(got.tolist())) > 1
    d = family.make(*[p[0] for p in parameters])
    # Medians, since some have no mean.
    expected = d.sample((4000,)).median()
    spread = (d.sample((4000,)) - expected).abs().median()
    assert abs(got.median().item() - expected.item()) <= 0.2 * spread.item() + (
        1 if name in ("Poisson", "Binomial") else 0
    )


def test_vectors() -> None:
    logits, value = wg.randn(COUNT, 3), wg.randint(0, 3, (COUNT,))
    f = lambda logits, value: D.Categorical(logits=logits).log_prob(value)
    assert_same(wg.vmap(f)(logits, value), f(logits, value))
    draw = wg.vmap(lambda x: D.Categorical(logits=x).sample((4,)), randomness="different")(logits)
    assert draw.shape == (COUNT, 4)
    one = wg.vmap(lambda x: D.OneHotCategoricalStraightThrough(logits=x).rsample(), randomness="different")(
        logits
    )
    assert_same(one.sum(-1), wg.ones(COUNT))
    a = wg.rand(COUNT, 3) + 0.5
    p = wg.vmap(lambda a: D.Dirichlet(a).rsample(), randomness="different")(a)
    assert_same(wg.vmap(lambda a, p: D.Dirichlet(a).log_prob(p))(a, p), D.Dirichlet(a).log_prob(p))
    loc, root = wg.randn(COUNT, 2), wg.randn(COUNT, 2, 2)
    covariance = root @ root.mT + wg.eye(2)
    g = lambda m, c, x: D.MultivariateNormal(m, c).log_prob(x)
    np.testing.assert_allclose(
        wg.vmap(g)(loc, covariance, loc + 1).numpy(), g(loc, covariance, loc + 1).numpy(), rtol=1e-5
    )
    kl = lambda m, c: D.kl_divergence(
        D.MultivariateNormal(m, c), D.MultivariateNormal(wg.zeros(2), wg.eye(2))
    )
    np.testing.assert_allclose(wg.vmap(kl)(loc, covariance).numpy(), kl(loc, covariance).numpy(), rtol=1e-5)
    counts = wg.vmap(lambda x: D.Multinomial(6, logits=x).sample(), randomness="different")(logits)
    assert_same(counts.sum(-1), wg.full((COUNT,), 6.0))
    wishart = wg.vmap(lambda c: D.Wishart(4.0, c).rsample(), randomness="different")(covariance)
    assert wishart.shape == (COUNT, 2, 2)
    lkj = wg.vmap(lambda c: D.LKJCholesky(3, c).sample(), randomness="different")(wg.ones(COUNT))
    assert D.constraints.corr_cholesky.check(lkj).all()


def test_divergences() -> None:
    a, b = wg.rand(COUNT) + 0.5, wg.rand(COUNT) + 0.5
    for make in (D.Normal, D.Gamma, D.Beta, D.Gumbel, D.Laplace, D.Pareto, D.LogNormal, D.Cauchy):
        f = lambda a, b, make=make: D.kl_divergence(make(a, b), make(b, a))
        np.testing.assert_allclose(wg.vmap(f)(a, b).numpy(), f(a, b).numpy(), rtol=1e-6)


def test_mixtures_and_transformed() -> None:
    w, m, x = wg.randn(COUNT, 2), wg.randn(COUNT, 2), wg.randn(COUNT)
    f = lambda w, m, x: D.MixtureSameFamily(D.Categorical(logits=w), D.Normal(m, 1.0)).log_prob(x)
    np.testing.assert_allclose(wg.vmap(f)(w, m, x).numpy(), f(w, m, x).numpy(), rtol=1e-6)
    g = lambda s, x: D.TransformedDistribution(
        D.Normal(0.0, 1.0), [D.AffineTransform(1.0, s), D.TanhTransform(cache_size=1)]
    ).log_prob(x)
    s, y = wg.rand(COUNT) + 0.5, x.tanh()
    np.testing.assert_allclose(wg.vmap(g)(s, y).numpy(), g(s, y).numpy(), rtol=1e-6)


def test_the_same_numbers_for_the_whole_batch() -> None:
    draw = lambda a: D.Gamma(a, 1.0).rsample()
    got = wg.vmap(draw, randomness="same")(wg.full((4,), 2.0))
    assert got.unique().numel() == 1
    with pytest.raises(RuntimeError, match="randomness"):
        wg.vmap(draw)(wg.full((4,), 2.0))


def test_second_derivatives_and_hessians() -> None:
    x = tensor([0.5, 2.0, 3.0])
    loss = lambda p: D.Gamma(p[0], p[1]).log_prob(x).sum()
    a, rate = 1.7, 0.6
    got = wg.hessian(loss)(tensor([a, rate])).numpy()
    trigamma = wg.polygamma(1, tensor(a)).item()
    np.testing.assert_allclose(
        got, 3 * np.array([[-trigamma, 1 / rate], [1 / rate, -a / rate**2]]), rtol=1e-10
    )
