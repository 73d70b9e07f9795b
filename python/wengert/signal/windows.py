"""Windows, which fade out a signal at both ends, computed in float64 and rounded once.

Symmetric unless told otherwise, unlike `wengert.hann_window` and its like.
"""

import math
from collections.abc import Callable, Iterable
from typing import Protocol

from wengert import _core
from wengert._core import Tensor
from wengert._types import DeviceLike, DTypeLike

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _window(
    name: str,
    length: int,
    formula: Callable[[Tensor, int], Tensor],
    sym: bool,
    dtype: DTypeLike | None,
    device: DeviceLike | None,
    requires_grad: bool,
) -> Tensor:
    """`formula` of `0, 1, ...` and of the last of them, which a periodic window leaves out."""
    if not isinstance(length, int) or isinstance(length, bool):
        raise TypeError(f"{name}: M must be an integer, got {type(length).__name__}")
    if length < 0:
        raise ValueError(f"{name}: M must not be negative, got {length}")
    kind = _core.empty(0, dtype=dtype).dtype
    if not kind.is_floating_point:
        raise TypeError(f"{name}: a floating point dtype expected, got {kind}")
    if length < 2:
        out = _core.ones(length, dtype=kind)
    else:
        places = _core.arange(0, length, dtype=_core.float64)
        out = formula(places, length - 1 if sym else length).to(kind)
    out = out if device is None else out.to(device)
    return out.requires_grad_() if requires_grad else out


def _cosines(a: Iterable[float]) -> Callable[[Tensor, int], Tensor]:
    """The alternating sum of cosines with these factors."""
    try:
        factors = [float(c) for c in a]
    except (TypeError, ValueError):
        raise TypeError(f"general_cosine: a must be a sequence of numbers, got {a!r}") from None
    if not factors:
        raise ValueError(f"general_cosine: a must have at least one factor, got {a!r}")

    def formula(k: Tensor, last: int) -> Tensor:
        angle = k * (2 * math.pi / last)
        return sum(((-1) ** i * c * (i * angle).cos() for i, c in enumerate(factors)), 0 * k)

    return formula


def _kaiser(beta: float) -> Callable[[Tensor, int], Tensor]:
    """The ratio of Bessel functions, both scaled, lest they overflow."""

    def formula(k: Tensor, last: int) -> Tensor:
        width = beta * (1 - (2 * k / last - 1).square()).clamp_min(0.0).sqrt()
        top = _core.tensor(float(beta), dtype=_core.float64)
        return width.i0e() / top.i0e() * (width - top).exp()

    return formula


class _Maker(Protocol):
    """A window of the table below."""

    __name__: str

    def __call__(
        self,
        M: int,
        *,
        sym: bool = True,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: bool = False,
    ) -> Tensor: ...


def _maker(name: str, formula: Callable[[Tensor, int], Tensor], text: str, example: str) -> _Maker:
    """A window without parameters of its own, from its formula of `k` and `n`."""

    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: bool = False,
    ) -> Tensor:
        return _window(name, M, formula, sym, dtype, device, requires_grad)

    window.__name__ = window.__qualname__ = name
    call, shown = example.split(" -> ")
    window.__doc__ = f"""Returns {text}.

    Args:
        M: the number of elements; a window of one is 1.
        sym: whether the window is symmetric, with `n = M - 1`; else it is one period, with `n = M`, as Fourier
            transforms want it.
        dtype: a floating point type, float32 by default.

    Example:
        >>> wg.signal.windows.{call}
        tensor({shown})
    """
    return window


