"""Of convolution and pooling."""

from typing import Any

import wengert as wg
from messages import Situations
from wengert.nn import functional as F

from situations.operands import ones


def conv(x: tuple[int, ...], w: tuple[int, ...], **more: Any) -> Any:
    """A convolution over two axes."""
    return lambda: F.conv2d(ones(*x), ones(*w), **more)


def transposed(x: tuple[int, ...], w: tuple[int, ...], **more: Any) -> Any:
    """A transposed convolution over two axes."""
    return lambda: F.conv_transpose2d(ones(*x), ones(*w), **more)


WINDOWS: Situations = {
    "conv_axes": (
        conv((3, 3), (2, 3, 3, 3)),
        wg.ShapeError,
        (
            "conv2d: input of shape (3, 3) with weight of shape (2, 3, 3, 3); expected an input with 4 axes "
            "(images, "
            "channels and 2 spatial axes) or 3 (one image), and a weight with 4 axes (output channels, input "
            "channels of a group and the window)"
        ),
    ),
    "conv_channels": (
        conv((1, 4, 5, 5), (2, 3, 3, 3)),
        wg.ShapeError,
        (
            "conv2d: input of shape (1, 4, 5, 5) with weight of shape (2, 3, 3, 3) in 1 groups; the input "
            "needs groups "
            "* 3 channels (axis 1), and the weight's 2 output channels must divide into the groups"
        ),
    ),
    "conv_groups": (
        conv((1, 6, 5, 5), (3, 3, 3, 3), groups=2),
        wg.ShapeError,
        (
            "conv2d: input of shape (1, 6, 5, 5) with weight of shape (3, 3, 3, 3) in 2 groups; the input "
            "needs groups "
            "* 3 channels (axis 1), and the weight's 3 output channels must divide into the groups"
        ),
    ),
    "conv_no_groups": (
        conv((1, 3, 5, 5), (2, 3, 3, 3), groups=0),
        ValueError,
        "conv2d: groups must be 1 or more, got 0",
    ),
    "conv_window": (
        conv((1, 3, 5, 3), (2, 3, 3, 3), dilation=2),
        wg.ShapeError,
        (
            "conv2d: the window reaches over 5 elements of spatial axis 1, which has 3 of them and 0 of "
            "padding; it must fit into them and not be empty (input (1, 3, 5, 3), weight (2, 3, 3, 3))"
        ),
    ),
    "conv_stride": (
        conv((1, 3, 5, 5), (2, 3, 3, 3), stride=(1, 0)),
        ValueError,
        "conv2d: stride must be 1 or more, got 0",
    ),
    "conv_numbers": (
        conv((1, 3, 5, 5), (2, 3, 3, 3), dilation=(1, 1, 1)),
        ValueError,
        "conv2d: dilation takes one number or one for each of the 2 spatial axes, got [1, 1, 1]",
    ),
    "conv_same": (
        conv((1, 3, 5, 5), (2, 3, 3, 3), stride=2, padding="same"),
        ValueError,
        "conv2d: padding 'same' is defined for stride 1, got stride [2, 2]; give the padding in numbers",
    ),
    "conv_padding": (
        conv((1, 3, 5, 5), (2, 3, 3, 3), padding="full"),
        ValueError,
        "padding is a number, one for each spatial axis, 'same' or 'valid', got 'full'",
    ),
    "conv_integers": (
        lambda: F.conv1d(wg.ones(1, 1, 3, dtype=wg.int64), ones(1, 1, 3)),
        TypeError,
        "conv1d: floating point, complex or integer tensors, both of one kind, expected, got input of int64; "
        "convert with .float()",
    ),
    "conv_bias": (
        conv((1, 3, 5, 5), (2, 3, 3, 3), bias=ones(3)),
        wg.ShapeError,
        "conv2d: bias of shape (3,), expected (2,): one number for each output channel",
    ),
    "conv_no_tensor": (
        lambda: F.conv2d([1.0], ones(1, 1, 1, 1)),  # type: ignore[arg-type]
        TypeError,
        "conv2d: input must be a tensor, got list; convert it with wengert.tensor()",
    ),
    "conv_transpose_channels": (
        transposed((1, 4, 5, 5), (2, 3, 3, 3)),
        wg.ShapeError,
        (
            "conv_transpose2d: input of shape (1, 4, 5, 5) with weight of shape (2, 3, 3, 3) in 1 groups; "
            "both need "
            "the same number of input channels (axis 1 of the input, axis 0 of the weight), which must "
            "divide into the groups"
        ),
    ),
    "conv_transpose_output_padding": (
        transposed((1, 2, 5, 5), (2, 3, 3, 3), stride=2, output_padding=2),
        ValueError,
        (
            "conv_transpose2d: output_padding must be smaller than stride or dilation, got 2 with stride 2 "
            "and dilation 1"
        ),
    ),
    "conv_transpose_nothing": (
        transposed((1, 2, 1, 5), (2, 3, 2, 2), padding=1),
        wg.ShapeError,
        (
            "conv_transpose2d: input of shape (1, 2, 1, 5) with weight of shape (2, 3, 2, 2) and padding [1, "
            "1] leaves nothing of spatial axis 0"
        ),
    ),
    "conv_layer_groups": (
        lambda: wg.nn.Conv2d(3, 4, 3, groups=2),
        ValueError,
        "Conv2d: 3 input and 4 output channels do not divide into 2 groups",
    ),
    "conv_layer_mode": (
        lambda: wg.nn.Conv1d(3, 4, 3, padding_mode="mirror"),
        ValueError,
        "Conv1d: padding_mode must be one of zeros, reflect, replicate, circular, got 'mirror'",
    ),
    "conv_layer_kernel": (
        lambda: wg.nn.Conv2d(3, 4, (3, 3, 3)),
        ValueError,
        "Conv2d: kernel_size takes one number or 2, got (3, 3, 3)",
    ),
    "conv_transpose_layer_size": (
        lambda: wg.nn.ConvTranspose1d(1, 1, 3, stride=2)(ones(1, 1, 4), output_size=(12,)),
        ValueError,
        (
            "ConvTranspose1d: output_size (12,) cannot come from input of shape (1, 1, 4); each length is "
            "from (9,) to less than one stride more"
        ),
    ),
    "pool_padding": (
        lambda: F.max_pool2d(ones(1, 1, 4, 4), 2, padding=2),
        ValueError,
        "max_pool2d: padding is at most half of the window, got padding 2 and kernel_size 2",
    ),
    "pool_window": (
        lambda: F.avg_pool1d(ones(1, 2), 3),
        wg.ShapeError,
        (
            "avg_pool1d: the window reaches over 3 elements of spatial axis 0, which has 2 of them and 0 of "
            "padding; it must fit into them (input (1, 2))"
        ),
    ),
    "pool_axes": (
        lambda: F.max_pool3d(ones(2, 2), 1),
        wg.ShapeError,
        (
            "max_pool3d: input of shape (2, 2); expected 5 axes (images, channels and 3 spatial axes) or 4 "
            "(one image)"
        ),
    ),
    "pool_bools": (
        lambda: F.avg_pool1d(wg.ones(1, 4, dtype=wg.bool), 2),
        TypeError,
        "avg_pool1d: floating point tensor expected, got bool; convert with .float()",
    ),
    "pool_divisor": (
        lambda: F.avg_pool2d(ones(1, 4, 4), 2, divisor_override=0),
        ValueError,
        "avg_pool2d: divisor_override cannot be 0",
    ),
    "adaptive_pool_size": (
        lambda: F.adaptive_avg_pool1d(ones(1, 4), 0),
        ValueError,
        "adaptive_avg_pool1d: output_size must be 1 or more and the axis not empty, got 0 for an axis of 4",
    ),
    "adaptive_pool_sizes": (
        lambda: F.adaptive_avg_pool2d(ones(1, 4, 4), (1, 2, 3)),
        ValueError,
        "adaptive_avg_pool2d: output_size takes one number or one for each of the 2 spatial axes, got 3",
    ),
    "unfold_axes": (
        lambda: F.unfold(ones(4, 4), 2),
        wg.ShapeError,
        "unfold: input of shape (4, 4); expected 4 axes (images, channels, height, width) or 3 (one image)",
    ),
    "unfold_window": (
        lambda: F.unfold(ones(1, 1, 2, 4), 3),
        wg.ShapeError,
        (
            "unfold: the window reaches over 3 elements of spatial axis 0, which has 2 of them and 0 of "
            "padding; it must fit into them"
        ),
    ),
    "fold_columns": (
        lambda: F.fold(ones(1, 4, 5), (3, 3), 2),
        wg.ShapeError,
        (
            "fold: input of shape (1, 4, 5); these windows over a plane of [3, 3] need (images, channels * "
            "4, 4), or the same without images"
        ),
    ),
    "batch_norm_axes": (
        lambda: wg.nn.BatchNorm2d(3)(ones(2, 3)),
        wg.ShapeError,
        "BatchNorm2d: input with 4 axes expected, got shape (2, 3)",
    ),
    "batch_norm_channels": (
        lambda: wg.nn.BatchNorm1d(3)(ones(2, 4)),
        wg.ShapeError,
        "BatchNorm1d: 3 channels (axis 1) expected, got input of shape (2, 4)",
    ),
    "batch_norm_one_value": (
        lambda: wg.nn.BatchNorm1d(3)(ones(1, 3)),
        ValueError,
        (
            "batch_norm: more than one value per channel expected in training, got input of shape (1, 3); "
            "use a larger batch, or eval()"
        ),
    ),
}
