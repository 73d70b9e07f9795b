"""Linear algebra of complex matrices, and eigenvalues of any: values against NumPy and SciPy, derivatives
against differences of both parts, batches, singular points."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg as scipy_linalg
import wengert as wg
from support import array
from wengert.autograd import gradcheck, gradgradcheck

L = wg.linalg
TOLERANCE = {"complex64": 1e-4, "complex128": 1e-11}


def some(shape: tuple[int, ...], dtype: str = "complex128", seed: int = 0) -> Any:
    """Normal numbers, with a heavy diagonal of distinct elements."""
    rng = np.random.default_rng(seed)
    out = 0.5 * (rng.normal(size=shape) + 1j * rng.normal(size=shape))
    for i in range(min(shape[-2:])):
        out[..., i, i] += (3.0 + 2.5 * i) * np.exp(1j * i)
    return out.astype(dtype)


def adjoint(x: Any) -> Any:
    return x.mH if isinstance(x, wg.Tensor) else np.conj(np.swapaxes(x, -1, -2))


def positive(x: Any) -> Any:
    return x @ adjoint(x)


def hermitian(x: Any) -> Any:
    return x + adjoint(x)


def projections(v: Any) -> Any:
    """What eigenvectors say without their phases: the projection on each."""
    return v[..., :, None, :] * v[..., None, :, :].conj()


def weighted(w: Any, v: Any) -> Any:
    """The projections on eigenvectors, each weighted by a function of its eigenvalue: the order does not
    matter."""
    return (projections(v) * (w / 4)[..., None, None, :] ** 2).sum(-1)


def rank_two(x: Any) -> Any:
    return x[..., :, :2] @ x[..., :2, :]


def each(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of one matrix, for a batch."""
    return lambda a: np.stack([f(m) for m in a]) if a.ndim == 3 else f(a)


def lu_rebuilt(x: Any) -> tuple[Any, ...]:
    p, l, u = L.lu(x)
    return p @ l @ u, l.triu(1), u.tril(-1)


Row = tuple[Callable[[Any], Any], Callable[[Any], Any]]

#: Functions of matrices whose results are determined, and the same of arrays.
SQUARE: dict[str, Row] = {
    "cholesky": (lambda x: L.cholesky(positive(x)), lambda x: np.linalg.cholesky(positive(x))),
    "cholesky_upper": (
        lambda x: L.cholesky(positive(x), upper=True),
        lambda x: adjoint(np.linalg.cholesky(positive(x))),
    ),
    "lu": (lu_rebuilt, lambda x: (x, 0 * x, 0 * x)),
    "lu_factor": (
        lambda x: L.lu_factor(x.flip(-2)).LU,
        each(lambda x: scipy_linalg.lu_factor(np.flip(x, -2))[0]),
    ),
    "lu_solve": (
        lambda x: L.lu_solve(*L.lu_factor(x.flip(-2)), x, adjoint=True),
        lambda x: np.linalg.solve(adjoint(np.flip(x, -2)), x),
    ),
    "lu_solve_right": (
        lambda x: L.lu_solve(*L.lu_factor(x), x.mH, left=False),
        lambda x: adjoint(np.linalg.solve(adjoint(x), x)),
    ),
    "solve": (lambda x: L.solve(x, x.mT), lambda x: np.linalg.solve(x, np.swapaxes(x, -1, -2))),
    "solve_right": (
        lambda x: L.solve(x, x.mH, left=False),
        lambda x: adjoint(np.linalg.solve(adjoint(x), x)),
    ),
    "solve_row": (
        lambda x: L.solve(x, x[..., 0, :], left=False),
        lambda x: np.linalg.solve(np.swapaxes(x, -1, -2), x[..., 0, :, None])[..., 0],
    ),
    "solve_real": (lambda x: L.solve(x, x.real), lambda x: np.linalg.solve(x, x.real.astype(x.dtype))),
    "solve_triangular": (
        lambda x: L.solve_triangular(x, x.mT, upper=True),
        lambda x: np.linalg.solve(np.triu(x), np.swapaxes(x, -1, -2)),
    ),
    "solve_triangular_right": (
        lambda x: L.solve_triangular(x, x.mT, upper=False, left=False),
        lambda x: np.swapaxes(np.linalg.solve(np.swapaxes(np.tril(x), -1, -2), x), -1, -2),
    ),
    "inv": (L.inv, np.linalg.inv),
    "det": (L.det, np.linalg.det),
    "slogdet": (lambda x: tuple(L.slogdet(x.flip(-2))), lambda x: tuple(np.linalg.slogdet(np.flip(x, -2)))),
    "logdet": (lambda x: x.logdet(), lambda x: np.log(np.linalg.det(x))),
    "matrix_exp": (lambda x: L.matrix_exp(x / 4), each(lambda x: scipy_linalg.expm(x / 4))),
    "matrix_power": (lambda x: L.matrix_power(x / 4, -2), lambda x: np.linalg.matrix_power(x / 4, -2)),
    "eigh": (
        lambda x: (lambda w, v: (w, projections(v)))(*L.eigh(hermitian(x))),
        lambda x: (lambda w, v: (w, projections(v)))(*np.linalg.eigh(hermitian(x))),
    ),
    "eigh_upper": (
        lambda x: L.eigh(hermitian(x), "U").eigenvalues,
        lambda x: np.linalg.eigvalsh(hermitian(x)),
    ),
    "eig": (lambda x: weighted(*L.eig(x)), lambda x: weighted(*np.linalg.eig(x))),
    "eigvals": (
        lambda x: (lambda w: w.prod(-1) + (w**2).sum(-1))(L.eigvals(x)),
        lambda x: (lambda w: w.prod(-1) + (w**2).sum(-1))(np.linalg.eigvals(x)),
    ),
    "cholesky_solve": (
        lambda x: x.cholesky_solve(L.cholesky(positive(x))),
        lambda x: np.linalg.solve(positive(x), x),
    ),
    "cond": (L.cond, np.linalg.cond),
}


