"""Fourier transforms, with derivatives of every order.

Names and arguments are those of `torch.fft`; `axis` and `axes` are accepted beside `dim`. A length may be
anything: every one takes of the order of `n log n` steps. Transforms from and to real numbers (`rfft`,
`irfft`, `hfft`, `ihfft`) are real throughout, half the work of complex ones. Everything runs on the CPU, in
the dtype of the parts: up to a million elements no error is above `1e-6` in float32, or `1e-14` in float64,
of the root mean square of the result. What a length needs is planned once and kept for the next transform,
for the 64 lengths used last and at most four million elements together.

Example:
    >>> x = wg.tensor([1.0, 2.0, 3.0, 4.0])
    >>> wg.fft.irfft(wg.fft.rfft(x))
    tensor([1., 2., 3., 4.])
"""

from . import _frequencies, _of_pairs, _transforms
from ._frequencies import *
from ._of_pairs import *
from ._transforms import *

__all__: list[str] = []
__all__ += _frequencies.__all__
__all__ += _of_pairs.__all__
__all__ += _transforms.__all__
