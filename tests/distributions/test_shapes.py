"""Shapes, expansion, validation and its messages, the names of PyTorch, distributions of one's own."""

import contextlib
import copy
import importlib
import inspect
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.distributions as D
from distributions.families import FAMILIES, OTHERS, tensor

ALL = FAMILIES | OTHERS
SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()),
    ((3,), ()),
    ((2, 1), (3,)),
    ((4, 2), (4, 2)),
    ((0,), (0,)),
]


def parameters(name: str, shapes: Sequence[tuple[int, ...]]) -> list[wg.Tensor]:
    kinds = ALL[name].kinds
    found = [
        tensor(np.resize(p[: max(1, int(np.prod(s)))], s))
        for p, s in zip(ALL[name].parameters(64, 4, False), [shapes[i % 2] for i in range(len(kinds))])
    ]
    return (
        [found[0], found[0].max() + 1 + found[1].abs()] if name == "Uniform" and found[0].numel() else found
    )


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shapes", SHAPES)
def test_shapes(name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    if name == "Uniform" and 0 in shapes[0]:
        return
    given = parameters(name, shapes)
    batch = wg.broadcast_shapes(*[p.shape for p in given])
    d = ALL[name].make(*given)
    assert d.batch_shape == batch
    assert d.event_shape == ()
    assert isinstance(d.batch_shape, wg.Size)
    for sample in ((), (2,), (2, 3)):
        x = d.sample(sample)
        assert x.shape == (*sample, *batch)
        assert x.dtype == wg.float64
        assert d.log_prob(x).shape == x.shape
    assert d.mean.shape == d.variance.shape == d.stddev.shape == batch
    wide = d.expand((5, *batch))
    assert type(wide) is type(d)
    assert wide.batch_shape == (5, *batch)
    assert wide.sample((2,)).shape == (2, 5, *batch)
    assert wide.mean.shape == wide.variance.shape == (5, *batch)
    x = d.sample()
    np.testing.assert_array_equal(wide.log_prob(x).numpy(), d.log_prob(x).expand(5, *batch).numpy())
    if x.numel():  # a value that broadcasts with the batch
        free = ALL[name].make(*given, validate_args=False)
        assert free.log_prob(x.reshape(-1)[0].expand(*[1] * len(batch))).shape == batch


VECTORS: list[tuple[Callable[..., D.Distribution], tuple[int, ...], tuple[int, ...]]] = [
    (lambda: D.Categorical(wg.ones(2, 3)), (2,), ()),
    (lambda: D.OneHotCategorical(wg.ones(2, 3)), (2,), (3,)),
    (lambda: D.OneHotCategoricalStraightThrough(logits=wg.ones(2, 3)), (2,), (3,)),
    (lambda: D.Multinomial(4, wg.ones(2, 3)), (2,), (3,)),
    (lambda: D.Dirichlet(wg.ones(2, 3)), (2,), (3,)),
    (lambda: D.LogisticNormal(wg.ones(2, 3), 1.0), (2,), (4,)),
    (lambda: D.LogisticNormal(0.0, 1.0), (), (2,)),
    (lambda: D.RelaxedOneHotCategorical(wg.tensor(0.5), wg.ones(2, 3)), (2,), (3,)),
    (lambda: D.RelaxedBernoulli(wg.tensor(0.5), wg.full((2,), 0.3)), (2,), ()),
    (lambda: D.MultivariateNormal(wg.zeros(2, 1, 3), wg.eye(3).expand(4, 3, 3)), (2, 4), (3,)),
    (lambda: D.MultivariateNormal(wg.zeros(3), precision_matrix=wg.eye(3)), (), (3,)),
    (lambda: D.LowRankMultivariateNormal(wg.zeros(2, 3), wg.ones(3, 1), wg.ones(3)), (2,), (3,)),
    (lambda: D.LKJCholesky(3, wg.ones(2)), (2,), (3, 3)),
    (lambda: D.Wishart(wg.tensor([4.0, 5.0]), wg.eye(3)), (2,), (3, 3)),
    (lambda: D.Independent(D.Normal(wg.zeros(2, 3), 1.0), 1), (2,), (3,)),
    (lambda: D.Independent(D.Dirichlet(wg.ones(2, 3)), 1), (), (2, 3)),
    (lambda: D.MixtureSameFamily(D.Categorical(wg.ones(3)), D.Normal(wg.zeros(2, 3), 1.0)), (2,), ()),
    (
        lambda: D.MixtureSameFamily(
            D.Categorical(wg.ones(2, 3)), D.MultivariateNormal(wg.zeros(3, 4), wg.eye(4)).expand((2, 3))
        ),
        (2,),
        (4,),
    ),
    (
        lambda: D.TransformedDistribution(
            D.Normal(wg.zeros(2), 1.0), [D.AffineTransform(wg.zeros(5, 1), 2.0)]
        ),
        (5, 2),
        (),
    ),
    (
        lambda: D.TransformedDistribution(D.Normal(wg.zeros(2, 3), 1.0), D.StickBreakingTransform()),
        (2,),
        (4,),
    ),
    (
        lambda: D.TransformedDistribution(D.Normal(wg.zeros(6), 1.0), D.ReshapeTransform((6,), (2, 3))),
        (),
        (2, 3),
    ),
    (lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), []), (), ()),
]


