"""Convolution, its transpose, and windows as columns, over one, two or three spatial axes.

`input` is `(images, channels, ..)` or one image `(channels, ..)`. Attributes are one number, or one for each
spatial axis. Saved for backward: input and weight. The VJPs are each other: of a convolution, the transposed
convolution of the cotangent, and the correlation of input and cotangent; so derivatives of every order are
these functions. Complex numbers are convolved as they are multiplied; integers exactly, and sums of them wrap
in their dtype.
"""

from collections.abc import Sequence

from wengert import _core
from wengert._arguments import of_tensors
from wengert._core import Tensor

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "fold",
    "unfold",
]

Size = int | Sequence[int]


@of_tensors
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """Computes the convolution (cross-correlation, as everywhere in deep learning) over one spatial axis.

    `out[n, o, p] = bias[o] + sum over c and k of weight[o, c, k] * input[n, c, p * stride + k * dilation - padding]`

    Args:
        input: `(n, groups * c, length)`, or `(groups * c, length)`.
        weight: `(o, c, window)`; `o` divides into the groups.
        bias: `(o,)` or None.
        stride: steps between windows.
        padding: zeros at both ends, "valid" for none, or "same" for an output as long as the input.
        dilation: steps between elements of a window.
        groups: input and output channels come in so many groups, which do not mix.

    Returns:
        `(n, o, (length + 2 * padding - dilation * (window - 1) - 1) // stride + 1)`.

    Raises:
        ShapeError: where channels do not match or the window does not fit.
        ValueError: for an attribute out of range.
        TypeError: for bools, and integers beside floating point or complex numbers.

    Example:
        >>> wg.nn.functional.conv1d(wg.tensor([[[1.0, 2.0, 4.0]]]), wg.tensor([[[-1.0, 1.0]]]))
        tensor([[[1., 2.]]])
    """
    return _core._conv(1, input, weight, bias, stride, padding, dilation, groups)


@of_tensors
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """Computes `conv1d` over two spatial axes: `(n, groups * c, height, width)` with a weight of
    `(o, c, *window)`.

    `input`, `weight`, `bias` and `groups` are as there; `stride`, `padding` and `dilation` are one number for
    both axes or a pair (height, width).

    Example:
        >>> wg.nn.functional.conv2d(wg.ones(1, 3, 8, 8), wg.ones(16, 3, 3, 3), stride=2).shape
        (1, 16, 3, 3)
    """
    return _core._conv(2, input, weight, bias, stride, padding, dilation, groups)


@of_tensors
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """Computes `conv1d` over three spatial axes: `(n, groups * c, depth, height, width)` with a weight of
    `(o, c, *window)`.

    `input`, `weight`, `bias` and `groups` are as there; `stride`, `padding` and `dilation` are one number for
    all axes or three (depth, height, width).

    Example:
        >>> wg.nn.functional.conv3d(wg.ones(1, 1, 4, 4, 4), wg.ones(2, 1, 3, 3, 3)).shape
        (1, 2, 2, 2, 2)
    """
    return _core._conv(3, input, weight, bias, stride, padding, dilation, groups)


@of_tensors
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """Computes the transpose of `conv1d` with respect to its input: every element adds a weighted window to
    the output.

    Args:
        input: `(n, groups * o, length)`, or without n.
        weight: `(groups * o, c, window)`: that of the convolution that this transposes.
        bias: `(groups * c,)` or None.
        stride: steps between the windows in the output.
        padding: elements cut off at both ends of the output.
        output_padding: elements added at the end of the output, fewer than stride or dilation.
        groups: as in `conv1d`.
        dilation: as in `conv1d`.

    Returns:
        `(n, groups * c, (length - 1) * stride - 2 * padding + dilation * (window - 1) + output_padding + 1)`.

    Raises:
        ShapeError: where channels do not match or nothing is left of the output.
        ValueError: for an attribute out of range.
        TypeError: for bools, and integers beside floating point or complex numbers.

    Example:
        >>> wg.nn.functional.conv_transpose1d(wg.tensor([[[1.0, 2.0]]]), wg.tensor([[[1.0, 1.0]]]))
        tensor([[[1., 3., 2.]]])
    """
    return _core._conv_transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@of_tensors
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """Computes `conv_transpose1d` over two spatial axes: `(n, groups * o, height, width)`, weight
    `(groups * o, c, *window)`.

    `input`, `weight`, `bias` and `groups` are as there; `stride`, `padding`, `output_padding` and `dilation`
    are one number or a pair (height, width).

    Example:
        >>> wg.nn.functional.conv_transpose2d(wg.ones(1, 3, 4, 4), wg.ones(3, 2, 2, 2), stride=2).shape
        (1, 2, 8, 8)
    """
    return _core._conv_transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@of_tensors
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """Computes `conv_transpose1d` over three spatial axes: `(n, groups * o, depth, height, width)`.

    `input`, `weight`, `bias` and `groups` are as there; `stride`, `padding`, `output_padding` and `dilation`
    are one number or three (depth, height, width).

    Example:
        >>> wg.nn.functional.conv_transpose3d(wg.ones(1, 1, 2, 2, 2), wg.ones(1, 1, 2, 2, 2)).shape
        (1, 1, 3, 3, 3)
    """
    return _core._conv_transpose(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


@of_tensors
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Computes `conv1d` of sequences with the time first.

    Args:
        input: `(time, n, c)`.
        weight: `(window, c, o)`.
        bias: `(o,)`.
        pad: zeros at both ends.

    Returns:
        `(time + 2 * pad - window + 1, n, o)`.

    Example:
        >>> wg.conv_tbc(wg.ones(5, 1, 2), wg.ones(3, 2, 4), wg.zeros(4)).shape
        (3, 1, 4)
    """
    if input.ndim != 3 or weight.ndim != 3:
        raise _core.ShapeError(
            f"conv_tbc: input of shape {tuple(input.shape)} with weight of shape {tuple(weight.shape)}; "
            "expected (time, n, c) and (window, c, o)"
        )
    return conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


@of_tensors
def unfold(
    input: Tensor, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
) -> Tensor:
    """Returns the windows of `(n, c, height, width)` as columns: `(n, c * elements of a window, windows)`.

    Saves nothing; VJP: `fold`.

    Args:
        input: `(n, c, height, width)` or `(c, height, width)`.
        kernel_size: the size of a window; this and what follows are one number or a pair (height, width).
        dilation: steps between elements of a window.
        padding: zeros around the input.
        stride: steps between windows.

    Example:
        >>> wg.nn.functional.unfold(wg.ones(1, 3, 4, 4), 2).shape
        (1, 12, 9)
    """
    return _core._unfold(input, kernel_size, dilation, padding, stride)


@of_tensors
def fold(
    input: Tensor,
    output_size: Size,
    kernel_size: Size,
    dilation: Size = 1,
    padding: Size = 0,
    stride: Size = 1,
) -> Tensor:
    """Computes the transpose of `unfold`: columns `(n, c * elements, windows)` added up in
    `(n, c, *output_size)`.

    `input` holds the columns, n may be missing; `output_size` is the height and width of the result;
    `kernel_size`, `dilation`, `padding` and `stride` are those of the `unfold` that this transposes. Saves
    nothing; VJP: `unfold`.

    Example:
        >>> wg.nn.functional.fold(wg.ones(1, 4, 1), (2, 2), 2)
        tensor([[[[1., 1.],
                  [1., 1.]]]])
    """
    return _core._fold(input, output_size, kernel_size, dilation, padding, stride)
