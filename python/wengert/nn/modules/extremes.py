"""Layers of maxima whose windows follow from the output's size or from chance, of norms of windows, and the
inverse of max pooling.
"""

from collections.abc import Sequence
from typing import Any

from wengert._core import Tensor

from .. import functional as F
from ..module import Module

__all__ = [
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]

Size = int | Sequence[int]


class _AdaptiveMaxPool(Module):
    """Maxima of as many windows as asked for."""

    _shown = ("output_size",)
    _function: Any

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        """The number of windows along each axis, or one number for all; None keeps an axis."""
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Tensor) -> Any:
        """Returns the maxima, and with `return_indices` where they are."""
        return type(self)._function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Maxima of `output_size` windows that together cover the last axis; None keeps it as it is.

    `return_indices` returns the pair of maxima and of their positions in the flattened spatial axes.

    Example:
        >>> wg.nn.AdaptiveMaxPool1d(2)(wg.tensor([[1.0, 3.0, 5.0, 7.0]]))
        tensor([[3., 7.]])
    """

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Maxima of windows that together cover the last two axes.

    `output_size` is the number of windows along each axis, a pair, or one number for both; None keeps an axis
    as it is. `return_indices` as of `AdaptiveMaxPool1d`.

    Example:
        >>> wg.nn.AdaptiveMaxPool2d(1)(wg.arange(4.0).reshape(1, 2, 2))
        tensor([[[3.]]])
    """

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Maxima of windows that together cover the last three axes.

    `output_size` is the number of windows along each axis, three, or one number for all; None keeps an axis
    as it is. `return_indices` as of `AdaptiveMaxPool1d`.

    Example:
        >>> wg.nn.AdaptiveMaxPool3d(1)(wg.arange(8.0).reshape(1, 2, 2, 2))
        tensor([[[[7.]]]])
    """

    _function = staticmethod(F.adaptive_max_pool3d)


class _FractionalMaxPool(Module):
    """Maxima of windows at random steps (Graham 2014)."""

    _function: Any
    _random_samples: Tensor | None

    def __init__(
        self,
        kernel_size: Size,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        """The window, and the number of them along each axis or that number as a share of the length."""
        super().__init__()
        self.kernel_size, self.return_indices = kernel_size, return_indices
        name = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise ValueError(f"{name}: give either output_size or output_ratio")
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else [output_ratio]
        if output_ratio is not None and not all(0 < ratio < 1 for ratio in ratios):
            raise ValueError(f"{name}: output_ratio lies between 0 and 1, got {output_ratio}")
        self.output_size, self.output_ratio = output_size, output_ratio
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Any:
        """Returns the maxima, and with `return_indices` where they are."""
        return type(self)._function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )

    def extra_repr(self) -> str:
        """Returns the window and the number of them."""
        size = f"output_size={self.output_size}" if self.output_size else f"output_ratio={self.output_ratio}"
        return f"kernel_size={self.kernel_size}, {size}"


class FractionalMaxPool2d(_FractionalMaxPool):
    """Maxima of windows at random steps along the last two axes (Graham 2014).

    Args:
        kernel_size: the size of a window, one number or a pair (height, width).
        output_size: the number of windows along each axis, likewise; either this or the next is given.
        output_ratio: that number as a share of the length, between 0 and 1.
        return_indices: return the pair of maxima and of their positions in the flattened spatial axes.
        _random_samples: the numbers that choose the steps, as of `nn.functional.fractional_max_pool2d`; None
            draws them in each call.

    Example:
        >>> wg.nn.FractionalMaxPool2d(2, output_size=3)(wg.ones(1, 1, 5, 5)).shape
        (1, 1, 3, 3)
    """

    _function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """Maxima of windows at random steps along the last three axes (Graham 2014).

    `kernel_size`, `output_size`, `output_ratio`, `return_indices` and `_random_samples` are those of
    `FractionalMaxPool2d`, one number or three (depth, height, width).

    Example:
        >>> wg.nn.FractionalMaxPool3d(2, output_size=3)(wg.ones(1, 1, 5, 5, 5)).shape
        (1, 1, 3, 3, 3)
    """

    _function = staticmethod(F.fractional_max_pool3d)


class _LPPool(Module):
    """Norms of windows."""

    _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")
    _function: Any

    def __init__(
        self, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
    ) -> None:
        """The exponent, and the attributes of the windows; `stride` is the window's length by default."""
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = (
            norm_type,
            kernel_size,
            stride,
            ceil_mode,
        )

    def forward(self, input: Tensor) -> Tensor:
        """Returns the norms."""
        return type(self)._function(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPool):
    """`(sum of x^p) ^ (1 / p)` of every window over the last axis.

    Args:
        norm_type: the exponent p: 1 gives sums, infinity the largest absolute value.
        kernel_size: the length of a window.
        stride: steps between windows; None: the length of a window.
        ceil_mode: also take windows that end outside; what is inside stands for a whole window of the same
            mean.

    Example:
        >>> wg.nn.LPPool1d(2, 2)(wg.tensor([[3.0, 4.0]]))
        tensor([[5.]])
    """

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """`(sum of x^p) ^ (1 / p)` of every window over the last two axes.

    `norm_type`, `kernel_size`, `stride` and `ceil_mode` are those of `LPPool1d`; sizes are one number or a
    pair.

    Example:
        >>> wg.nn.LPPool2d(2, 2)(wg.ones(1, 2, 2))
        tensor([[[2.]]])
    """

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """`(sum of x^p) ^ (1 / p)` of every window over the last three axes.

    `norm_type`, `kernel_size`, `stride` and `ceil_mode` are those of `LPPool1d`; sizes are one number or
    three.

    Example:
        >>> wg.nn.LPPool3d(2, 2)(wg.ones(1, 2, 2, 2)).shape
        (1, 1, 1, 1)
    """

    _function = staticmethod(F.lp_pool3d)