def svd_determined(u: Any, s: Any, vh: Any) -> tuple[Any, ...]:
    return s, u @ vh, projections(u), projections(adjoint(vh))


def full_determined(u: Any, s: Any, vh: Any) -> tuple[Any, ...]:
    k = s.shape[-1]
    return u[..., k:] @ adjoint(u[..., k:]), adjoint(vh[..., k:, :]) @ vh[..., k:, :]


def qr_determined(q: Any, r: Any) -> tuple[Any, ...]:
    """Without the phases of the columns of `Q`: `R` over its diagonal, and the projections."""
    k = min(r.shape[-2:])
    diagonal = r.diagonal(0, -2, -1) if isinstance(r, wg.Tensor) else np.diagonal(r, 0, -2, -1)
    return r[..., :k, :] / diagonal[..., :, None], projections(q[..., :k]), q[..., k:] @ adjoint(q[..., k:])


RECTANGULAR: dict[str, Row] = {
    "svd": (
        lambda x: svd_determined(*L.svd(x, False)),
        lambda x: svd_determined(*np.linalg.svd(x, full_matrices=False)),
    ),
    "svd_full": (lambda x: full_determined(*L.svd(x)), lambda x: full_determined(*np.linalg.svd(x))),
    "svdvals": (L.svdvals, lambda x: np.linalg.svd(x, compute_uv=False)),
    "nuclear": (lambda x: L.matrix_norm(x, "nuc"), lambda x: np.linalg.norm(x, "nuc", (-2, -1))),
    "qr": (lambda x: qr_determined(*L.qr(x)), lambda x: qr_determined(*np.linalg.qr(x))),
    "qr_complete": (
        lambda x: qr_determined(*L.qr(x, "complete")),
        lambda x: qr_determined(*np.linalg.qr(x, "complete")),
    ),
    "pinv": (L.pinv, np.linalg.pinv),
    "pinv_of_low_rank": (
        lambda x: L.pinv(rank_two(x), rtol=1e-5),
        lambda x: np.linalg.pinv(rank_two(x), 1e-5),
    ),
    "lstsq": (
        lambda x: L.lstsq(x, x[..., :1] * 1j).solution,
        lambda x: np.linalg.pinv(x) @ (x[..., :1] * 1j),
    ),
}
SHAPES = [(4, 4), (5, 3), (3, 5), (2, 4, 3)]
CASES = [(name, row, (3, 3)) for name, row in SQUARE.items()]
CASES += [
    (f"{name}{shape}", row, shape) for name, row in RECTANGULAR.items() for shape in ((3, 3), (4, 2), (2, 4))
]
each_case = pytest.mark.parametrize(("row", "shape"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])


