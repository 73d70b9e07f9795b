"""Transforms of complex numbers whose parts are kept apart: real and imaginary part along a last axis of
length 2."""

from typing import Any

from wengert import _core
from wengert._arguments import axis_of, operand
from wengert._core import Tensor

from ._pairs import of_real, to_real, transform

__all__ = ["fft_of_pairs", "ifft_of_pairs", "irfft_of_pairs", "rfft_to_pairs"]


def _axis(name: str, x: Tensor, dim: int, pairs: bool) -> int:
    """The axis of the numbers, counted from the front."""
    if pairs and (x.ndim < 1 or x.shape[-1] != 2):
        raise _core.ShapeError(
            f"{name}: real and imaginary parts along a last axis of length 2 expected, got shape "
            f"{tuple(x.shape)}"
        )
    return axis_of(name, dim, x.ndim - pairs)


def fft_of_pairs(pairs: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Returns the discrete Fourier transform `y[k] = sum(x[t] * exp(-2 pi i t k / n))` of numbers `(…, 2)`.

    Args:
        pairs: real and imaginary parts along the last axis, float32 or float64.
        n: the length: input is cut off there, or filled up with zeros.
        dim: an axis of the numbers; their last one is -1.
        norm: `"backward"` (the default) does not scale, `"ortho"` by `1 / sqrt(n)`, `"forward"` by `1 / n`;
            the inverse has what is missing.

    It is linear, so its derivatives are transforms with the other sign; saves nothing.

    Example:
        >>> x = wg.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
        >>> wg.fft.fft_of_pairs(x)
        tensor([[1., 0.],
                [1., 0.],
                [1., 0.]])
    """
    pairs = operand("fft_of_pairs", pairs)
    return transform("fft_of_pairs", pairs, _axis("fft_of_pairs", pairs, dim, True), n, norm, False)


def ifft_of_pairs(pairs: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Returns the inverse of `fft_of_pairs`: `x[t] = sum(y[k] * exp(2 pi i t k / n)) / n`.

    Example:
        >>> wg.fft.ifft_of_pairs(wg.fft.fft_of_pairs(wg.tensor([[1.0, 0.0], [2.0, 0.0]])))
        tensor([[1., 0.],
                [2., 0.]])
    """
    pairs = operand("ifft_of_pairs", pairs)
    return transform("ifft_of_pairs", pairs, _axis("ifft_of_pairs", pairs, dim, True), n, norm, True)


def rfft_to_pairs(x: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Returns the first `n // 2 + 1` elements of the transform of real numbers, as pairs; the others are
    their conjugates.

    Example:
        >>> wg.fft.rfft_to_pairs(wg.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([[10.,  0.],
                [-2.,  2.],
                [-2.,  0.]])
    """
    x = operand("rfft_to_pairs", x)
    return of_real("rfft_to_pairs", x, _axis("rfft_to_pairs", x, dim, False), n, norm)


def irfft_of_pairs(pairs: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Returns the inverse of `rfft_to_pairs`: `n` real numbers, by default `2 * (length - 1)`.

    Example:
        >>> wg.fft.irfft_of_pairs(wg.fft.rfft_to_pairs(wg.tensor([1.0, 2.0, 3.0, 4.0])))
        tensor([1., 2., 3., 4.])
    """
    pairs = operand("irfft_of_pairs", pairs)
    return to_real("irfft_of_pairs", pairs, _axis("irfft_of_pairs", pairs, dim, True), n, norm)
