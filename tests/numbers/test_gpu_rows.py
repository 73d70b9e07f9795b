"""Rows of the tables on a GPU: NaN, whose comparisons a compiler may leave out, and attributes, its
parameters."""

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


def test_remainders_are_exact() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32) for _ in range(2))
    near = rng.normal(size=5000).astype(np.float32)
    x, y = np.concatenate([x, near * 100]), np.concatenate([y, near[::-1]])
    known = np.isfinite(x) & np.isfinite(y) & (np.abs(x) > 1e-30) & (np.abs(y) > 1e-30)
    x, y = x[known], y[known]
    want = np.fmod(x, y)
    normal = (want == 0) | (np.abs(want) > 1e-37)
    found = wg.fmod(wg.tensor(x, device="gpu"), wg.tensor(y, device="gpu")).cpu().numpy()
    np.testing.assert_array_equal(found[normal], want[normal])
    one, tenth = wg.tensor(1.0, device="gpu"), wg.tensor(0.1, device="gpu")
    assert (one // tenth).item() == 9.0
    assert (one % tenth).item() == np.remainder(np.float32(1), np.float32(0.1))
    assert wg.fmod(wg.tensor([math.inf, 1.0, -0.0, 3.0], device="gpu"), 0.0).isnan().all()
    assert wg.fmod(wg.tensor([5.0, -5.0], device="gpu"), math.inf).tolist() == [5.0, -5.0]