def near(got: Any, expected: Any, tolerance: float) -> None:
    if isinstance(expected, tuple):
        for g, e in zip(got, expected, strict=True):
            near(g, e, tolerance)
        return
    size = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(array(got), expected, rtol=0, atol=tolerance * size)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("name", "row"), [*SQUARE.items(), *RECTANGULAR.items()])
def test_values(name: str, row: Row, dtype: str) -> None:
    ours, theirs = row
    for shape in [(4, 4), (2, 3, 3), (1, 1)] if name in SQUARE else SHAPES:
        x = some(shape, dtype)
        expected = theirs(x.astype(np.complex128))
        for t in (wg.tensor(x), wg.tensor(np.swapaxes(x, -1, -2).copy()).mT):
            got = ours(t)
            near(got, expected, TOLERANCE[dtype])
            for g in got if isinstance(got, tuple) else (got,):
                assert g.dtype in (t.dtype, t.real.dtype)


@each_case
def test_derivatives(row: Row, shape: tuple[int, ...]) -> None:
    x = wg.tensor(some(shape, seed=1))
    assert gradcheck(row[0], x, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(row[0], x, check_fwd_over_rev=True, fast_mode=True)


@each_case
def test_batches(row: Row, shape: tuple[int, ...]) -> None:
    x = wg.tensor(some((3, *shape), seed=2))
    together = wg.vmap(row[0])(x)
    for i in range(3):
        alone = row[0](x[i])
        for a, b in zip(together, alone) if isinstance(alone, tuple) else ((together, alone),):
            near(a[i], array(b), 1e-11)


@pytest.mark.parametrize("name", SQUARE)
def test_real_matrices_are_complex_ones_without_imaginary_part(name: str) -> None:
    x = np.random.default_rng(5).normal(size=(3, 3)) + np.diag([4.0, 7.0, 10.0])
    real, wide = wg.tensor(x), wg.tensor(x.astype(np.complex128))
    first, second = SQUARE[name][0](real), SQUARE[name][0](wide)
    for a, b in zip(first, second) if isinstance(first, tuple) else ((first, second),):
        near(b, array(a), 1e-11)


# ---- eigenvalues of real matrices
# ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 40, 130])
def test_eigenvectors_of_any_matrix(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    a = rng.normal(size=(n, n)).astype(dtype)
    if dtype == "complex128":
        a = a + 1j * rng.normal(size=(n, n))
    w, v = L.eig(wg.tensor(a))
    assert w.dtype == v.dtype == (wg.complex64 if dtype == "float32" else wg.complex128)
    w, v = array(w), array(v)
    loose = 2e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(a @ v, v * w, atol=loose * max(n, 1))
    np.testing.assert_allclose(np.linalg.norm(v, axis=0), np.ones(n), rtol=1e-6)
    # The same values as NumPy's, in another order.
    theirs = np.linalg.eigvals(a.astype(np.complex128))
    distance = np.abs(w[:, None] - theirs[None])
    assert n == 0 or max(distance.min(0).max(), distance.min(1).max()) < loose * 10 * n
    if dtype != "complex128":
        pairs = w[w.imag != 0]
        assert set(pairs.tolist()) == set(pairs.conj().tolist())


def test_derivatives_of_eigenvalues_of_real_matrices() -> None:
    # Two real eigenvalues and a pair.
    a = np.array([[1.0, 2.0, 0.1, 0.3], [-2.0, 1.0, 0.2, 0.1], [0.3, 0.1, 4.0, 0.5], [0.2, -0.4, 0.1, 7.0]])
    x = wg.tensor(a)
    for f in (lambda x: weighted(*L.eig(x)), lambda x: (L.eigvals(x) ** 3).sum(), row_of_eigen):
        assert gradcheck(f, x, check_forward_ad=True)
        assert gradgradcheck(f, x, check_fwd_over_rev=True, fast_mode=True)
    assert wg.grad(lambda x: L.eigvals(x).abs().sum())(x).dtype == wg.float64
    near(wg.grad(lambda x: L.eigvals(x).real.sum())(x), np.eye(4), 1e-12)


def row_of_eigen(x: wg.Tensor) -> wg.Tensor:
    """Sizes of the elements of eigenvectors, weighted by functions of the eigenvalues."""
    w, v = L.eig(x)
    return (v.abs() ** 2 * w.exp()).sum(-1)


def test_repeated_eigenvalues_have_symmetric_functions() -> None:
    near(wg.grad(lambda x: (L.eigvals(x) ** 2).sum().real)(wg.eye(3, dtype=wg.float64)), 2 * np.eye(3), 1e-12)
    near(
        wg.grad(lambda x: L.eigvalsh(x).exp().sum())(wg.eye(3, dtype=wg.complex128)), np.e * np.eye(3), 1e-12
    )


# ---- singular and degenerate points
# ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_determinants_of_any_rank_have_derivatives(rank: int) -> None:
    rng = np.random.default_rng(rank)
    normal = lambda *shape: rng.normal(size=shape) + 1j * rng.normal(size=shape)
    a = normal(3, rank) @ normal(rank, 3)
    minor = lambda i, j: np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) * (-1) ** (i + j)
    cofactors = np.array([[minor(i, j) for j in range(3)] for i in range(3)])
    x = wg.tensor(a)
    near(wg.grad(lambda x: L.det(x).real)(x), cofactors.conj(), 1e-12)
    assert gradcheck(L.det, x, check_forward_ad=True)
    assert gradgradcheck(L.det, x, check_fwd_over_rev=True)


def test_third_derivatives_of_a_determinant() -> None:
    x = wg.tensor(some((3, 3), seed=4))
    slope = wg.grad(lambda x: L.det(x).real)
    assert gradgradcheck(slope, x, check_fwd_over_rev=True)


def test_the_diagonal_of_r_is_real() -> None:
    a = some((5, 4), seed=3)
    q, r = L.qr(wg.tensor(a))
    assert (array(r).diagonal().imag == 0).all()
    near(q @ r, a, 1e-13)
    real = L.qr(wg.tensor(a.real.copy()))
    wide = L.qr(wg.tensor(a.real.astype(np.complex128)))
    near(wide.Q, array(real.Q), 1e-13)


def test_errors_name_the_matrix() -> None:
    with pytest.raises(wg.LinAlgError, match=r"inv: matrix \[1\] of the batch is singular"):
        L.inv(wg.stack([wg.eye(2), wg.zeros(2, 2)]).to(wg.complex64))
    with pytest.raises(wg.LinAlgError, match="eig: the matrix has elements that are not finite"):
        L.eig(wg.full((2, 2), float("nan")))
    with pytest.raises(wg.LinAlgError, match="cholesky: the matrix is not positive definite"):
        L.cholesky(wg.tensor([[1.0, 2j], [-2j, 1.0]]))
    with pytest.raises(wg.ShapeError, match=r"eig: square matrices expected, got shape \(2, 3\)"):
        L.eig(wg.zeros(2, 3))


def test_threads_do_not_change_a_bit() -> None:
    before, x = wg.get_num_threads(), wg.tensor(some((30, 12, 12), seed=6))
    seen = []
    for threads in (1, 3):
        wg.set_num_threads(threads)
        found = (L.inv(x), *L.qr(x), *L.svd(x), *L.eig(x), *L.eigh(hermitian(x)), L.cholesky(positive(x)))
        seen.append([array(f).tobytes() for f in found])
    wg.set_num_threads(before)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("n", [2, 8, 40, 100])
def test_matrices_without_a_basis_of_eigenvectors(n: int) -> None:
    shift = np.diag(np.ones(n - 1), 1)
    for a in (shift, np.triu(np.ones((n, n))), shift * (1 + 1j)):
        w, v = L.eig(wg.tensor(a))
        w, v = array(w), array(v)
        np.testing.assert_allclose(a @ v, v * w, atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(v, axis=0), np.ones(n), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-300, 1e300])
