"""Tensors of models and files on devices."""

from typing import Any

from wengert import _core
from wengert._core import Tensor

__all__ = ["placed"]


def placed(x: Tensor, device: Any) -> Tensor:
    """The tensor on a device.

    A counter, which is an integer without axes, stays on the CPU: it meets tensors of any device as a number
    does, and counts without a kernel there.
    """
    device = _core.device(device)
    is_counter = x.ndim == 0 and not (x.dtype.is_differentiable or x.dtype == _core.bool)
    if is_counter and device.type != "cpu" and not x.is_gpu:
        return x
    return x.to(device)
