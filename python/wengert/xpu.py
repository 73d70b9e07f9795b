"""What programs ask of `torch.xpu` to choose a device: there is none of that name here. GPUs are in `wengert.gpu`."""

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "synchronize"]

from wengert.cuda import device_count, empty_cache, is_available, manual_seed, synchronize


def __dir__() -> list[str]:
    """What is public."""
    return __all__