def test_factors_at_the_ends_of_the_range(size: float, dtype: str) -> None:
    a = (np.array([[3.0, 4.0, 1.0], [4.0, 1.0, 6.0], [0.0, 2.0, 5.0]]) * size).astype(dtype)
    p, l, u = (array(x).real for x in L.lu(wg.tensor(a)))
    units = np.array([[3.0, 4.0, 1.0], [4.0, 1.0, 6.0], [0.0, 2.0, 5.0]])
    # Where numbers are multiples of 5e-324, so are their errors.
    loose = 1e-12 + 5 * (5e-324 / size)
    np.testing.assert_allclose(p @ l @ (u / size), units, atol=loose)
    q, r = (array(x).real for x in L.qr(wg.tensor(a)))
    np.testing.assert_allclose(q.T @ q, np.eye(3), atol=1e-13)
    np.testing.assert_allclose(q @ (r / size), units, atol=loose)


def test_the_diagonal_of_a_hermitian_matrix_is_real() -> None:
    """Imaginary parts there, and what is above it, are not looked at."""
    given = np.array([[11 + 3j, 7 + 1j], [1 - 2j, 12 + 5j]])
    whole = np.array([[11, 1 + 2j], [1 - 2j, 12]])
    for dtype, accuracy in (("complex128", 1e-13), ("complex64", 1e-5)):
        x = wg.tensor(given.astype(dtype), requires_grad=True)
        for found, wanted in (
            (L.cholesky(x), np.linalg.cholesky(whole)),
            (L.eigvalsh(x), np.linalg.eigvalsh(whole)),
            (L.pinv(x, hermitian=True), np.linalg.inv(whole)),
        ):
            np.testing.assert_allclose(array(found.detach()), wanted, rtol=accuracy, atol=accuracy)
        for f in (L.cholesky, L.eigvalsh):
            (g,) = wg.autograd.grad((f(x).abs() ** 2).sum(), x)
            assert g.diagonal().imag.abs().max().item() < accuracy


