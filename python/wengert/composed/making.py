"""New tensors from numbers and arrays."""

from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert._types import DeviceLike, DTypeLike

from ._method import method

__all__ = ["frombuffer", "prelu"]


@method
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Returns `x` where positive, else `weight * x`, with one slope or one per channel (axis 1).

    Example:
        >>> wg.prelu(wg.tensor([-2.0, 3.0]), wg.tensor(0.5))
        tensor([-1.,  3.])
    """
    from wengert.nn.functional import prelu as function

    return function(input, weight)


def frombuffer(
    buffer: Any, *, dtype: DTypeLike, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """Returns the numbers in the memory of an object, which it shares: what changes in one changes in the
    other.

    Args:
        buffer: what has the buffer protocol: `bytes`, `bytearray`, `memoryview`, an `array.array`, a file in
            memory. Memory that must not be written, such as that of `bytes`, is copied.
        dtype: how to read the bytes.
        count: how many numbers; all that the bytes hold for -1.
        offset: how many bytes to skip. Memory that is not aligned to the numbers there is copied.

    Raises:
        ValueError: the bytes are too few, or no whole number of numbers.

    Example:
        >>> wg.frombuffer(bytearray([1, 0, 2, 0]), dtype=wg.int16)
        tensor([1, 2], dtype=int16)
    """
    import numpy as np

    kind = _core.empty(0, dtype=dtype).dtype
    data = memoryview(buffer).cast("B")
    left, size = len(data) - offset, kind.itemsize
    if not 0 <= offset <= len(data):
        raise ValueError(
            f"frombuffer: offset must lie between 0 and {len(data)}, the bytes there are, got {offset}"
        )
    if count < 0 and left % size:
        raise ValueError(f"frombuffer: {left} bytes are no whole number of {kind.name}, which has {size}")
    many = left // size if count < 0 else count
    if many * size > left:
        raise ValueError(f"frombuffer: {count} numbers of {size} bytes expected, got {left} bytes")
    raw = np.frombuffer(data, np.uint8, many * size, offset)
    if kind == _core.bool:
        out = _core.from_numpy(raw.view(np.bool_) if raw.max(initial=0) <= 1 else raw != 0)
    else:
        aligned = raw.flags.writeable and raw.ctypes.data % size == 0
        out = _core.from_numpy(raw if aligned else raw.copy()).view(kind)
    return out.requires_grad_() if requires_grad else out


def range(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the numbers `start`, `start + step`, ... up to `end`, which is included.

    PyTorch deprecates it for `arange`, whose end is left out, as in Python. Given as `wengert.range` alone; a
    star import leaves Python's own in place.

    Args:
        start: the first number; with one argument the end, and the start is 0.
        end: the last number, if it is a whole number of steps away.
        step: the distance; negative to count down.
        dtype: the default dtype if left out.

    Raises:
        ValueError: a step of 0, or one that leads away from the end.

    Example:
        >>> wg.range(1, 4)
        tensor([1., 2., 3., 4.])
    """
    start, end = (0, start) if end is None else (start, end)
    if step == 0 or (end - start) / step < 0:
        raise ValueError(f"range: a step that leads from {start} to {end} expected, got {step}")
    count = int((end - start) / step) + 1
    kind = _core.get_default_dtype() if dtype is None else dtype
    out = (_core.arange(0, count, dtype=_core.float64) * step + start).to(kind)
    out = out if device is None else out.to(device)
    return out.requires_grad_() if requires_grad else out
