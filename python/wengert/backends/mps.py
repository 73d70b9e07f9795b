"""Switches of Metal Performance Shaders, which is not here: they can be set, and change nothing."""

__all__ = ["is_available", "is_built"]
__dir__ = __all__.copy


def is_available() -> bool:
    """Tells whether they are here: False. GPUs of Apple's are in `wengert.gpu`, their device is `"gpu"`.

    Example:
        >>> wg.backends.mps.is_available()
        False
    """
    return False


def is_built() -> bool:
    """Tells whether this library was built with them: False.

    Example:
        >>> wg.backends.mps.is_built()
        False
    """
    return False
