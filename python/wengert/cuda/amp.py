"""Mixed precision under its older name: `wengert.amp`, for the device that a program calls `cuda`."""

from wengert.amp import GradScaler, autocast

__all__ = ["GradScaler", "autocast"]


def __dir__() -> list[str]:
    """What is public."""
    return __all__
