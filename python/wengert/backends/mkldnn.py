"""Switches of oneDNN, which is not here: they can be set, and change nothing."""

__all__ = ["enabled", "is_available"]
__dir__ = __all__.copy

enabled = False


def is_available() -> bool:
    """Tells whether it is here: False; kernels of this library's own do that work.

    Example:
        >>> wg.backends.mkldnn.is_available()
        False
    """
    return False
