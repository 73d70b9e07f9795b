"""The standard's extension for Fourier transforms: `wengert.fft` with the standard's parameters."""

from collections.abc import Callable
from typing import Any

from wengert import fft as _fft
from wengert._core import Tensor

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def _over_one(name: str) -> Callable[..., Tensor]:
    """A transform along one axis."""
    transform = getattr(_fft, name)

    def function(x: Tensor, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return transform(x, n=n, dim=axis, norm=norm)

    return _named(function, name)


def _over_several(name: str, axes: tuple[int, ...] | None = None) -> Callable[..., Tensor]:
    """A transform along several axes, these by default."""
    transform = getattr(_fft, name)

    def function(x: Tensor, /, s: Any = None, axes: Any = axes, norm: str = "backward") -> Tensor:
        return transform(x, s=s, dim=axes, norm=norm)

    return _named(function, name)


def _named(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = getattr(_fft, name).__doc__
    return function


fft, ifft, rfft, irfft, hfft, ihfft = map(_over_one, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = map(_over_several, ("fftn", "ifftn", "rfftn", "irfftn"))
fft2, ifft2, rfft2, irfft2 = (_over_several(name, (-2, -1)) for name in ("fft2", "ifft2", "rfft2", "irfft2"))


def fftfreq(n: int, /, d: float = 1.0, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Returns the frequencies of the elements of `fft` of `n` numbers that are `d` apart."""
    return _fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, d: float = 1.0, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Returns the frequencies of the elements of `rfft` of `n` numbers that are `d` apart."""
    return _fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, axes: Any = None) -> Tensor:
    """Returns the frequency 0 moved to the middle of the axes, all by default."""
    return _fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, axes: Any = None) -> Tensor:
    """Returns the inverse of `fftshift`."""
    return _fft.ifftshift(x, axes)