@pytest.mark.parametrize(("make", "batch", "event"), VECTORS)
def test_shapes_of_vectors(
    make: Callable[..., D.Distribution], batch: tuple[int, ...], event: tuple[int, ...]
) -> None:
    for d, full in ((make(), batch), (make().expand((7, *batch)), (7, *batch))):
        assert (d.batch_shape, d.event_shape) == (full, event)
        for sample in ((), (2,), (5, 2)):
            x = d.sample(sample)
            assert x.shape == (*sample, *full, *event)
            assert d.log_prob(x).shape == (*sample, *full)
            assert d.support.check(x).all()
            if d.has_rsample:
                assert d.rsample(sample).shape == x.shape
        with contextlib.suppress(NotImplementedError):
            assert d.entropy().shape == d.perplexity().shape == full
        with contextlib.suppress(NotImplementedError):
            assert d.mean.shape == d.variance.shape == (*full, *event)


def test_wider_dtypes_and_integers() -> None:
    assert D.Normal(0, 1).loc.dtype == wg.float32
    assert D.Normal(wg.tensor(0), wg.tensor(1)).sample().dtype == wg.float32
    assert D.Normal(wg.zeros(2, dtype=wg.float64), 1).scale.dtype == wg.float64
    assert D.Normal(wg.zeros(2, dtype=wg.float16), 1).sample().dtype == wg.float16
    assert D.Normal(wg.zeros(2), wg.ones(2, dtype=wg.float64)).sample().dtype == wg.float64
    assert D.Binomial(wg.tensor([3, 4]), wg.tensor(0.5)).total_count.dtype == wg.float32
    assert D.Poisson(wg.tensor([3.0])).log_prob(wg.tensor([2])).dtype == wg.float32
    assert D.Normal(np.zeros(2), 1.0).batch_shape == (2,)
    with pytest.raises(TypeError, match="parameters are tensors or numbers, got list"):
        D.Normal([0.0], 1.0)


def test_enumerated_supports() -> None:
    assert D.Bernoulli(wg.full((2, 3), 0.5)).enumerate_support().shape == (2, 2, 3)
    assert D.Bernoulli(wg.full((2, 3), 0.5)).enumerate_support(expand=False).tolist() == [[[0]], [[1]]]
    assert D.Categorical(wg.ones(2, 3)).enumerate_support()[:, 0].tolist() == [0, 1, 2]
    assert D.Categorical(wg.ones(2, 3)).enumerate_support(expand=False).shape == (3, 1)
    assert D.OneHotCategorical(wg.ones(2, 3)).enumerate_support().shape == (3, 2, 3)
    assert D.Binomial(2, wg.tensor([0.5, 0.1])).enumerate_support().tolist() == [[0, 0], [1, 1], [2, 2]]
    assert D.Independent(D.Bernoulli(wg.ones(2)), 0).enumerate_support().shape == (2, 2)
    with pytest.raises(NotImplementedError, match="one total_count for the whole batch"):
        D.Binomial(wg.tensor([2, 3]), wg.tensor(0.5)).enumerate_support()
    with pytest.raises(NotImplementedError, match="would be a product"):
        D.Independent(D.Bernoulli(wg.ones(2)), 1).enumerate_support()