class _MaxUnpool(Module):
    """Maxima put back to where they were."""

    _shown = ("kernel_size", "stride", "padding")
    _function: Any

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> None:
        """The attributes of the pooling; `stride` is the window's length by default."""
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Returns zeros with the elements of `input` at their positions `indices`; `output_size` is the shape
        of what was pooled.
        """
        return type(self)._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """Returns zeros with maxima at the positions that `MaxPool1d` returned.

    `kernel_size`, `stride` (None: the window's length) and `padding` are those of the pooling. The layer is
    called with the maxima, their positions and, where the numbers leave it open, `output_size`, the shape of
    what was pooled.

    Example:
        >>> values, places = wg.nn.MaxPool1d(2, return_indices=True)(wg.tensor([[1.0, 3.0, 2.0, 0.0]]))
        >>> wg.nn.MaxUnpool1d(2)(values, places)
        tensor([[0., 3., 2., 0.]])
    """

    _function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Returns zeros with maxima at the positions that `MaxPool2d` returned.

    `kernel_size`, `stride` and `padding` are those of the pooling, as of `MaxUnpool1d`; one number or a pair.

    Example:
        >>> values, places = wg.nn.MaxPool2d(2, return_indices=True)(wg.arange(4.0).reshape(1, 2, 2))
        >>> wg.nn.MaxUnpool2d(2)(values, places)
        tensor([[[0., 0.],
                 [0., 3.]]])
    """

    _function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Returns zeros with maxima at the positions that `MaxPool3d` returned.

    `kernel_size`, `stride` and `padding` are those of the pooling, as of `MaxUnpool1d`; one number or three.

    Example:
        >>> values, places = wg.nn.MaxPool3d(2, return_indices=True)(wg.ones(1, 2, 2, 2))
        >>> wg.nn.MaxUnpool3d(2)(values, places).sum()
        tensor(1.)
    """

    _function = staticmethod(F.max_unpool3d)
