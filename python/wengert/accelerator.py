"""What programs ask of `torch.accelerator` to choose a device. GPUs are in `wengert.gpu`, and their device is `"gpu"`:
a program names it, none is chosen for it.
"""

from typing import Any

__all__ = ["current_accelerator", "device_count", "is_available", "synchronize"]


def is_available() -> bool:
    """Tells whether there is an accelerator that PyTorch has a name for: False.

    Example:
        >>> wg.accelerator.is_available()
        False
    """
    return False


def device_count() -> int:
    """Returns how many there are: 0.

    Example:
        >>> wg.accelerator.device_count()
        0
    """
    return 0


def current_accelerator(check_available: bool = False) -> Any:
    """Returns the device of the accelerator: None.

    Example:
        >>> wg.accelerator.current_accelerator() or "cpu"
        'cpu'
    """
    return None


def synchronize(device: Any = None) -> None:
    """Does nothing; `wengert.gpu.synchronize()` waits for a GPU.

    Example:
        >>> wg.accelerator.synchronize()
    """


def __dir__() -> list[str]:
    """What is public."""
    return __all__