def test_modes() -> None:
    nan = pytest.approx(np.nan, nan_ok=True)
    t = tensor
    assert D.Beta(t([2.0, 1.0, 0.5]), t([3.0, 2.0, 0.5])).mode.tolist() == [pytest.approx(1 / 3), 0, nan]
    assert D.Gamma(t([0.5, 3.0]), t(2.0)).mode.tolist() == [0, 1]
    assert D.Bernoulli(t([0.5, 0.4, 0.6])).mode.tolist() == [nan, 0, 1]
    assert D.Binomial(3, t([0.5, 0.4, 1.0])).mode.tolist() == [2, 1, 3]
    assert D.NegativeBinomial(t([0.5, 3.0]), t(0.5)).mode.tolist() == [0, 2]
    assert D.Poisson(t(3.7)).mode.item() == 3
    assert D.Categorical(t([1.0, 3.0, 2.0])).mode.item() == 1
    assert D.OneHotCategorical(t([1.0, 3.0, 2.0])).mode.tolist() == [0, 1, 0]
    assert D.Dirichlet(t([2.0, 3.0, 0.5])).mode.tolist() == pytest.approx([1 / 3, 2 / 3, 0])
    assert D.Weibull(t(1.0), t([0.5, 2.0])).mode.tolist() == pytest.approx([0, np.sqrt(0.5)])
    assert D.Kumaraswamy(t([2.0, 0.5]), t([2.0, 2.0])).mode.tolist() == [pytest.approx(np.sqrt(1 / 3)), nan]
    assert D.LogNormal(t(1.0), t(0.5)).mode.item() == pytest.approx(np.exp(0.75))
    assert D.InverseGamma(t(2.0), t(3.0)).mode.item() == 1
    assert D.FisherSnedecor(t([2.0, 4.0]), t(2.0)).mode.tolist() == [nan, 0.25]
    assert D.Wishart(t(4.0), wg.eye(2, dtype=wg.float64)).mode.diagonal().tolist() == [1, 1]
    for d in (
        D.Normal(1.0, 2.0),
        D.Cauchy(1.0, 2.0),
        D.Laplace(1.0, 2.0),
        D.Gumbel(1.0, 2.0),
        D.StudentT(3.0, 1.0),
    ):
        assert d.mode.item() == 1
    with pytest.raises(NotImplementedError, match="ContinuousBernoulli has no mode"):
        _ = D.ContinuousBernoulli(0.5).mode


# ---- parameters from each other ------------------------------------------------------------------


def test_probs_and_logits() -> None:
    d = D.Bernoulli(logits=wg.tensor([0.0, 2.0], requires_grad=True))
    assert "probs" not in vars(d)
    with wg.no_grad():
        assert d.probs.requires_grad  # whoever reads it first
    assert d.probs is d.probs
    assert d.expand((3, 2)).probs.shape == (3, 2)
    assert D.Bernoulli(wg.tensor([0.0, 0.5, 1.0])).logits.tolist() == [-np.inf, 0, np.inf]
    assert d.param_shape == (2,)
    c = D.Categorical(wg.tensor([[1.0, 3.0]]))
    assert c.probs.tolist() == [[0.25, 0.75]]
    assert c.param_shape == (1, 2)
    np.testing.assert_allclose(
        D.Categorical(logits=wg.tensor([1.0, 1.0])).logits.numpy(), np.log(0.5), rtol=1e-6
    )
    assert D.RelaxedBernoulli(wg.tensor(1.0), wg.tensor([0.0, 1.0])).logits.isfinite().all()


def test_repr() -> None:
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(D.Gamma(wg.ones(2, 3), 1.0)) == "Gamma(concentration: (2, 3), rate: (2, 3))"
    assert repr(D.Bernoulli(logits=wg.zeros(2))) == "Bernoulli(logits: (2,))"
    assert repr(D.LogNormal(0.0, 1.0)) == "LogNormal(loc: 0.0, scale: 1.0)"
    assert repr(D.Chi2(3.0)) == "Chi2(df: 3.0)"
    assert (
        repr(D.Independent(D.Normal(wg.zeros(2), 1.0), 1)) == "Independent(Normal(loc: (2,), scale: (2,)), 1)"
    )
    mixture = D.MixtureSameFamily(D.Categorical(wg.ones(2)), D.Normal(wg.zeros(2), 1.0))
    assert repr(mixture) == "MixtureSameFamily(Categorical(probs: (2,)), Normal(loc: (2,), scale: (2,)))"
    moved = D.TransformedDistribution(D.Normal(0.0, 1.0), D.ExpTransform())
    assert repr(moved) == "TransformedDistribution(Normal(loc: 0.0, scale: 1.0), [ExpTransform()])"
    assert wg.vmap(lambda x: wg.tensor(float("None" in repr(D.Normal(x, 1.0)))))(wg.zeros(2)).tolist() == [
        1,
        1,
    ]


def test_copies() -> None:
    for d in (
        D.Normal(wg.zeros(2), 1.0),
        D.LogNormal(0.0, 1.0),
        D.Categorical(wg.ones(3)),
        D.Wishart(4.0, wg.eye(3)),
    ):
        x = d.sample()
        for other in (copy.deepcopy(d), pickle.loads(pickle.dumps(d))):
            np.testing.assert_array_equal(other.log_prob(x).numpy(), d.log_prob(x).numpy())


