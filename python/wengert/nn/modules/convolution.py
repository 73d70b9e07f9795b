"""Convolutional layers over one, two or three spatial axes."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import wengert as wg
from wengert._core import Tensor
from wengert._numbers import check_integers

from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Fold",
    "Unfold",
]

Size = int | Sequence[int]

_MODES = ("zeros", "reflect", "replicate", "circular")


def _each(layer: str, name: str, value: Any, rank: int) -> tuple[int, ...]:
    """One number for each axis."""
    is_sequence = isinstance(value, Iterable) and not isinstance(value, str)
    values = tuple(value) if is_sequence else (value,) * rank
    if not all(hasattr(type(x), "__index__") for x in values):
        raise TypeError(f"{layer}: {name} is an integer, or one for each of {rank} axes, got {value!r}")
    if len(values) != rank:
        raise ValueError(f"{layer}: {name} takes one number or {rank}, got {value!r}")
    return values


class _Conv(Module):
    """What convolutions of every rank have in common; `_rank` is the number of spatial axes."""

    _rank = 0
    _transposed = False
    weight: Parameter
    bias: Parameter | None

    def _make(
        self,
        channels: tuple[int, int],
        kernel_size: Size,
        stride: Size,
        padding: Size | str,
        dilation: Size,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        name, rank = type(self).__name__, self._rank
        self.in_channels, self.out_channels = channels
        check_integers(name, in_channels=channels[0], out_channels=channels[1], groups=groups)
        if groups < 1 or self.in_channels % groups or self.out_channels % groups:
            raise ValueError(
                f"{name}: {self.in_channels} input and {self.out_channels} output channels do not divide "
                f"into {groups} groups"
            )
        if padding_mode not in _MODES:
            raise ValueError(f"{name}: padding_mode must be one of {', '.join(_MODES)}, got {padding_mode!r}")
        self.kernel_size = _each(name, "kernel_size", kernel_size, rank)
        self.stride = _each(name, "stride", stride, rank)
        self.padding = padding if isinstance(padding, str) else _each(name, "padding", padding, rank)
        if isinstance(padding, str) and padding not in ("valid", "same"):
            raise ValueError(f"{name}: padding is numbers, 'valid' or 'same', got {padding!r}")
        if padding == "same" and any(s != 1 for s in self.stride):
            raise ValueError(
                f"{name}: padding 'same' is defined for stride 1, got {self.stride}; give the padding in "
                f"numbers"
            )
        self.dilation = _each(name, "dilation", dilation, rank)
        self.groups, self.padding_mode = groups, padding_mode
        first, second = channels[::-1] if not self._transposed else channels
        shape = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(wg.empty(shape, device=device, dtype=dtype))
        values = Parameter(wg.empty((self.out_channels,), device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", values)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new initial values, uniform in `±1 / sqrt(fan_in)`."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5.0))
        fan_in = self.weight.shape[1] * math.prod(self.kernel_size)
        if self.bias is not None and fan_in > 0:
            bound = 1.0 / math.sqrt(fan_in)
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Returns the sizes, and what differs from the defaults."""
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        ]
        ones, zeros = (1,) * self._rank, (0,) * self._rank
        output_padding = getattr(self, "output_padding", zeros)
        for name, value, default in (
            ("padding", self.padding, zeros),
            ("output_padding", output_padding, zeros),
            ("dilation", self.dilation, ones),
            ("groups", self.groups, 1),
            ("bias", self.bias is not None, True),
            ("padding_mode", self.padding_mode, "zeros"),
        ):
            if value != default:
                parts.append(f"{name}={value}")
        return ", ".join(parts)


