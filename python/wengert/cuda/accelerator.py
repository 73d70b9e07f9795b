"""What programs ask of `torch.accelerator` to choose a device: the GPU where `WENGERT_CUDA=gpu` calls it
`cuda`, else none.
"""

from typing import Any

from wengert import _core
from wengert.cuda import (
    current_stream,
    device_count,
    empty_cache,
    is_available,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
    set_stream,
    synchronize,
)

__all__ = [
    "current_accelerator",
    "current_stream",
    "device_count",
    "empty_cache",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_stream",
    "synchronize",
]
__dir__ = __all__.copy


def current_accelerator(check_available: bool = False) -> Any:
    """Returns the device of the accelerator, or None.

    Args:
        check_available: accepted; a device that is not there is never returned.

    Example:
        >>> wg.accelerator.current_accelerator() or "cpu"
        'cpu'
    """
    return _core.device("cuda") if is_available() else None
