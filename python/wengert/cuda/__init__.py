"""What programs ask of `torch.cuda`, so that they run unchanged.

GPUs of every maker are in `wengert.gpu`, and their device is `"gpu"`: `is_available()` is False here, memory is 0, and
a program that asks goes to the CPU. With `WENGERT_CUDA=gpu` in the environment, these functions tell of the GPU, and
`"cuda"`, `"cuda:0"` and `.cuda()` mean it.
"""

from typing import Any, NamedTuple

from wengert import _core, amp, gpu

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "init",
    "initial_seed",
    "ipc_collect",
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
    "set_rng_state",
    "synchronize",
]


def is_available() -> bool:
    """Tells whether there is a GPU that programs call `cuda`: False, unless `WENGERT_CUDA=gpu` is set.

    Example:
        >>> "cuda" if wg.cuda.is_available() else "cpu"
        'cpu'
    """
    return _core._is_cuda_gpu() and gpu.is_available()


def is_initialized() -> bool:
    """Tells whether GPUs can be used, as `is_available`.

    Example:
        >>> wg.cuda.is_initialized()
        False
    """
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Tells whether GPUs take bfloat16: they do where there are any, and compute it in float32.

    Args:
        including_emulation: whether that counts.

    Example:
        >>> wg.cuda.is_bf16_supported()
        False
    """
    return including_emulation and is_available()


def device_count() -> int:
    """Returns the number of GPUs that programs call `cuda`.

    Example:
        >>> wg.cuda.device_count()
        0
    """
    return gpu.device_count() if is_available() else 0


def init() -> None:
    """Does nothing; nothing has to be prepared.

    Example:
        >>> wg.cuda.init()
    """


def ipc_collect() -> None:
    """Does nothing; processes share no memory of a GPU.

    Example:
        >>> wg.cuda.ipc_collect()
    """


def empty_cache() -> None:
    """Gives memory that the GPU keeps for reuse back to its driver.

    Example:
        >>> wg.cuda.empty_cache()
    """
    if is_available():
        gpu.empty_cache()


def synchronize(device: Any = None) -> None:
    """Waits for the GPU of this device or number, the first by default.

    Example:
        >>> wg.cuda.synchronize()
    """
    if is_available():
        gpu.synchronize(_index("synchronize", device))


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


def initial_seed() -> int:
    """Returns the seed of the random stream, as `wengert.initial_seed`.

    Example:
        >>> wg.cuda.manual_seed(3)
        >>> wg.cuda.initial_seed()
        3
    """
    return _core.initial_seed()


def get_rng_state(device: Any = None) -> tuple[int, int]:
    """Returns seed and position of the random stream, which is one for all devices.

    Example:
        >>> wg.cuda.get_rng_state() == wg.get_rng_state()
        True
    """
    return _core.get_rng_state()


def set_rng_state(new_state: tuple[int, int], device: Any = None) -> None:
    """Puts the random stream where `get_rng_state` found it.

    Example:
        >>> wg.cuda.set_rng_state(wg.cuda.get_rng_state())
    """
    _core.set_rng_state(new_state)


def _memory(name: str, what: str, device: Any) -> int:
    index = _index(name, device) if is_available() or device is not None else 0
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
    """Does nothing: the most bytes are those since the start.

    Example:
        >>> wg.cuda.reset_peak_memory_stats()
    """


def _index(name: str, device: Any) -> int:
    """The number of a GPU; `device` is its number, a device or the name of one, or None for the first."""
    if isinstance(device, int):
        return device
    place = _core.device("cuda" if device is None else device)
    if place.index is None:
        raise ValueError(f"cuda.{name}: the device of a GPU expected, got {place}")
    return place.index


def _there(name: str, device: Any) -> int:
    """The number of a GPU that is there."""
    if not is_available():
        raise _core.DeviceError(
            f"cuda.{name}: no GPU is called cuda here, and cuda.is_available() says so; GPUs are in wengert.gpu, their "
            "device is 'gpu', and WENGERT_CUDA=gpu in the environment calls them cuda"
        )
    index = _index(name, device)
    if not 0 <= index < gpu.device_count():
        raise _core.DeviceError(f"cuda.{name}: GPU {index} of {gpu.device_count()}")
    return index


def current_device() -> int:
    """Returns the number of the GPU that `"cuda"` means: 0.

    Raises:
        DeviceError: there is none.

    Example:
        >>> wg.cuda.current_device() if wg.cuda.is_available() else None
    """
    return _there("current_device", 0)


def set_device(device: Any) -> None:
    """Accepts the first GPU, which `"cuda"` means.

    Raises:
        DeviceError: there is none, or another one is given; name it where tensors are made.

    Example:
        >>> wg.cuda.set_device(0) if wg.cuda.is_available() else None
    """
    if index := _there("set_device", device):
        raise _core.DeviceError(f"cuda.set_device: 'cuda' is GPU 0; write device='cuda:{index}' for this one")


def get_device_name(device: Any = None) -> str:
    """Returns the name of the GPU, as its driver tells it.

    Raises:
        DeviceError: there is none.

    Example:
        >>> wg.cuda.get_device_name(0) if wg.cuda.is_available() else None
    """
    return str(gpu.info(_there("get_device_name", device))["adapter"])


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Returns the version of CUDA that the GPU can do: (0, 0), it is driven by wgpu.

    Raises:
        DeviceError: there is none.

    Example:
        >>> wg.cuda.get_device_capability(0) if wg.cuda.is_available() else None
    """
    _there("get_device_capability", device)
    return 0, 0


class DeviceProperties(NamedTuple):
    """What `get_device_properties` tells: the name, and the version of CUDA that the GPU can do, 0.0."""

    name: str
    major: int = 0
    minor: int = 0


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Describes the GPU; `wengert.gpu.info()` tells more.

    Raises:
        DeviceError: there is none.

    Example:
        >>> wg.cuda.get_device_properties(0) if wg.cuda.is_available() else None
    """
    return DeviceProperties(get_device_name(_there("get_device_properties", device)))


def __dir__() -> list[str]:
    """What is public."""
    return __all__
