"""Host memory: what tensors hold, and what is kept for reuse."""

from wengert import _core

__all__ = ["cached_bytes", "empty_cache", "live_bytes", "stats"]


def stats() -> dict[str, int]:
    """`live_bytes` that tensors hold, and `cached_bytes` kept for reuse."""
    return _core._memory_stats()


def live_bytes() -> int:
    """Bytes of host memory that tensors hold."""
    return _core._memory_stats()["live_bytes"]


def cached_bytes() -> int:
    """Bytes of host memory kept for reuse."""
    return _core._memory_stats()["cached_bytes"]


def empty_cache() -> None:
    """Gives memory that is kept for reuse back to the system."""
    _core._empty_cache()
