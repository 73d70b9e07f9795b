"""What distributions refuse, and the messages; what is left out with the checks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
import wengert.distributions as D

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: D.Normal(0.0, -1.0),
        "Normal: scale must satisfy GreaterThan(lower_bound=0.0), got -1.0; validate_args=False skips "
        "this check",
    ),
    (
        lambda: D.Normal(wg.tensor([[0.0, wg.nan]]), 1.0),
        "Normal: loc must satisfy Real(), got nan at index (0, 1); ",
    ),
    (
        lambda: D.LogNormal(0.0, wg.tensor([1.0, 0.0])),
        "LogNormal: scale must satisfy GreaterThan(lower_bound=0.0), got 0.0 at index (1,); ",
    ),
    (
        lambda: D.Uniform(wg.zeros(2), wg.tensor([1.0, -2.0])),
        "Uniform: low must satisfy LessThan(upper_bound=-2.0), got 0.0 at index (1,); ",
    ),
    (
        lambda: D.Exponential(1.0).log_prob(wg.tensor([1.0, -2.0])),
        "Exponential: value must satisfy GreaterThanEq(lower_bound=0.0), got -2.0 at index (1,); ",
    ),
    (
        lambda: D.Binomial(3, 0.5).log_prob(wg.tensor(4.0)),
        "Binomial: value must satisfy IntegerInterval(lower_bound=0, upper_bound=3.0), got 4.0; ",
    ),
    (
        lambda: D.Categorical(wg.tensor([[1.0, 1.0], [2.0, -1.0]])),
        "Categorical: probs must satisfy Simplex(), got [2.0, -1.0] at index (1,); ",
    ),
    (
        lambda: D.Categorical(wg.ones(3)).log_prob(wg.tensor(3)),
        "Categorical: value must satisfy IntegerInterval(lower_bound=0, upper_bound=2), got 3; ",
    ),
    (lambda: D.Geometric(0.0), "Geometric: probs must satisfy GreaterThan(lower_bound=0.0), got 0.0; "),
    (lambda: D.Wishart(1.0, wg.eye(3)), "Wishart: df must satisfy GreaterThan(lower_bound=2), got 1.0; "),
    (
        lambda: D.MultivariateNormal(wg.zeros(1), -wg.eye(1)),
        "MultivariateNormal: covariance_matrix must satisfy PositiveDefinite(), got [[-1.0]]; ",
    ),
    (
        lambda: D.Normal(0.0, 1.0).log_prob(1.0),
        "Normal: value must be a tensor, got float; use wengert.tensor()",
    ),
    (
        lambda: D.Normal(wg.zeros(3), 1.0).log_prob(wg.zeros(2)),
        "Normal: value of shape (2,) does not broadcast with batch and event, (3,)",
    ),
    (
        lambda: D.Dirichlet(wg.ones(3)).log_prob(wg.ones(2)),
        "Dirichlet: the last axes of value must be those of an event, (3,), got shape (2,)",
    ),
    (lambda: D.Bernoulli(0.5, 0.2), "Bernoulli: exactly one of probs, logits is expected, got probs, logits"),
    (lambda: D.Categorical(), "Categorical: exactly one of probs, logits is expected, got none"),
    (
        lambda: D.MultivariateNormal(wg.zeros(2)),
        "MultivariateNormal: exactly one of covariance_matrix, precision_matrix, scale_tril is "
        "expected, got none",
    ),
    (
        lambda: D.MultivariateNormal(wg.tensor(0.0), wg.eye(2)),
        "MultivariateNormal: loc needs an axis, that of the vectors; got a single number",
    ),
    (
        lambda: D.MultivariateNormal(wg.zeros(2), wg.ones(2)),
        "MultivariateNormal: covariance_matrix must be a matrix, or a batch of them, got a tensor of 1 axes",
    ),
    (
        lambda: D.Categorical(wg.tensor(1.0)),
        "Categorical: probs needs an axis of categories; got a single number",
    ),
    (
        lambda: D.Dirichlet(wg.tensor(1.0)),
        "Dirichlet: concentration needs an axis, along which it sums; got a single number",
    ),
    (
        lambda: D.LowRankMultivariateNormal(wg.zeros(2), wg.zeros(3, 1), wg.ones(2)),
        "LowRankMultivariateNormal: cov_factor must be (..., 2, rank) and cov_diag (..., 2), as loc "
        "has 2 elements; got (3, 1) and (2,)",
    ),
    (
        lambda: D.LowRankMultivariateNormal(wg.zeros(2), wg.zeros(2), wg.ones(2)),
        "LowRankMultivariateNormal: loc (..., n), cov_factor (..., n, rank) and cov_diag (..., n) "
        "expected, got shapes (2,), (2,) and (2,)",
    ),
    (lambda: D.LKJCholesky(1), "LKJCholesky: dim must be 2 or more, got 1"),
    (
        lambda: D.Independent(D.Normal(wg.zeros(2), 1.0), 2),
        "Independent: reinterpreted_batch_ndims must lie between 0 and 1, the number of axes of the "
        "batch of Normal, got 2",
    ),
    (
        lambda: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(wg.zeros(2), 1.0)),
        "MixtureSameFamily: mixture_distribution must be a Categorical, got Normal",
    ),
    (
        lambda: D.MixtureSameFamily(D.Categorical(wg.ones(2)), 3),
        "MixtureSameFamily: component_distribution must be a Distribution, got int",
    ),
    (
        lambda: D.MixtureSameFamily(D.Categorical(wg.ones(2)), D.Normal(wg.zeros(3), 1.0)),
        "MixtureSameFamily: components of batch (3,) do not fit 2 categories of batch (); expected (..., 2)",
    ),
    (
        lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), [3]),
        "TransformedDistribution: transforms must be Transforms, got [3]",
    ),
    (
        lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform()),
        "TransformedDistribution: the transforms need 1 axes or more, the base distribution has shape ()",
    ),
    (
        lambda: D.Distribution.set_default_validate_args(1),
        "set_default_validate_args: True or False expected, got 1",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refusals(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_refusals_of_other_kinds() -> None:
    with pytest.raises(
        TypeError, match=r"Normal: sample_shape is a sequence of lengths, got 2; write \(2,\)"
    ):
        D.Normal(0.0, 1.0).sample(2)
    with pytest.raises(NotImplementedError, match="Multinomial: one total_count, an int, is expected"):
        D.Multinomial(wg.tensor([1, 2]), wg.ones(3))
    for missing in ("rsample", "entropy", "cdf", "icdf", "enumerate_support"):
        with pytest.raises(NotImplementedError, match=f"Poisson has no {missing}"):
            getattr(D.Poisson(1.0), missing)(*([wg.tensor(0.5)] if "cdf" in missing else []))
    for name in ("mean", "mode", "variance", "support"):
        with pytest.raises(NotImplementedError, match=f"Distribution has no {name}"):
            getattr(D.Distribution(), name)
    with pytest.raises(NotImplementedError, match="Distribution has no log_prob"):
        D.Distribution().log_prob(wg.tensor(1.0))
    with pytest.warns(FutureWarning, match="use sample"):
        assert D.Normal(0.0, 1.0).sample_n(3).shape == (3,)


def test_validation_can_be_left_out() -> None:
    D.Normal(0.0, -1.0, validate_args=False)
    assert D.Exponential(1.0, validate_args=False).log_prob(wg.tensor(-1.0)).item() == -np.inf
    # Targets between 0 and 1: the cross entropy.
    soft = D.Bernoulli(0.25, validate_args=False).log_prob(wg.tensor(0.5)).item()
    assert soft == pytest.approx(0.5 * np.log(0.25) + 0.5 * np.log(0.75))
    assert D.Normal(0.0, 1.0, validate_args=False).log_prob(0.0).item() == pytest.approx(-0.9189, abs=1e-4)
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="scale must satisfy"):
        D.Normal(0.0, -1.0)
    assert D.Normal(0.0, 1.0, validate_args=False).expand((2,)).log_prob(1.0).shape == (2,)
    # Inside vmap nothing is known of the values.
    assert wg.vmap(lambda s: D.Normal(0.0, s).mean)(wg.tensor([1.0, -1.0])).tolist() == [0, 0]
