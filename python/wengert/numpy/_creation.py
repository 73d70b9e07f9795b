"""New tensors, with the standard's parameters."""

from typing import Any

import numpy as np

from wengert import _core
from wengert._arguments import is_beyond_int64, operand
from wengert._core import Tensor
from wengert._functions import meshgrid as _meshgrid

from ._dtypes import DTYPES, default_float
from ._elementwise import alike

__all__ = [
    "arange",
    "array",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def asarray(obj: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Returns a tensor, array, number or nested list of numbers as a tensor.

    Args:
        copy: `True` always copies, `False` never does, `None` only where it must.

    Raises:
        ValueError: `copy=False`, and a copy is necessary.
    """
    if copy:
        made = _core.as_tensor(obj, dtype, device)
        return made.clone() if isinstance(obj, Tensor) else _core.as_tensor(obj, dtype, device, copy=True)
    made = _core.as_tensor(obj, dtype, device)
    if copy is False and made is not obj and not _shares(made, obj):
        raise ValueError(
            f"asarray: a tensor without a copy of this {type(obj).__name__} is impossible; pass copy=None, "
            f"or an array of dtype {made.dtype.name} on {made.device}"
        )
    return made


def array(object: Any, dtype: Any = None, *, copy: bool = True, ndmin: int = 0) -> Tensor:
    """Returns a tensor, array, number or nested list of them as a tensor with memory of its own.

    Args:
        copy: `False` shares memory where it can.
        ndmin: the least number of axes; those that are missing come first.
    """
    made = asarray(object, dtype, copy=copy or None)
    return made.reshape((1,) * (ndmin - made.ndim) + tuple(made.shape)) if made.ndim < ndmin else made


def _shares(made: Tensor, obj: Any) -> bool:
    """Whether a tensor was made over the memory of an object."""
    if isinstance(obj, Tensor):
        return made.dtype == obj.dtype and made.device == obj.device
    return made.device == "cpu" and hasattr(obj, "__array__") and _address(np.asarray(obj)) == made.data_ptr()


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def arange(
    start: float, stop: float | None = None, step: float = 1, dtype: Any = None, *, device: Any = None
) -> Tensor:
    """Returns `start, start + step, …` up to but without `stop`; `0, 1, …` up to `start` where only that is
    given.
    """
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step < 0:
        # Of steps that lead away from the end there are none.
        stop = start
    return _core.arange(start, stop, step, dtype=dtype, device=device)


def empty(shape: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Returns a tensor whose values do not matter yet (they are 0)."""
    return _core.empty(shape, dtype=dtype, device=device)


def zeros(shape: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Returns a tensor of zeros."""
    return _core.zeros(shape, dtype=dtype, device=device)


def ones(shape: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Returns a tensor of ones."""
    return _core.ones(shape, dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Returns a tensor filled with a number, whose kind decides the dtype where none is given, or with the
    elements of a tensor or array that broadcasts.
    """
    if not isinstance(fill_value, (bool, int, float, complex)):
        return asarray(fill_value, dtype, device=device).broadcast_to(shape).clone()
    if is_beyond_int64(fill_value):
        return _core.tensor(fill_value, dtype=dtype or DTYPES["uint64"], device=device).expand(shape).clone()
    return _core.full(shape, fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Returns a tensor of the shape, dtype and device of `x` whose values do not matter yet (they are 0)."""
    return _core.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Returns zeros of the shape, dtype and device of `x`."""
    return _core.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Returns ones of the shape, dtype and device of `x`."""
    return _core.ones_like(x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Returns a tensor of the shape, dtype and device of `x`, filled with a number."""
    if is_beyond_int64(fill_value):
        return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)
    return _core.full_like(x, fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: Any = None, *, device: Any = None
) -> Tensor:
    """Returns a matrix with ones on its `k`-th diagonal (above the main one if positive), zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    if k == 0:
        return _core.eye(n_rows, n_cols, dtype=dtype, device=device)
    rows = _core.arange(n_rows, dtype=DTYPES["int32"], device=device)
    columns = _core.arange(n_cols, dtype=DTYPES["int32"], device=device)
    k = max(-n_rows, min(k, n_cols))  # beyond the corners all diagonals are empty
    return (rows.unsqueeze(1) + k == columns).to(default_float() if dtype is None else dtype)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Returns `num` numbers, evenly spaced, from `start` to `stop`, which `endpoint=False` leaves out.

    Args:
        start, stop: numbers, or tensors that broadcast; the numbers between them lie along a new axis, and
            are functions of them.
        retstep: returns the pair of the numbers and the distance between them.
        axis: where the new axis is.
    """
    count = num if endpoint else num + 1
    if any(isinstance(x, (Tensor, np.ndarray, list, tuple)) for x in (start, stop)):
        first, last = alike("linspace", start, stop)
        step = last - first
        ramp = _core.linspace(0, 1, count, dtype=(step / 1).dtype, device=device or step.device).reshape(
            [-1] + [1] * step.ndim
        )
        # From the nearer end, so that both are met exactly.
        made = _core.where(ramp < 0.5, first + step * ramp, last - step * (1 - ramp))
        made = made if dtype is None else made.to(dtype)
    else:
        made = _core.linspace(start, stop, count, dtype=dtype, device=device)
    made = made.narrow(0, 0, num).moveaxis(0, axis)
    return (made, (stop - start) / max(count - 1, 1)) if retstep else made


def meshgrid(*arrays: Any, indexing: str = "xy", sparse: bool = False) -> list[Tensor]:
    """Returns the coordinates of a grid: tensor `i` holds the `i`-th coordinate of every point.

    Args:
        arrays: the coordinates along each axis, vectors of one dtype.
        indexing: `"xy"` exchanges the first two axes, `"ij"` does not.
        sparse: leaves axes along which nothing changes at length 1.
    """
    grid = _meshgrid(*arrays, indexing=indexing)
    if not sparse:
        return list(grid)
    order = [1, 0, *range(2, len(grid))] if indexing == "xy" and len(grid) > 1 else range(len(grid))
    return [
        operand("meshgrid", x).reshape([-1 if k == own else 1 for k in range(len(grid))])
        for x, own in zip(arrays, order)
    ]


def tril(x: Tensor, /, k: int = 0) -> Tensor:
    """Returns the lower triangle of the last two axes, zero above the `k`-th diagonal."""
    return operand("tril", x).tril(k)


def triu(x: Tensor, /, k: int = 0) -> Tensor:
    """Returns the upper triangle of the last two axes, zero below the `k`-th diagonal."""
    return operand("triu", x).triu(k)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Returns a tensor over the memory of an array of another library, by the DLPack protocol.

    Args:
        device: where the tensor is to lie; where the memory is, by default.
        copy: `True` always copies, `False` never does, `None` only where it must.

    Raises:
        BufferError: memory that is not on the host.
        ValueError: `copy=False`, and the tensor is to lie elsewhere.
    """
    made = _core.from_dlpack(x)
    there = made.device if device is None else _core.device(str(device))
    if there != made.device:
        if copy is False:
            raise ValueError(
                f"from_dlpack: memory on {made.device} cannot be on {there} without a copy; pass copy=None"
            )
        return made.to(there)
    return made.clone() if copy else made
