"""Keywords of Fourier transforms, windows and linear algebra: against NumPy and SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.fft
import wengert as wg
from scipy.signal import windows
from wengert import linalg, nn

from arguments.rows import Array, check, differ, near, numbers, of_name, run

REAL = numbers(4, 5, 6)
COMPLEX = REAL + 1j * numbers(4, 5, 6, seed=1)
FFT: list[tuple[str, dict[str, Any]]] = [
    ("fftn", dict(s=(3, 7), dim=(0, 2), norm="ortho")),
    ("fftn", dict(axes=(2, 0), norm="forward")),
    ("ifftn", dict(s=(3, 7), dim=(0, 2), norm="ortho")),
    ("ifftn", dict(axes=(2, 0), norm="forward")),
    ("rfftn", dict(s=(3, 7), dim=(0, 2), norm="ortho")),
    ("rfftn", dict(axes=(2, 0), norm="forward")),
    ("irfftn", dict(s=(3, 7), dim=(0, 2), norm="ortho")),
    ("irfftn", dict(axes=(2, 0), norm="forward")),
    ("hfftn", dict(s=(3, 7), dim=(0, 2), norm="ortho")),
    ("hfftn", dict(axes=(2, 0), norm="forward")),
    ("ihfftn", dict(s=(3, 7), dim=(0, 2), norm="ortho")),
    ("ihfftn", dict(axes=(2, 0), norm="forward")),
    ("fft2", dict(s=(3, 7), dim=(0, 2), norm="ortho")),
    ("fft2", dict(axes=(2, 0), norm="forward")),
    ("ifft2", dict(s=(3, 7), dim=(0, 2), norm="ortho")),
    ("ifft2", dict(axes=(2, 0), norm="forward")),
    ("rfft2", dict(s=(3, 7), dim=(0, 2), norm="ortho")),
    ("rfft2", dict(axes=(2, 0), norm="forward")),
    ("irfft2", dict(s=(3, 7), dim=(0, 2), norm="ortho")),
    ("irfft2", dict(axes=(2, 0), norm="forward")),
    ("hfft2", dict(s=(3, 7), dim=(0, 2), norm="ortho")),
    ("hfft2", dict(axes=(2, 0), norm="forward")),
    ("ihfft2", dict(s=(3, 7), dim=(0, 2), norm="ortho")),
    ("ihfft2", dict(axes=(2, 0), norm="forward")),
    ("fft", dict(n=7, dim=1, norm="ortho")),
    ("fft", dict(axis=0, norm="forward")),
    ("ifft", dict(n=7, dim=1, norm="ortho")),
    ("ifft", dict(axis=0, norm="forward")),
    ("rfft", dict(n=7, dim=1, norm="ortho")),
    ("rfft", dict(axis=0, norm="forward")),
    ("irfft", dict(n=7, dim=1, norm="ortho")),
    ("irfft", dict(axis=0, norm="forward")),
    ("hfft", dict(n=7, dim=1, norm="ortho")),
    ("hfft", dict(axis=0, norm="forward")),
    ("ihfft", dict(n=7, dim=1, norm="ortho")),
    ("ihfft", dict(axis=0, norm="forward")),
    ("fftshift", dict(axes=(0, 2))),
    ("fftshift", dict(dim=(0, 2))),
    ("ifftshift", dict(axes=1)),
    ("ifftshift", dict(dim=1)),
]


@pytest.mark.parametrize(("name", "settings"), FFT, ids=lambda x: x if isinstance(x, str) else "-".join(x))
def test_transforms(name: str, settings: dict[str, Any]) -> None:
    x = REAL if name.startswith(("rfft", "ihfft")) else COMPLEX
    own = {
        ("axes" if name[-2:] == "tn" or name[-1] == "2" or "shift" in name else "axis")
        if k == "dim"
        else k: v
        for k, v in settings.items()
    }
    expected = getattr(scipy.fft, name)(x, **own)
    check(of_name(f"fft.{name}")[0], (x,), settings, expected)
    if "dim" not in settings and name[-1] != "2" and name not in ("hfftn", "ihfftn"):
        check(of_name(f"numpy.fft.{name}")[0], (x,), settings, expected)


PAIRED: list[tuple[str, str, dict[str, Any]]] = [
    ("fft_of_pairs", "fft", dict(n=7, dim=1, norm="ortho")),
    ("ifft_of_pairs", "ifft", dict(n=7, dim=1, norm="ortho")),
    ("rfft_to_pairs", "rfft", dict(n=7, dim=1, norm="ortho")),
    ("irfft_of_pairs", "irfft", dict(n=7, dim=1, norm="ortho")),
]


@pytest.mark.parametrize(("name", "known", "settings"), PAIRED)
def test_transforms_of_pairs(name: str, known: str, settings: dict[str, Any]) -> None:
    pairs = lambda z: np.stack([z.real, z.imag], -1)
    own = {"axis" if k == "dim" else k: v for k, v in settings.items()}
    x = REAL if known == "rfft" else COMPLEX
    expected = getattr(np.fft, known)(x, **own)
    expected = expected if known == "irfft" else pairs(expected)
    check(of_name(f"fft.{name}")[0], (REAL if known == "rfft" else pairs(COMPLEX),), settings, expected)


WINDOWS = [
    ("bartlett_window", dict(periodic=False), windows.bartlett(7)),
    ("blackman_window", dict(periodic=False), windows.blackman(7)),
    ("hann_window", dict(periodic=False), windows.hann(7)),
    ("hamming_window", dict(periodic=False), windows.general_hamming(7, 0.54)),
    ("hamming_window", dict(alpha=0.6, beta=0.3), 0.6 - 0.3 * np.cos(2 * np.pi * np.arange(7) / 7)),
    ("kaiser_window", dict(periodic=False, beta=5.0), windows.kaiser(7, 5.0)),
]


@pytest.mark.parametrize(("name", "settings", "expected"), WINDOWS)
def test_windows(name: str, settings: dict[str, Any], expected: Array) -> None:
    make = lambda length, **k: getattr(wg, name)(length, dtype=wg.float64, **k)
    check(make, (7,), settings, expected)


SIGNAL, WINDOW = numbers(40), windows.hann(6, sym=False) + 0.1


def frames(
    hop_length: int = 2, win_length: int = 8, center: bool = True, pad_mode: str = "reflect",
    normalized: bool = False, onesided: bool = True, window: Array | None = None,
) -> Array:  # fmt: skip
    """The short-time transform of the signal with frames of 8 by definition."""
    x = np.pad(SIGNAL, 4, mode={"replicate": "edge"}.get(pad_mode, pad_mode)) if center else SIGNAL
    window = np.ones(win_length) if window is None else window
    before = (8 - win_length) // 2
    window = np.pad(window, (before, 8 - win_length - before))
    cut = [x[a : a + 8] * window for a in range(0, len(x) - 7, hop_length)]
    out = (np.fft.rfft if onesided else np.fft.fft)(np.stack(cut), axis=-1).T
    return out / np.sqrt(8) if normalized else out


STFT: list[tuple[str, dict[str, Any]]] = [
    ("stft", dict(hop_length=3, center=False, normalized=True, onesided=False)),
    ("stft", dict(pad_mode="constant", window=WINDOW, win_length=6)),
    ("stft", dict(pad_mode="replicate", win_length=6)),
]


@pytest.mark.parametrize(("name", "settings"), STFT)
def test_short_time_transform(name: str, settings: dict[str, Any]) -> None:
    for function in of_name(name):
        short = lambda x, function=function, **k: function(x, 8, return_complex=True, **k)
        check(short, (SIGNAL,), settings, frames(**settings))


ISTFT: list[tuple[str, dict[str, Any]]] = [
    ("istft", dict(normalized=True, hop_length=4)),
    ("istft", dict(win_length=6, window=WINDOW, hop_length=4)),
]


@pytest.mark.parametrize(("name", "settings"), ISTFT)
def test_short_time_inverse(name: str, settings: dict[str, Any]) -> None:
    """The inverse by the same settings gives the signal back; by others it does not."""
    spectrum = frames(**settings)
    for function in of_name(name):
        inverse = lambda s, function=function, **k: function(s, 8, **k)
        check(inverse, (spectrum,), settings, SIGNAL)
    # Without the keyword the number of frequencies tells; with it, it is checked.
    near(run(wg.istft, (frames(onesided=False), 8), dict(onesided=False)), SIGNAL)
    near(run(wg.istft, (frames(onesided=False), 8), {}), SIGNAL)
    with pytest.raises(wg.ShapeError):
        run(wg.istft, (frames(), 8), dict(onesided=False))
    with pytest.raises(wg.ShapeError):
        run(wg.istft, (frames(onesided=False), 8), dict(onesided=True))
    # A window that ends before the frame weighs its middle.
    short = lambda s, **k: wg.istft(s, 8, hop_length=4, **k)
    near(run(short, (frames(4, win_length=6),), dict(win_length=6)), SIGNAL)
    assert differ(run(short, (frames(4, win_length=6),), {}), SIGNAL)


A = numbers(3, 3)
LOWER = np.tril(A) + np.tril(A, -1).T
SMALL = np.diag([3.0, 1e-3, 1.0])
DROPPED = np.diag([1 / 3, 0.0, 1.0])
SPREAD = numbers(2, 3, 2, 3)
LINALG: list[tuple[str, Any, dict[str, Any], Any]] = [
    ("linalg.eigvalsh", (A,), dict(UPLO="U"), np.linalg.eigvalsh(A, "U")),
    ("linalg.pinv", (SMALL,), dict(atol=0.01), DROPPED),
    ("linalg.pinv", (SMALL,), dict(rtol=0.01), DROPPED),
    ("linalg.pinv", (SMALL,), dict(rcond=0.01), DROPPED),
    ("linalg.pinv", (A,), dict(hermitian=True), np.linalg.inv(LOWER)),
    ("pinverse", (SMALL,), dict(rcond=0.01), DROPPED),
    ("linalg.matrix_rank", (SMALL,), dict(atol=0.01), 2),
    ("linalg.matrix_rank", (SMALL,), dict(rtol=0.01), 2),
    ("linalg.matrix_rank", (SMALL,), dict(tol=0.01), 2),
    ("linalg.matrix_rank", (np.array([[0.0, 1.0], [0.0, 0.0]]),), dict(hermitian=True), 0),
    ("linalg.tensorsolve", (SPREAD, A[:2]), dict(dims=(0, 1)), np.linalg.tensorsolve(SPREAD, A[:2], (0, 1))),
]


@pytest.mark.parametrize(("name", "args", "settings", "expected"), LINALG)
def test_linear_algebra(name: str, args: Any, settings: dict[str, Any], expected: Any) -> None:
    for function in of_name(name):
        check(function, args, settings, expected)


def test_settings_of_factorisations() -> None:
    with pytest.raises(ValueError, match="pivot must be True"):
        linalg.lu_factor(wg.tensor(A), pivot=False)
    for driver in ("gesvd", "gesvdj", "gesvda", None):
        near(linalg.svdvals(wg.tensor(A), driver=driver), np.linalg.svd(A)[1])
        near(linalg.svd(wg.tensor(A), driver=driver).S, np.linalg.svd(A)[1])
    for driver in ("gels", "gelsd", "gelsy", "gelss"):
        near(linalg.lstsq(wg.tensor(A), wg.tensor(A[0]), driver=driver).solution, np.linalg.solve(A, A[0]))


def test_drivers_of_other_tasks_are_refused() -> None:
    a = wg.tensor(A)
    for driver in ("gels", "gesdd", "", 1):
        with pytest.raises(ValueError, match="svd: driver must be one of gesvd, gesvdj, gesvda or None"):
            linalg.svd(a, driver=driver)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="driver must be one of"):
            linalg.svdvals(a, driver=driver)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lstsq: driver must be one of gels, gelsy, gelsd, gelss or None"):
        linalg.lstsq(a, a, driver="gesvd")


def test_spectral_norm() -> None:
    def weight(w: wg.Tensor, **settings: Any) -> wg.Tensor:
        layer = nn.Conv1d(2, 3, 4, dtype=wg.float64)
        with wg.no_grad():
            layer.weight.copy_(w)
        return nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=200, **settings).weight

    w = numbers(3, 2, 4)
    for dim in (0, 1):
        matrix = np.moveaxis(w, dim, 0).reshape(w.shape[dim], -1)
        near(run(weight, (w,), dict(dim=dim)), w / np.linalg.svd(matrix)[1][0], 1e-6)
    # Vectors shorter than eps are not made longer.
    bias = nn.Linear(2, 2, dtype=wg.float64)
    with wg.no_grad():
        bias.bias.copy_(wg.tensor([0.3, 0.4], dtype=wg.float64))
    near(nn.utils.parametrizations.spectral_norm(bias, "bias", eps=2.0).bias, np.array([0.15, 0.2]))
