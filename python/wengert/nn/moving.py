"""What `Module.to` does to one tensor."""

from typing import Any

import wengert as wg
from wengert._core import Tensor
from wengert._places import placed


def destination(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The device and the dtype that the arguments of `Module.to` name, None where they name none."""
    unknown = set(kwargs) - {"device", "dtype", "tensor", "non_blocking", "memory_format"}
    if unknown:
        raise TypeError(
            f"Module.to: unknown keyword {sorted(unknown)[0]!r}; it takes device=, dtype=, tensor=, "
            "non_blocking= and memory_format="
        )
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    for value in (*args, kwargs.get("tensor")):
        if isinstance(value, bool):
            # non_blocking: moves wait for nothing but what they read.
            continue
        if isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, wg.dtype):
            dtype = value
        elif value is not None:
            device = value
    if dtype is not None:
        dtype = wg.empty(0, dtype=dtype, device="cpu").dtype
        if not dtype.is_differentiable:
            raise TypeError(f"Module.to: parameters need a floating point or complex dtype, got {dtype}")
    return device, dtype


def move(x: Tensor, device: Any, dtype: Any) -> Tensor:
    """The tensor there, converted if it is floating point, or complex and stays so;
    itself where nothing changes.
    """
    if dtype is not None and (x.dtype.is_floating_point or (x.is_complex() and not dtype.is_floating_point)):
        x = x.to(dtype)
    return x if device is None else placed(x, device)
