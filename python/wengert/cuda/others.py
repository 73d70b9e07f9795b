"""What programs ask of `torch.mps` and `torch.xpu`: whether there is a device of that name, of which there is
none. GPUs of every maker are in `wengert.gpu`.
"""

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "synchronize"]
__dir__ = __all__.copy

from wengert.cuda import manual_seed


def is_available() -> bool:
    """Tells whether there is a device of that name: False.

    Example:
        >>> wg.mps.is_available()
        False
    """
    return False


def device_count() -> int:
    """Returns how many there are: 0.

    Example:
        >>> wg.mps.device_count()
        0
    """
    return 0


def empty_cache() -> None:
    """Does nothing.

    Example:
        >>> wg.mps.empty_cache()
    """


def synchronize() -> None:
    """Does nothing.

    Example:
        >>> wg.mps.synchronize()
    """
