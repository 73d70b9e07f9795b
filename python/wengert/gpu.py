"""The GPUs of this machine, through WGSL: Vulkan, Metal and DirectX 12 alike.

Nothing here touches a GPU before it is called. A software adapter counts as a GPU only where the environment variable
`WENGERT_GPU=software` says so, or where a program names the device `gpu` and there is no other.
"""

from typing import Any

from wengert import _core
from wengert._gpu_kernel import Kernel, kernel

__all__ = [
    "Kernel",
    "adapters",
    "device_count",
    "empty_cache",
    "info",
    "is_available",
    "kernel",
    "memory_stats",
    "synchronize",
]


def is_available() -> bool:
    """Whether there is a GPU; never raises."""
    return _core._gpu_is_available()


def device_count() -> int:
    """How many GPUs there are: `gpu:0` to `gpu:{n - 1}`."""
    return _core._gpu_device_count()


def adapters() -> list[str]:
    """The adapters that `gpu:0`, `gpu:1`, … stand for, a line each; opens none, never raises.

    A software adapter is listed where there is no hardware. `is_available()` and `device_count()` do not
    count it unless the environment variable `WENGERT_GPU=software` asks for it.
    """
    return _core._gpu_adapters()


def info(index: int = 0) -> dict[str, Any]:
    """What a GPU is: adapter, backend, driver, device_type, subgroup_size, features, limits.

    Raises:
        DeviceError: if there is no such GPU.
    """
    return _core._gpu_info(index)


def synchronize(index: int = 0) -> None:
    """Waits until the GPU has done all that was queued; for timing."""
    _core._gpu_synchronize(index)


def memory_stats(index: int = 0) -> dict[str, int]:
    """Bytes held, kept for reuse and held at most so far; buffers, pipelines, dispatches and submissions so far."""
    return _core._gpu_memory_stats(index)


def empty_cache(index: int = 0) -> None:
    """Gives memory that is kept for reuse back to the driver."""
    _core._gpu_empty_cache(index)
