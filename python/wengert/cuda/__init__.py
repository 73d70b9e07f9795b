"""What programs ask of `torch.cuda`, so that they run unchanged.

GPUs of every maker are in `wengert.gpu`, and their device is `"gpu"`: `is_available()` is False here, memory
is 0, and a program that asks goes to the CPU. With `WENGERT_CUDA=gpu` in the environment, these functions
tell of the GPU, and `"cuda"`, `"cuda:0"` and `.cuda()` mean it.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from wengert import _core, amp, gpu
from wengert._kinds import kind

from . import memory
from .memory import *
from .places import index_of, is_available, there
from .streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "Event",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "Stream",
    "StreamContext",
    "amp",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]
__all__ += memory.__all__
__dir__ = __all__.copy


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
        gpu.synchronize(index_of("synchronize", device))


def manual_seed(seed: int) -> None:
    """Starts the random stream over, as `wengert.manual_seed`: there is one for all devices.

    Example:
        >>> wg.cuda.manual_seed(0)
    """
    _core.manual_seed(seed)


manual_seed_all = manual_seed


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


BFloat16Tensor = kind("BFloat16Tensor", _core.bfloat16, "cuda")
BoolTensor = kind("BoolTensor", _core.bool, "cuda")
ByteTensor = kind("ByteTensor", _core.uint8, "cuda")
CharTensor = kind("CharTensor", _core.int8, "cuda")
DoubleTensor = kind("DoubleTensor", _core.float64, "cuda")
FloatTensor = kind("FloatTensor", _core.float32, "cuda")
HalfTensor = kind("HalfTensor", _core.float16, "cuda")
IntTensor = kind("IntTensor", _core.int32, "cuda")
LongTensor = kind("LongTensor", _core.int64, "cuda")
ShortTensor = kind("ShortTensor", _core.int16, "cuda")


class device:
    """Makes GPU `device` the one that `"cuda"` means in a block: the first one, which it means anyway.

    Args:
        device: a number or a device; None or a negative number changes nothing.

    Raises:
        DeviceError: there is none, or another one is given.

    Example:
        >>> with wg.cuda.device(None):
        ...     print(wg.ones(1))
        tensor([1.])
    """

    def __init__(self, device: Any) -> None:
        """Nothing changes before `with`."""
        there_is = device is not None and not (isinstance(device, int) and device < 0)
        self.idx = there("device", device) if there_is else -1
        if self.idx > 0:
            set_device(self.idx)

    def __enter__(self) -> None:
        """Checks nothing more: tensors say where they lie."""

    def __exit__(self, *exc: Any) -> None:
        """Ends the block."""


class device_of(device):
    """Makes the GPU of a tensor the one of a block, as `device`; one on the CPU changes nothing.

    Args:
        obj: a tensor.

    Example:
        >>> with wg.cuda.device_of(wg.ones(1)):
        ...     print(wg.ones(1))
        tensor([1.])
    """

    def __init__(self, obj: Any) -> None:
        """Nothing changes before `with`."""
        super().__init__(obj.device.index if obj.is_gpu else None)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Tells whether a GPU reads the memory of another: False.

    Args:
        device, peer_device: two GPUs.

    Example:
        >>> wg.cuda.can_device_access_peer(0, 1)
        False
    """
    return False


def get_arch_list() -> list[str]:
    """Returns the kinds of GPUs that CUDA's compiler built for: none.

    Example:
        >>> wg.cuda.get_arch_list()
        []
    """
    return []


def is_current_stream_capturing() -> bool:
    """Tells whether work is being recorded to be run again: False.

    Example:
        >>> wg.cuda.is_current_stream_capturing()
        False
    """
    return False


def seed() -> None:
    """Starts the random stream over at a seed of chance.

    Example:
        >>> wg.cuda.seed()
    """
    _core.seed()


seed_all = seed


def get_rng_state_all() -> list[tuple[int, int]]:
    """Returns the state of the random stream for each GPU; it is one stream.

    Example:
        >>> len(wg.cuda.get_rng_state_all()) == wg.cuda.device_count()
        True
    """
    return [_core.get_rng_state()] * device_count()


def set_rng_state_all(new_states: Iterable[tuple[int, int]]) -> None:
    """Puts the random stream where `get_rng_state_all` found it.

    Args:
        new_states: what that returned.

    Example:
        >>> wg.cuda.set_rng_state_all(wg.cuda.get_rng_state_all())
    """
    for state in new_states:
        _core.set_rng_state(state)


def current_device() -> int:
    """Returns the number of the GPU that `"cuda"` means: 0.

    Raises:
        DeviceError: there is none.

    Example:
        >>> wg.cuda.current_device() if wg.cuda.is_available() else None
    """
    return there("current_device", 0)


def set_device(device: Any) -> None:
    """Accepts the first GPU, which `"cuda"` means.

    Raises:
        DeviceError: there is none, or another one is given; name it where tensors are made.

    Example:
        >>> wg.cuda.set_device(0) if wg.cuda.is_available() else None
    """
    if index := there("set_device", device):
        raise _core.DeviceError(f"cuda.set_device: 'cuda' is GPU 0; write device='cuda:{index}' for this one")


def get_device_name(device: Any = None) -> str:
    """Returns the name of the GPU, as its driver tells it.

    Raises:
        DeviceError: there is none.

    Example:
        >>> wg.cuda.get_device_name(0) if wg.cuda.is_available() else None
    """
    return str(gpu.info(there("get_device_name", device))["adapter"])


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Returns the version of CUDA that the GPU can do: (0, 0), it is driven by wgpu.

    Raises:
        DeviceError: there is none.

    Example:
        >>> wg.cuda.get_device_capability(0) if wg.cuda.is_available() else None
    """
    there("get_device_capability", device)
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
    return DeviceProperties(get_device_name(there("get_device_properties", device)))
