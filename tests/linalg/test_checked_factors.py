"""Factorisations that report failure in a tensor, factors as LAPACK packs them, approximations of low
rank."""

from typing import Any

import numpy as np
import pytest
import wengert as wg
from scipy.linalg import lapack
from support import Array, array
from wengert.autograd import gradcheck, gradgradcheck

L = wg.linalg
TYPES = ["float64", "complex128"]


def drawn(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> Array:
    rng = np.random.default_rng((seed, *shape))
    real = rng.normal(size=shape)
    return real + 1j * rng.normal(size=shape) if dtype == "complex128" else real


def assert_near(got: Any, expected: Any, tolerance: float) -> None:
    np.testing.assert_allclose(
        array(got), expected, rtol=tolerance, atol=tolerance * np.abs(array(expected)).max(initial=1)
    )


def matrices(dtype: str) -> Array:
    """A definite matrix, one with a negative first minor, one with a negative second minor, zeros, NaN."""
    a = drawn((3, 3), dtype)
    indefinite = np.array([[1, 2, 0], [2, 1, 0], [0, 0, 1]])
    return np.stack(
        [a @ a.conj().T, -np.eye(3), indefinite, np.zeros((3, 3)), np.full((3, 3), np.nan)]
    ).astype(dtype)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", [*TYPES, "float32", "complex64"])
def test_cholesky(dtype: str, upper: bool) -> None:
    a = matrices("complex128" if "complex" in dtype else "float64").astype(dtype)
    factor, info = L.cholesky_ex(wg.tensor(a), upper=upper)
    assert info.dtype == wg.int32
    assert info.tolist() == [0, 1, 2, 1, 1]
    assert factor.dtype == getattr(wg, dtype)
    lower = np.linalg.cholesky(a[0])
    assert_near(factor[0], lower.conj().T if upper else lower, 1e-5 if dtype[-2:] in ("32", "64") else 1e-12)
    assert factor[1:].isnan().any(-1).any(-1).all()
    assert wg.vmap(lambda a: L.cholesky_ex(a, upper=upper).info)(wg.tensor(a)).tolist() == [0, 1, 2, 1, 1]
    with pytest.raises(wg.LinAlgError, match=r"matrix \[1\] of the batch is not positive definite"):
        L.cholesky_ex(wg.tensor(a), upper=upper, check_errors=True)
    good = L.cholesky_ex(wg.tensor(a[0]), upper=upper)
    assert good.info.item() == 0
    assert tuple(good.info.shape) == ()
    assert L.cholesky_ex(wg.zeros(2, 0, 0)).info.tolist() == [0, 0]


def test_nearly_singular_matrices_are_at_fault_somewhere() -> None:
    """Rounding decides; whatever it decides, the factor and what is reported agree."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        a = rng.normal(size=(4, 3))
        factor, info = L.cholesky_ex(wg.tensor(np.stack([a @ a.T, np.eye(4), -np.eye(4)])))
        assert info[1:].tolist() == [0, 1]
        assert bool(factor[0].isnan().any()) == bool(info[0] != 0)


def test_inverse_solution_and_pivots() -> None:
    a = np.stack([drawn((3, 3)), np.zeros((3, 3)), np.ones((3, 3)), np.diag([1.0, 1.0, 0.0])])
    wanted = [0, 1, 2, 3]
    inverse, info = L.inv_ex(wg.tensor(a))
    assert info.tolist() == wanted
    assert_near(inverse[0], np.linalg.inv(a[0]), 1e-12)
    assert inverse[1:].isnan().all()
    for b, left in ((drawn((4, 3, 2)), True), (drawn((4, 3)), True), (drawn((4, 2, 3)), False)):
        result, info = L.solve_ex(wg.tensor(a), wg.tensor(b), left=left)
        assert info.tolist() == wanted
        assert tuple(result.shape) == b.shape
        expected = np.linalg.solve(a[0], b[0]) if left else np.linalg.solve(a[0].T, b[0].T).T
        assert_near(result[0], expected, 1e-12)
        assert result[1:].isnan().all()
    factors = L.lu_factor_ex(wg.tensor(a))
    assert factors.info.tolist() == wanted
    assert wg.equal(factors.LU[0], L.lu_factor(wg.tensor(a[0])).LU)
    assert L.lu_factor_ex(wg.tensor(a[0]), pivot=True, check_errors=True).info.item() == 0
    assert L.lu_factor_ex(wg.ones(2, 0, 3)).info.tolist() == [0, 0]
    for call in (
        lambda: L.inv_ex(wg.tensor(a), check_errors=True),
        lambda: L.solve_ex(wg.tensor(a), wg.ones(4, 3), check_errors=True),
        lambda: L.lu_factor_ex(wg.tensor(a), check_errors=True),
    ):
        with pytest.raises(wg.LinAlgError, match="pivot"):
            call()
    with pytest.raises(ValueError, match="lu_factor_ex: pivot must be True"):
        L.lu_factor_ex(wg.tensor(a), pivot=False)
    assert wg.vmap(lambda a: L.inv_ex(a).info)(wg.tensor(a)).tolist() == wanted
    assert wg.vmap(lambda a: L.inv_ex(a).info)(wg.tensor(a[:1])).tolist() == [0]


def test_matrices_at_fault_have_no_gradient_and_spoil_none() -> None:
    a = np.stack([drawn((2, 2)), np.zeros((2, 2))])
    slope = wg.grad(lambda x: L.inv_ex(x).inverse[0].sum())(wg.tensor(a))
    assert_near(slope[0], wg.grad(lambda x: L.inv(x).sum())(wg.tensor(a[0])), 1e-12)
    assert slope[1].tolist() == [[0, 0], [0, 0]]
    b = np.stack([np.eye(2) * 4, -np.eye(2)])
    slope = wg.grad(lambda x: L.cholesky_ex(x).L[0].sum())(wg.tensor(b))
    assert slope.tolist() == [[[0.25, 0.25], [0.25, 0.25]], [[0, 0], [0, 0]]]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (1, 1), (2, 1)])
def test_reflections_are_those_of_lapack(shape: tuple[int, int], dtype: str) -> None:
    a = drawn(shape, dtype)
    packed, tau = wg.geqrf(wg.tensor(a))
    kind = "z" if dtype == "complex128" else "d"
    wanted, factors, *_ = getattr(lapack, f"{kind}geqrf")(a)
    assert_near(packed, wanted, 1e-12)
    assert_near(tau, factors, 1e-12)
    m = shape[0]
    q = array(wg.tensor(a).geqrf()[0].ormqr(tau, wg.eye(m, dtype=packed.dtype)))
    assert_near(wg.tensor(q.conj().T @ q), np.eye(m), 1e-12)
    assert_near(wg.tensor(q[:, : min(shape)] @ np.triu(wanted)[: min(shape)]), a, 1e-12)
    if shape[0] >= shape[1]:
        assert_near(wg.orgqr(packed, tau), q[:, : shape[1]], 1e-12)
        assert wg.equal(packed.orgqr(tau), L.householder_product(packed, tau))
    for left in (True, False):
        for transpose in (True, False):
            x = drawn((m, 2) if left else (2, m), dtype, 1)
            turned = q.conj().T if transpose else q
            got = wg.ormqr(packed, tau, wg.tensor(x), left=left, transpose=transpose)
            assert_near(got, turned @ x if left else x @ turned, 1e-12)


def test_reflections_of_batches_corners_and_derivatives() -> None:
    a = drawn((2, 3, 2))
    packed, tau = wg.geqrf(wg.tensor(a))
    assert wg.equal(packed[1], wg.geqrf(wg.tensor(a[1])).a)
    assert wg.equal(wg.vmap(lambda a: wg.geqrf(a).tau)(wg.tensor(a)), tau)
    assert tuple(wg.geqrf(wg.ones(3, 0)).a.shape) == (3, 0)
    assert wg.geqrf(wg.tensor([[2.0, 1.0], [0.0, 3.0]])).tau.tolist() == [0, 0]
    assert gradcheck(wg.geqrf, wg.tensor(a), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(lambda a: wg.geqrf(a).tau, wg.tensor(a), check_fwd_over_rev=True, fast_mode=True)
    assert gradcheck(wg.ormqr, (packed.detach(), tau.detach(), wg.tensor(drawn((2, 3, 1)))))
    with pytest.raises(wg.ShapeError, match=r"ormqr: reflections of shape \(3, 2\) .* and 3 rows"):
        wg.ormqr(packed[0], tau[0], wg.ones(2, 2))
    with pytest.raises(wg.ShapeError, match=r"geqrf: matrices expected, got shape \(3,\)"):
        wg.geqrf(wg.ones(3))


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3), (0, 3)])
def test_packed_factors(shape: tuple[int, ...]) -> None:
    a = drawn(shape)
    x = wg.tensor(a)
    packed, pivots = wg.lu(x)
    assert wg.equal(packed, L.lu_factor(x).LU)
    assert x.lu(get_infos=True)[2].eq(0).all()
    p, lower, upper = wg.lu_unpack(packed, pivots)
    assert_near(p @ lower @ upper, a, 1e-12)
    assert wg.lu_unpack(packed, pivots, unpack_data=False)[1].numel() == 0
    assert wg.equal(wg.lu_unpack(packed, pivots, unpack_data=False).P, p)
    assert wg.lu_unpack(packed, pivots, unpack_pivots=False).P.numel() == 0
    assert wg.equal(wg.lu_unpack(packed, pivots, unpack_pivots=False).U, upper)
    with pytest.raises(ValueError, match="lu: pivot must be True"):
        wg.lu(x, pivot=False)
    with pytest.raises(wg.ShapeError, match="lu_unpack: matrices expected"):
        wg.lu_unpack(x.reshape(-1), pivots)


def test_older_solvers() -> None:
    a, b = drawn((2, 3, 3)), drawn((2, 3, 2), seed=1)
    packed, pivots = wg.lu(wg.tensor(a))
    assert_near(wg.lu_solve(wg.tensor(b), packed, pivots), np.linalg.solve(a, b), 1e-11)
    assert_near(wg.tensor(b).lu_solve(packed, pivots), np.linalg.solve(a, b), 1e-11)
    for upper in (True, False):
        for transpose in (True, False):
            for unit in (True, False):
                t = np.triu(a) if upper else np.tril(a)
                if unit:
                    t = t - t * np.eye(3) + np.eye(3)
                settings = dict(upper=upper, transpose=transpose, unitriangular=unit)
                found, copy = wg.triangular_solve(wg.tensor(b), wg.tensor(a), **settings)
                assert_near(found, np.linalg.solve(t.swapaxes(-1, -2) if transpose else t, b), 1e-10)
                assert np.array_equal(array(copy), a)


@pytest.mark.parametrize("dtype", TYPES)
def test_low_rank(dtype: str) -> None:
    a = drawn((2, 9, 3), dtype) @ drawn((2, 3, 6), dtype, 1)
    wg.manual_seed(0)
    u, s, v = wg.svd_lowrank(wg.tensor(a), q=4, niter=1)
    assert_near((u * s.unsqueeze(-2)) @ v.mH, a, 1e-10)
    assert_near(s[..., :3], np.linalg.svd(a)[1][..., :3], 1e-10)
    moved = wg.svd_lowrank(wg.tensor(a), q=3, niter=2, M=wg.tensor(a[:, :1]))
    assert_near(moved[1], np.linalg.svd(a - a[:, :1])[1][..., :3], 1e-9)
    wanted = np.linalg.svd(a - a.mean(-2, keepdims=True))
    u, s, v = wg.pca_lowrank(wg.tensor(a), q=3, niter=1)
    assert_near(s, wanted[1][..., :3], 1e-9)
    assert wg.pca_lowrank(wg.tensor(a))[1].shape[-1] == 6
    assert_near(wg.pca_lowrank(wg.tensor(a), 3, center=False)[1], np.linalg.svd(a)[1][..., :3], 1e-9)
    if dtype == "float64":
        slope = wg.grad(lambda x: wg.svd_lowrank(x, 3)[1].sum())(wg.tensor(a))
        u, _, vh = np.linalg.svd(a, full_matrices=False)
        assert_near(slope, u[..., :3] @ vh[..., :3, :], 1e-6)


def test_what_low_rank_refuses() -> None:
    x = wg.ones(3, 2)
    calls: list[tuple[Any, str]] = [
        (lambda: wg.svd_lowrank(x, q=3), "svd_lowrank: q must be between 0 and 2, got 3"),
        (lambda: wg.svd_lowrank(x, q=1, niter=-1), "svd_lowrank: niter must not be negative, got -1"),
        (lambda: wg.pca_lowrank(x, q=5), "pca_lowrank: q must be between 0 and 2, got 5"),
    ]
    for call, text in calls:
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(
        AttributeError, match=r"no attribute 'ldl_solve'; solve\(\) takes symmetric matrices too"
    ):
        _ = L.ldl_solve
    assert "cholesky_ex" in dir(L)
    for name in ("lobpcg", "matrix_rank"):
        with pytest.raises(AttributeError, match=r"wengert.linalg"):
            getattr(wg, name)


@pytest.mark.parametrize("shape", [(2, 2), (3, 2, 2), (2, 3)])
def test_zero_pivots_raise_where_nothing_reports_them(shape: tuple[int, ...]) -> None:
    singular = wg.ones(shape, dtype=wg.float64)
    for name, call in (("lu_factor", L.lu_factor), ("lu_factor", wg.lu)):
        with pytest.raises(
            wg.LinAlgError, match=f"^{name}: pivot 2 of the LU factorisation .*; lu_factor_ex"
        ):
            call(singular)
    with pytest.raises(RuntimeError, match="matrix is singular"):
        singular.lu()
    packed, _, info = L.lu_factor_ex(singular)
    assert info.shape == shape[:-2]
    assert (info == 2).all()
    assert wg.equal(packed, wg.lu(singular, get_infos=True)[0])


def test_singular_matrices_of_transforms() -> None:
    regular, singular = wg.eye(2), wg.ones(2, 2)
    with pytest.raises(wg.LinAlgError, match="lu_factor: pivot 2"):
        wg.grad(lambda a: L.lu_factor(a).LU.sum())(singular)
    assert wg.isfinite(wg.vmap(lambda a: L.lu_factor(a).LU)(wg.stack([regular, singular]))).all()
    factor = wg.jit(lambda a: L.lu_factor(a).LU)
    assert wg.equal(factor(regular), regular)
    assert wg.equal(factor(regular), regular)
    with pytest.raises(wg.LinAlgError, match="lu_factor: pivot 2"):
        factor(singular)
