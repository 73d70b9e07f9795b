"""Fourier transforms, with derivatives of every order.

Names and arguments are those of `torch.fft`; `axis` and `axes` are accepted beside `dim`. A length may be
anything: every one takes of the order of `n log n` steps. Transforms from and to real numbers (`rfft`, `irfft`, `hfft`,
`ihfft`) are real throughout, half the work of complex ones. Everything runs on the CPU, in the dtype of the parts: up
to a million elements no error is above `1e-6` in float32, or `1e-14` in float64, of the root mean square of the result.
What a length needs is planned once and kept for the next transform, for the 64 lengths used last and at most four
million elements together.

Example:
    >>> x = wg.tensor([1.0, 2.0, 3.0, 4.0])
    >>> wg.fft.irfft(wg.fft.rfft(x))
    tensor([1., 2., 3., 4.])
"""

from ._frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from ._of_pairs import fft_of_pairs, ifft_of_pairs, irfft_of_pairs, rfft_to_pairs
from ._transforms import (
    fft,
    fft2,
    fftn,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)

__all__ = [
    "fft",
    "fft2",
    "fft_of_pairs",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifft_of_pairs",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfft_of_pairs",
    "irfftn",
    "rfft",
    "rfft2",
    "rfft_to_pairs",
    "rfftfreq",
    "rfftn",
]
