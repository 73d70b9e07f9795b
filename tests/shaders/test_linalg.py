"""Factors of matrices and triangular systems, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from shaders.host import rng, run

SIZES = [1, 2, 3, 7, 16, 17, 33, 64, 130]


def flags(**more):
    """The marked lines of constants."""
    return {f"const {name}": f"const {name}: bool = {str(value).lower()};" for name, value in more.items()}


def positive(seed, count, n):
    """Positive definite matrices."""
    a = rng(seed).standard_normal((count, n, n))
    return (a @ a.swapaxes(1, 2) + n * np.eye(n)).astype(np.float32)


def near(got, want, scale=1.0):
    """Within the rounding errors of float32, relative to the largest element."""
    want = np.asarray(want, np.float64)
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * scale * np.abs(want).max(initial=1e-30))


@pytest.mark.parametrize("n", SIZES)
def test_cholesky(n):
    a = positive(n, 3, n)
    out, info = run("cholesky.wgsl", [], [a, np.zeros(3, np.uint32)], [3, n, n, 0], 3)
    near(out, np.linalg.cholesky(a.astype(np.float64)))
    assert (np.triu(out, 1) == 0).all()
    assert (info == 0).all()
    for minor in {1, n // 2 + 1, n}:
        wrong = a.copy()
        wrong[1, minor - 1, minor - 1] = [-1.0, np.nan, np.inf][minor % 3]
        _, info = run("cholesky.wgsl", [], [wrong, np.zeros(3, np.uint32)], [3, n, n, 0], 3)
        assert info.tolist() == [0, minor, 0]


def factors(a):
    """What one launch makes of matrices."""
    count, m, n = a.shape
    depth = min(m, n)
    outs = [a, ((count, m), np.uint32), ((count, depth), np.uint32), ((count,), np.float32)]
    return run("lu.wgsl", [], outs, [count, m, n, 0, n], count)


@given(st.integers(0, 2**20), st.integers(1, 4), st.integers(1, 24), st.integers(1, 24))
def test_lu_of_any_shape(seed, count, m, n):
    a = rng(seed).standard_normal((count, m, n)).astype(np.float32)
    check_lu(a)


@pytest.mark.parametrize("n", SIZES)
def test_lu(n):
    a = rng(n).standard_normal((2, n, n)).astype(np.float32)
    _, _, _, det = check_lu(a)
    wide = a.astype(np.float64)
    if n < 50:
        near(det, np.linalg.det(wide), 20)


def check_lu(a):
    """Factors, exchanges and sizes of multipliers."""
    count, m, n = a.shape
    packed, order, exchanges, _ = found = factors(a)
    depth = min(m, n)
    for i in range(count):
        low = np.tril(packed[i].astype(np.float64), -1)[:, :depth] + np.eye(m, depth)
        near(low @ np.triu(packed[i].astype(np.float64))[:depth], a[i][order[i]], 4)
        rows = np.arange(m)
        for k, other in enumerate(exchanges[i]):
            rows[[k, other - 1]] = rows[[other - 1, k]]
        assert (rows == order[i]).all()
        assert np.abs(low).max() <= 1
    return found


def test_lu_of_singular_matrices():
    a = np.array([[[1, 2], [2, 4]], [[0, 0], [0, 3]], [[0, 1], [0, 1]]], np.float32)
    packed, order, _, det = factors(a)
    assert det.tolist() == [0, 0, 0]
    assert np.isfinite(packed).all()
    assert order.tolist() == [[1, 0], [0, 1], [0, 1]]


@given(st.integers(0, 2**20), st.integers(1, 3), st.integers(1, 20), st.integers(1, 300))
def test_triangular_systems(seed, count, n, columns):
    g = rng(seed)
    a = (g.standard_normal((count, n, n)) / n + 2 * np.eye(n)).astype(np.float32)
    b = g.standard_normal((count, n, columns)).astype(np.float32)
    upper, unit, transposed = g.random(3) < 0.5
    replace = flags(UPPER=upper, UNIT=unit, TRANSPOSED=transposed)
    info = np.zeros(count, np.uint32)
    groups = -(-count * columns // 256)
    got, info = run("triangular_solve.wgsl", [a], [b, info], [count, n, columns, 0], groups, replace)
    part = (np.triu if upper else np.tril)(a.astype(np.float64))
    if unit:
        part[:, range(n), range(n)] = 1
    near(got, np.linalg.solve(part.swapaxes(1, 2) if transposed else part, b.astype(np.float64)))
    assert (info == 0).all()


def test_zeros_on_the_diagonal_are_told():
    a = np.stack([np.eye(3), np.diag([1.0, 0, 0]), np.eye(3)]).astype(np.float32)
    b = np.ones((3, 3, 2), np.float32)
    for upper, first in ((False, 2), (True, 3)):
        _, info = run(
            "triangular_solve.wgsl", [a], [b, np.zeros(3, np.uint32)], [3, 3, 2, 0], 1, flags(UPPER=upper)
        )
        assert info.tolist() == [0, first, 0]
