"""Transforms of pairs (real and imaginary part along the last axis) and of real numbers, of which the rest is
made."""

from math import sqrt

from wengert import _core
from wengert._core import Tensor

NORMS = ("backward", "ortho", "forward")


def scale(name: str, norm: str | None, n: int, inverse: bool) -> float:
    """The factor of a transform of length `n`.

    Raises:
        ValueError: `norm` is none of the three conventions.
    """
    norm = "backward" if norm is None else norm
    if norm not in NORMS:
        raise ValueError(f"{name}: norm must be one of 'backward', 'ortho', 'forward', got {norm!r}")
    if norm == "ortho":
        return 1 / sqrt(n)
    return 1 / n if (norm == "backward") == inverse else 1.0


def checked(name: str, n: int) -> int:
    """A length that can be transformed."""
    if n < 1:
        raise ValueError(f"{name}: a length of at least 1 expected, got {n}")
    return n


def resized(x: Tensor, axis: int, n: int) -> Tensor:
    """With `n` elements along an axis: cut off, or filled up with zeros."""
    length = x.shape[axis]
    if n < length:
        return x.narrow(axis, 0, n)
    return _core._pad(x, [0, 0] * (x.ndim - 1 - axis) + [0, n - length]) if n > length else x


def transform(name: str, pairs: Tensor, axis: int, n: int | None, norm: str | None, inverse: bool) -> Tensor:
    """The discrete Fourier transform along an axis, counted from the front."""
    n = checked(name, pairs.shape[axis] if n is None else n)
    return _core._fft(resized(pairs, axis, n), axis, inverse, scale(name, norm, n, inverse))


def of_real(
    name: str, x: Tensor, axis: int, n: int | None, norm: str | None, inverse: bool = False
) -> Tensor:
    """The first half of the transform of real numbers; the other half is its mirror image."""
    n = checked(name, x.shape[axis] if n is None else n)
    return _core._rfft(resized(x, axis, n), axis, inverse, scale(name, norm, n, inverse))


def to_real(
    name: str, pairs: Tensor, axis: int, n: int | None, norm: str | None, inverse: bool = True
) -> Tensor:
    """Real numbers from the first half of their transform; the other half is its mirror image."""
    n = checked(name, 2 * (pairs.shape[axis] - 1) if n is None else n)
    return _core._irfft(resized(pairs, axis, n // 2 + 1), axis, n, inverse, scale(name, norm, n, inverse))
