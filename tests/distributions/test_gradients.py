"""Derivatives of densities, moments and samples in the parameters, against differences, quantiles and known
means."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
import wengert as wg
import wengert.distributions as D
from distributions.families import FAMILIES, OTHERS, tensor
from wengert.testing import gradcheck

ALL = FAMILIES | OTHERS
# Counts: parameters that are no data, and values without derivatives.
COUNTED = ("Binomial", "Poisson", "NegativeBinomial", "Bernoulli", "Geometric")


def inside(d: D.Distribution, x: wg.Tensor) -> wg.Tensor:
    """Values in the support, from any numbers."""
    if isinstance(d, D.GeneralizedPareto):  # some without an upper end
        return d.loc + 0.3 * d.scale + 0 * x
    return D.transform_to(d.support)(x)


def parameters(name: str, count: int = 3) -> list[wg.Tensor]:
    found = [tensor(p) for p in ALL[name].parameters(count, seed=3, extreme=False)]
    if name == "Uniform":
        found[1] = found[0] + found[1].exp()
    return [p.requires_grad_() for p in found]


@pytest.mark.parametrize("name", ALL)
def test_log_prob(name: str) -> None:
    family, given = ALL[name], parameters(name)
    d = family.make(*given)
    if name in COUNTED:
        value = d.sample((2,))
        # The number of trials is no data.
        free = given[1:] if name == "Binomial" else given
        fixed = given[:1] if name == "Binomial" else []
        assert gradcheck(lambda *p: family.make(*[f.detach() for f in fixed], *p).log_prob(value), free)
        return
    value = inside(d, tensor(np.random.default_rng(5).normal(size=3) * 0.3)).detach().requires_grad_()
    assert gradcheck(lambda *p: family.make(*p[:-1], validate_args=False).log_prob(p[-1]), [*given, value])


@pytest.mark.parametrize("name", [n for n in ALL if n not in COUNTED])
@pytest.mark.parametrize("what", ["cdf", "icdf"])
def test_distribution_functions(name: str, what: str) -> None:
    family, given = ALL[name], parameters(name)
    d = family.make(*given)
    try:
        value = inside(d, tensor([0.2, -0.3, 0.1])).detach() if what == "cdf" else tensor([0.1, 0.4, 0.8])
        getattr(d, what)(value)
    except NotImplementedError:
        return  # there is none
    call: Callable[..., Any] = lambda *p: getattr(family.make(*p[:-1], validate_args=False), what)(p[-1])
    assert gradcheck(call, [*given, value.requires_grad_()])


@pytest.mark.parametrize("name", [n for n in ALL if n not in ("Binomial", "Poisson", "NegativeBinomial")])
@pytest.mark.parametrize("what", ["entropy", "mean", "variance"])
def test_moments(name: str, what: str) -> None:
    family, given = (
        ALL[name],
        [p + (5 if name in ("FisherSnedecor", "StudentT") else 0) for p in parameters(name)],
    )
    given = [p.detach().requires_grad_() for p in given]

    def moment(*p: wg.Tensor) -> wg.Tensor:
        found = getattr(family.make(*p), what)
        return found() if what == "entropy" else found

    try:
        value = moment(*given)
    except NotImplementedError:
        return  # there is none
    if value.requires_grad and value.isfinite().all():
        assert gradcheck(moment, given)


VECTORS: dict[str, tuple[Callable[..., D.Distribution], list[Any]]] = {
    "Dirichlet": (D.Dirichlet, [[0.5, 2.0, 3.0]]),
    "Categorical": (lambda logits: D.Categorical(logits=logits), [[0.5, 2.0, 3.0]]),
    "OneHotCategorical": (D.OneHotCategorical, [[0.5, 2.0, 3.0]]),
    "Multinomial": (lambda logits: D.Multinomial(4, logits=logits), [[0.5, 2.0, 3.0]]),
    "LogisticNormal": (D.LogisticNormal, [[0.1, 0.4], [0.5, 1.5]]),
    "RelaxedBernoulli": (lambda p: D.RelaxedBernoulli(tensor(0.7), p), [[0.2, 0.6]]),
    "RelaxedOneHotCategorical": (lambda p: D.RelaxedOneHotCategorical(tensor(0.7), p), [[0.2, 0.6, 0.2]]),
    "MultivariateNormal": (
        lambda m, a: D.MultivariateNormal(m, a @ a.mT + wg.eye(2, dtype=a.dtype)),
        [[0.5, 1.0], [[1.0, 0.2], [0.3, 1.0]]],
    ),
    "precision": (
        lambda m, a: D.MultivariateNormal(m, precision_matrix=a @ a.mT + wg.eye(2, dtype=a.dtype)),
        [[0.5, 1.0], [[1.0, 0.2], [0.3, 1.0]]],
    ),
    "LowRankMultivariateNormal": (D.LowRankMultivariateNormal, [[0.5, 1.0], [[1.0], [0.3]], [0.5, 2.0]]),
    "LKJCholesky": (lambda c: D.LKJCholesky(3, c), [1.5]),
    "Wishart": (lambda df, a: D.Wishart(df, a @ a.mT), [4.0, [[1.0, 0.2], [0.3, 1.0]]]),
    "MixtureSameFamily": (
        lambda w, m: D.MixtureSameFamily(D.Categorical(logits=w), D.Normal(m, 1.0)),
        [[0.5, 1.0], [-1.0, 2.0]],
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_log_prob_and_entropy_of_vectors(name: str) -> None:
    make, values = VECTORS[name]
    given = [tensor(v).requires_grad_() for v in values]
    value = make(*given).sample()
    assert gradcheck(lambda *p: make(*p).log_prob(value), given)
    try:
        make(*given).entropy()
    except NotImplementedError:
        return
    assert gradcheck(lambda *p: make(*p).entropy(), given)


# ---- samples -------------------------------------------------------------------------------------


REJECTED = ("Gamma", "Chi2", "InverseGamma", "Beta", "StudentT", "FisherSnedecor")


@pytest.mark.parametrize(
    "name", [n for n in ALL if n not in COUNTED + REJECTED and ALL[n].make.has_rsample is True]
)
def test_samples_move_along_the_parameters(name: str) -> None:
    """Where a draw is a quantile or a reparametrisation, it does with the same random numbers."""
    family, given = ALL[name], parameters(name)

    def draw(*p: wg.Tensor) -> wg.Tensor:
        wg.manual_seed(1)
        return family.make(*p).rsample((4,))

    assert gradcheck(draw, given)


@pytest.mark.parametrize("name", ["Gamma", "Chi2", "InverseGamma"])
def test_gamma_samples_move_like_quantiles(name: str) -> None:
    family, h = FAMILIES[name], 1e-5
    for seed in range(3):
        given = family.parameters(200, seed=seed, extreme=False)
        tensors = [tensor(p) for p in given]
        wg.manual_seed(seed)
        x = family.make(*tensors).sample().numpy()
        wg.manual_seed(seed)
        grads = wg.grad(lambda *p: family.make(*p).rsample().sum(), argnums=tuple(range(len(given))))(
            *tensors
        )
        grads = grads if isinstance(grads, tuple) else (grads,)
        q = family.scipy(*given).cdf(x)
        for i, got in enumerate(grads):
            up, down = ([p + s * h * p * (i == j) for j, p in enumerate(given)] for s in (1, -1))
            expected = (family.scipy(*up).ppf(q) - family.scipy(*down).ppf(q)) / (2 * h * given[i])
            np.testing.assert_allclose(got.numpy(), expected, rtol=2e-6)


def mean_gradient(draw: Callable[..., wg.Tensor], *given: float, count: int = 200_000) -> list[float]:
    """The gradient of a mean, from one large sample."""
    wg.manual_seed(7)
    tensors = tuple(tensor(p) for p in given)
    f = lambda *p: draw(*[x.expand(count) for x in p]).mean()
    found = wg.grad(f, argnums=tuple(range(len(given))))(*tensors)
    return [g.item() for g in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize(("a", "b"), [(0.3, 0.7), (2.0, 3.0), (20.0, 5.0)])
def test_gradients_of_means_of_beta_samples(a: float, b: float) -> None:
    got = mean_gradient(lambda a, b: D.Beta(a, b).rsample(), a, b)
    assert got == pytest.approx([b / (a + b) ** 2, -a / (a + b) ** 2], rel=0.02)


def test_gradients_of_means_of_other_samples() -> None:
    # E x^2 of Student's t is df / (df - 2); E x of F is n / (n - 2); that of a t's location and scale as
    # usual.
    got = mean_gradient(lambda df, s: D.StudentT(df, 0.0, s).rsample().square(), 9.0, 1.5)
    assert got == pytest.approx([-2 / 49 * 2.25, 2 * 1.5 * 9 / 7], rel=0.05)
    got = mean_gradient(lambda m, n: D.FisherSnedecor(m, n).rsample().log(), 5.0, 12.0)
    # E log x is the difference of two digamma functions and logarithms.
    expected = [
        0.5 * wg.polygamma(1, tensor(2.5)).item() - 1 / 5,
        1 / 12 - 0.5 * wg.polygamma(1, tensor(6.0)).item(),
    ]
    assert got == pytest.approx(expected, rel=0.05)


def test_gradients_of_means_of_dirichlet_samples() -> None:
    wg.manual_seed(3)
    a = tensor([0.5, 2.0, 3.0])
    got = wg.jacrev(lambda a: D.Dirichlet(a.expand(100_000, 3)).rsample().mean(0))(a).numpy()
    expected = np.eye(3) / 5.5 - a.numpy()[:, None] / 5.5**2
    np.testing.assert_allclose(got, expected, atol=3e-3)


def test_gradients_of_means_of_matrices() -> None:
    wg.manual_seed(3)
    v = tensor([[2.0, 0.5], [0.5, 1.0]])
    f = lambda df: D.Wishart(df.expand(50_000), v).rsample().mean(0)
    np.testing.assert_allclose(wg.jacfwd(f)(tensor(4.0)).numpy(), v.numpy(), atol=0.05)
    mean = lambda m, s: D.MultivariateNormal(m, scale_tril=s).rsample((3,))

    def draw(m: wg.Tensor, s: wg.Tensor) -> wg.Tensor:
        wg.manual_seed(1)
        return mean(m, s)

    given = [tensor([1.0, 2.0]).requires_grad_(), tensor([[1.0, 0.0], [0.5, 2.0]]).requires_grad_()]
    # Differences must stay lower triangular, so the check is along the triangle.
    mask = tensor([[1.0, 0.0], [1.0, 1.0]])
    assert gradcheck(lambda m, s: draw(m, s * mask), given)


def test_samples_have_second_derivatives() -> None:
    from scipy.special import gammainc, gammaincinv

    def total(a: wg.Tensor) -> wg.Tensor:
        wg.manual_seed(3)
        return D.Gamma(a, 1.0).rsample().sum()

    a, h = tensor(np.full(5, 1.7)), 1e-3
    wg.manual_seed(3)
    q = gammainc(1.7, D.Gamma(a, 1.0).sample().numpy())
    expected = (gammaincinv(1.7 + h, q) - 2 * gammaincinv(1.7, q) + gammaincinv(1.7 - h, q)) / h**2
    got = wg.grad(lambda a: wg.grad(total)(a).sum())(a)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_straight_through_has_the_gradient_of_the_probabilities() -> None:
    logits, weights = tensor([0.5, 1.0, -1.0]), tensor([1.0, 2.0, 4.0])
    f = lambda x: (D.OneHotCategoricalStraightThrough(logits=x).rsample() * weights).sum()
    expected = wg.grad(lambda x: (x.softmax(-1) * weights).sum())(logits)
    np.testing.assert_allclose(wg.grad(f)(logits).numpy(), expected.numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "at"),
    [
        (lambda p: D.Bernoulli(p).log_prob(wg.tensor(1.0)), 0.0),
        (lambda p: D.Bernoulli(p).entropy(), 0.0),
        (lambda p: D.Bernoulli(p).entropy(), 1.0),
        (lambda p: D.Categorical(wg.stack([p, 1 - p])).entropy(), 0.0),
        (lambda p: D.Categorical(wg.stack([p, 1 - p])).log_prob(wg.tensor(0)), 0.0),
        (lambda p: D.Categorical(wg.stack([p, 1 - p])).log_prob(wg.tensor(1)), 0.0),
        (lambda p: D.OneHotCategorical(wg.stack([p, 1 - p])).log_prob(wg.tensor([0.0, 1.0])), 0.0),
        (lambda p: D.kl_divergence(D.Bernoulli(p), D.Bernoulli(0.3)), 0.0),
    ],
)
def test_impossible_events_give_no_nan_gradients(make: Callable[..., wg.Tensor], at: float) -> None:
    # Through a saturated sigmoid, whose own derivative is 0.
    assert wg.grad(lambda x: make(x.sigmoid() * 0 + at))(wg.tensor(1.0)).isfinite()
    assert wg.grad(make)(wg.tensor(at)).isfinite()


@pytest.mark.parametrize("concentration", [[0.7, 2.0, 3.0], [400.0, 900.0, 40.0]])
def test_the_density_of_dirichlet_has_the_slopes_of_its_formula(concentration: list[float]) -> None:
    """Off the simplex too, where the value is that of the formula as SciPy has it."""
    a, x = np.array(concentration), np.array([0.2, 0.3, 0.4])
    d = D.Dirichlet(tensor(a), validate_args=False)
    value, (slope,) = wg.value_and_grad(d.log_prob, argnums=(0,))(tensor(x))
    expected = scipy.special.xlogy(a - 1, x).sum() - (
        scipy.special.gammaln(a).sum() - scipy.special.gammaln(a.sum())
    )
    assert value.item() == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(slope.numpy(), (a - 1) / x, rtol=1e-12)
    float32 = D.Dirichlet(wg.tensor(a, dtype=wg.float32))
    on = np.float32([0.2, 0.3, 0.5])
    exact = scipy.stats.dirichlet.logpdf(on.astype(float) / on.astype(float).sum(), a)
    assert float32.log_prob(wg.tensor(on)).item() == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("count", [0.0, 2.0, 5.0])
def test_slopes_of_binomials_in_the_count(count: float) -> None:
    p, psi = 0.25, scipy.special.digamma
    density = lambda k, n: D.Binomial(n, tensor(p), validate_args=False).log_prob(k)
    given = tensor(count), tensor(5.0)
    slopes = [x.item() for x in wg.grad(density, argnums=(0, 1))(*given)]
    in_count = psi(6 - count) - psi(count + 1) + np.log(p) - np.log1p(-p)
    np.testing.assert_allclose(slopes, [in_count, psi(6) - psi(6 - count) + np.log1p(-p)], rtol=1e-9)


@pytest.mark.parametrize("count", [0.0, 1e-3, 1.0, 4.0])
@pytest.mark.parametrize("failures", [0.3, 2.0, 80.0])
def test_slopes_of_negative_binomials_in_the_count(count: float, failures: float) -> None:
    p, psi = 0.25, scipy.special.digamma
    density = lambda k, r: D.NegativeBinomial(r, tensor(p), validate_args=False).log_prob(k)
    given = tensor(count), tensor(failures)
    slopes = [x.item() for x in wg.grad(density, argnums=(0, 1))(*given)]
    in_count = psi(failures + count) - psi(count + 1) + np.log(p)
    in_failures = psi(failures + count) - psi(failures) + np.log1p(-p)
    np.testing.assert_allclose(slopes, [in_count, in_failures], rtol=1e-9)
    second = wg.grad(lambda k: wg.grad(density)(k, given[1]))(given[0]).item()
    trigamma = lambda x: scipy.special.polygamma(1, x)
    assert second == pytest.approx(trigamma(failures + count) - trigamma(count + 1), rel=1e-7)
    assert density(tensor(0.0), tensor(0.0)).item() == 0
    assert density(tensor(0.0), given[1]).item() == pytest.approx(failures * np.log1p(-p), rel=1e-14)
