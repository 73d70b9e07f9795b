"""Host memory: what tensors hold, what is kept for reuse, and how many tape entries there are."""

from wengert import _core

__all__ = [
    "cached_bytes",
    "empty_cache",
    "live_bytes",
    "live_nodes",
    "peak_bytes",
    "reset_peak",
    "set_cache_limit",
    "stats",
]


def stats() -> dict[str, int]:
    """Returns all numbers of this module in one dictionary, and where memory came from.

    `fresh_allocations` counts blocks that the system gave, `reused_allocations` those that had been kept for
    reuse. In a steady loop of training only the second grows.

    Example:
        >>> wg.memory.stats()["live_bytes"] >= 0
        True
    """
    return _core._memory_stats()


def live_bytes() -> int:
    """Returns the bytes of host memory that tensors hold.

    Example:
        >>> before = wg.memory.live_bytes()
        >>> x = wg.zeros(1024)
        >>> wg.memory.live_bytes() - before
        4096
    """
    return _core._memory_stats()["live_bytes"]


def peak_bytes() -> int:
    """Returns the most bytes that tensors held at once, since the start or the last `reset_peak`.

    Example:
        >>> wg.memory.reset_peak()
        >>> before = wg.memory.live_bytes()
        >>> wg.memory.peak_bytes() >= before
        True
    """
    return _core._memory_stats()["peak_bytes"]


def reset_peak() -> None:
    """Begins the search for the peak anew, at what tensors hold now.

    Example:
        >>> wg.memory.reset_peak()
        >>> wg.memory.peak_bytes() >= wg.memory.live_bytes()
        True
    """
    _core._reset_peak()


def live_nodes() -> int:
    """Returns the number of entries of the tape that exist: recorded operations, and leaves that require a
    gradient.

    Example:
        >>> before = wg.memory.live_nodes()
        >>> x = wg.ones(2, requires_grad=True)
        >>> y = x * x
        >>> wg.memory.live_nodes() - before
        2
    """
    return _core._memory_stats()["live_nodes"]


def cached_bytes() -> int:
    """Returns the bytes of host memory kept for reuse.

    Example:
        >>> wg.memory.cached_bytes() >= 0
        True
    """
    return _core._memory_stats()["cached_bytes"]


def empty_cache() -> None:
    """Gives memory that is kept for reuse back to the system,
    by this library and by the C library under it.

    Example:
        >>> wg.memory.empty_cache()
        >>> wg.memory.cached_bytes()
        0
    """
    _core._empty_cache()


def set_cache_limit(bytes: int) -> None:
    """Keeps at most so many bytes of large blocks for reuse, 1 GiB unless told otherwise; gives back what
    there is.

    Example:
        >>> wg.memory.set_cache_limit(1 << 30)
    """
    if bytes < 0:
        raise ValueError(f"set_cache_limit: a number of bytes was expected, got {bytes}; 0 keeps nothing")
    _core._set_cache_limit(bytes)
