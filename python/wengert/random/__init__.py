"""The random stream as PyTorch's module of that name has it; the functions are those of `wengert` itself.

`default_generator` is the stream that functions draw from where no `generator=` is given.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wengert._core import (
    Generator,
    _default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]
__dir__ = __all__.copy


default_generator: Generator = _default_generator()


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_: Any) -> Iterator[None]:
    """Puts the random stream back at the end of a block.

    Args:
        devices: accepted; there is one stream for all.
        enabled: False does nothing.

    Example:
        >>> with wg.random.fork_rng():
        ...     x = wg.rand(2)
        >>> bool((wg.rand(2) == x).all())
        True
    """
    before = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(before)
