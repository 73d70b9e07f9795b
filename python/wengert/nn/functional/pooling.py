"""Pooling: the maximum, the average or a norm of every window over the last one, two or three axes.

`input` is `(images, channels, ..)` or one image `(channels, ..)`. Attributes are one number, or one for each
spatial axis. `ceil_mode` also takes windows that begin inside of the input and end outside.
"""

import math
from collections.abc import Sequence
from typing import Any

from wengert import _core
from wengert._arguments import of_tensors
from wengert._core import Tensor
from wengert._precision import rounding_once

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]

Size = int | Sequence[int]
Sizes = int | Sequence[int | None] | None


def _max_pool(
    rank: int,
    input: Tensor,
    kernel_size: Size,
    stride: Size | None,
    padding: Size,
    dilation: Size,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    steps = () if stride is None else stride
    values, index = _core._max_pool(rank, input, kernel_size, steps, padding, dilation, ceil_mode)
    return (values, index) if return_indices else values


@of_tensors
def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Returns the largest element of every window over one spatial axis; the first one where several are
    equal.

    Args:
        input: `(n, c, length)` or `(c, length)`.
        kernel_size: length of a window.
        stride: steps between windows; the length of a window by default.
        padding: how far windows reach beyond both ends, at most half a window; nothing there is ever largest.
        dilation: steps between elements of a window.
        ceil_mode: also take windows that end outside.
        return_indices: return the pair of maxima and of their positions in the flattened spatial axes.

    Saves the positions. VJP: the cotangent is added there.

    Raises:
        ShapeError: where the window does not fit.
        ValueError: for an attribute out of range, and for a dilated window that lies
            in the padding altogether.

    Example:
        >>> wg.nn.functional.max_pool1d(wg.tensor([[[1.0, 3.0, 2.0, 4.0]]]), 2)
        tensor([[[3., 4.]]])
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@of_tensors
def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Returns `max_pool1d` over two spatial axes, `(n, c, height, width)`.

    `input`, `ceil_mode` and `return_indices` are as there; `kernel_size`, `stride`, `padding` and `dilation`
    are one number or a pair (height, width).

    Example:
        >>> wg.nn.functional.max_pool2d(wg.ones(1, 3, 8, 8), 2).shape
        (1, 3, 4, 4)
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@of_tensors
def max_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Returns `max_pool1d` over three spatial axes, `(n, c, depth, height, width)`.

    `input`, `ceil_mode` and `return_indices` are as there; `kernel_size`, `stride`, `padding` and `dilation`
    are one number or three (depth, height, width).

    Example:
        >>> wg.nn.functional.max_pool3d(wg.ones(1, 1, 4, 4, 4), 2).shape
        (1, 1, 2, 2, 2)
    """
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@of_tensors
def avg_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Returns the average of every window over one spatial axis: a convolution with a constant window.

    Args:
        input: `(n, c, length)` or `(c, length)`.
        kernel_size: length of a window.
        stride: steps between windows; the length of a window by default.
        padding: zeros at both ends, at most half a window.
        ceil_mode: also take windows that end outside; what is beyond the padding never counts.
        count_include_pad: whether the zeros count.

    Saves nothing of the input. Linear; float16 and bfloat16 are averaged in float32, and averages of integers
    lose their fractions.

    Raises:
        ShapeError: where the window does not fit.
        ValueError: for an attribute out of range.
        TypeError: for bools and complex numbers.

    Example:
        >>> wg.nn.functional.avg_pool1d(wg.tensor([[[1.0, 3.0, 2.0, 4.0]]]), 2)
        tensor([[[2., 3.]]])
    """
    steps = () if stride is None else stride
    return _core._avg_pool(1, input, kernel_size, steps, padding, ceil_mode, count_include_pad, None)


@of_tensors
def avg_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Returns `avg_pool1d` over two spatial axes, `(n, c, height, width)`.

    `input`, `ceil_mode` and `count_include_pad` are as there; `kernel_size`, `stride` and `padding` are one
    number or a pair (height, width). `divisor_override` divides the sums in place of the number of elements.

    Example:
        >>> wg.nn.functional.avg_pool2d(wg.ones(1, 3, 8, 8), 2).shape
        (1, 3, 4, 4)
    """
    steps = () if stride is None else stride
    return _core._avg_pool(
        2, input, kernel_size, steps, padding, ceil_mode, count_include_pad, divisor_override
    )


@of_tensors
def avg_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Returns `avg_pool2d` over three spatial axes, `(n, c, depth, height, width)`.

    `input`, `ceil_mode`, `count_include_pad` and `divisor_override` are as there; `kernel_size`, `stride` and
    `padding` are one number or three (depth, height, width).

    Example:
        >>> wg.nn.functional.avg_pool3d(wg.ones(1, 1, 4, 4, 4), 2).shape
        (1, 1, 2, 2, 2)
    """
    steps = () if stride is None else stride
    return _core._avg_pool(
        3, input, kernel_size, steps, padding, ceil_mode, count_include_pad, divisor_override
    )


@rounding_once
def _lp_pool(
    rank: int, input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None, ceil_mode: bool
) -> Tensor:
    if norm_type <= 0:
        raise ValueError(f"lp_pool{rank}d: norm_type must be positive, got {norm_type}")
    steps = () if stride is None else stride
    if norm_type == math.inf:
        return _max_pool(rank, input.abs(), kernel_size, stride, 0, 1, ceil_mode, False)
    powers = input if norm_type == 1 else input.pow(norm_type)
    if ceil_mode:
        # The windows that end outside count as whole ones of the same mean.
        kernel = [kernel_size] * rank if isinstance(kernel_size, int) else list(kernel_size)
        total = _core._avg_pool(rank, powers, kernel_size, steps, 0, True, True, None) * math.prod(kernel)
    else:
        total = _core._avg_pool(rank, powers, kernel_size, steps, 0, False, True, 1)
    if norm_type == 1:
        return total
    # The root has no slope at 0, where the norm's is taken to be 0.
    zero = total == 0
    return total.masked_fill(zero, 1.0).pow(1.0 / norm_type).masked_fill(zero, 0.0)


@of_tensors
def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """Returns `(sum of x^p) ^ (1 / p)` of every window over one spatial axis, the gradient at 0 being 0.

    Args:
        input: `(n, c, length)` or `(c, length)`.
        norm_type: the exponent p: 1 gives sums, infinity the largest absolute value. Negative numbers need an
            even one.
        kernel_size: length of a window.
        stride: steps between windows; the length of a window by default.
        ceil_mode: also take windows that end outside; what is inside stands for a whole window
            of the same mean.

    Raises:
        ShapeError: where the window does not fit.
        ValueError: for an exponent that is not positive.

    Example:
        >>> wg.nn.functional.lp_pool1d(wg.tensor([[[3.0, 4.0]]]), 2.0, 2)
        tensor([[[5.]]])
    """
    return _lp_pool(1, input, float(norm_type), kernel_size, stride, ceil_mode)


@of_tensors
def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """Returns `lp_pool1d` over two spatial axes, `(n, c, height, width)`.

    `input`, `norm_type` and `ceil_mode` are as there; `kernel_size` and `stride` are one number or a pair
    (height, width).

    Example:
        >>> wg.nn.functional.lp_pool2d(wg.ones(1, 2, 2), 2.0, 2)
        tensor([[[2.]]])
    """
    return _lp_pool(2, input, float(norm_type), kernel_size, stride, ceil_mode)


@of_tensors
def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Size, stride: Size | None = None, ceil_mode: bool = False
) -> Tensor:
    """Returns `lp_pool1d` over three spatial axes, `(n, c, depth, height, width)`.

    `input`, `norm_type` and `ceil_mode` are as there; `kernel_size` and `stride` are one number or three.

    Example:
        >>> wg.nn.functional.lp_pool3d(wg.ones(1, 2, 2, 2), 2.0, 2).shape
        (1, 1, 1, 1)
    """
    return _lp_pool(3, input, float(norm_type), kernel_size, stride, ceil_mode)


