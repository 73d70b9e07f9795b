"""Mixed precision: matrix products run in a low precision; sums, losses and exponentials in float32."""

from typing import Any

from wengert import _core
from wengert.autograd.modes import Region

__all__ = ["autocast"]


class autocast(Region):
    """Runs operations in the precision that suits each; a context and a decorator.

    Inputs are cast per operation, and the casts are recorded, so each parameter gets a gradient in its own dtype.
    float64 and integers are left alone.

    Args:
        device_type: accepted for PyTorch's sake; the region holds for all devices.
        dtype: bfloat16 (the default) or float16; the latter needs `wengert.amp.GradScaler`.
        enabled: False turns casting off inside an outer region.

    Example:
        >>> with wg.autocast(dtype=wg.bfloat16):
        ...     (wg.ones(2, 2) @ wg.ones(2, 2)).dtype
        wengert.bfloat16
    """

    def __init__(
        self,
        device_type: str | None = None,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        """The region does not begin before `with`."""
        self.device_type = device_type
        self.dtype = _core.bfloat16 if dtype is None else dtype
        self.enabled = enabled
        self._depths: list[int] = []

    def _again(self) -> "autocast":
        return autocast(self.device_type, self.dtype, self.enabled)

    def __enter__(self) -> "autocast":
        """Begins the region."""
        self._depths.append(_core._autocast_enter(self.dtype if self.enabled else None))
        return self

    def __exit__(self, *exc: Any) -> None:
        """Ends the region."""
        _core._autocast_exit(self._depths.pop())