bartlett = _maker(
    "bartlett",
    lambda k, n: 1 - (2 * k / n - 1).abs(),
    "the triangle `1 - abs(2 k / n - 1)`",
    "bartlett(5) -> [0.0, 0.5, 1.0, 0.5, 0.0]",
)
blackman = _maker(
    "blackman",
    _cosines((0.42, 0.5, 0.08)),
    "the window `0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n)`",
    "blackman(3).abs().round(decimals=4) -> [0., 1., 0.]",
)
cosine = _maker(
    "cosine",
    lambda k, n: ((k + 0.5) * (math.pi / (n + 1))).sin(),
    "the window `sin(pi (k + 1/2) / (n + 1))`, half a wave",
    "cosine(3) -> [0.5, 1.0, 0.5]",
)
hamming = _maker(
    "hamming",
    _cosines((0.54, 0.46)),
    "the window `0.54 - 0.46 cos(2 pi k / n)`",
    "hamming(3) -> [0.08, 1.00, 0.08]",
)
hann = _maker(
    "hann",
    _cosines((0.5, 0.5)),
    "the window `1/2 - cos(2 pi k / n) / 2`",
    "hann(5) -> [0.0, 0.5, 1.0, 0.5, 0.0]",
)
nuttall = _maker(
    "nuttall",
    _cosines((0.3635819, 0.4891775, 0.1365995, 0.0106411)),
    "the minimal four-term window of Blackman and Harris that A. H. Nuttall gives (1981)",
    "nuttall(3).round(decimals=4) -> [0.0004, 1.0000, 0.0004]",
)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the window `exp(-abs(k - center) / tau)`.

    Args:
        M: the number of elements; a window of one is 1.
        center: where it is 1; the middle `n / 2` by default. Only a periodic window has another.
        tau: how far it takes to fall to `1 / e`, above 0.
        sym: whether the window is symmetric, with `n = M - 1`; else it is one period, with `n = M`, as
            Fourier transforms want it.
        dtype: a floating point type, float32 by default.

    Raises:
        ValueError: a `tau` that is not positive, or a `center` for a symmetric window.

    Example:
        >>> wg.signal.windows.exponential(3)
        tensor([0.3679, 1.0000, 0.3679])
    """
    if tau <= 0:
        raise ValueError(f"exponential: a positive tau expected, got {tau}")
    if sym and center is not None:
        raise ValueError(
            "exponential: a symmetric window has its center in the middle; pass sym=False, or no center"
        )
    return _window(
        "exponential",
        M,
        lambda k, n: (-(k - (n / 2 if center is None else center)).abs() / tau).exp(),
        sym,
        dtype,
        device,
        requires_grad,
    )


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the window `exp(-((k - n / 2) / std) ** 2 / 2)`.

    Args:
        M: the number of elements; a window of one is 1.
        std: the standard deviation, above 0.
        sym: whether the window is symmetric, with `n = M - 1`; else it is one period, with `n = M`, as
            Fourier transforms want it.
        dtype: a floating point type, float32 by default.

    Raises:
        ValueError: a `std` that is not positive.

    Example:
        >>> wg.signal.windows.gaussian(3)
        tensor([0.6065, 1.0000, 0.6065])
    """
    if std <= 0:
        raise ValueError(f"gaussian: a positive std expected, got {std}")
    return _window(
        "gaussian",
        M,
        lambda k, n: (-((k - n / 2) / std).square() / 2).exp(),
        sym,
        dtype,
        device,
        requires_grad,
    )


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the alternating sum of `a[i] cos(2 pi i k / n)`, which starts with `a[0]`.

    Args:
        M: the number of elements; a window of one is 1.
        a: the factors.
        sym: whether the window is symmetric, with `n = M - 1`; else it is one period, with `n = M`, as
            Fourier transforms want it.
        dtype: a floating point type, float32 by default.

    Raises:
        TypeError: `a` is no sequence of numbers.
        ValueError: `a` is empty.

    Example:
        >>> wg.signal.windows.general_cosine(3, a=[0.5, 0.5])
        tensor([0., 1., 0.])
    """
    return _window("general_cosine", M, _cosines(a), sym, dtype, device, requires_grad)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the window `alpha - (1 - alpha) cos(2 pi k / n)`.

    Args:
        M: the number of elements; a window of one is 1.
        alpha: the mean of its smallest and largest value; 1/2 is the window of Hann.
        sym: whether the window is symmetric, with `n = M - 1`; else it is one period, with `n = M`, as
            Fourier transforms want it.
        dtype: a floating point type, float32 by default.

    Example:
        >>> wg.signal.windows.general_hamming(3, alpha=0.6)
        tensor([0.2, 1.0, 0.2])
    """
    return _window("general_hamming", M, _cosines((alpha, 1 - alpha)), sym, dtype, device, requires_grad)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the window `i0(beta * sqrt(1 - (2 k / n - 1)^2)) / i0(beta)` (J. F. Kaiser, 1974).

    Args:
        M: the number of elements; a window of one is 1.
        beta: how fast it falls, not negative; 0 is the constant 1.
        sym: whether the window is symmetric, with `n = M - 1`; else it is one period, with `n = M`, as
            Fourier transforms want it.
        dtype: a floating point type, float32 by default.

    Raises:
        ValueError: a negative `beta`.

    Example:
        >>> wg.signal.windows.kaiser(3, beta=2.0)
        tensor([0.4387, 1.0000, 0.4387])
    """
    if beta < 0:
        raise ValueError(f"kaiser: a beta that is not negative expected, got {beta}")
    return _window("kaiser", M, _kaiser(beta), sym, dtype, device, requires_grad)
