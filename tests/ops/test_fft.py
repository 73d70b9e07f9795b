"""Fourier transforms beside NumPy's: lengths of every kind, conventions, identities, derivatives."""

import numpy as np
import pytest
import wengert as wg
from messages import Situations, message_tests
from support import Array, array, assert_near


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def complexes(x: Array) -> Array:
    """The complex numbers of pairs."""
    return x[..., 0] + 1j * x[..., 1]


def pairs(z: Array) -> Array:
    return np.stack([z.real, z.imag], -1)


def largest_error(got: wg.Tensor, exact: Array) -> float:
    """The largest error, as a part of the root of the mean square."""
    return float(np.abs(array(got) - exact).max() / np.sqrt(np.mean(np.square(exact))))


@pytest.mark.parametrize("n", [1, 2, 37, 41, 60, 1000, 1009, 1024, 2 * 509, 4096, 30030])
def test_lengths_of_every_kind(n: int) -> None:
    x = drawn(2, n, 2)
    y = wg.fft.fft_of_pairs(wg.tensor(x))
    assert_near(y, pairs(np.fft.fft(complexes(x))), 1e-13)
    assert_near(wg.fft.ifft_of_pairs(y), x, 1e-14)
    assert_near(
        wg.fft.ifft_of_pairs(wg.tensor(x), dim=0, norm="ortho"),
        pairs(np.fft.ifft(complexes(x), None, 0, "ortho")),
        1e-13,
    )
    real = wg.fft.rfft_to_pairs(wg.tensor(x[..., 0]))
    assert_near(real, pairs(np.fft.rfft(x[..., 0])), 1e-13)
    assert_near(wg.fft.irfft_of_pairs(real, n), x[..., 0], 1e-14)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies_and_their_order(n: int) -> None:
    assert_near(wg.fft.fftfreq(n, 0.5, dtype=wg.float64), np.fft.fftfreq(n, 0.5), 1e-15)
    assert_near(wg.fft.rfftfreq(n, d=0.5, dtype=wg.float64), np.fft.rfftfreq(n, 0.5), 1e-15)
    assert wg.fft.fftfreq(n).dtype == wg.float32
    x = drawn(n, n + 1)
    for dim in (None, 0, 1, (0, 1)):
        assert_near(wg.fft.fftshift(wg.tensor(x), dim), np.fft.fftshift(x, dim), 0)
        assert_near(wg.fft.ifftshift(wg.tensor(x), axes=dim), np.fft.ifftshift(x, dim), 0)
        assert_near(wg.fft.ifftshift(wg.fft.fftshift(wg.tensor(x), dim), dim), x, 0)


@pytest.mark.parametrize("n", [16, 100, 1000, 1024, 10007])
def test_single_precision_is_computed_in_single_precision(n: int) -> None:
    x = np.float32(drawn(5, n, 2))
    y = wg.fft.fft_of_pairs(wg.tensor(x))
    assert y.dtype == wg.float32
    exact = np.fft.fft(complexes(x.astype(np.float64)))
    assert largest_error(y, pairs(exact)) < 5e-7 * np.sqrt(np.log2(n))
    real = wg.fft.rfft_to_pairs(wg.tensor(x[..., 0]))
    exact = np.fft.rfft(x[..., 0].astype(np.float64))
    assert largest_error(real, pairs(exact)) < 5e-7 * np.sqrt(np.log2(n))
    assert largest_error(wg.fft.irfft_of_pairs(real, n), x[..., 0]) < 8e-7 * np.sqrt(np.log2(n))


def test_threads_do_not_change_a_bit() -> None:
    before, x = wg.get_num_threads(), wg.tensor(drawn(40, 3000, 2))
    seen = []
    for threads in (1, 3):
        wg.set_num_threads(threads)
        seen.append([array(wg.fft.fft_of_pairs(x, dim=d)).tobytes() for d in (0, 1)])
    wg.set_num_threads(before)
    assert seen[0] == seen[1]


def test_derivatives_of_a_spectrum() -> None:
    x = wg.tensor(drawn(9))

    def energy(x: wg.Tensor) -> wg.Tensor:
        return wg.fft.fft_of_pairs(wg.stack([x, wg.zeros_like(x)], -1)).square().sum()

    assert_near(wg.grad(energy)(x), 18 * array(x), 1e-13)
    assert_near(wg.hessian(energy)(x), 18 * np.eye(9), 1e-13)
    matrix = array(wg.jacrev(wg.fft.rfft_to_pairs)(x))
    assert_near(matrix, np.moveaxis(pairs(np.fft.rfft(np.eye(9))), 0, -1), 1e-13)
    assert_near(wg.jacfwd(wg.fft.rfft_to_pairs)(x), matrix, 1e-13)


ERRORS: Situations = {
    "norm": (
        lambda: wg.fft.fft_of_pairs(wg.ones(3, 2), norm="unitary"),
        ValueError,
        "fft_of_pairs: norm must be one of 'backward', 'ortho', 'forward', got 'unitary'",
    ),
    "length": (
        lambda: wg.fft.rfft_to_pairs(wg.ones(3), 0),
        ValueError,
        "rfft_to_pairs: a length of at least 1 expected, got 0",
    ),
    "length by default": (
        lambda: wg.fft.irfft_of_pairs(wg.ones(1, 2)),
        ValueError,
        "irfft_of_pairs: a length of at least 1 expected, got 0",
    ),
    "axis": (
        lambda: wg.fft.fft_of_pairs(wg.ones(3, 2), dim=1),
        IndexError,
        "fft_of_pairs: axis 1 is out of range for a tensor with 1 axes",
    ),
    "no pairs": (
        lambda: wg.fft.ifft_of_pairs(wg.ones(3)),
        wg.ShapeError,
        "ifft_of_pairs: real and imaginary parts along a last axis of length 2 expected, got shape (3,)",
    ),
    "halves": (
        lambda: wg.fft.fft_of_pairs(wg.ones(3, 2, dtype=wg.float16)),
        TypeError,
        "fft_of_pairs: float32 or float64 parts expected, got float16; convert with .float()",
    ),
}

test_errors = message_tests(ERRORS)
