"""Records of Fourier transforms of pairs: real and imaginary parts, which have derivatives as any numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from support import Arg, Array, Case, Source
from wengert.fft import _pairs

from samples.sample import Table

FOURIER = Table()


def add(
    name: str,
    fn: Callable[..., Any],
    reference: Callable[..., Any],
    case: Callable[[Source], Case],
    row: str = "Fft",
) -> None:
    """A record of a transform, in float32 and float64."""
    settings = {"dtypes": ("float64", "float32"), "scale": 16, "empty": False}
    FOURIER.record(name, fn, reference, case, rows=(row,), **settings)


def pairs(y: Array) -> Array:
    return np.stack([y.real, y.imag], -1)


def complexes(x: Array) -> Array:
    return x[..., 0] + 1j * x[..., 1]


def case(*extra: int) -> Callable[[Source], Case]:
    """A tensor, an axis of it, a length or none, a convention."""

    def draw(s: Source) -> Case:
        shape = s.shape(1, 3, least=1)
        kwargs = {
            "axis": s.integer(0, len(shape) - 1),
            "n": s.choice([None, s.integer(1, 9)]),
            "norm": s.choice([None, *_pairs.NORMS]),
        }
        if extra and kwargs["n"] is None and shape[kwargs["axis"]] == 1:
            kwargs["n"] = 3
        if not extra or extra[0] == 2:
            kwargs["inverse"] = s.flag() if not extra else True
        return Case((Arg((*shape, 2) if not extra or extra[0] == 2 else shape),), kwargs)

    return draw


def fft_reference(x: Array, axis: int, n: int | None, norm: str | None, inverse: bool) -> Array:
    return pairs((np.fft.ifft if inverse else np.fft.fft)(complexes(x), n, axis, norm))


add(
    "fft_of_pairs",
    lambda x, axis, n, norm, inverse: _pairs.transform("fft", x, axis, n, norm, inverse),
    fft_reference,
    case(),
)
add(
    "rfft_of_reals",
    lambda x, axis, n, norm: _pairs.of_real("rfft", x, axis, n, norm),
    lambda x, axis, n, norm: pairs(np.fft.rfft(x, n, axis, norm)),
    case(1),
    "RealFft",
)
add(
    "irfft_of_pairs",
    lambda x, axis, n, norm, inverse: _pairs.to_real("irfft", x, axis, n, norm, inverse),
    lambda x, axis, n, norm, inverse: np.fft.irfft(complexes(x), n, axis, norm),
    case(2),
    "RealFft",
)
