"""Settings of distributions, transforms and constraints, one by one: each is passed by its name, and has its
effect."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.distributions as D
from scipy import special, stats
from wengert.distributions import constraints
from wengert.distributions.relaxed import ExpRelaxedCategorical, LogitRelaxedBernoulli
from wengert.distributions.utils import logits_to_probs, probs_to_logits

WRONG = wg.tensor([-1.0, 2.0])
BROKEN = wg.tensor([[1.0, 5.0], [0.0, -1.0]])
MADE = D.Normal(wg.zeros(2), wg.ones(2), validate_args=False)
Made = Callable[[bool], Any]

# With parameters outside of what each allows.
REFUSED: dict[str, Made] = {
    "Categorical": lambda check: D.Categorical(probs=WRONG, validate_args=check),
    "Cauchy": lambda check: D.Cauchy(0.0, WRONG, validate_args=check),
    "Chi2": lambda check: D.Chi2(WRONG, validate_args=check),
    "Dirichlet": lambda check: D.Dirichlet(WRONG, validate_args=check),
    "ExpRelaxedCategorical": lambda check: ExpRelaxedCategorical(1.0, probs=WRONG, validate_args=check),
    "Geometric": lambda check: D.Geometric(WRONG, validate_args=check),
    "Gumbel": lambda check: D.Gumbel(0.0, WRONG, validate_args=check),
    "LKJCholesky": lambda check: D.LKJCholesky(3, WRONG, validate_args=check),
    "Laplace": lambda check: D.Laplace(0.0, WRONG, validate_args=check),
    "LogisticNormal": lambda check: D.LogisticNormal(wg.zeros(2), WRONG, validate_args=check),
    "LogitRelaxedBernoulli": lambda check: LogitRelaxedBernoulli(1.0, probs=WRONG, validate_args=check),
    "LowRankMultivariateNormal": lambda check: D.LowRankMultivariateNormal(
        wg.zeros(2), wg.ones(2, 1), WRONG, validate_args=check
    ),
    "Multinomial": lambda check: D.Multinomial(2, probs=WRONG, validate_args=check),
    "MultivariateNormal": lambda check: D.MultivariateNormal(
        wg.zeros(2), scale_tril=BROKEN, validate_args=check
    ),
    "OneHotCategorical": lambda check: D.OneHotCategorical(probs=WRONG, validate_args=check),
    "OneHotCategoricalStraightThrough": lambda check: D.OneHotCategoricalStraightThrough(
        probs=WRONG, validate_args=check
    ),
    "RelaxedBernoulli": lambda check: D.RelaxedBernoulli(1.0, probs=WRONG, validate_args=check),
    "RelaxedOneHotCategorical": lambda check: D.RelaxedOneHotCategorical(
        1.0, probs=WRONG, validate_args=check
    ),
    "StudentT": lambda check: D.StudentT(WRONG, validate_args=check),
    "VonMises": lambda check: D.VonMises(0.0, WRONG, validate_args=check),
    "Wishart": lambda check: D.Wishart(2.0, scale_tril=BROKEN, validate_args=check),
}


@pytest.mark.parametrize("name", REFUSED)
def test_parameters_are_checked_unless_told_otherwise(name: str) -> None:
    with pytest.raises(ValueError, match="must satisfy"):
        REFUSED[name](True)
    made = REFUSED[name](False)
    assert type(made).__name__ == name


# With values outside of the support.
UNCHECKED: dict[str, tuple[Made, Any]] = {
    "Independent": (
        lambda check: D.Independent(D.Exponential(wg.ones(2), validate_args=False), 1, validate_args=check),
        WRONG,
    ),
    "MixtureSameFamily": (
        lambda check: D.MixtureSameFamily(
            D.Categorical(wg.ones(2)), D.Exponential(wg.ones(2), validate_args=False), validate_args=check
        ),
        WRONG,
    ),
    "TransformedDistribution": (
        lambda check: D.TransformedDistribution(MADE, D.ExpTransform(), validate_args=check),
        WRONG,
    ),
}


@pytest.mark.parametrize("name", UNCHECKED)
def test_values_are_checked_unless_told_otherwise(name: str) -> None:
    make, value = UNCHECKED[name]
    with pytest.raises(ValueError, match="must satisfy"):
        make(True).log_prob(value)
    assert isinstance(make(False).log_prob(value), wg.Tensor)


def test_shapes_of_a_class_of_ones_own() -> None:
    class Mine(D.Distribution):
        arg_constraints: dict[str, Any] = {}  # noqa: RUF012

    made = D.Distribution.__new__(Mine)
    D.Distribution.__init__(made, batch_shape=(2,), event_shape=(3,), validate_args=False)
    assert (made.batch_shape, made.event_shape) == ((2,), (3,))
    assert D.Distribution(batch_shape=(2,), event_shape=(3,), validate_args=False).event_shape == (3,)
    family = D.ExponentialFamily(batch_shape=(4,), event_shape=(), validate_args=False)
    assert family.batch_shape == (4,)


def test_logits_are_another_way_to_say_probabilities() -> None:
    logits = wg.tensor([0.3, -1.2])
    odds, shares = special.expit(logits.numpy()), special.softmax(logits.numpy())
    close = lambda found, expected: np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    close(D.NegativeBinomial(3.0, logits=logits).probs, odds)
    close(LogitRelaxedBernoulli(0.5, logits=logits).probs, odds)
    close(D.OneHotCategorical(logits=logits).probs, shares)
    close(D.RelaxedOneHotCategorical(0.5, logits=logits).probs, shares)
    close(ExpRelaxedCategorical(0.5, logits=logits).probs, shares)
    close(D.OneHotCategoricalStraightThrough(probs=wg.tensor([1.0, 3.0])).probs, [0.25, 0.75])
    close(logits_to_probs(logits, is_binary=True), odds)
    close(logits_to_probs(logits, is_binary=False), shares)
    close(probs_to_logits(wg.tensor([0.25, 0.75]), is_binary=True), special.logit([0.25, 0.75]))
    close(probs_to_logits(wg.tensor([0.25, 0.75]), is_binary=False), np.log([0.25, 0.75]))


def test_wishart_by_each_of_its_matrices() -> None:
    matrix = wg.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=wg.float64)
    value = wg.tensor([[1.5, 0.2], [0.2, 0.7]], dtype=wg.float64)
    expected = stats.wishart(4, matrix.numpy()).logpdf(value.numpy())
    for made in (
        D.Wishart(4.0, precision_matrix=wg.linalg.inv(matrix)),
        D.Wishart(4.0, scale_tril=wg.linalg.cholesky(matrix)),
        D.Wishart(4.0, covariance_matrix=matrix),
    ):
        assert made.log_prob(value).item() == pytest.approx(expected, rel=1e-9)


def test_where_the_normalisation_of_a_continuous_bernoulli_is_a_series() -> None:
    p = wg.tensor(0.6, dtype=wg.float64)
    exact = D.ContinuousBernoulli(p).mean.item()
    assert exact == pytest.approx(0.6 / 0.2 + 1 / (2 * np.arctanh(1 - 1.2)), rel=1e-12)
    assert D.ContinuousBernoulli(p, lims=(0.3, 0.7)).mean.item() == pytest.approx(exact, rel=1e-3)


CACHED: dict[str, tuple[Callable[[int], Any], Any]] = {
    "AbsTransform": (lambda n: D.AbsTransform(cache_size=n), (3,)),
    "CatTransform": (lambda n: D.CatTransform([D.ExpTransform()], lengths=[3], cache_size=n), (3,)),
    "CorrCholeskyTransform": (lambda n: D.CorrCholeskyTransform(cache_size=n), (3,)),
    "CumulativeDistributionTransform": (
        lambda n: D.CumulativeDistributionTransform(D.Normal(0.0, 1.0), cache_size=n),
        (3,),
    ),
    "IndependentTransform": (lambda n: D.IndependentTransform(D.ExpTransform(), 1, cache_size=n), (3,)),
    "LowerCholeskyTransform": (lambda n: D.LowerCholeskyTransform(cache_size=n), (2, 2)),
    "PositiveDefiniteTransform": (lambda n: D.PositiveDefiniteTransform(cache_size=n), (2, 2)),
    "PowerTransform": (lambda n: D.PowerTransform(2.0, cache_size=n), (3,)),
    "ReshapeTransform": (lambda n: D.ReshapeTransform((4,), (2, 2), cache_size=n), (4,)),
    "SigmoidTransform": (lambda n: D.SigmoidTransform(cache_size=n), (3,)),
    "SoftmaxTransform": (lambda n: D.SoftmaxTransform(cache_size=n), (3,)),
    "SoftplusTransform": (lambda n: D.SoftplusTransform(cache_size=n), (3,)),
    "StackTransform": (lambda n: D.StackTransform([D.ExpTransform()], cache_size=n), (1, 3)),
    "StickBreakingTransform": (lambda n: D.StickBreakingTransform(cache_size=n), (3,)),
}


@pytest.mark.parametrize("name", CACHED)
def test_a_transform_with_a_cache_returns_what_it_was_given(name: str) -> None:
    make, shape = CACHED[name]
    x = wg.rand(shape) + 0.5
    cached, plain = make(1), make(0)
    assert cached.inv(cached(x)) is x
    assert plain.inv(plain(x)) is not x


def test_transforms_of_ones_own_have_a_cache() -> None:
    class Twice(D.Transform):
        domain = codomain = constraints.real
        bijective = True

        def _call(self, x: Any) -> Any:
            return 2 * x

        def _inverse(self, y: Any) -> Any:
            return y / 2

    twice, x = Twice(cache_size=1), wg.ones(2)
    assert twice.inv(twice(x)) is x
    assert D.Transform(cache_size=1)._cache_size == 1


def test_axes_of_an_affine_transform() -> None:
    x = wg.rand(4, 3)
    for event_dim, shape in ((0, (4, 3)), (1, (4,)), (2, ())):
        made = D.AffineTransform(1.0, wg.tensor([1.0, 2.0, 3.0]), event_dim=event_dim)
        assert made.log_abs_det_jacobian(x, made(x)).shape == shape


def test_constraints_that_depend_on_parameters() -> None:
    count = constraints.dependent_property(
        fn=lambda self: constraints.positive, is_discrete=True, event_dim=1
    )
    assert (count.is_discrete, count.event_dim) == (True, 1)
    assert constraints.dependent(is_discrete=True, event_dim=2).is_discrete
    assert constraints.dependent(is_discrete=False, event_dim=2).event_dim == 2
