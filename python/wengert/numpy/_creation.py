"""New tensors, with the standard's parameters."""

from typing import Any

import numpy as np

from wengert import _core
from wengert._arguments import is_beyond_int64
from wengert._core import Tensor
from wengert._functions import meshgrid as _meshgrid

from ._dtypes import DTYPES

__all__ = [
    "arange",
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


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
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


def _shares(made: Tensor, obj: Any) -> bool:
    """Whether a tensor was made over the memory of an object."""
    if isinstance(obj, Tensor):
        return made.dtype == obj.dtype and made.device == obj.device
    return made.device == "cpu" and hasattr(obj, "__array__") and _address(np.asarray(obj)) == made.data_ptr()


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: Any = None
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


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Returns a tensor whose values do not matter yet (they are 0)."""
    return _core.empty(shape, dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Returns a tensor of zeros."""
    return _core.zeros(shape, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Returns a tensor of ones."""
    return _core.ones(shape, dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Returns a tensor filled with a number, whose kind decides the dtype where none is given."""
    if is_beyond_int64(fill_value):
        return _core.tensor(fill_value, dtype=dtype or DTYPES["uint64"], device=device).expand(shape).clone()
    return _core.full(shape, fill_value, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Returns a tensor of the shape, dtype and device of `x` whose values do not matter yet (they are 0)."""
    return _core.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Returns zeros of the shape, dtype and device of `x`."""
    return _core.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Returns ones of the shape, dtype and device of `x`."""
    return _core.ones_like(x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Returns a tensor of the shape, dtype and device of `x`, filled with a number."""
    if is_beyond_int64(fill_value):
        return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)
    return _core.full_like(x, fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    """Returns a matrix with ones on its `k`-th diagonal (above the main one if positive), zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    if k == 0:
        return _core.eye(n_rows, n_cols, dtype=dtype, device=device)
    rows = _core.arange(n_rows, dtype=DTYPES["int32"], device=device)
    columns = _core.arange(n_cols, dtype=DTYPES["int32"], device=device)
    k = max(-n_rows, min(k, n_cols))  # beyond the corners all diagonals are empty
    return (rows.unsqueeze(1) + k == columns).to(DTYPES["float32"] if dtype is None else dtype)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """Returns `num` numbers, evenly spaced, from `start` to `stop`, which `endpoint=False` leaves out."""
    made = _core.linspace(start, stop, num if endpoint else num + 1, dtype=dtype, device=device)
    return made if endpoint else made.narrow(0, 0, num)


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Tensor]:
    """Returns the coordinates of a grid: tensor `i` holds the `i`-th coordinate of every point.

    Args:
        arrays: the coordinates along each axis, vectors of one dtype.
        indexing: `"xy"` exchanges the first two axes, `"ij"` does not.
    """
    return list(_meshgrid(*arrays, indexing=indexing))


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Returns the lower triangle of the last two axes, zero above the `k`-th diagonal."""
    return x.tril(k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Returns the upper triangle of the last two axes, zero below the `k`-th diagonal."""
    return x.triu(k)


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
