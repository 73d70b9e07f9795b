"""Which way attention is computed, as programs for PyTorch choose it: there is one way here, for all of
them."""

import enum
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["SDPBackend", "sdpa_kernel"]
__dir__ = __all__.copy


class SDPBackend(enum.Enum):
    """The ways that PyTorch has. The one here keeps no matrix of all scores, and serves every kind of mask.

    Example:
        >>> wg.nn.attention.SDPBackend.MATH.name
        'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Accepts a choice of `SDPBackend` for a block, or several; results are those of
    `scaled_dot_product_attention` whatever it says.

    Args:
        backends: one of `SDPBackend`, or a list of them.
        set_priority: accepted.

    Raises:
        TypeError: for anything else.
        ValueError: for an empty list.

    Example:
        >>> from wengert.nn.attention import SDPBackend, sdpa_kernel
        >>> q = wg.ones(1, 4, 8)
        >>> with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        ...     wg.nn.functional.scaled_dot_product_attention(q, q, q).shape
        (1, 4, 8)
    """
    chosen = (
        list(backends) if isinstance(backends, Iterable) and not isinstance(backends, str) else [backends]
    )
    if not chosen:
        raise ValueError("sdpa_kernel: at least one of SDPBackend expected, got an empty list")
    for backend in chosen:
        if not isinstance(backend, SDPBackend):
            raise TypeError(
                f"sdpa_kernel: members of SDPBackend, such as SDPBackend.MATH, expected, got {backend!r}"
            )
    yield
