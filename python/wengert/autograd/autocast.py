"""Mixed precision: matrix products run in a low precision; sums, losses and exponentials in float32."""

from typing import Any

from wengert import _core
from wengert.autograd.modes import Region

__all__ = ["autocast", "check_device"]


#: Device types of PyTorch that stand for the GPU there.
_FOREIGN = ("cuda", "mps", "xpu")


def check_device(function: str, device_type: Any, parameter: str, other: str) -> None:
    """Raises unless `parameter` of a function names a device type; `other` says how to pass what else it may
    be."""
    if not isinstance(device_type, str):
        raise TypeError(
            f"{function}: {parameter} is a string, got {type(device_type).__name__}; pass {other}"
        )
    if device_type.split(":")[0] not in ("cpu", "gpu", *_FOREIGN):
        raise ValueError(
            f"{function}: {device_type!r} is not a device; expected 'cpu' or 'gpu', or nothing at all"
        )


class autocast(Region):
    """Runs operations in the precision that suits each; a context and a decorator.

    Inputs are cast per operation, and the casts are recorded, so each parameter gets a gradient in its own
    dtype. float64 and integers are left alone.

    Args:
        device_type: a device, or one of PyTorch's names of them; the region holds for all devices.
        dtype: bfloat16 (the default) or float16; the latter needs `wengert.amp.GradScaler`.
        enabled: False turns casting off inside an outer region.

    Raises:
        ValueError: for a device_type that neither names.
        TypeError: for one that is no string.

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
        if device_type is not None:
            check_device("autocast", device_type, "device_type", "the precision as dtype=")
        self.device_type = device_type
        self.dtype = _core.bfloat16 if dtype is None else dtype
        self.enabled = enabled
        self._numbers: list[int] = []

    def _again(self) -> "autocast":
        return autocast(self.device_type, self.dtype, self.enabled)

    def __enter__(self) -> "autocast":
        """Begins the region."""
        self._numbers.append(_core._autocast_enter(self.dtype if self.enabled else None))
        return self

    def __exit__(self, *exc: Any) -> None:
        """Ends the region."""
        if not self._numbers:
            raise RuntimeError("autocast: the region that is left was not entered; write `with autocast():`")
        _core._autocast_exit(self._numbers.pop())
