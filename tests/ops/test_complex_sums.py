"""Logarithms of sums of complex exponentials, and functions of bools."""

import numpy as np
import pytest
import wengert as wg
from references.complex_reference import near, some
from support import array
from wengert.autograd import gradcheck, gradgradcheck

TYPES = ["complex64", "complex128"]


@pytest.mark.parametrize("dtype", TYPES)
def test_logsumexp(dtype: str) -> None:
    z = 3 * some(dtype, (3, 4, 2))
    tolerance = 3e-6 if dtype == "complex64" else 1e-13
    for dim in (0, 1, -1, (0, 2)):
        near(wg.logsumexp(wg.tensor(z), dim), np.log(np.exp(z).sum(dim)), tolerance)
    near(wg.tensor(z).logsumexp(1, keepdim=True), np.log(np.exp(z).sum(1, keepdims=True)), tolerance)
    far = np.array([1000 + 1j, 1000 - 2j, -1000 + 0j]).astype(dtype)
    near(wg.tensor(far).logsumexp(0), far[0] + np.log(1 + np.exp(far[1] - far[0])), tolerance * 1000)
    assert array(wg.tensor([complex(-np.inf, 1.0)] * 2).logsumexp(0)).real == -np.inf


def running(z: np.ndarray) -> np.ndarray:
    """One term after the other, each added to the larger of the two."""
    out = [z[0]]
    for w in z[1:]:
        top, low = (w, out[-1]) if w.real > out[-1].real else (out[-1], w)
        out.append(top + np.log1p(np.exp(low - top)))
    return np.array(out)


@pytest.mark.parametrize("dtype", TYPES)
def test_running_sums_follow_their_angles(dtype: str) -> None:
    for seed in range(4):
        z = (4 * some("complex128", (60,), seed)).astype(dtype)
        expected = running(z.astype(complex)).astype(dtype)
        near(wg.tensor(z).logcumsumexp(0), expected, 2e-4 if dtype == "complex64" else 1e-11)
        rows = np.stack([z, z[::-1]])
        got = wg.logcumsumexp(wg.tensor(rows), 1)
        near(got[1], running(rows[1].astype(complex)).astype(dtype), 2e-4 if dtype == "complex64" else 1e-11)
    wound = np.array([0, 1, 2, 3, 4, 5]) * (0.5 + 3j)
    near(wg.tensor(wound).logcumsumexp(0), running(wound), 1e-12)
    assert wg.tensor(2 + 9j).logcumsumexp(0).item() == 2 + 9j
    assert tuple(wg.zeros(0, 2, dtype=wg.complex64).logcumsumexp(0).shape) == (0, 2)


def test_derivatives() -> None:
    z, w = wg.tensor(some(shape=(5,), seed=3)), wg.tensor(some(shape=(5,), seed=4))
    for f in (lambda z: z.logsumexp(0), lambda z: z.logcumsumexp(0)):
        assert gradcheck(f, z, check_forward_ad=True, check_batched_grad=True)
        assert gradgradcheck(f, z, check_fwd_over_rev=True, fast_mode=True)
    assert gradcheck(wg.logaddexp, (z, w), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(wg.logaddexp, (z, w), check_fwd_over_rev=True, fast_mode=True)


def test_infinities_of_logaddexp() -> None:
    inf = np.inf
    x = wg.tensor([complex(-inf, 1), complex(-inf, 0), complex(inf, 0), 1 + 1j], dtype=wg.complex128)
    y = wg.tensor([2 + 1j, complex(-inf, 0), 1j, complex(-inf, 0)], dtype=wg.complex128)
    got = array(wg.logaddexp(x, y))
    np.testing.assert_array_equal(got.real, [2, -inf, inf, 1])
    np.testing.assert_array_equal(got.imag[[0, 3]], [1, 1])
    near(wg.logaddexp(wg.tensor(1000 + 1j), wg.tensor(1000 + 1j)), np.complex64(1000 + np.log(2) + 1j), 1e-6)


@pytest.mark.parametrize("name", ["cov", "corrcoef"])
def test_moments_of_other_dtypes(name: str) -> None:
    f, reference = getattr(wg, name), getattr(np, name)
    ints = np.array([[1, 2, 4, 8], [3, -1, 0, 2]])
    for dtype in ("int64", "int8", "uint8"):
        got = f(wg.tensor(np.abs(ints).astype(dtype)))
        assert got.dtype == wg.float32
        np.testing.assert_allclose(array(got), reference(np.abs(ints)), rtol=1e-5)
    z = some(shape=(3, 6))
    near(f(wg.tensor(z)), reference(z), 1e-12)
    assert gradcheck(f, wg.tensor(z), check_forward_ad=True, check_batched_grad=True)


def test_bools() -> None:
    x = wg.tensor([True, False, False, True])
    assert wg.diff(x).tolist() == [True, False, True]
    start, index = wg.tensor([True, False, True]), wg.tensor([0, 1, 1])
    source = wg.tensor([False, False, True])
    for reduce, among, without in (("amax", [True, True, True], [False, True, True]),
                                   ("amin", [False, False, True], [False, False, True])):  # fmt: skip
        got = start.scatter_reduce(0, index, source, reduce)
        assert got.dtype == wg.bool
        assert got.tolist() == among
        assert start.scatter_reduce(0, index, source, reduce, include_self=False).tolist() == without
    with pytest.raises(TypeError, match=r"scatter_reduce: complex numbers have no order, got .*complex64"):
        wg.zeros(2, dtype=wg.complex64).scatter_reduce(0, index, wg.ones(3, dtype=wg.complex64), "amax")
    with pytest.raises(TypeError, match=r"logsumexp|maximum|complex64"):
        wg.zeros(2, dtype=wg.complex64).cummax(0)
    assert array(wg.special.log_ndtr(wg.tensor([0, -40]))).tolist() == pytest.approx(
        [-0.6931472, -804.6084], rel=1e-6
    )
