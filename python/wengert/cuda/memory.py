"""The memory of GPUs as programs for PyTorch ask for it; all is 0 where none is called `cuda`."""

from typing import Any

from wengert import gpu

from .places import index_of, is_available, there

__all__ = [
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
]
__dir__ = __all__.copy


def _memory(name: str, what: str, device: Any) -> int:
    index = index_of(name, device) if is_available() or device is not None else 0
    return gpu.memory_stats(index)[what] if is_available() else 0


def memory_allocated(device: Any = None) -> int:
    """Returns the bytes that tensors hold on the GPU of this device or number.

    Example:
        >>> wg.cuda.memory_allocated()
        0
    """
    return _memory("memory_allocated", "live_bytes", device)


def max_memory_allocated(device: Any = None) -> int:
    """Returns the most bytes that tensors held on the GPU.

    Example:
        >>> wg.cuda.max_memory_allocated()
        0
    """
    return _memory("max_memory_allocated", "peak_bytes", device)


def memory_reserved(device: Any = None) -> int:
    """Returns the bytes that tensors hold on the GPU and those that are kept for reuse.

    Example:
        >>> wg.cuda.memory_reserved()
        0
    """
    held, kept = (_memory("memory_reserved", what, device) for what in ("live_bytes", "cached_bytes"))
    return held + kept


def max_memory_reserved(device: Any = None) -> int:
    """Returns the most bytes that tensors held on the GPU, or those of `memory_reserved` if these are more.

    Example:
        >>> wg.cuda.max_memory_reserved()
        0
    """
    return max(max_memory_allocated(device), memory_reserved(device))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begins the search for the most bytes anew.

    Example:
        >>> wg.cuda.reset_peak_memory_stats()
    """
    if is_available():
        gpu.reset_peak(index_of("reset_peak_memory_stats", device))


#: Older names of the same.
reset_max_memory_allocated, memory_cached = reset_peak_memory_stats, memory_reserved


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Does nothing: what was counted since the start goes on.

    Example:
        >>> wg.cuda.reset_accumulated_memory_stats()
    """


def memory_stats(device: Any = None) -> dict[str, int]:
    """Returns bytes by PyTorch's names: those held now and at most, and those held or kept for reuse.

    Example:
        >>> wg.cuda.memory_stats()["allocated_bytes.all.current"]
        0
    """
    return {
        "allocated_bytes.all.current": memory_allocated(device),
        "allocated_bytes.all.peak": max_memory_allocated(device),
        "reserved_bytes.all.current": memory_reserved(device),
        "reserved_bytes.all.peak": max_memory_reserved(device),
    }


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Returns lines that tell the bytes held, held at most, and kept for reuse.

    Args:
        device: a device or its number, the first by default.
        abbreviated: accepted.

    Example:
        >>> print(wg.cuda.memory_summary().splitlines()[0])
        held by tensors: 0 bytes (at most 0)
    """
    held, most = memory_allocated(device), max_memory_allocated(device)
    kept = memory_reserved(device) - held
    return f"held by tensors: {held} bytes (at most {most})\nkept for reuse: {kept} bytes\n"


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Raises, with or without a GPU: no driver tells here how much memory there is.

    Raises:
        DeviceError: there is no GPU.
        NotImplementedError: the library that drives it does not tell.

    Example:
        >>> try:
        ...     wg.cuda.mem_get_info()
        ... except (wg.DeviceError, NotImplementedError) as error:
        ...     print(str(error).split(":")[0])
        cuda.mem_get_info
    """
    there("mem_get_info", device)
    raise NotImplementedError(
        "cuda.mem_get_info: drivers do not tell here how much memory a GPU has; cuda.memory_allocated() "
        "tells what tensors hold"
    )
