"""Which GPU a program means that says `cuda`."""

from typing import Any

from wengert import _core, gpu

__all__ = ["index_of", "is_available", "there"]
__dir__ = __all__.copy


def is_available() -> bool:
    """Tells whether there is a GPU that programs call `cuda`: False, unless `WENGERT_CUDA=gpu` is set.

    Example:
        >>> "cuda" if wg.cuda.is_available() else "cpu"
        'cpu'
    """
    return _core._is_cuda_gpu() and gpu.is_available()


def index_of(name: str, device: Any) -> int:
    """The number of a GPU; `device` is its number, a device or the name of one, or None for the first."""
    if isinstance(device, int):
        return device
    place = _core.device("cuda" if device is None else device)
    if place.index is None:
        raise ValueError(f"cuda.{name}: the device of a GPU expected, got {place}")
    return place.index


def there(name: str, device: Any) -> int:
    """The number of a GPU that is there."""
    if not is_available():
        raise _core.DeviceError(
            f"cuda.{name}: no GPU is called cuda here, and cuda.is_available() says so; GPUs are in "
            "wengert.gpu, their device is 'gpu', and WENGERT_CUDA=gpu in the environment calls them cuda"
        )
    index = index_of(name, device)
    if not 0 <= index < gpu.device_count():
        raise _core.DeviceError(f"cuda.{name}: GPU {index} of {gpu.device_count()}")
    return index
