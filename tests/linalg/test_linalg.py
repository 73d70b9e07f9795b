"""Linear algebra beyond the walks: singular and degenerate points, special values, large matrices, errors,
sharing."""

import numpy as np
import pytest
import wengert as wg
from samples.linalg_samples import heavy, positive
from support import Array, array, assert_near
from wengert.autograd import gradcheck, gradgradcheck

L = wg.linalg


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def slope(f: object, x: Array) -> Array:
    return array(wg.grad(f)(wg.tensor(x)))


def differences(f: object, x: Array, h: float = 1e-5) -> Array:
    """The gradient of a scalar function by central differences."""
    out = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[i] = h
        out[i] = (f(wg.tensor(x + step)).item() - f(wg.tensor(x - step)).item()) / (2 * h)
    return out


# ---- singular and degenerate points --------------------------------------------------------------


def cofactors(a: Array) -> Array:
    """By minors."""
    n = len(a)
    minor = lambda i, j: np.delete(np.delete(a, i, 0), j, 1)
    return np.array([[(-1) ** (i + j) * np.linalg.det(minor(i, j)) for j in range(n)] for i in range(n)])


@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4])
def test_determinant_of_any_rank_has_exact_derivatives(rank: int) -> None:
    a = drawn(4, rank) @ drawn(rank, 4, seed=1)
    assert_near(slope(L.det, a), cofactors(a), 1e-12)
    t, u = drawn(4, 4, seed=2), drawn(4, 4, seed=3)
    _, second = wg.jvp(lambda x: (wg.grad(L.det)(x) * wg.tensor(u)).sum(), (wg.tensor(a),), (wg.tensor(t),))
    h = 1e-4
    expected = ((cofactors(a + h * t) - cofactors(a - h * t)) * u).sum() / (2 * h)
    assert second.item() == pytest.approx(expected, abs=1e-6)
    hessian = array(wg.hessian(L.det)(wg.tensor(a))).reshape(16, 16)
    assert_near(hessian @ t.ravel(), (cofactors(a + h * t) - cofactors(a - h * t)).ravel() / (2 * h), 1e-6)


def test_sums_of_repeated_eigenvalues_have_gradients() -> None:
    x = np.eye(4)
    assert_near(slope(lambda x: L.eigvalsh(x).sum(), x), np.eye(4), 1e-14)
    assert_near(slope(lambda x: L.eigvalsh(x).square().sum(), x), 2 * np.eye(4), 1e-14)
    q = np.linalg.qr(drawn(4, 4))[0]
    x = q @ np.diag([1.0, 2.0, 2.0, 2.0]) @ q.T
    assert_near(slope(lambda x: L.eigvalsh(x).exp().sum(), x), q @ np.diag(np.exp([1, 2, 2, 2])) @ q.T, 1e-12)
    # The projection on the space of a repeated eigenvalue, which is what is determined of its vectors.
    p, b = q[:, 1:] @ q[:, 1:].T, drawn(4, 4, seed=5)

    def projected(x: wg.Tensor) -> wg.Tensor:
        v = L.eigh(x).eigenvectors[:, 1:]
        return ((v @ v.mT) * wg.tensor(b)).sum()

    symmetric = (b + b.T) / 2
    rest = np.eye(4) - p
    expected = p @ symmetric @ rest + rest @ symmetric @ p
    assert_near(slope(projected, x), expected, 1e-10)


def test_singular_values_of_identity_and_zero() -> None:
    assert_near(slope(lambda x: L.svdvals(x).sum(), np.eye(3)), np.eye(3), 1e-14)
    for shape in ((3, 3), (4, 2), (2, 4)):
        g = slope(lambda x: L.matrix_norm(x, "nuc"), np.zeros(shape))
        assert np.isfinite(g).all()
        assert np.linalg.norm(g, 2) <= 1 + 1e-12, "a subgradient of the nuclear norm"


def test_polar_factor_of_an_orthogonal_matrix() -> None:
    q, w = np.linalg.qr(drawn(4, 4))[0], drawn(4, 4, seed=1)

    def polar(x: wg.Tensor) -> wg.Tensor:
        u, _, vh = L.svd(x)
        return ((u @ vh) * wg.tensor(w)).sum()

    # Along dA the polar factor Q moves by Q (X - X') / 2, X = Q' dA.
    x = q.T @ w
    assert_near(slope(polar, q), q @ (x - x.T) / 2, 1e-12)


