"""Switches of CUDA, which is not here: they can be set, and change nothing."""

from types import SimpleNamespace

__all__ = ["is_built", "matmul"]

#: Its switches `allow_tf32` and `allow_fp16_reduced_precision_reduction` change nothing.
matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=False)


def is_built() -> bool:
    """Tells whether this library was built with CUDA: False.

    Example:
        >>> wg.backends.cuda.is_built()
        False
    """
    return False


def __dir__() -> list[str]:
    """What is public."""
    return __all__
