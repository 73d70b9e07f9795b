"""Pooling layers over one, two or three spatial axes."""

from collections.abc import Sequence
from typing import Any

from wengert._core import Tensor

from .. import functional as F
from ..module import Module
from .aliases import found_in

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
]

Size = int | Sequence[int]


class _MaxPool(Module):
    """A maximum over windows."""

    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    _function: Any

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        """The attributes of the function; `stride` is the window's length by default."""
        super().__init__()
        self.kernel_size, self.padding, self.dilation = kernel_size, padding, dilation
        self.stride = kernel_size if stride is None else stride
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        """Returns the maxima, and with `return_indices` where they are."""
        return type(self)._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class MaxPool1d(_MaxPool):
    """The largest element of every window over the last axis of `(n, c, length)` or `(c, length)`.

    The result has `(length + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1` windows.

    Args:
        kernel_size: the length of a window.
        stride: steps between windows; None: the length of a window.
        padding: how far windows reach beyond both ends, at most half a window; nothing there is ever largest.
        dilation: steps between elements of a window.
        return_indices: return the pair of maxima and of their positions in the flattened spatial axes.
        ceil_mode: also take windows that begin inside and end outside.

    Example:
        >>> wg.nn.MaxPool1d(2)(wg.tensor([[1.0, 3.0, 5.0, 7.0]]))
        tensor([[3., 7.]])
    """

    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest element of every window over the last two axes, `(n, c, height, width)`.

    Arguments as of `MaxPool1d`: `kernel_size`, `stride`, `padding` and `dilation` are one number or a pair
    (height, width); `return_indices` and `ceil_mode` are the same.

    Example:
        >>> wg.nn.MaxPool2d(2)(wg.arange(4.0).reshape(1, 2, 2))
        tensor([[[3.]]])
    """

    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """The largest element of every window over the last three axes, `(n, c, depth, height, width)`.

    Arguments as of `MaxPool1d`: `kernel_size`, `stride`, `padding` and `dilation` are one number or three
    (depth, height, width); `return_indices` and `ceil_mode` are the same.

    Example:
        >>> wg.nn.MaxPool3d(2)(wg.arange(8.0).reshape(1, 2, 2, 2))
        tensor([[[[7.]]]])
    """

    _function = staticmethod(F.max_pool3d)


class AvgPool1d(Module):
    """The average of every window over the last axis of `(n, c, length)` or `(c, length)`.

    Args:
        kernel_size: the length of a window.
        stride: steps between windows; None: the length of a window.
        padding: zeros at both ends, at most half a window.
        ceil_mode: also take windows that end outside; what is beyond the padding never counts.
        count_include_pad: whether the zeros count as elements of the average.

    Example:
        >>> wg.nn.AvgPool1d(2)(wg.tensor([[1.0, 3.0, 5.0, 7.0]]))
        tensor([[2., 6.]])
    """

    _shown = ("kernel_size", "stride", "padding")

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        """The attributes of the function; `stride` is the window's length by default."""
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Returns the averages."""
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class _AvgPool(Module):
    """Averages over windows of several axes."""

    _shown = ("kernel_size", "stride", "padding")
    _function: Any

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        """The attributes of the function; `stride` is the window's length by default."""
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Returns the averages."""
        return type(self)._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPool):
    """The average of every window over the last two axes, `(n, c, height, width)`.

    Arguments as of `AvgPool1d`: `kernel_size`, `stride` and `padding` are one number or a pair (height,
    width); `ceil_mode` and `count_include_pad` are the same. `divisor_override` divides the sums in place of
    the number of elements.

    Example:
        >>> wg.nn.AvgPool2d(2)(wg.arange(4.0).reshape(1, 2, 2))
        tensor([[[1.5]]])
    """

    _function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The average of every window over the last three axes, `(n, c, depth, height, width)`.

    Arguments as of `AvgPool1d`: `kernel_size`, `stride` and `padding` are one number or three (depth, height,
    width); `ceil_mode` and `count_include_pad` are the same. `divisor_override` divides the sums in place of
    the number of elements.

    Example:
        >>> wg.nn.AvgPool3d(2)(wg.arange(8.0).reshape(1, 2, 2, 2))
        tensor([[[[3.5]]]])
    """

    _function = staticmethod(F.avg_pool3d)


class _AdaptiveAvgPool(Module):
    """Averages of as many windows as asked for."""

    _shown = ("output_size",)
    _function: Any

    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        """The number of windows along each axis, or one number for all; None keeps an axis."""
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Returns the averages."""
        return type(self)._function(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Averages of `output_size` windows that together cover the last axis; None keeps it as it is.

    Example:
        >>> wg.nn.AdaptiveAvgPool1d(2)(wg.tensor([[1.0, 3.0, 5.0, 7.0]]))
        tensor([[2., 6.]])
    """

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Averages of windows that together cover the last two axes.

    `output_size` is the number of windows along each axis, a pair, or one number for both; None keeps an axis
    as it is.

    Example:
        >>> wg.nn.AdaptiveAvgPool2d(1)(wg.arange(4.0).reshape(1, 2, 2))
        tensor([[[1.5]]])
    """

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Averages of windows that together cover the last three axes.

    `output_size` is the number of windows along each axis, three, or one number for all; None keeps an axis
    as it is.

    Example:
        >>> wg.nn.AdaptiveAvgPool3d(1)(wg.arange(8.0).reshape(1, 2, 2, 2))
        tensor([[[[3.5]]]])
    """

    _function = staticmethod(F.adaptive_avg_pool3d)


__getattr__ = found_in(__name__, "extremes")
