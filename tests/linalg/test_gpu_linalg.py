"""Factors of matrices and systems of equations on a GPU, against NumPy in float64 and the CPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import wengert as wg
from support import array

DEVICE = "gpu"
SIZES = [1, 2, 5, 16, 33, 100]


def some(seed: int, *shape: int) -> Any:
    """Matrices that are far from singular."""
    x = np.random.default_rng(seed).standard_normal(shape)
    return (x + 3 * np.sqrt(shape[-1]) * np.eye(*shape[-2:])).astype("float32")


def positive(seed: int, *shape: int) -> Any:
    """Positive definite matrices."""
    x = some(seed, *shape)
    return (x @ x.swapaxes(-1, -2) / shape[-1]).astype("float32")


def near(got: wg.Tensor, want: Any, tolerance: float = 1e-5) -> None:
    """Relative to the largest element."""
    want = np.asarray(want, "float64")
    assert got.device != "cpu"
    assert got.shape == want.shape
    assert got.dtype == "float32"
    np.testing.assert_allclose(
        array(got.cpu()), want, rtol=0, atol=tolerance * np.abs(want).max(initial=1e-30)
    )


def there(x: Any) -> wg.Tensor:
    """A tensor on the GPU, transposed in memory."""
    return wg.tensor(np.ascontiguousarray(x.swapaxes(-1, -2)), device=DEVICE).mT


@pytest.mark.parametrize("n", SIZES)
def test_values(n: int) -> None:
    a, p, b = some(n, 2, 3, n, n), positive(n, 3, n, n), some(1, 2, 3, n, n)[..., :2]
    wide, right = a.astype("float64"), b.astype("float64")
    near(wg.linalg.cholesky(there(p)), np.linalg.cholesky(p.astype("float64")))
    near(wg.linalg.cholesky(there(p), upper=True), np.linalg.cholesky(p.astype("float64")).swapaxes(1, 2))
    near(wg.linalg.solve(there(a), there(b)), np.linalg.solve(wide, right))
    near(wg.linalg.solve(there(a), there(b[0, 0])), np.linalg.solve(wide, right[0, 0]))
    near(wg.linalg.inv(there(a)), np.linalg.inv(wide))
    near(wg.linalg.det(there(a) / n), np.linalg.det(wide / n), 1e-4)
    sign, logarithm = wg.linalg.slogdet(there(a))
    near(sign, np.linalg.slogdet(wide)[0])
    near(logarithm, np.linalg.slogdet(wide)[1])
    near(wg.linalg.matrix_power(there(a) / n, -2), np.linalg.matrix_power(wide / n, -2), 1e-4)
    factor = wg.linalg.cholesky(there(p))
    near(wg.cholesky_solve(there(b[0]), factor), np.linalg.solve(p.astype("float64"), right[0]), 1e-4)
    near(wg.cholesky_inverse(factor), np.linalg.inv(p.astype("float64")), 1e-4)


@pytest.mark.parametrize(("m", "n"), [(4, 7), (7, 4), (1, 5), (40, 40)])
def test_lu(m: int, n: int) -> None:
    a = np.random.default_rng(m).standard_normal((3, m, n)).astype("float32")
    p, low, up = wg.linalg.lu(there(a))
    near(p @ low @ up, a)
    for i in range(3):
        expected = scipy.linalg.lu(a[i].astype("float64"))
        near(low[i], expected[1], 1e-4)
        near(up[i], expected[2], 1e-4)
    packed, pivots = wg.linalg.lu_factor(there(a))
    assert pivots.dtype == wg.int32
    if m == n:
        b = some(3, 3, n, n)
        near(wg.linalg.lu_solve(packed, pivots, there(b)), np.linalg.solve(a.astype("float64"), b), 2e-3)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_systems(upper: bool, unit: bool, left: bool) -> None:
    a, b = some(0, 2, 6, 6) / 3, some(1, 2, 6, 6)
    part = (np.triu if upper else np.tril)(a.astype("float64"))
    if unit:
        part[:, range(6), range(6)] = 1
    want = (
        np.linalg.solve(part, b)
        if left
        else np.linalg.solve(part.swapaxes(1, 2), b.swapaxes(1, 2)).swapaxes(1, 2)
    )
    settings = {"upper": upper, "unitriangular": unit, "left": left}
    near(wg.linalg.solve_triangular(there(a), there(b), **settings), want)


FUNCTIONS: dict[str, Callable[[wg.Tensor], wg.Tensor]] = {
    "cholesky": lambda x: wg.linalg.cholesky(x @ x.mT + 3 * wg.eye(4, device=x.device)),
    "solve": lambda x: wg.linalg.solve(x, x.mT[..., :2]),
    "inv": wg.linalg.inv,
    "det": wg.linalg.det,
    "slogdet": lambda x: wg.linalg.slogdet(x)[1],
    "lu": lambda x: wg.linalg.lu_factor(x)[0],
    "triangular": lambda x: wg.linalg.solve_triangular(x, x.mT, upper=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name: str) -> None:
    f = FUNCTIONS[name]
    x, v = some(5, 3, 4, 4), some(6, 3, 4, 4)
    here = wg.tensor(x.astype("float64"))
    y, slope = wg.jvp(f, (here,), (wg.tensor(v.astype("float64")),))
    g = np.random.default_rng(7).standard_normal(tuple(y.shape)).astype("float32")
    y_there, slope_there = wg.jvp(f, (there(x),), (there(v),))
    near(y_there, array(y), 1e-4)
    near(slope_there, array(slope), 1e-4)
    pulled = wg.vjp(f, here)[1](wg.tensor(g.astype("float64")))[0]
    near(wg.vjp(f, there(x))[1](wg.tensor(g, device=DEVICE))[0], array(pulled), 1e-4)
    near(wg.vmap(f)(there(x)), array(y), 1e-4)
    if name != "det":
        f_sum = lambda x: f(x).square().sum()
        twice = wg.hvp(f_sum, (here,), (wg.tensor(v.astype("float64")),))[1]
        near(wg.hvp(f_sum, (there(x),), (there(v),))[1], array(twice), 1e-3)


def test_programs() -> None:
    x = some(8, 4, 4)
    step = wg.jit(wg.grad(lambda x: wg.linalg.inv(x).sum() + wg.linalg.slogdet(x)[1]))
    for i in range(3):
        want = wg.grad(lambda x: wg.linalg.inv(x).sum() + wg.linalg.slogdet(x)[1])(wg.tensor(x + i))
        near(step(wg.tensor(x + i, device=DEVICE)), array(want), 1e-4)
    assert step.traces == 1


def test_matrices_without_factors_raise_at_once() -> None:
    p = positive(0, 3, 4, 4)
    p[1, 2, 2] = -1
    with pytest.raises(
        wg.LinAlgError, match=r"cholesky: matrix \[1\] of the batch is not positive definite: .* order 3"
    ):
        wg.linalg.cholesky(there(p))
    singular = wg.tensor([[1.0, 2.0], [2.0, 4.0]], device=DEVICE)
    with pytest.raises(wg.LinAlgError, match="inv: the matrix is singular: pivot 2"):
        wg.linalg.inv(singular)
    with pytest.raises(wg.LinAlgError, match="solve: the matrix is singular: pivot 2"):
        wg.linalg.solve(singular, singular)
    assert wg.linalg.det(singular).item() == 0
    with pytest.raises(
        wg.DeviceError, match="det: the derivative at a singular matrix takes singular values"
    ):
        wg.grad(wg.linalg.det)(singular)
    with pytest.raises(
        RuntimeError, match="cholesky: factors of complex matrices are computed on the CPU only"
    ):
        wg.linalg.cholesky(wg.eye(2, dtype=wg.complex64, device=DEVICE))
    with pytest.raises(RuntimeError, match="qr: runs on the CPU only"):
        wg.linalg.qr(singular)


def test_empty_matrices() -> None:
    for shape in ((0, 3, 3), (2, 0, 0)):
        x = wg.zeros(*shape, device=DEVICE)
        assert wg.linalg.cholesky(x).shape == shape
        assert wg.linalg.inv(x).shape == shape
        assert wg.linalg.det(x).tolist() == [1.0] * shape[0]
        assert wg.linalg.solve(x, x[..., :2]).shape == (*shape[:2], min(2, shape[2]))


def test_failures_that_are_told_by_a_number() -> None:
    p = positive(0, 3, 4, 4)
    p[1, 2, 2] = -1
    factor, info = wg.linalg.cholesky_ex(there(p))
    assert info.tolist() == [0, 3, 0]
    near(factor[::2], np.linalg.cholesky(p[::2].astype("float64")))
    assert np.isnan(array(factor[1].cpu())).all()
    assert wg.linalg.inv_ex(wg.zeros(2, 2, device=DEVICE)).info.item() == 1


@pytest.mark.parametrize("n", [129, 300])
def test_matrices_of_several_blocks(n: int) -> None:
    a, p, b = some(n, 2, n, n), positive(n, 2, n, n), some(1, 2, n, n)[..., :3]
    wide = a.astype("float64")
    near(wg.linalg.cholesky(there(p)), np.linalg.cholesky(p.astype("float64")))
    assert np.array_equal(array(wg.linalg.cholesky(there(p)).triu(1).cpu()), np.zeros((2, n, n)))
    near(wg.linalg.solve(there(a), there(b)), np.linalg.solve(wide, b.astype("float64")))
    near(wg.linalg.inv(there(a)), np.linalg.inv(wide))
    near(wg.linalg.slogdet(there(a))[1], np.linalg.slogdet(wide)[1])
    scaled = a / np.float32(np.exp(np.linalg.slogdet(wide)[1].mean() / n))
    near(wg.linalg.det(there(scaled)), np.linalg.det(scaled.astype("float64")), 1e-3)
    for upper in (False, True):
        triangle = np.triu(wide) if upper else np.tril(wide)
        for back in (False, True):
            x = there(a).mT if back else there(a)
            got = wg.linalg.solve_triangular(x, there(b), upper=upper != back)
            side = triangle.swapaxes(1, 2) if back else triangle
            near(got, np.linalg.solve(side, b.astype("float64")))
    again = [wg.linalg.inv(there(a)).cpu() for _ in range(2)]
    assert np.array_equal(array(again[0]), array(again[1]))


@pytest.mark.parametrize(("m", "n"), [(300, 140), (140, 300), (200, 129), (129, 40), (70, 200)])
def test_factors_of_several_blocks(m: int, n: int) -> None:
    x = np.random.default_rng(m).standard_normal((2, m, n)).astype("float32")
    p, lower, upper = wg.linalg.lu(there(x))
    near(p @ lower @ upper, x)
    assert np.abs(array(lower.cpu())).max() <= 1 + 1e-6
    packed, exchanges = wg.linalg.lu_factor(there(x[0]))
    want, places = scipy.linalg.lu_factor(x[0].astype("float64"))
    near(packed, want, 1e-4)
    assert np.array_equal(array(exchanges.cpu()) - 1, places)


def test_failures_in_later_blocks() -> None:
    p = np.stack([positive(1, 200, 200)] * 3)
    for row in (3, 70, 199):
        p[1] = positive(1, 200, 200)
        p[1, row, row] = -1
        with pytest.raises(wg.LinAlgError, match=f"minor {row + 1}|{row + 1}"):
            wg.linalg.cholesky(there(p))
    a = some(2, 200, 200)
    a[150] = a[20]
    a[:, 199] = 0
    with pytest.raises(wg.LinAlgError, match="pivot 200"):
        wg.linalg.inv(there(np.triu(some(2, 200, 200)) * (np.arange(200) < 199)))


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_a_singular_matrix_without_right_hand_sides(device: str) -> None:
    singular = wg.tensor([[1.0, 2.0], [2.0, 4.0]], device=device)
    with pytest.raises(wg.LinAlgError, match="solve: the matrix is singular: pivot 2"):
        wg.linalg.solve(singular, wg.zeros(2, 0, device=device))
    regular = wg.eye(2, device=device)
    assert wg.linalg.solve(regular, wg.zeros(2, 0, device=device)).shape == (2, 0)


def test_a_large_matrix_is_more_than_one_workgroups_work() -> None:
    a, b = some(3, 520, 520), some(4, 520, 520)[:, :2]
    near(wg.linalg.solve(there(a), there(b)), np.linalg.solve(a.astype("float64"), b.astype("float64")))
    p = there(positive(3, 520, 520))
    with wg.gpu.profile() as found:
        wg.linalg.cholesky(p)
    for kernel, calls in (("cholesky", 9), ("matmul", 8)):
        assert sum(row.calls for row in found.kernels if row.kernel == kernel) == calls