def _sizes(output_size: Sizes) -> list[int | None]:
    return [output_size] if output_size is None or isinstance(output_size, int) else list(output_size)


def _adaptive_avg_pool(rank: int, input: Tensor, output_size: Sizes) -> Tensor:
    """Means over windows; where each window is one element, the core gives the input itself."""
    out = _core._adaptive_avg_pool(rank, input, _sizes(output_size))
    return out.clone() if out.shape == input.shape else out


@of_tensors
def adaptive_avg_pool1d(input: Tensor, output_size: Sizes) -> Tensor:
    """Averages `output_size` windows of `input` `(n, c, length)` that together cover the spatial axis.

    Window i of n begins at `floor(i * length / n)` and ends before `ceil((i + 1) * length / n)`. None keeps
    an axis. Linear: a product with a constant matrix along each axis; saves nothing of the input.

    Raises:
        ValueError: for a size below 1.

    Example:
        >>> wg.nn.functional.adaptive_avg_pool1d(wg.tensor([[[1.0, 2.0, 3.0, 4.0]]]), 2)
        tensor([[[1.5, 3.5]]])
    """
    return _adaptive_avg_pool(1, input, output_size)


@of_tensors
def adaptive_avg_pool2d(input: Tensor, output_size: Sizes) -> Tensor:
    """Returns `adaptive_avg_pool1d` over two spatial axes of `input`; `output_size` is one number or a pair.

    Example:
        >>> wg.nn.functional.adaptive_avg_pool2d(wg.ones(1, 3, 7, 5), 1).shape
        (1, 3, 1, 1)
    """
    return _adaptive_avg_pool(2, input, output_size)


@of_tensors
def adaptive_avg_pool3d(input: Tensor, output_size: Sizes) -> Tensor:
    """Returns `adaptive_avg_pool1d` over three spatial axes of `input`; `output_size` is one number or three.

    Example:
        >>> wg.nn.functional.adaptive_avg_pool3d(wg.ones(1, 4, 4, 4), 2).shape
        (1, 2, 2, 2)
    """
    return _adaptive_avg_pool(3, input, output_size)