@pytest.mark.parametrize("shape", [(5, 4), (4, 5), (4, 4)])
def test_pseudoinverse_at_lower_rank(shape: tuple[int, int]) -> None:
    m, n = shape
    x, y = drawn(m, 2), drawn(2, n, seed=1)

    def f(x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        return L.pinv(x @ y)

    assert_near(f(wg.tensor(x), wg.tensor(y)), np.linalg.pinv(x @ y), 1e-12)
    point = (wg.tensor(x).requires_grad_(), wg.tensor(y).requires_grad_())
    assert gradcheck(f, point)
    assert gradgradcheck(f, point)
    b = wg.tensor(drawn(m, 3, seed=2))
    assert gradcheck(lambda x, y: L.lstsq(x @ y, b).solution, point)
    assert L.lstsq(point[0] @ point[1], b).rank.item() == 2


def test_values_at_singular_matrices() -> None:
    sign, logabsdet = L.slogdet(wg.ones(2, 2))
    assert (sign.item(), logabsdet.item()) == (0.0, -np.inf)
    assert wg.ones(2, 2).logdet().item() == -np.inf
    assert np.isnan(wg.tensor([[0.0, 1.0], [1.0, 0.0]]).logdet().item())
    assert L.cond(wg.ones(2, 2, dtype=wg.float64)).item() > 1e15
    assert L.matrix_rank(wg.ones(3, 3)).item() == 1
    assert L.matrix_rank(wg.diag(wg.tensor([1.0, 1e-3, 1e-9])), tol=1e-4).item() == 2
    assert L.matrix_rank(-wg.eye(3), hermitian=True).item() == 3
    assert np.isinf(array(L.solve_triangular(wg.zeros(2, 2), wg.ones(2, 1), upper=True))).any()
    assert np.isnan(array(L.inv(wg.ones(2, 2) * float("nan")))).all()
    assert np.isnan(array(L.matrix_exp(wg.ones(2, 2) * float("inf")))).all()
    assert array(L.matrix_power(wg.ones(2, 2), 0)).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_sizes_at_the_ends_of_the_range(size: float) -> None:
    a = drawn(6, 4)
    assert_near(array(L.svdvals(wg.tensor(a * size))) / size, np.linalg.svd(a, compute_uv=False), 1e-12)
    s = a.T @ a
    assert_near(array(L.eigvalsh(wg.tensor(s * size))) / size, np.linalg.eigvalsh(s), 1e-12)
    q, r = L.qr(wg.tensor(a * size))
    assert_near(array(q @ (r / size)), a, 1e-12)


def test_small_singular_values_are_accurate() -> None:
    # Rows of very different length; those of a diagonal matrix are exact.
    scale = 10.0 ** -np.arange(0, 60, 10)
    q = np.linalg.qr(drawn(6, 6))[0]
    assert np.allclose(array(L.svdvals(wg.tensor(scale[:, None] * q))), sorted(scale)[::-1], rtol=0.9)
    values = array(L.svdvals(wg.tensor(np.diag(scale))))
    np.testing.assert_allclose(values, scale, rtol=1e-15)


# ---- large matrices ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(97, 97), (150, 60), (60, 150)])
def test_large_matrices(shape: tuple[int, int], dtype: str) -> None:
    a = drawn(*shape)
    x = wg.tensor(a).to(getattr(wg, dtype))
    loose = 1e-11 if dtype == "float64" else 1e-4
    a = array(x).astype(np.float64)
    q, r = L.qr(x)
    assert_near(q @ r, a, loose)
    u, s, vh = L.svd(x)
    k = min(shape)
    assert_near((u[:, :k] * s) @ vh[:k], a, loose)
    assert_near(s, np.linalg.svd(a, compute_uv=False), loose)
    assert_near(u.mT @ u, np.eye(shape[0]), loose)
    p, l, up = L.lu(x)
    assert_near(p @ l @ up, a, loose)
    if shape[0] == shape[1]:
        spd = wg.tensor(a @ a.T + np.eye(97)).to(x.dtype)
        w, v = L.eigh(spd)
        assert_near((v * w) @ v.mT, array(spd), loose)
        factor = L.cholesky(spd)
        assert_near(factor @ factor.mT, array(spd), loose)
        assert_near(x @ L.solve(x, wg.eye(97, dtype=x.dtype)), np.eye(97), loose * 30)


def test_float32_loses_one_rounding() -> None:
    a = np.float32(positive(drawn(40, 40)))
    for ours, theirs in (
        (L.cholesky, np.linalg.cholesky),
        (L.inv, np.linalg.inv),
        (L.eigvalsh, np.linalg.eigvalsh),
    ):
        exact = theirs(a.astype(np.float64))
        error = np.abs(array(ours(wg.tensor(a))).astype(np.float64) - exact)
        assert (error <= np.spacing(np.abs(exact).astype(np.float32))).all()


def test_threads_do_not_change_a_bit() -> None:
    before = wg.get_num_threads()
    single, many = drawn(150, 150), drawn(30, 20, 20)
    seen = []
    for threads in (1, 3):
        wg.set_num_threads(threads)
        found = []
        for a in (single, many):
            x = wg.tensor(a).requires_grad_()
            total = (
                L.inv(x).sum() + L.svd(heavy(x)).U.abs().sum() + L.qr(x).R.sum() + L.matrix_exp(x / 20).sum()
            )
            total = total + L.cholesky(positive(x)).sum() + L.eigh(x + x.mT).eigenvalues.sum()
            found += [array(total).tobytes(), array(wg.autograd.grad(total, [x])[0]).tobytes()]
        seen.append(found)
    wg.set_num_threads(before)
    assert seen[0] == seen[1]


# ---- what is shared, and where it runs -----------------------------------------------------------


def test_one_matrix_and_a_batch_of_right_hand_sides() -> None:
    a, b, c = heavy(drawn(4, 4)), drawn(5, 4, 2), drawn(4, 3, 5)
    assert_near(wg.vmap(lambda b: L.solve(wg.tensor(a), b))(wg.tensor(b)), np.linalg.solve(a, b), 1e-12)
    upper = wg.vmap(lambda c: L.solve_triangular(wg.tensor(a), c, upper=True), in_dims=2, out_dims=2)
    expected = np.linalg.solve(np.triu(a), c.reshape(4, 15)).reshape(4, 3, 5)
    assert_near(upper(wg.tensor(c)), expected, 1e-12)


def test_namedtuples_functions_and_methods() -> None:
    x = wg.tensor(positive(drawn(3, 3)))
    assert L.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert L.svd(x)._fields == ("U", "S", "Vh")
    assert L.qr(x)._fields == ("Q", "R")
    assert L.lu(x)._fields == ("P", "L", "U")
    assert L.slogdet(x)._fields == ("sign", "logabsdet")
    assert L.qr(x, "r").Q.shape == (0,)
    for name in ("det", "inverse", "logdet", "matrix_exp", "pinverse", "cholesky"):
        assert np.array_equal(array(getattr(x, name)()), array(getattr(wg, name)(x)))
    assert np.array_equal(array(x.svd()[2]), array(L.svd(x).Vh.mT))
    assert np.array_equal(array(x.qr(False).Q), array(L.qr(x, "complete").Q))
    assert_near(L.norm(x), np.linalg.norm(array(x)), 1e-12)
    assert_near(L.norm(x, dim=0), np.linalg.norm(array(x), axis=0), 1e-12)
    assert_near(L.norm(x, 1), np.linalg.norm(array(x), 1), 1e-12)
    assert_near(L.matrix_norm(x, keepdim=True), np.linalg.norm(array(x), keepdims=True), 1e-12)
    assert_near(L.outer(x[0], x[1]), np.outer(array(x[0]), array(x[1])), 1e-12)
    assert_near(L.cross(x, x.flip(0)), np.cross(array(x), array(x)[::-1]), 1e-12)
    assert_near(L.tensordot(x, x, axes=1), array(x) @ array(x), 1e-12)
    assert_near(L.matmul(x, x), array(x) @ array(x), 1e-12)
    assert_near(L.matrix_transpose(x), array(x).T, 0)
    assert_near(L.diagonal(x, offset=1), np.diagonal(array(x), 1), 0)
    with pytest.raises(ValueError, match="singular"):
        L.inv(wg.zeros(2, 2))
    with pytest.raises(RuntimeError, match="singular"):
        L.inv(wg.zeros(2, 2))


def test_errors_inside_transforms_name_the_matrix() -> None:
    a = wg.stack([wg.eye(2), wg.zeros(2, 2)])
    with pytest.raises(wg.LinAlgError, match=r"vmap of inv: inv: matrix \[1\] of the batch is singular"):
        wg.vmap(L.inv)(a)


def test_under_autocast_halves_are_widened() -> None:
    x = wg.eye(3, dtype=wg.bfloat16)
    with wg.autocast("cpu", dtype=wg.bfloat16):
        assert L.inv(x).dtype == wg.float32
        assert L.eigh(x).eigenvalues.dtype == wg.float32
