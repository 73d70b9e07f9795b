"""Mixed precision under its older name: `wengert.amp`, for the device that a program calls `cuda`."""

from wengert.amp import GradScaler, autocast, custom_bwd, custom_fwd

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
__dir__ = __all__.copy
