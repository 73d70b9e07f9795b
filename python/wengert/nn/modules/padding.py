"""Padding layers, a row of the table for each kind and number of spatial axes, over `nn.functional.pad`."""

from collections.abc import Sequence
from typing import Any

import wengert as wg
from wengert._core import Tensor

from .. import functional as F
from ..module import Module


class _Pad(Module):
    """Enlarges the last axes of a batch of images or of one image."""

    _axes = 0
    _mode = "constant"

    def __init__(self, padding: int | Sequence[int]) -> None:
        """`(before, after)` of the last axis, then of the one before it, and so on; or one number for all."""
        super().__init__()
        pads = (padding,) * (2 * self._axes) if isinstance(padding, int) else tuple(padding)
        if len(pads) != 2 * self._axes:
            raise ValueError(
                f"{type(self).__name__}: one number or {2 * self._axes} expected, (before, after) for each axis, got "
                f"{padding}"
            )
        self.padding = pads
        self.value = 0.0

    def forward(self, input: Tensor) -> Tensor:
        """The larger images."""
        if input.ndim not in (self._axes + 1, self._axes + 2):
            raise wg.ShapeError(
                f"{type(self).__name__}: {self._axes + 2} axes, or {self._axes + 1} of one image, expected, "
                f"got shape {tuple(input.shape)}"
            )
        return F.pad(input, self.padding, self._mode, self.value)

    def extra_repr(self) -> str:
        """The widths."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """Padding with a number of one's choice."""

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        """The widths as in all padding layers, and the number."""
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        """The widths and the number."""
        return f"padding={self.padding}, value={self.value}"


def _layers(name: str, base: type[_Pad], mode: str, with_what: str) -> list[Any]:
    """The layers of one kind, for one, two and three axes."""
    made = []
    for axes in (1, 2, 3):
        members = {
            "__doc__": f"Enlarges the last {axes} axes with {with_what}." if axes > 1
            else f"Enlarges the last axis with {with_what}.",
            "__module__": __name__,
            "_axes": axes,
            "_mode": mode,
        }  # fmt: skip
        made.append(type(f"{name}{axes}d", (base,), members))
    return made


ZeroPad1d, ZeroPad2d, ZeroPad3d = _layers("ZeroPad", _Pad, "constant", "zeros")
ConstantPad1d, ConstantPad2d, ConstantPad3d = _layers("ConstantPad", _ConstantPad, "constant", "a number")
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _layers(
    "ReflectionPad", _Pad, "reflect", "what is inside, mirrored at the outermost elements"
)
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _layers(
    "ReplicationPad", _Pad, "replicate", "the outermost elements"
)
CircularPad1d, CircularPad2d, CircularPad3d = _layers(
    "CircularPad", _Pad, "circular", "what is at the other end"
)