def test_distributions_of_ones_own() -> None:
    class Triangle(D.Distribution):
        """`1 - |x - loc|`."""

        arg_constraints = {"loc": D.constraints.real}  # noqa: RUF012
        has_rsample = True

        def __init__(self, loc: wg.Tensor, validate_args: bool | None = None) -> None:
            self.loc = loc
            super().__init__(loc.shape, validate_args=validate_args)

        @D.constraints.dependent_property(is_discrete=False, event_dim=0)
        def support(self) -> Any:
            return D.constraints.interval(self.loc - 1, self.loc + 1)

        def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
            new = self._get_checked_instance(Triangle, _instance)
            new.loc = self.loc.expand(*batch_shape)
            super(Triangle, new).__init__(batch_shape, validate_args=False)
            new._validate_args = self._validate_args
            return new

        def rsample(self, sample_shape: Sequence[int] = ()) -> wg.Tensor:
            shape = self._extended_shape(sample_shape)
            return self.loc + wg.rand(shape) - wg.rand(shape)

        def log_prob(self, value: wg.Tensor) -> wg.Tensor:
            if self._validate_args:
                self._validate_sample(value)
            return (1 - (value - self.loc).abs()).log()

    d = Triangle(wg.zeros(2)).expand((3, 2))
    x = d.sample((4,))
    assert x.shape == (4, 3, 2)
    assert D.Independent(d, 1).log_prob(x).shape == (4, 3)
    with pytest.raises(ValueError, match="Triangle: loc must satisfy Real"):
        Triangle(wg.tensor([wg.nan]))
    with pytest.raises(ValueError, match="Triangle: value must satisfy Interval"):
        d.log_prob(wg.full((3, 2), 2.0))
    assert inspect.getdoc(Triangle.log_prob) == inspect.getdoc(D.Distribution.log_prob)

    class Wide(Triangle):
        def __init__(self) -> None:
            super().__init__(wg.zeros(1))

    with pytest.raises(NotImplementedError, match="must define expand"):
        Wide().expand((2,))

    class Shifted(D.Normal):
        """Inherits `expand` with an `__init__` of its own."""

        def __init__(self, loc: wg.Tensor) -> None:
            super().__init__(loc + 1, 2.0)

    assert Shifted(wg.zeros(2)).expand((3, 2)).mean.tolist() == [[1, 1]] * 3


def test_names_and_modules_of_pytorch() -> None:
    for module, names in {
        "normal": "Normal", "log_normal": "LogNormal", "half_normal": "HalfNormal", "half_cauchy": "HalfCauchy",
        "distribution": "Distribution", "exp_family": "ExponentialFamily", "categorical": "Categorical",
        "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough", "bernoulli": "Bernoulli",
        "beta": "Beta", "dirichlet": "Dirichlet", "kumaraswamy": "Kumaraswamy", "gamma": "Gamma", "chi2": "Chi2",
        "inverse_gamma": "InverseGamma", "studentT": "StudentT", "fishersnedecor": "FisherSnedecor",
        "multivariate_normal": "MultivariateNormal", "lowrank_multivariate_normal": "LowRankMultivariateNormal",
        "poisson": "Poisson", "binomial": "Binomial", "multinomial": "Multinomial", "geometric": "Geometric",
        "negative_binomial": "NegativeBinomial", "uniform": "Uniform", "exponential": "Exponential",
        "laplace": "Laplace", "cauchy": "Cauchy", "gumbel": "Gumbel", "pareto": "Pareto", "weibull": "Weibull",
        "generalized_pareto": "GeneralizedPareto", "von_mises": "VonMises", "logistic_normal": "LogisticNormal",
        "continuous_bernoulli": "ContinuousBernoulli", "lkj_cholesky": "LKJCholesky", "wishart": "Wishart",
        "relaxed_bernoulli": "RelaxedBernoulli LogitRelaxedBernoulli", "independent": "Independent",
        "relaxed_categorical": "RelaxedOneHotCategorical ExpRelaxedCategorical",
        "mixture_same_family": "MixtureSameFamily", "transformed_distribution": "TransformedDistribution",
        "kl": "kl_divergence register_kl", "constraint_registry": "biject_to transform_to ConstraintRegistry",
        "constraints": "Constraint positive", "transforms": "Transform ExpTransform",
        "utils": "broadcast_all lazy_property probs_to_logits logits_to_probs clamp_probs",
    }.items():  # fmt: skip
        found = importlib.import_module(f"wengert.distributions.{module}")
        assert all(hasattr(found, name) for name in names.split()), module
    assert set(dir(D)) == set(D.__all__)
    assert all(hasattr(D, name) for name in D.__all__)


def test_methods_have_the_docstrings_of_the_base() -> None:
    for name in D.__all__:
        value = getattr(D, name)
        if inspect.isclass(value):
            bare = [
                n for n, m in vars(value).items() if not n.startswith("_") and callable(m) and not m.__doc__
            ]
            assert bare == [], name
