"""Windows beside SciPy's, and the short-time Fourier transform with its inverse."""

from __future__ import annotations

import numpy as np
import pytest
import wengert as wg
from messages import Situations, message_tests
from scipy.signal import ShortTimeFFT, windows
from support import array

WINDOWS = {
    "hann": (wg.hann_window, windows.hann, ()),
    "hamming": (wg.hamming_window, windows.hamming, ()),
    "blackman": (wg.blackman_window, windows.blackman, ()),
    "bartlett": (wg.bartlett_window, windows.bartlett, ()),
    "kaiser": (lambda n, p, **kw: wg.kaiser_window(n, p, 8.6, **kw), windows.kaiser, (8.6,)),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str) -> None:
    ours, scipy, settings = WINDOWS[name]
    for n in (0, 1, 2, 7, 64):
        for periodic in (True, False):
            expected = scipy(n, *settings, sym=not periodic)
            got = ours(n, periodic, dtype=wg.float64)
            assert got.shape == (n,)
            assert np.allclose(array(got), expected, rtol=0, atol=1e-15)
    assert ours(8, True).dtype == wg.float32


def test_a_narrow_kaiser_window_does_not_overflow() -> None:
    assert np.isfinite(array(wg.kaiser_window(9, beta=2000.0, dtype=wg.float64))).all()


def signal(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=shape)


def test_frames_are_those_of_scipy() -> None:
    x, weights = signal(80), windows.hann(16, sym=False)
    # SciPy's frames begin where the first window touches the signal; ours are centred on multiples of the
    # hop.
    theirs = ShortTimeFFT(weights, 4, 1.0).stft(x, p0=0, p1=21, padding="even", k_offset=0)
    ours = array(wg.stft(wg.tensor(x), 16, 4, window=wg.tensor(weights)))
    assert ours.shape == (9, 21)
    # Windows that lie inside the signal do not depend on how it is continued.
    assert np.allclose(np.abs(ours[:, 2:18]), np.abs(theirs[:, 2:18]), atol=1e-12)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("width", [12, 16])
def test_the_inverse_gives_the_signal_back(normalized: bool, one_sided: bool, width: int) -> None:
    x = wg.tensor(signal(3, 100))
    settings = {
        "win_length": width,
        "window": wg.hann_window(width, dtype=wg.float64),
        "normalized": normalized,
        "onesided": one_sided,
    }
    frames = wg.stft(x, 16, 4, **settings)
    assert frames.shape == (3, 9 if one_sided else 16, 26)
    for length in (None, 60, 100, *([120] if width == 16 else [])):
        back = array(wg.istft(frames, 16, 4, **settings, length=length))
        assert back.shape == (3, length or 100)
        assert np.allclose(back[:, :100], array(x)[:, : back.shape[1]], atol=1e-12)
        assert (back[:, 108:] == 0).all()


def test_complex_signals() -> None:
    z = signal(40) + 1j * np.roll(signal(40), 3)
    weights = wg.hann_window(8, dtype=wg.float64)
    frames = wg.stft(wg.tensor(z), 8, window=weights)
    assert frames.shape == (8, 21)
    back = wg.istft(frames, 8, window=weights, return_complex=True)
    assert np.allclose(array(back), z, atol=1e-12)


def test_parseval_and_derivatives() -> None:
    x, weights = wg.tensor(signal(30)), wg.hann_window(8, dtype=wg.float64)
    back = lambda v: wg.istft(wg.stft(v, 8, 2, window=weights), 8, 2, window=weights, length=30)
    # The composition is the identity, and so is its Jacobian.
    assert np.allclose(array(wg.jacrev(back)(x)), np.eye(30), atol=1e-12)
    assert np.allclose(array(wg.jacfwd(back)(x)), np.eye(30), atol=1e-12)
    assert wg.autograd.gradcheck(lambda v: wg.stft(v, 8, 3, window=weights).abs().square(), (x,))


SITUATIONS: Situations = {
    "window": (
        lambda: wg.stft(wg.ones(20), 8, window=wg.ones(6)),
        wg.ShapeError,
        "stft: a window of 8 elements expected, got shape (6,)",
    ),
    "short": (
        lambda: wg.stft(wg.ones(5), 8, center=False),
        ValueError,
        "stft: a signal of 5 elements is shorter than n_fft = 8; center=True continues it",
    ),
    "integers": (
        lambda: wg.stft(wg.tensor([1, 2]), 2),
        TypeError,
        "stft: a floating point or complex signal expected, got wengert.int64; convert with .float() first",
    ),
    "uncovered": (
        lambda: wg.istft(wg.ones(5, 3, dtype=wg.complex64), 8, 8, window=wg.hann_window(8), center=False),
        ValueError,
        (
            "istft: the windows leave elements uncovered, or cover them by weights of zero; use a shorter "
            "hop_length or another window"
        ),
    ),
    "frequencies": (
        lambda: wg.istft(wg.ones(4, 3, dtype=wg.complex64), 8),
        wg.ShapeError,
        "istft: 8 frequencies expected for n_fft = 8, got 4",
    ),
    "length": (
        lambda: wg.hann_window(-1),
        ValueError,
        "hann_window: window_length must not be negative, got -1",
    ),
}
test_messages = message_tests(SITUATIONS)
