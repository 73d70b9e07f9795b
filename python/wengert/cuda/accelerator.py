"""What programs ask of `torch.accelerator` to choose a device: the GPU where `WENGERT_CUDA=gpu` calls it `cuda`, else
none.
"""

from typing import Any

from wengert import _core
from wengert.cuda import device_count, is_available, synchronize

__all__ = ["current_accelerator", "device_count", "is_available", "synchronize"]


def current_accelerator(check_available: bool = False) -> Any:
    """Returns the device of the accelerator, or None.

    Args:
        check_available: accepted; a device that is not there is never returned.

    Example:
        >>> wg.accelerator.current_accelerator() or "cpu"
        'cpu'
    """
    return _core.device("cuda") if is_available() else None


def __dir__() -> list[str]:
    """What is public."""
    return __all__
