"""The frequencies that the elements of a transform belong to, and their order."""

from typing import Any

from wengert import _core
from wengert._arguments import operand
from wengert._core import Tensor

from ._pairs import checked

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _over(numbers: Tensor, length: float, dtype: Any, device: Any) -> Tensor:
    like = _core.empty(0, dtype=dtype, device=device)
    return (numbers / length).to(like.dtype).to(like.device)


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Returns the frequencies of `fft` for `n` samples at distances `d`: `0, 1, …, -2, -1` over `n * d`.

    Example:
        >>> wg.fft.fftfreq(4)
        tensor([ 0.00,  0.25, -0.50, -0.25])
    """
    checked("fftfreq", n)
    numbers = _core.arange(0, n, dtype=_core.float64, device="cpu")
    return _over(numbers - n * (numbers >= (n + 1) // 2), n * d, dtype, device)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Returns the frequencies of `rfft` for `n` samples at distances `d`: `0, 1, …, n // 2` over `n * d`.

    Example:
        >>> wg.fft.rfftfreq(4)
        tensor([0.00, 0.25, 0.50])
    """
    checked("rfftfreq", n)
    return _over(_core.arange(0, n // 2 + 1, dtype=_core.float64, device="cpu"), n * d, dtype, device)


def _shifted(name: str, x: Any, dim: Any, back: bool) -> Tensor:
    x = operand(name, x)
    out = x
    dims = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    for axis in dims:
        n = x.shape[axis]
        out = out.roll((n + 1) // 2 if back else n // 2, axis)
    return x.clone() if out is x else out


def fftshift(input: Any, dim: Any = None, *, axes: Any = None) -> Tensor:
    """Moves frequency zero to the middle of the axes `dim`, of all by default.

    Example:
        >>> wg.fft.fftshift(wg.tensor([0, 1, -2, -1]))
        tensor([-2, -1,  0,  1])
    """
    return _shifted("fftshift", input, dim if axes is None else axes, False)


def ifftshift(input: Any, dim: Any = None, *, axes: Any = None) -> Tensor:
    """Undoes `fftshift`.

    Example:
        >>> wg.fft.ifftshift(wg.tensor([-2, -1, 0, 1]))
        tensor([ 0,  1, -2, -1])
    """
    return _shifted("ifftshift", input, dim if axes is None else axes, True)
