"""Fourier transforms on a GPU: values beside NumPy's in float64, derivatives beside those of the CPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wengert as wg
from hypothesis import given, strategies as st
from references.complex_reference import some
from support import array

DEVICE = "gpu"
# Powers of two in one launch and in two, other numbers, primes among them.
LENGTHS = [*range(1, 20), 31, 97, 128, 210, 1000, 2047, 2048, 2049, 4096, 6000, 8192]


def near(got: wg.Tensor, want: Any, tolerance: float = 2e-6) -> None:
    """Equal within a few roundings of the largest element."""
    want = np.asarray(want)
    assert got.device != "cpu"
    assert got.shape == want.shape
    assert got.dtype in ("complex64", "float32")
    scale = np.abs(want).max(initial=1e-30)
    np.testing.assert_allclose(array(got.cpu()), want, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("n", LENGTHS)
def test_lines_of_every_length(n: int) -> None:
    x = some("complex64", (2, n), seed=n)
    there, wide = wg.tensor(x, device=DEVICE), x.astype("complex128")
    near(wg.fft.fft(there), np.fft.fft(wide))
    near(wg.fft.ifft(there), np.fft.ifft(wide))
    real = wg.tensor(x.real.copy(), device=DEVICE)
    near(wg.fft.rfft(real), np.fft.rfft(wide.real))
    near(wg.fft.irfft(there[:, : n // 2 + 1], n), np.fft.irfft(wide[:, : n // 2 + 1], n))
    near(wg.fft.ihfft(real), np.fft.ihfft(wide.real))


@given(st.integers(0, 2**20), st.lists(st.integers(1, 40), min_size=1, max_size=4), st.data(), st.booleans())
def test_axes_of_any_view(seed: int, shape: list[int], draw: Any, inverse: bool) -> None:
    axis = draw.draw(st.integers(0, len(shape) - 1))
    order = draw.draw(st.permutations(range(len(shape))))
    x = some("complex64", tuple(shape), seed=seed)
    there = wg.tensor(np.ascontiguousarray(x.transpose(order)), device=DEVICE)
    there = there.permute(*(order.index(i) for i in range(len(shape))))
    ours, theirs = (wg.fft.ifft, np.fft.ifft) if inverse else (wg.fft.fft, np.fft.fft)
    near(ours(there, dim=axis), theirs(x.astype("complex128"), axis=axis), 4e-6)


def test_long_lines() -> None:
    for n in (1 << 16, 100_003):
        x = some("complex64", (n,), seed=1)
        near(wg.fft.fft(wg.tensor(x, device=DEVICE)), np.fft.fft(x.astype("complex128")), 4e-6)
    with pytest.raises(RuntimeError, match="on a gpu lines of at most 4194304 numbers"):
        wg.fft.fft(wg.zeros(1 << 23, dtype=wg.complex64, device=DEVICE))
    with pytest.raises(RuntimeError, match="got 2097153;"):
        wg.fft.fft(wg.zeros((1 << 21) + 1, dtype=wg.complex64, device=DEVICE))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_several_axes_lengths_and_norms(norm: str) -> None:
    x = some("complex64", (3, 6, 5))
    there, wide = wg.tensor(x, device=DEVICE), x.astype("complex128")
    near(wg.fft.fft2(there, norm=norm), np.fft.fft2(wide, norm=norm))
    near(wg.fft.ifftn(there, norm=norm), np.fft.ifftn(wide, norm=norm))
    near(wg.fft.fft(there, 9, 1, norm), np.fft.fft(wide, 9, 1, norm))
    near(wg.fft.fft(there, 4, 1, norm), np.fft.fft(wide, 4, 1, norm))
    real = wg.tensor(x.real.copy(), device=DEVICE)
    near(wg.fft.rfftn(real, norm=norm), np.fft.rfftn(wide.real, norm=norm))
    near(wg.fft.irfft2(there, norm=norm), np.fft.irfft2(wide, norm=norm))
    near(wg.fft.hfft(there, norm=norm), np.fft.hfft(wide, norm=norm))
    near(wg.fft.fftshift(there), np.fft.fftshift(wide))
    assert wg.fft.fft(there[:0]).shape == (0, 6, 5)


TRANSFORMS: dict[str, Callable[[wg.Tensor], wg.Tensor]] = {
    "fft": wg.fft.fft,
    "ifft": lambda x: wg.fft.ifft(x, dim=0),
    "rfft": lambda x: wg.fft.rfft(x.real),
    "irfft": wg.fft.irfft,
    "irfft odd": lambda x: wg.fft.irfft(x, 11),
    "fft2": wg.fft.fft2,
    "stft": lambda x: wg.stft(x.real, 4, 2, window=wg.ones(4, device=x.device), return_complex=True),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_derivatives(name: str) -> None:
    f = TRANSFORMS[name]
    x, v = some("complex64", (3, 6), 1), some("complex64", (3, 6), 2)
    y, slope = wg.jvp(f, (wg.tensor(x),), (wg.tensor(v),))
    g = some("complex64", tuple(y.shape), 3)
    g = wg.tensor(g if y.is_complex() else g.real.copy())
    there = wg.tensor(x, device=DEVICE)
    y_there, slope_there = wg.jvp(f, (there,), (wg.tensor(v, device=DEVICE),))
    near(y_there, array(y))
    near(slope_there, array(slope))
    near(wg.vjp(f, there)[1](g.to(DEVICE))[0], array(wg.vjp(f, wg.tensor(x))[1](g)[0]))


def test_batches() -> None:
    x = some("complex64", (3, 6), 1)
    near(wg.vmap(wg.fft.fft)(wg.tensor(x, device=DEVICE)), np.fft.fft(x))
    near(wg.vmap(wg.fft.irfft, 1)(wg.tensor(x, device=DEVICE)), np.fft.irfft(x.T))


def test_second_order_and_programs() -> None:
    def f(x: wg.Tensor) -> wg.Tensor:
        return (wg.fft.rfft(x).abs().square() * wg.arange(4.0, device=x.device)).sum().square()

    x = some("complex64", (6,)).real.copy()
    here, there = wg.tensor(x), wg.tensor(x, device=DEVICE)
    near(wg.hessian(f)(there), array(wg.hessian(f)(here)), 1e-5)
    step = wg.jit(wg.grad(f))
    for _ in range(3):
        near(step(there), array(wg.grad(f)(here)), 1e-5)
    assert step.traces == 1


def test_bits_stay() -> None:
    x = wg.tensor(some("complex64", (5, 37)), device=DEVICE)
    first = array(wg.fft.fft(x).cpu()).tobytes()
    assert all(array(wg.fft.fft(x).cpu()).tobytes() == first for _ in range(3))
