"""The family of Fourier transforms of complex and real tensors, beside NumPy's."""

import numpy as np
import pytest
import wengert as wg
from messages import Situations, message_tests
from support import Array, assert_near

NORMS = [None, "backward", "ortho", "forward"]


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def numbers(*shape: int, seed: int = 0) -> Array:
    """Complex numbers."""
    return drawn(*shape, seed=seed) + 1j * drawn(*shape, seed=seed + 1)


def near(got: wg.Tensor, expected: Array, tolerance: float = 1e-12) -> None:
    assert got.dtype == getattr(wg, str(expected.dtype))
    if got.is_complex():
        got, expected = wg.view_as_real(got), np.stack([expected.real, expected.imag], -1)
    assert_near(got, expected, tolerance)


COMPLEX, REAL = ["fft", "ifft", "irfft", "hfft"], ["rfft", "ihfft", "fft"]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", COMPLEX)
def test_of_complex_numbers(name: str, norm: str | None) -> None:
    for n in (1, 2, 5, 8, 37, 41, 60):
        x = numbers(3, n)
        lengths = [1, 3, n, n + 2] + ([None] if n > 1 else [])
        for length in lengths:
            near(
                getattr(wg.fft, name)(wg.tensor(x), length, norm=norm),
                getattr(np.fft, name)(x, length, norm=norm),
            )
        near(getattr(wg.fft, name)(wg.tensor(x), 4, 0, norm), getattr(np.fft, name)(x, 4, 0, norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", REAL)
def test_of_real_numbers(name: str, norm: str | None) -> None:
    for n in (1, 2, 7, 8, 101):
        x = drawn(3, n)
        for length in (None, 1, 3, n + 2):
            near(
                getattr(wg.fft, name)(wg.tensor(x), length, norm=norm),
                getattr(np.fft, name)(x, length, norm=norm),
            )
        near(getattr(wg.fft, name)(wg.tensor(x), axis=0), getattr(np.fft, name)(x, axis=0))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"])
def test_along_several_axes(name: str, norm: str | None) -> None:
    x = drawn(3, 4, 5) if "rf" in name and not name.startswith("i") else numbers(3, 4, 5)
    ours, theirs = getattr(wg.fft, name), getattr(np.fft, name)
    near(ours(wg.tensor(x), norm=norm), theirs(x, norm=norm))
    for s, axes in (((2, 6), (0, 2)), ((4, 3), (-1, 0)), ((5, 5), (1, 2))):
        near(ours(wg.tensor(x), s, axes, norm), theirs(x, s, axes, norm))
        near(ours(wg.tensor(x), axes=axes), theirs(x, axes=axes))
    if name.endswith("n"):
        near(ours(wg.tensor(x), s=(2, 6)), theirs(x, s=(2, 6), axes=(-2, -1)))
        near(ours(wg.tensor(x), dim=1), theirs(x, axes=(1,)))


def test_single_precision() -> None:
    x = np.complex64(numbers(5, 100))
    y = wg.fft.fft(wg.tensor(x))
    assert y.dtype == wg.complex64
    exact = np.fft.fft(x.astype(np.complex128))
    assert_near(wg.view_as_real(y), np.stack([exact.real, exact.imag], -1), 1e-7)
    assert wg.fft.rfft(wg.arange(4)).dtype == wg.complex64
    assert wg.fft.irfft(wg.tensor(x)).dtype == wg.float32


def test_gradients_of_a_filter_and_of_a_spectrum() -> None:
    x, kernel = drawn(9), drawn(9, seed=3)

    def filtered(x: wg.Tensor, kernel: wg.Tensor) -> wg.Tensor:
        return wg.fft.irfft(wg.fft.rfft(x) * wg.fft.rfft(kernel), 9)

    index = (np.arange(9)[:, None] - np.arange(9)) % 9
    near(filtered(wg.tensor(x), wg.tensor(kernel)), kernel[index] @ x)
    jacobian = wg.jacrev(filtered)(wg.tensor(x), wg.tensor(kernel))
    near(jacobian, kernel[index])
    near(wg.jacfwd(filtered)(wg.tensor(x), wg.tensor(kernel)), kernel[index])

    def power(x: wg.Tensor) -> wg.Tensor:
        return wg.fft.fft(x).abs().square().sum()

    near(wg.grad(power)(wg.tensor(x)), 2 * 9 * x)
    near(wg.hessian(power)(wg.tensor(x)), 18 * np.eye(9))


def test_batches() -> None:
    x = drawn(4, 3, 6)
    near(wg.vmap(wg.fft.rfft, in_dims=1)(wg.tensor(x)), np.fft.rfft(x.swapaxes(0, 1)))
    z = numbers(4, 6)
    near(wg.vmap(lambda z: wg.fft.ifft(z, norm="ortho"))(wg.tensor(z)), np.fft.ifft(z, norm="ortho"))


ERRORS: Situations = {
    "norm": (
        lambda: wg.fft.fft(wg.ones(3), norm="unitary"),
        ValueError,
        "fft: norm must be one of 'backward', 'ortho', 'forward', got 'unitary'",
    ),
    "norm of hfft": (
        lambda: wg.fft.hfft(wg.ones(3), norm="unitary"),
        ValueError,
        "hfft: norm must be one of 'backward', 'ortho', 'forward', got 'unitary'",
    ),
    "length": (
        lambda: wg.fft.rfft(wg.ones(3), 0),
        ValueError,
        "rfft: a length of at least 1 expected, got 0",
    ),
    "length by default": (
        lambda: wg.fft.irfft(wg.ones(1)),
        ValueError,
        "irfft: a length of at least 1 expected, got 0",
    ),
    "axis": (
        lambda: wg.fft.fft(wg.ones(3), dim=1),
        IndexError,
        "fft: axis 1 is out of range for a tensor with 1 axes",
    ),
    "axes": (
        lambda: wg.fft.fftn(wg.ones(3, 3), dim=(0, -2)),
        ValueError,
        "fftn: different axes of a tensor with 2 axes expected, got (0, -2)",
    ),
    "lengths": (
        lambda: wg.fft.fft2(wg.ones(3, 3), (2,)),
        ValueError,
        "fftn: as many lengths as axes expected, got 1 and 2",
    ),
    "complex": (
        lambda: wg.fft.rfft(wg.ones(3).to(wg.complex64)),
        TypeError,
        "rfft: real numbers expected, got wengert.complex64; use fft",
    ),
    "halves": (
        lambda: wg.fft.rfft(wg.ones(3, dtype=wg.float16)),
        TypeError,
        "rfft: float32 or float64 numbers expected, got float16; convert with .float()",
    ),
}

test_errors = message_tests(ERRORS)


@pytest.mark.parametrize("norm", NORMS)
def test_halves_along_several_axes(norm: str | None) -> None:
    def of_half(z: Array, length: int) -> Array:
        return np.fft.hfft(np.fft.fft(z, axis=-2, norm=norm), length, norm=norm)

    z, x = numbers(2, 3, 5), drawn(2, 3, 8)
    near(wg.fft.hfft2(wg.tensor(z), norm=norm), of_half(z, 8))
    near(wg.fft.hfftn(wg.tensor(z), s=(3, 7), norm=norm), of_half(z, 7))
    near(wg.fft.hfftn(wg.tensor(z), norm=norm), of_half(np.fft.fft(z, axis=0, norm=norm), 8))
    half = np.fft.ifft(np.fft.ihfft(x, norm=norm), axis=-2, norm=norm)
    near(wg.fft.ihfft2(wg.tensor(x), norm=norm), half)
    near(wg.fft.ihfftn(wg.tensor(x), dim=(1, 2), norm=norm), half)
    near(wg.fft.hfftn(wg.fft.ihfftn(wg.tensor(x), norm=norm), norm=norm), x)
