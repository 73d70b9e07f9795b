"""Fourier transforms, with derivatives of every order.

A length may be anything: prime factors up to 31 are transformed directly, longer ones as a convolution. Everything runs
on the CPU, in float64, and is rounded once.

Example:
    >>> x = wg.tensor([1.0, 2.0, 3.0, 4.0])
    >>> wg.fft.irfft_of_pairs(wg.fft.rfft_to_pairs(x))
    tensor([1., 2., 3., 4.])
"""

from ._frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from ._of_pairs import fft_of_pairs, ifft_of_pairs, irfft_of_pairs, rfft_to_pairs

__all__ = [
    "fft_of_pairs",
    "fftfreq",
    "fftshift",
    "ifft_of_pairs",
    "ifftshift",
    "irfft_of_pairs",
    "rfft_to_pairs",
    "rfftfreq",
]
