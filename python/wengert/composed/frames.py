"""The short-time Fourier transform and its inverse: windows of a signal, transformed one by one."""

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor
from wengert._types import TensorLike

from ._method import method, positions_like

__all__ = ["istft", "stft"]

_PAD_MODES = ("reflect", "constant", "replicate", "circular")


def _lengths(
    name: str,
    x: Tensor,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: TensorLike | None,
) -> tuple[int, Tensor]:
    """The step between frames, and the window, in the middle of a frame."""
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if n_fft < 1 or hop < 1 or not 0 < width <= n_fft:
        raise ValueError(
            f"{name}: n_fft, hop_length and win_length must be positive, and win_length at most n_fft; got "
            f"{n_fft}, {hop} and {width}"
        )
    real = x.real.dtype if x.is_complex() else x.dtype
    if window is None:
        weights = _core.ones(width, dtype=real, device=x.device)
    else:
        weights = operand(name, window)
        if tuple(weights.shape) != (width,):
            raise _core.ShapeError(
                f"{name}: a window of {width} elements expected, got shape {tuple(weights.shape)}"
            )
    left = (n_fft - width) // 2
    return hop, _core._pad(weights, [left, n_fft - width - left])


@method
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: TensorLike | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool = True,
) -> Tensor:
    """Returns the Fourier transforms of windows of a signal, `(length,)` or `(batch, length)`:
    `(…, frequencies, frames)`.

    Args:
        input: the signal, real or complex.
        n_fft: how many elements are transformed at once.
        hop_length: how far a window is from the next; a quarter of `n_fft` by default.
        win_length: the length of the window, which stands in the middle of the `n_fft` elements; `n_fft` by
            default.
        window: the weights; ones by default. `hann_window` and others make them.
        center: continue the signal by half a window on both sides, so that frame `t` is around element
            `t * hop_length`.
        pad_mode: how it is continued: `"reflect"`, `"constant"` (zeros), `"replicate"` or `"circular"`.
        normalized: divide by the root of `n_fft`.
        onesided: only the `n_fft // 2 + 1` first frequencies, of which the others are conjugates; the default
            for real signals.
        return_complex: without, real and imaginary parts along a new last axis.

    Runs on the CPU, in the dtype of the signal. Its derivatives are those of `unfold` and `fft.rfft`.

    Example:
        >>> wg.stft(wg.ones(8), 4, hop_length=4, center=False, return_complex=True).shape
        (3, 2)
    """
    if input.ndim not in (1, 2):
        raise _core.ShapeError(
            f"stft: a signal (length,) or (batch, length) expected, got shape {tuple(input.shape)}"
        )
    if pad_mode not in _PAD_MODES:
        raise ValueError(f"stft: pad_mode must be one of {', '.join(_PAD_MODES)}, got {pad_mode!r}")
    if not (input.is_floating_point() or input.is_complex()):
        raise TypeError(
            f"stft: a floating point or complex signal expected, got {input.dtype}; convert with .float() "
            f"first"
        )
    from wengert import fft
    from wengert.nn.functional import pad

    hop, weights = _lengths("stft", input, n_fft, hop_length, win_length, window)
    x = input.reshape(1, -1) if input.ndim == 1 else input
    if center:
        half = n_fft // 2
        x = pad(x.unsqueeze(1), (half, half), pad_mode).squeeze(1)
    if x.shape[1] < n_fft:
        raise ValueError(
            f"stft: a signal of {x.shape[1]} elements is shorter than n_fft = {n_fft}; center=True continues "
            f"it"
        )
    frames = x.unfold(1, n_fft, hop) * weights
    is_complex = frames.is_complex()
    if is_complex and onesided:
        raise ValueError("stft: a complex signal or window has no one-sided transform; leave out onesided")
    one_sided = not is_complex if onesided is None else onesided
    transform = fft.rfft if one_sided else fft.fft
    out = transform(frames, norm="ortho" if normalized else None).mT
    out = out.reshape(out.shape[1:]) if input.ndim == 1 else out
    return out if return_complex else _core.view_as_real(out)


@method
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: TensorLike | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Returns the signal whose `stft` is `input`, `(…, frequencies, frames)`, complex; of others, the nearest
    in least squares.

    The arguments are those of `stft`.

    Args:
        length: of the signal, which is cut or filled up with zeros; by default, what the frames cover.
        onesided: whether only the first half of the frequencies is given; the default if their number says
            so.
        return_complex: whether the signal is complex; then all frequencies are needed.

    Raises:
        ValueError: windows that leave elements uncovered, whose values nothing tells.

    Example:
        >>> wave = wg.sin(wg.linspace(0.0, 6.0, 64))
        >>> spectrum = wg.stft(wave, 16, return_complex=True, window=wg.hann_window(16))
        >>> wg.allclose(wg.istft(spectrum, 16, window=wg.hann_window(16)), wave, atol=1e-5)
        True
    """
    if input.ndim not in (2, 3) or not input.is_complex():
        raise _core.ShapeError(
            f"istft: complex numbers (frequencies, frames) or (batch, frequencies, frames) expected, got "
            f"{input.dtype} of shape {tuple(input.shape)}"
        )
    from wengert import fft

    hop, weights = _lengths("istft", input, n_fft, hop_length, win_length, window)
    count, half = input.shape[-2], n_fft // 2 + 1
    one_sided = count == half and not return_complex if onesided is None else onesided
    if count != (half if one_sided else n_fft):
        raise _core.ShapeError(
            f"istft: {half if one_sided else n_fft} frequencies expected for n_fft = {n_fft}, got {count}"
        )
    if one_sided and (return_complex or weights.is_complex()):
        raise ValueError("istft: a complex signal needs all frequencies; pass onesided=False to stft")
    norm = "ortho" if normalized else None
    columns = (input.unsqueeze(0) if input.ndim == 2 else input).mT
    frames = fft.irfft(columns, n_fft, norm=norm) if one_sided else fft.ifft(columns, norm=norm)
    frames = frames if return_complex or one_sided else frames.real
    total = n_fft + hop * (frames.shape[1] - 1)
    signal = _overlapped(frames * weights.conj() if weights.is_complex() else frames * weights, hop, total)
    power = weights.abs().square()
    covered = _overlapped(power.expand([1, frames.shape[1], n_fft]), hop, total)
    start = n_fft // 2 if center else 0
    end = total - start if length is None else min(start + length, total)
    signal, covered = (y.narrow(1, start, end - start) for y in (signal, covered))
    if covered.numel() and covered.detach().min().item() < 1e-11:
        raise ValueError(
            "istft: the windows leave elements uncovered, or cover them by weights of zero; use a shorter "
            "hop_length or another window"
        )
    out = signal / covered
    if length is not None and end - start < length:
        out = _core._pad(out, [0, length - (end - start)])
    return out.reshape(-1) if input.ndim == 2 else out


def _overlapped(frames: Tensor, hop: int, total: int) -> Tensor:
    """Frames `(batch, count, length)`, each `hop` elements behind the last, added where they overlap."""
    batch, count, length = frames.shape
    places = (positions_like(frames, count) * hop).unsqueeze(1) + positions_like(frames, length)
    zeros = _core.zeros((batch, total), dtype=frames.dtype, device=frames.device)
    return zeros.index_add(1, places.reshape(-1), frames.reshape(batch, -1))