class _Forward(_Conv):
    """A convolution."""

    _function: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Makes `weight` of shape (out, in / groups, *kernel_size) and, with `bias`, one of shape (out,)."""
        super().__init__()
        channels = (in_channels, out_channels)
        self._make(
            channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )

    def _widths(self) -> list[int]:
        """The padding as `pad` takes it: from the last axis on, before and after."""
        if self.padding == "valid":
            return [0] * (2 * self._rank)
        pairs = []
        for i in reversed(range(self._rank)):
            if isinstance(self.padding, str):
                total = self.dilation[i] * (self.kernel_size[i] - 1)
                pairs += [total // 2, total - total // 2]
            else:
                pairs += [self.padding[i]] * 2
        return pairs

    def forward(self, input: Tensor) -> Tensor:
        """Returns the convolution."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._widths(), mode=self.padding_mode), 0
        function = type(self)._function
        return function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Forward):
    """Convolution (cross-correlation) over one spatial axis: `(n, in_channels, length)` to
    `(n, out_channels, length')`.

    `length' = (length + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1`. The axis n may be
    missing. The parameters `weight` `(out_channels, in_channels / groups, kernel_size)` and `bias`
    `(out_channels,)` start uniform in `±1 / sqrt(in_channels / groups * kernel_size)`, as in PyTorch.

    Args:
        in_channels: the channels of the input.
        out_channels: the channels of the result.
        kernel_size: the length of a window.
        stride: steps between windows.
        padding: how many elements are added at both ends; "valid" for none, "same" for a result as long as
            the input, with stride 1 only.
        dilation: steps between elements of a window.
        groups: channels of input and result come in so many equal groups, which do not mix.
        bias: whether a learnt number is added to each channel of the result.
        padding_mode: what is added: "zeros", "reflect", "replicate" or "circular", as in `nn.functional.pad`.

    Example:
        >>> wg.nn.Conv1d(3, 8, kernel_size=3, padding=1)(wg.randn(4, 3, 10)).shape
        (4, 8, 10)
    """

    _rank = 1
    _function = staticmethod(F.conv1d)


class Conv2d(_Forward):
    """Convolution over two spatial axes: `(n, in_channels, height, width)` to
    `(n, out_channels, height', width')`.

    Arguments as of `Conv1d`: `kernel_size`, `stride`, `padding` and `dilation` are one number for both axes
    or a pair (height, width); `in_channels`, `out_channels`, `groups`, `bias` and `padding_mode` are the
    same.

    Example:
        >>> wg.nn.Conv2d(3, 8, kernel_size=3, stride=2)(wg.randn(4, 3, 9, 9)).shape
        (4, 8, 4, 4)
    """

    _rank = 2
    _function = staticmethod(F.conv2d)


class Conv3d(_Forward):
    """Convolution over three spatial axes: `(n, in_channels, depth, height, width)` to
    `(n, out_channels, ...)`.

    Arguments as of `Conv1d`: `kernel_size`, `stride`, `padding` and `dilation` are one number for all axes or
    three (depth, height, width); `in_channels`, `out_channels`, `groups`, `bias` and `padding_mode` are the
    same.

    Example:
        >>> wg.nn.Conv3d(3, 8, kernel_size=3)(wg.randn(4, 3, 5, 9, 9)).shape
        (4, 8, 3, 7, 7)
    """

    _rank = 3
    _function = staticmethod(F.conv3d)


class _Transposed(_Conv):
    """A transposed convolution."""

    _transposed = True
    padding: tuple[int, ...]
    _function: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Makes `weight` of shape (in, out / groups, *kernel_size) and, with `bias`, one of shape (out,)."""
        super().__init__()
        if padding_mode != "zeros":
            raise ValueError(f"{type(self).__name__}: padding_mode must be 'zeros', got {padding_mode!r}")
        self.output_padding = _each(type(self).__name__, "output_padding", output_padding, self._rank)
        channels = (in_channels, out_channels)
        self._make(
            channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Returns the transposed convolution; `output_size`, the lengths of the spatial axes, decides the
        output padding.
        """
        extra = self.output_padding if output_size is None else self._extra(input, tuple(output_size))
        function = type(self)._function
        return function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _extra(self, input: Tensor, output_size: tuple[int, ...]) -> tuple[int, ...]:
        wanted = output_size[-self._rank :]
        lengths = tuple(input.shape)[-self._rank :]
        least = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(lengths, self.stride, self.padding, self.dilation, self.kernel_size)
        ]
        for size, low, stride in zip(wanted, least, self.stride):
            if not low <= size < low + stride:
                raise ValueError(
                    f"{type(self).__name__}: output_size {wanted} cannot come from input of shape "
                    f"{tuple(input.shape)}; each length is from {tuple(least)} to less than one stride more"
                )
        return tuple(size - low for size, low in zip(wanted, least))


