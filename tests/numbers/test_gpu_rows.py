"""Rows of the tables on a GPU: NaN, whose comparisons its compiler may leave out, and attributes, which are parameters."""

import math

import numpy as np
import pytest
import wengert as wg
from wengert.nn import functional as F


@pytest.mark.parametrize(
    "name",
    ["softshrink", "hardshrink", "leaky_relu", "logsigmoid", "hardswish", "hardsigmoid", "elu", "celu"],
)
def test_nan_stays_nan(name: str) -> None:
    assert getattr(F, name)(wg.tensor([math.nan, 0.1], device="gpu")).isnan().tolist() == [True, False]


def test_a_changed_attribute_compiles_no_kernel() -> None:
    x = wg.tensor([-2.0, 0.5, 3.0], device="gpu")
    for low, beta in [(-1.0, 2.0), (-0.25, 3.0), (-math.inf, 0.5)]:
        np.testing.assert_array_equal(x.clamp(low, 2.5).tolist(), np.clip([-2.0, 0.5, 3.0], low, 2.5))
        want = np.logaddexp(0, beta * np.array([-2.0, 0.5, 3.0])) / beta
        np.testing.assert_allclose(F.softplus(x, beta).tolist(), want, rtol=1e-5)
        if beta == 2.0:
            compiled = wg.gpu.memory_stats()["pipelines_created"]
    assert wg.gpu.memory_stats()["pipelines_created"] == compiled
