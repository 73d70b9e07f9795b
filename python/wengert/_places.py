"""Tensors of models and files on devices that lack a type of integers."""

from typing import Any

from wengert import _core
from wengert._core import Tensor

__all__ = ["placed"]

#: The integers that GPUs have; others become int32 there.
_ON_GPU = (_core.int32, _core.uint32)
_LIMIT = 2**31


def placed(x: Tensor, device: Any) -> Tensor:
    """The tensor on a device, whose integers are of a type that the device has.

    On a GPU integers become int32. A counter, which is an integer without axes, stays on the CPU: it meets
    tensors of any device as a number does, and counts beyond 2^31 there.

    Raises:
        ValueError: integers that int32 does not hold.
    """
    device = _core.device(device)
    is_integer = not (x.dtype.is_differentiable or x.dtype in (_core.bool, *_ON_GPU))
    if device.type == "cpu" or x.is_gpu or not is_integer:
        return x.to(device)
    if x.ndim == 0:
        return x
    if x.numel() and not (x.min().item() >= -_LIMIT and x.max().item() < _LIMIT):
        raise ValueError(
            f"a tensor of {x.dtype} and shape {tuple(x.shape)} holds integers that int32 does not, and "
            f"{device} has no others; keep it on the CPU"
        )
    return x.int().to(device)
