"""The GPUs of this machine, through WGSL: Vulkan, Metal and DirectX 12 alike.

Nothing here touches a GPU before it is called. A software adapter counts as a GPU only where the environment
variable `WENGERT_GPU=software` says so, or where a program names the device `gpu` and there is no other.
"""

from typing import TYPE_CHECKING, Any

from wengert import _core
from wengert._gpu_kernel import Kernel, kernel

__all__ = [
    "Kernel",
    "KernelTime",
    "Launch",
    "Profile",
    "adapters",
    "ceilings",
    "device_count",
    "empty_cache",
    "info",
    "is_available",
    "kernel",
    "memory_stats",
    "profile",
    "reset",
    "reset_peak",
    "synchronize",
]
__dir__ = __all__.copy


def is_available() -> bool:
    """Tells whether there is a GPU; never raises.

    Example:
        >>> wg.gpu.is_available() == (wg.gpu.device_count() > 0)
        True
    """
    return _core._gpu_is_available()


def device_count() -> int:
    """Returns how many GPUs there are: `gpu:0` to `gpu:{n - 1}`.

    Example:
        >>> wg.gpu.device_count() >= 0
        True
    """
    return _core._gpu_device_count()


def adapters() -> list[str]:
    """Returns the adapters that `gpu:0`, `gpu:1`, … stand for, a line each; opens none, never raises.

    A software adapter is listed where there is no hardware. `is_available()` and `device_count()` do not
    count it unless the environment variable `WENGERT_GPU=software` asks for it.

    Example:
        >>> isinstance(wg.gpu.adapters(), list)
        True
    """
    return _core._gpu_adapters()


def info(index: int = 0) -> dict[str, Any]:
    """Tells what a GPU is and can do.

    Returns:
        - `adapter`, `backend`, `driver` (name and version), `device_type` (discrete, integrated, virtual,
          software or other);
        - `vendor_id`, `device_id`: the numbers by which drivers know it;
        - `subgroups`: whether shaders may use subgroups; `subgroup_size`: the smallest and the largest;
        - `cooperative_matrices`: the products of small matrices that its hardware offers, each as
          `([rows, columns, terms], [dtype of the factors, dtype of the sum])`;
        - `timestamps`: whether it can time kernels, as `gpu.profile` does; `timestamp_period`: nanoseconds
          of a tick of that clock, or None;
        - `float16`: whether shaders may compute in float16 (tensors of float16 work on every adapter);
          `float16_products`: how products of float16 are multiplied, and why not faster;
        - `features`: the optional features in use; `limits`: the limits that kernels depend on.

    Raises:
        DeviceError: if there is no such GPU.
    """
    return _core._gpu_info(index)


def synchronize(index: int = 0) -> None:
    """Waits until the GPU has done all that was queued; for timing."""
    _core._gpu_synchronize(index)


def memory_stats(index: int = 0) -> dict[str, int]:
    """Returns the bytes held, kept for reuse and held at most so far; buffers, pipelines, dispatches and
    submissions so far; the most pipelines that were compiled at once.
    """
    return _core._gpu_memory_stats(index)


def reset(index: int = 0) -> None:
    """Closes the GPU, also one that its driver has lost; the next use opens it anew.

    Its tensors are gone: whatever uses one of them raises a DeviceError, as everything does between the loss
    of a device and `reset`. Load parameters again, from a file or from copies on the CPU.

    Args:
        index: the number of the GPU.

    Raises:
        DeviceError: if there is no such GPU, or if a parent process opened it.

    Example:
        >>> if wg.gpu.is_available():
        ...     x = wg.ones(2).to("gpu")
        ...     wg.gpu.reset()
        ...     try:
        ...         x.tolist()
        ...     except wg.DeviceError as error:
        ...         assert "before wengert.gpu.reset(0)" in str(error)
        ...     assert wg.ones(2).to("gpu").tolist() == [1.0, 1.0]
    """
    _core._gpu_reset(index)


def reset_peak(index: int = 0) -> None:
    """Makes `memory_stats()["peak_bytes"]` the most bytes that are held from now on.

    Args:
        index: the number of the GPU.

    Raises:
        DeviceError: if there is no such GPU.

    Example:
        >>> wg.gpu.reset_peak() if wg.gpu.is_available() else None
    """
    _core._gpu_reset_peak(index)


def empty_cache(index: int = 0) -> None:
    """Gives memory that is kept for reuse back to the driver."""
    _core._gpu_empty_cache(index)


# Profiles are imported when a program first times kernels.
if TYPE_CHECKING:
    from wengert._gpu_profile import (
        KernelTime as KernelTime,
        Launch as Launch,
        Profile as Profile,
        ceilings as ceilings,
        profile as profile,
    )
else:

    def __getattr__(name):
        """Imports what times kernels."""
        if name in ("KernelTime", "Launch", "Profile", "ceilings", "profile"):
            from wengert import _gpu_profile

            return getattr(_gpu_profile, name)
        raise AttributeError(f"module 'wengert.gpu' has no attribute '{name}'")