class ConvTranspose1d(_Transposed):
    """Transposed convolution over one spatial axis: `(n, in_channels, length)` to
    `(n, out_channels, length')`.

    Every element adds a weighted window to the result, whose length is
    `length' = (length - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1`. The
    parameters `weight` `(in_channels, out_channels / groups, kernel_size)` and `bias` `(out_channels,)` start
    uniform in `±1 / sqrt(out_channels / groups * kernel_size)`, as in PyTorch.

    Args:
        in_channels: the channels of the input.
        out_channels: the channels of the result.
        kernel_size: the length of a window.
        stride: steps between windows in the result.
        padding: elements cut off at both ends of the result.
        output_padding: elements added at the end of the result, fewer than `stride` or `dilation`.
        groups: channels come in so many equal groups, which do not mix.
        bias: whether a learnt number is added to each channel of the result.
        dilation: steps between elements of a window.
        padding_mode: only "zeros".

    Example:
        >>> wg.nn.ConvTranspose1d(8, 3, kernel_size=2, stride=2)(wg.randn(4, 8, 5)).shape
        (4, 3, 10)
    """

    _rank = 1
    _function = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_Transposed):
    """Transposed convolution over two spatial axes, `(n, in_channels, height, width)`.

    Arguments as of `ConvTranspose1d`: `kernel_size`, `stride`, `padding`, `output_padding` and `dilation` are
    one number or a pair (height, width); `in_channels`, `out_channels`, `groups`, `bias` and `padding_mode`
    are the same.

    Example:
        >>> wg.nn.ConvTranspose2d(8, 3, kernel_size=2, stride=2)(wg.randn(4, 8, 5, 5)).shape
        (4, 3, 10, 10)
    """

    _rank = 2
    _function = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_Transposed):
    """Transposed convolution over three spatial axes, `(n, in_channels, depth, height, width)`.

    Arguments as of `ConvTranspose1d`: `kernel_size`, `stride`, `padding`, `output_padding` and `dilation` are
    one number or three (depth, height, width); `in_channels`, `out_channels`, `groups`, `bias` and
    `padding_mode` are the same.

    Example:
        >>> wg.nn.ConvTranspose3d(8, 3, kernel_size=2, stride=2)(wg.randn(1, 8, 2, 5, 5)).shape
        (1, 3, 4, 10, 10)
    """

    _rank = 3
    _function = staticmethod(F.conv_transpose3d)


class Unfold(Module):
    """Windows over the last two axes as columns: `nn.functional.unfold` as a layer.

    Windows of `kernel_size` elements, `dilation` apart, begin `stride` apart in the input with `padding`
    zeros around it; each is one number or a pair (height, width).

    Example:
        >>> wg.nn.Unfold(2)(wg.ones(1, 1, 3, 3)).shape
        (1, 4, 4)
    """

    _shown = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1) -> None:
        """Takes the attributes of `nn.functional.unfold`."""
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """Returns the columns."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    """Columns added up in planes of `output_size` (height, width): `nn.functional.fold` as a layer.

    The windows are described by `kernel_size`, `dilation`, `padding` and `stride`, as of `Unfold`.

    Example:
        >>> wg.nn.Fold(output_size=(3, 3), kernel_size=2)(wg.ones(1, 4, 4))
        tensor([[[[1., 2., 1.],
                  [2., 4., 2.],
                  [1., 2., 1.]]]])
    """

    _shown = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, output_size: Size, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
    ) -> None:
        """Takes the attributes of `nn.functional.fold`."""
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """Returns the planes."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
