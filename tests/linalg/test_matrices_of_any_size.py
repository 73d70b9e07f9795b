"""Factorisations and systems of matrices of subnormal, very small and very large numbers: what mpmath
says of the matrix as it is stored."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from mpmath import mp, mpf
from wengert import Tensor, linalg as L

A = np.array([[1.5, -0.25, 0.5], [0.75, 2.0, -1.25], [-0.5, 1.0, 1.75]])
B = np.array([[1.0, 0.5], [-2.0, 1.25], [0.75, -1.0]])
SCALES = {"float64": (1e-310, 1e-300, 1e-200, 1e300, 3e307), "float32": (1e-40, 1e-37, 1e37)}
CASES = [(dtype, scale) for dtype, scales in SCALES.items() for scale in scales]


def exact(x: Tensor) -> Any:
    """The numbers of a tensor as mpmath's."""
    return mp.matrix([[mpf(v) for v in row] for row in x.tolist()])


def check(found: Tensor, wanted: Any, dtype: str, scale: float = 1.0) -> None:
    """All digits, but those that no number of the dtype has, nor factors of this size."""
    info = np.finfo(dtype)
    eps = 32 * max(mpf(float(info.eps)), 4 * mpf(float(info.smallest_subnormal)) / mpf(scale))
    most = max(abs(v) for v in wanted)
    for i, row in enumerate(found.tolist()):
        for j, value in enumerate(row):
            if abs(wanted[i, j]) > mpf(float(info.max)):
                assert value == (np.inf if wanted[i, j] > 0 else -np.inf)
            else:
                error = abs(mpf(value) - wanted[i, j])
                assert error <= eps * most + 4 * mpf(float(info.smallest_subnormal)), (
                    value,
                    wanted[i, j],
                )


def scaled(x: Any, scale: float, dtype: str) -> Tensor:
    """A matrix times a number."""
    return wg.tensor((x * scale).astype(dtype))


#: What solves `A X = B`.
SOLVERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "solve": L.solve,
    "from the right": lambda a, b: L.solve(a.mT, b.mT, left=False).mT,
    "lu_solve": lambda a, b: L.lu_solve(*L.lu_factor(a), b),
    "batch": lambda a, b: L.solve(wg.stack([a, wg.eye(3, dtype=a.dtype)]), b)[0],
}


@pytest.mark.parametrize(("dtype", "scale"), CASES)
@pytest.mark.parametrize("name", SOLVERS)
def test_systems(name: str, dtype: str, scale: float) -> None:
    a, b = scaled(A, scale, dtype), scaled(B, scale, dtype)
    with mp.workdps(60):
        check(SOLVERS[name](a, b), mp.inverse(exact(a)) * exact(b), dtype, scale)


@pytest.mark.parametrize(("dtype", "scale"), CASES)
def test_right_hand_sides_of_another_size(dtype: str, scale: float) -> None:
    a = scaled(A, scale, dtype)
    for other in (1.0, scale**0.5, 1 / scale**0.5):
        b = scaled(B, other, dtype)
        with mp.workdps(60):
            check(L.solve(a, b), mp.inverse(exact(a)) * exact(b), dtype, scale)


@pytest.mark.parametrize(("dtype", "scale"), CASES)
@pytest.mark.parametrize("upper", [False, True])
def test_triangles(upper: bool, dtype: str, scale: float) -> None:
    a, b = scaled(A, scale, dtype), scaled(B, scale, dtype)
    triangle = a.triu() if upper else a.tril()
    with mp.workdps(60):
        check(L.solve_triangular(a, b, upper=upper), mp.inverse(exact(triangle)) * exact(b), dtype, scale)


@pytest.mark.parametrize(("dtype", "scale"), CASES)
@pytest.mark.parametrize("invert", [L.inv, L.pinv])
def test_inverses(invert: Callable[[Tensor], Tensor], dtype: str, scale: float) -> None:
    a = scaled(A, scale, dtype)
    with mp.workdps(60):
        check(invert(a), mp.inverse(exact(a)), dtype, scale)


@pytest.mark.parametrize(("dtype", "scale"), CASES)
def test_factors(dtype: str, scale: float) -> None:
    a = scaled(A, scale, dtype)
    square = scaled(A @ A.T / 16, scale, dtype)
    with mp.workdps(60):
        # mpmath takes what is small for zero.
        root = mp.cholesky(exact(square) / mpf(scale)) * mp.sqrt(mpf(scale))
        check(L.cholesky(square), root, dtype, scale)
        q, r = L.qr(a)
        check(r.abs(), exact_r(a), dtype, scale)
        check(q.mT @ q, mp.eye(3), dtype)


def exact_r(a: Tensor) -> Any:
    """The magnitudes of the triangular factor of a QR factorisation."""
    r = mp.qr(exact(a))[1]
    return mp.matrix([[abs(r[i, j]) for j in range(3)] for i in range(3)])


@pytest.mark.parametrize("scale", [1e-200, 1e-300, 1e300])
def test_derivatives_of_solutions(scale: float) -> None:
    a, b = scaled(A, scale, "float64"), scaled(B, scale, "float64")
    found = wg.grad(lambda b: L.solve(a, b).sum())(b) * scale
    wanted = wg.grad(lambda b: L.solve(wg.tensor(A), b).sum())(wg.tensor(B))
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-13)
    found = wg.grad(lambda a: L.solve(a, b).sum())(a) * scale
    wanted = wg.grad(lambda a: L.solve(a, wg.tensor(B)).sum())(wg.tensor(A))
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)
