"""`trunc_normal_` against SciPy's distribution, with bounds near the mean and far from it."""

import math

import numpy as np
import pytest
import wengert as wg
from scipy import stats
from wengert import nn

PLANS = [
    (0.0, 1.0, -2.0, 2.0),
    (0.0, 1.0, -0.01, 0.02),
    (0.0, 1.0, 3.0, math.inf),
    (0.0, 1.0, 3.0, 1e6),
    (5.0, 0.5, -2.0, 2.0),
    (-5.0, 0.5, -2.0, 2.0),
    (0.0, 1.0, -math.inf, -6.0),
    (1.0, 2.0, -20.0, -19.5),
    (1e3, 1.0, -1.0, 1.0),
]


@pytest.mark.parametrize(("mean", "std", "a", "b"), PLANS)
def test_distribution(mean: float, std: float, a: float, b: float) -> None:
    x = nn.init.trunc_normal_(wg.empty(20_000, dtype=wg.float64), mean, std, a, b).numpy()
    assert x.min() >= a
    assert x.max() <= b
    if mean < 1e3:
        expected = stats.truncnorm((a - mean) / std, (b - mean) / std, mean, std)
        assert stats.kstest(x, expected.cdf).pvalue > 1e-3
        return
    # So far out it is an exponential distribution at the bound, of the rate (mean - b) / std^2.
    assert stats.kstest((b - x) * (mean - b), "expon").pvalue > 1e-3


def test_bounds_beyond_all_digits() -> None:
    x = nn.init.trunc_normal_(wg.empty(100), mean=2.0**63)
    assert np.all(x.numpy() == 2.0)


@pytest.mark.parametrize("settings", [{"mean": math.nan}, {"mean": math.inf}, {"std": 0.0}, {"std": -1.0}])
def test_refusals(settings: dict) -> None:
    with pytest.raises(ValueError, match="trunc_normal_"):
        nn.init.trunc_normal_(wg.empty(3), **settings)
