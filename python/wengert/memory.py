"""Host memory: what tensors hold, what is kept for reuse, and how many tape entries there are."""

from wengert import _core

__all__ = [
    "cached_bytes",
    "empty_cache",
    "live_bytes",
    "live_nodes",
    "peak_bytes",
    "reset_peak",
    "stats",
]


def stats() -> dict[str, int]:
    """All numbers of this module in one dictionary."""
    return _core._memory_stats()


def live_bytes() -> int:
    """Bytes of host memory that tensors hold."""
    return _core._memory_stats()["live_bytes"]


def peak_bytes() -> int:
    """The most bytes that tensors held at once, since the start or the last `reset_peak`."""
    return _core._memory_stats()["peak_bytes"]


def reset_peak() -> None:
    """Begins the search for the peak anew, at what tensors hold now."""
    _core._reset_peak()


def live_nodes() -> int:
    """Entries of the tape that exist: recorded operations, and leaves that require a gradient."""
    return _core._memory_stats()["live_nodes"]


def cached_bytes() -> int:
    """Bytes of host memory kept for reuse."""
    return _core._memory_stats()["cached_bytes"]


def empty_cache() -> None:
    """Gives memory that is kept for reuse back to the system."""
    _core._empty_cache()
