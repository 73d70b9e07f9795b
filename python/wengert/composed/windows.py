"""Windows, which fade out a signal at both ends, computed in float64 and rounded once."""

import math
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert._types import DeviceLike, DTypeLike

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]


def _window(name: str, length: int, periodic: bool, formula: Any, made: dict[str, Any]) -> Tensor:
    """`formula` of `2 pi k / n` and `k / n`, where a periodic window has `n = length`, a symmetric one less by one."""
    if not isinstance(length, int):
        raise TypeError(f"{name}: window_length must be an integer, got {type(length).__name__}")
    if length < 0:
        raise ValueError(f"{name}: window_length must not be negative, got {length}")
    dtype = made["dtype"] or _core.float32
    if not dtype.is_floating_point:
        raise TypeError(f"{name}: a floating point dtype expected, got {dtype}")
    if length < 2:
        out = _core.ones(length, dtype=dtype)
    else:
        steps = length if periodic else length - 1
        part = _core.arange(0, length, dtype=_core.float64) / steps
        out = formula(part * (2 * math.pi), part).to(dtype)
    out = out if made["device"] is None else out.to(made["device"])
    return out.requires_grad_() if made["requires_grad"] else out


def _made(dtype: Any, device: Any, requires_grad: bool) -> dict[str, Any]:
    return {"dtype": dtype, "device": device, "requires_grad": requires_grad}


def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the window `1/2 - cos(2 pi k / n) / 2`; of float32 unless told otherwise.

    Args:
        window_length: the number of elements.
        periodic: `n` is the length, as transforms want it; without, one less, and the window is symmetric.

    Example:
        >>> wg.hann_window(4)
        tensor([0.0, 0.5, 1.0, 0.5])
    """
    return _window(
        "hann_window",
        window_length,
        periodic,
        lambda t, _: 0.5 - 0.5 * t.cos(),
        _made(dtype, device, requires_grad),
    )


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the window `alpha - beta * cos(2 pi k / n)`; see `hann_window`.

    Example:
        >>> wg.hamming_window(4)
        tensor([0.08, 0.54, 1.00, 0.54])
    """
    return _window(
        "hamming_window",
        window_length,
        periodic,
        lambda t, _: alpha - beta * t.cos(),
        _made(dtype, device, requires_grad),
    )


def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the window `0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n)`; see `hann_window`.

    Example:
        >>> wg.blackman_window(4)[1:3]
        tensor([0.34, 1.00])
    """
    return _window(
        "blackman_window",
        window_length,
        periodic,
        lambda t, _: 0.42 - 0.5 * t.cos() + 0.08 * (2 * t).cos(),
        _made(dtype, device, requires_grad),
    )


def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the triangle `1 - abs(2 k / n - 1)`; see `hann_window`.

    Example:
        >>> wg.bartlett_window(4)
        tensor([0.0, 0.5, 1.0, 0.5])
    """
    return _window(
        "bartlett_window",
        window_length,
        periodic,
        lambda _, part: 1.0 - (2.0 * part - 1.0).abs(),
        _made(dtype, device, requires_grad),
    )


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the window `i0(beta * sqrt(1 - (2 k / n - 1)^2)) / i0(beta)`; see `hann_window`.

    Example:
        >>> wg.kaiser_window(4)
        tensor([5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01])
    """
    top = _core.tensor(beta, dtype=_core.float64).abs()

    def formula(_: Tensor, part: Tensor) -> Tensor:
        # Scaled Bessel functions, which do not overflow: i0e(x) is i0(x) exp(-x).
        x = top * (1.0 - (2.0 * part - 1.0).square()).clamp(min=0.0).sqrt()
        return x.i0e() * (x - top).exp() / top.i0e()

    return _window("kaiser_window", window_length, periodic, formula, _made(dtype, device, requires_grad))
