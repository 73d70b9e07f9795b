"""Eigenvectors of real matrices whose eigenvalues differ by many orders of magnitude,
judged by their residuals.
"""

import math

import numpy as np
import pytest
import wengert as wg
from hypothesis import given, strategies as st


def residual(a: np.ndarray) -> float:
    """The largest element of `A v - w v`, relative to the largest of `A`, over all pairs."""
    w, v = (t.numpy() for t in wg.linalg.eig(wg.tensor(a)))
    np.testing.assert_allclose(np.linalg.norm(v, axis=0), 1.0, rtol=1e-12)
    size = np.abs(a).max()
    return float(np.abs((a / size) @ v - v * (w / size)).max())


@given(
    st.integers(2, 24),
    st.integers(0, 10**6),
    st.floats(0, 30),
    st.sampled_from(["columns", "rows", "both", "blocks", "one"]),
)
def test_residuals_of_graded_matrices(n: int, seed: int, orders: float, kind: str) -> None:
    rng = np.random.default_rng(seed)
    a, grades = rng.normal(size=(n, n)), 10.0 ** -np.linspace(0, orders, n)
    if kind in ("columns", "both"):
        a = a * grades
    if kind in ("rows", "both"):
        a = a * grades[:, None]
    if kind == "blocks":
        a = np.triu(a) * grades[:, None]
        for k in range(0, n - 1, 2):
            a[k + 1, k] = -a[k, k + 1]
            a[k + 1, k + 1] = a[k, k]
    if kind == "one":
        a[rng.integers(n), rng.integers(n)] = 10.0 ** (8 * orders)
    assert residual(a) <= 1e-14 * n


def test_small_pairs_have_exact_vectors() -> None:
    e = 1e-9
    a = np.zeros((5, 5))
    a[0, 0] = 1
    a[1:3, 1:3] = [[e, 2 * e], [-2 * e, e]]
    a[3:, 3:] = [[3 * e, e], [-e, 3 * e]]
    a[1:3, 3:] = [[4 * e, 5 * e], [6 * e, 7 * e]]
    w, v = (t.numpy() for t in wg.linalg.eig(wg.tensor(a)))
    # Block by block, so the rounding errors of the large element are none of the small ones'.
    assert (np.abs(a @ v - v * w).max(0) <= 1e-14 * np.abs(w)).all()
    np.testing.assert_allclose(np.sort_complex(w), np.sort_complex(np.linalg.eigvals(a)), rtol=1e-12)


@pytest.mark.parametrize("huge", [1e30, 1e100, 1e200, 1e300])
def test_one_element_beyond_all_others(huge: float) -> None:
    a = np.random.default_rng(5).normal(size=(40, 40))
    a[3, 11] = huge
    assert residual(a) <= 1e-13


def test_gradients_of_small_pairs() -> None:
    e = 1e-10
    start = np.diag([1.0, 0.0, 0.0]) + e * np.array([[0, 0, 0], [0, 1, 2], [0, -2, 1]])
    move = e * np.array([[0, 0, 0], [0, 0.3, -0.2], [0, 0.5, 0.1]])
    # The squared size of the pair is the determinant of its block, `e^2 (5 - t)` along the way.
    size = lambda x: (wg.linalg.eig(x).eigenvalues.abs() / e).clamp(max=100.0).sum()
    slope = wg.jvp(size, (wg.tensor(start),), (wg.tensor(move),))[1].item()
    assert abs(slope * math.sqrt(5.0) + 1.0) < 1e-9


def test_eigenvalues_of_skew_symmetric_matrices_are_found() -> None:
    rng = np.random.default_rng(5)
    for _ in range(400):
        n = int(rng.integers(2, 12))
        full, side = rng.normal(size=(n, n)), rng.normal(size=n - 1)
        for a in (
            full - full.T,
            np.round(2 * full) - np.round(2 * full).T,
            np.diag(side, 1) - np.diag(side, -1),
        ):
            w, v = (np.array(t.tolist()) for t in wg.linalg.eig(wg.tensor(a)))
            assert np.abs(a @ v - v * w).max() <= 1e-12 * max(np.abs(a).max(), 1.0)
