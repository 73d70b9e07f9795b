"""Padding layers, a row of the table for each kind and number of spatial axes, over `nn.functional.pad`."""

from collections.abc import Sequence

import wengert as wg
from wengert._core import Tensor

from .. import functional as F
from ..module import Module

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """Enlarges the last axes of a batch of images or of one image."""

    _axes = 0
    _mode = "constant"

    def __init_subclass__(cls, axes: int = 0, mode: str | None = None) -> None:
        """Sets how many axes are enlarged, and with what."""
        super().__init_subclass__()
        cls._axes, cls._mode = axes or cls._axes, mode or cls._mode

    def __init__(self, padding: int | Sequence[int]) -> None:
        """`(before, after)` of the last axis, then of the one before it, and so on; or one number for all."""
        super().__init__()
        pads = (padding,) * (2 * self._axes) if isinstance(padding, int) else tuple(padding)
        if len(pads) != 2 * self._axes:
            raise ValueError(
                f"{type(self).__name__}: one number or {2 * self._axes} expected, (before, after) for each "
                f"axis, got {padding}"
            )
        self.padding = pads
        self.value = 0.0

    def forward(self, input: Tensor) -> Tensor:
        """Returns the larger images."""
        if input.ndim not in (self._axes + 1, self._axes + 2):
            raise wg.ShapeError(
                f"{type(self).__name__}: {self._axes + 2} axes, or {self._axes + 1} of one image, expected, "
                f"got shape {tuple(input.shape)}"
            )
        return F.pad(input, self.padding, self._mode, self.value)

    def extra_repr(self) -> str:
        """Returns the widths."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """Padding with a number of one's choice."""

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        """The widths as in all padding layers, and the number."""
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        """Returns the widths and the number."""
        return f"padding={self.padding}, value={self.value}"


class ZeroPad1d(_Pad, axes=1):
    """Enlarges the last axis with zeros: `padding` is (before, after), or one number for both; negative
    numbers crop.

    Example:
        >>> wg.nn.ZeroPad1d(1)(wg.tensor([[1.0, 2.0]]))
        tensor([[0., 1., 2., 0.]])
    """


class ZeroPad2d(_Pad, axes=2):
    """Enlarges the last 2 axes with zeros: `padding` is (before, after) of the last axis, then of the one
    before it, or one number for all.

    Example:
        >>> wg.nn.ZeroPad2d(1)(wg.ones(1, 2, 2)).shape
        (1, 4, 4)
    """


class ZeroPad3d(_Pad, axes=3):
    """Enlarges the last 3 axes with zeros: `padding` is (before, after) of the last axis, then of the one
    before it, and so on, or one number for all.

    Example:
        >>> wg.nn.ZeroPad3d(1)(wg.ones(1, 2, 2, 2)).shape
        (1, 4, 4, 4)
    """


class ConstantPad1d(_ConstantPad, axes=1):
    """Enlarges the last axis with the number `value`; `padding` as of `ZeroPad1d`.

    Example:
        >>> wg.nn.ConstantPad1d(1, 9.0)(wg.tensor([[1.0, 2.0]]))
        tensor([[9., 1., 2., 9.]])
    """


class ConstantPad2d(_ConstantPad, axes=2):
    """Enlarges the last 2 axes with the number `value`; `padding` as of `ZeroPad2d`.

    Example:
        >>> wg.nn.ConstantPad2d(1, 9.0)(wg.ones(1, 2, 2)).shape
        (1, 4, 4)
    """


class ConstantPad3d(_ConstantPad, axes=3):
    """Enlarges the last 3 axes with the number `value`; `padding` as of `ZeroPad3d`.

    Example:
        >>> wg.nn.ConstantPad3d(1, 9.0)(wg.ones(1, 2, 2, 2)).shape
        (1, 4, 4, 4)
    """


class ReflectionPad1d(_Pad, axes=1, mode="reflect"):
    """Enlarges the last axis with what is inside, mirrored at the outermost elements; `padding` as of
    `ZeroPad1d`.

    Example:
        >>> wg.nn.ReflectionPad1d(1)(wg.tensor([[1.0, 2.0, 3.0]]))
        tensor([[2., 1., 2., 3., 2.]])
    """


class ReflectionPad2d(_Pad, axes=2, mode="reflect"):
    """Enlarges the last 2 axes with what is inside, mirrored at the outermost elements; `padding` as of
    `ZeroPad2d`.

    Example:
        >>> wg.nn.ReflectionPad2d(1)(wg.ones(1, 2, 2)).shape
        (1, 4, 4)
    """


class ReflectionPad3d(_Pad, axes=3, mode="reflect"):
    """Enlarges the last 3 axes with what is inside, mirrored at the outermost elements; `padding` as of
    `ZeroPad3d`.

    Example:
        >>> wg.nn.ReflectionPad3d(1)(wg.ones(1, 2, 2, 2)).shape
        (1, 4, 4, 4)
    """


class ReplicationPad1d(_Pad, axes=1, mode="replicate"):
    """Enlarges the last axis with the outermost elements; `padding` as of `ZeroPad1d`.

    Example:
        >>> wg.nn.ReplicationPad1d(1)(wg.tensor([[1.0, 2.0, 3.0]]))
        tensor([[1., 1., 2., 3., 3.]])
    """


class ReplicationPad2d(_Pad, axes=2, mode="replicate"):
    """Enlarges the last 2 axes with the outermost elements; `padding` as of `ZeroPad2d`.

    Example:
        >>> wg.nn.ReplicationPad2d(1)(wg.ones(1, 2, 2)).shape
        (1, 4, 4)
    """


class ReplicationPad3d(_Pad, axes=3, mode="replicate"):
    """Enlarges the last 3 axes with the outermost elements; `padding` as of `ZeroPad3d`.

    Example:
        >>> wg.nn.ReplicationPad3d(1)(wg.ones(1, 2, 2, 2)).shape
        (1, 4, 4, 4)
    """


class CircularPad1d(_Pad, axes=1, mode="circular"):
    """Enlarges the last axis with what is at the other end; `padding` as of `ZeroPad1d`.

    Example:
        >>> wg.nn.CircularPad1d(1)(wg.tensor([[1.0, 2.0, 3.0]]))
        tensor([[3., 1., 2., 3., 1.]])
    """


class CircularPad2d(_Pad, axes=2, mode="circular"):
    """Enlarges the last 2 axes with what is at the other end; `padding` as of `ZeroPad2d`.

    Example:
        >>> wg.nn.CircularPad2d(1)(wg.ones(1, 2, 2)).shape
        (1, 4, 4)
    """


class CircularPad3d(_Pad, axes=3, mode="circular"):
    """Enlarges the last 3 axes with what is at the other end; `padding` as of `ZeroPad3d`.

    Example:
        >>> wg.nn.CircularPad3d(1)(wg.ones(1, 2, 2, 2)).shape
        (1, 4, 4, 4)
    """