@pytest.mark.parametrize("dtype", [wg.float32, wg.float64, wg.complex128])
@pytest.mark.parametrize("end", ["smallest", "largest"])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)])
def test_least_squares_where_the_inverse_leaves_the_dtype(dtype, end, shape):
    """Both sides times one power of two have the solution that NumPy finds for small whole numbers."""
    rng = np.random.default_rng(5)
    a, b = rng.integers(-9, 10, shape), rng.integers(-9, 10, (shape[0], 2))
    if dtype.is_complex:
        a = a + 1j * rng.integers(-9, 10, shape)
    power = {
        ("smallest", True): -148,
        ("smallest", False): -1070,
        ("largest", True): 120,
        ("largest", False): 1016,
    }
    size = 2.0 ** power[end, dtype == wg.float32]
    A, B = (wg.tensor(x * size).to(dtype) for x in (a, b))
    expected, _, rank, values = np.linalg.lstsq(a, b, rcond=None)
    found = wg.linalg.lstsq(A, B)
    np.testing.assert_allclose(found.solution.numpy(), expected, rtol=1e-4 if dtype == wg.float32 else 1e-11)
    assert found.rank.item() == rank
    np.testing.assert_allclose(found.singular_values.numpy() / size, values, rtol=0.2)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_the_diagonal_of_a_self_adjoint_matrix_is_read_as_real(n: int, uplo: str) -> None:
    x = some((4, n, n))
    assert np.abs(np.diagonal(x, 0, -2, -1).imag).max() > 0.1 or n == 1
    np.testing.assert_allclose(
        L.eigvalsh(wg.tensor(x), uplo).numpy(), np.linalg.eigvalsh(x, uplo), atol=1e-11
    )
    w, v = L.eigh(wg.tensor(x), uplo)
    own = np.tril(x, -1) if uplo == "L" else adjoint(np.triu(x, 1))
    whole = own + adjoint(own) + np.eye(n) * np.diagonal(x, 0, -2, -1).real[:, None]
    np.testing.assert_allclose((v * w.unsqueeze(-2) @ v.mH).numpy(), whole, atol=1e-11)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3)])
@pytest.mark.parametrize("order", [1, 2, np.inf])
def test_norms_of_empty_matrices_are_zero(shape: tuple[int, ...], order: float) -> None:
    got = L.matrix_norm(wg.zeros(shape), order)
    assert got.tolist() == wg.zeros(shape[:-2]).tolist()
    with pytest.raises(ValueError, match="no extremum"):
        L.matrix_norm(wg.zeros(0, 0), -order)
