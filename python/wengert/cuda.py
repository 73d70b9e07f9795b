"""What programs ask of `torch.cuda` where there is no card of that kind, so that they run on the CPU unchanged.

There is no CUDA here: `is_available()` is False, memory is 0, seeds are those of the one stream of random numbers. GPUs
of every maker are in `wengert.gpu`, and their device is `"gpu"`.
"""

from typing import Any, NoReturn

from wengert import _core, amp as amp, gpu

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_device",
    "synchronize",
]


def is_available() -> bool:
    """Tells whether there is CUDA: False. `wengert.gpu.is_available()` tells of GPUs.

    Example:
        >>> "cuda" if wg.cuda.is_available() else "cpu"
        'cpu'
    """
    return False


def is_initialized() -> bool:
    """Tells whether CUDA was used: False.

    Example:
        >>> wg.cuda.is_initialized()
        False
    """
    return False


def is_bf16_supported() -> bool:
    """Tells whether a card computes in bfloat16: False, there is none.

    Example:
        >>> wg.cuda.is_bf16_supported()
        False
    """
    return False


def device_count() -> int:
    """Returns the number of CUDA devices: 0. `wengert.gpu.device_count()` counts GPUs.

    Example:
        >>> wg.cuda.device_count()
        0
    """
    return 0


def init() -> None:
    """Does nothing; nothing has to be prepared.

    Example:
        >>> wg.cuda.init()
    """


def empty_cache() -> None:
    """Gives memory that a GPU keeps for reuse back to its driver, if one was used.

    Example:
        >>> wg.cuda.empty_cache()
    """
    if gpu.is_available():
        gpu.empty_cache()


def synchronize(device: Any = None) -> None:
    """Waits for the GPU, if there is one; `device` is looked at by no one.

    Example:
        >>> wg.cuda.synchronize()
    """
    if gpu.is_available():
        gpu.synchronize()


def manual_seed(seed: int) -> None:
    """Starts the random stream over, as `wengert.manual_seed`: there is one for all devices.

    Example:
        >>> wg.cuda.manual_seed(0)
    """
    _core.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Starts the random stream over, as `manual_seed`.

    Example:
        >>> wg.cuda.manual_seed_all(0)
    """
    _core.manual_seed(seed)


def memory_allocated(device: Any = None) -> int:
    """Returns the bytes that tensors hold on CUDA devices: 0. `wengert.gpu.memory_stats` tells of GPUs.

    Example:
        >>> wg.cuda.memory_allocated()
        0
    """
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """Returns the most bytes that tensors held on CUDA devices: 0.

    Example:
        >>> wg.cuda.max_memory_allocated()
        0
    """
    return 0


def memory_reserved(device: Any = None) -> int:
    """Returns the bytes kept on CUDA devices: 0.

    Example:
        >>> wg.cuda.memory_reserved()
        0
    """
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """Returns the most bytes kept on CUDA devices: 0.

    Example:
        >>> wg.cuda.max_memory_reserved()
        0
    """
    return 0


def reset_peak_memory_stats(device: Any = None) -> None:
    """Does nothing: the peak is 0.

    Example:
        >>> wg.cuda.reset_peak_memory_stats()
    """


def _absent(name: str) -> NoReturn:
    raise _core.DeviceError(
        f"cuda.{name}: there is no CUDA here, and cuda.is_available() says so; GPUs of every maker are in wengert.gpu, "
        "their device is 'gpu'"
    )


def current_device() -> int:
    """Raises DeviceError: there is no CUDA device.

    Example:
        >>> wg.cuda.current_device() if wg.cuda.is_available() else None
    """
    _absent("current_device")


def set_device(device: Any) -> None:
    """Raises DeviceError: there is no CUDA device.

    Example:
        >>> wg.cuda.set_device(0) if wg.cuda.is_available() else None
    """
    _absent("set_device")


def get_device_name(device: Any = None) -> str:
    """Raises DeviceError: there is no CUDA device; `wengert.gpu.info()` names a GPU.

    Example:
        >>> wg.cuda.get_device_name(0) if wg.cuda.is_available() else None
    """
    _absent("get_device_name")


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Raises DeviceError: there is no CUDA device.

    Example:
        >>> wg.cuda.get_device_capability(0) if wg.cuda.is_available() else None
    """
    _absent("get_device_capability")


def get_device_properties(device: Any = None) -> Any:
    """Raises DeviceError: there is no CUDA device; `wengert.gpu.info()` describes a GPU.

    Example:
        >>> wg.cuda.get_device_properties(0) if wg.cuda.is_available() else None
    """
    _absent("get_device_properties")


def __dir__() -> list[str]:
    """What is public."""
    return __all__
