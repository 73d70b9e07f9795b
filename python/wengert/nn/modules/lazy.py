"""Layers that learn one size from their first input: `LazyLinear(10)` is `Linear(n, 10)` after a call with n
features.

Until then a layer has no parameters, and whatever asks for them is told so: an optimiser made too early would
leave the layer untrained. The first call happens outside of transforms, before `state_dict` and optimisers.
`to` and other conversions are done to the parameters as soon as there are any, and `load_state_dict` takes
the size from what is loaded.
"""

import inspect
from collections.abc import Callable
from typing import Any, NoReturn

import wengert as wg
from wengert._core import Tensor

from ..module import Module
from .affine import Linear
from .batch import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
]


class _Unknown(dict[str, None]):
    """The names of parameters that are not known yet: nobody can walk over them."""

    def __init__(self, layer: str) -> None:
        """The class of the layer, for the message."""
        self.layer = layer

    def _raise(self, *_: Any) -> NoReturn:
        raise RuntimeError(
            f"{self.layer}: its parameters are not known before the first call; call the model once with an "
            "input of the right shape first"
        )

    __iter__ = __len__ = keys = items = values = _raise

    def __bool__(self) -> bool:
        """Raises."""
        self._raise()

    def __deepcopy__(self, memo: Any) -> "_Unknown":
        """Another one."""
        return _Unknown(self.layer)

    def __copy__(self) -> "_Unknown":
        """Another one."""
        return _Unknown(self.layer)

    def __reduce__(self) -> Any:
        """Another one."""
        return _Unknown, (self.layer,)


class _Lazy(Module):
    """A layer without its first size. A subclass names the layer and the axis of the input that has the
    size."""

    _real: type[Module]
    _axis = -1
    _size_of: Any
    __signature__: inspect.Signature

    def __init_subclass__(cls, of: type[Module] | None = None, axis: int = -1, size_of: Any = None) -> None:
        """Sets the layer, the axis of the input that has the size, and how the shape of a weight tells it."""
        super().__init_subclass__()
        if of is not None:
            cls._real, cls._axis, cls._size_of = of, axis, staticmethod(size_of)
            signature = inspect.signature(of)
            cls.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes the arguments of the layer without the first."""
        super().__init__()
        # Wrong arguments are told here, and not at the first call.
        inspect.signature(self._real).bind(1, *args, **kwargs)
        self.__dict__["_arguments"] = (args, kwargs)
        self.__dict__["_conversions"] = []
        self.__dict__["_parameter_names"] = _Unknown(type(self).__name__)

    def forward(self, input: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Becomes the layer for inputs like this one, where the input lies, and calls it."""
        least = -self._axis if self._axis < 0 else self._axis + 1
        if input.ndim < least:
            raise wg.ShapeError(
                f"{type(self).__name__}: an input with {least} axes or more expected, got shape "
                f"{tuple(input.shape)}"
            )
        self._become(input.shape[self._axis], input.device)
        return self.forward(input, *args, **kwargs)

    def _become(self, size: int, device: Any) -> None:
        """Becomes the layer of this size, on a device if the arguments name none."""
        args, kwargs = self.__dict__["_arguments"]
        given = inspect.signature(self._real).bind(size, *args, **kwargs).arguments
        made = self._real(**{"device": device, **given})
        for convert in self.__dict__["_conversions"]:
            made._apply(convert)
        del self.__dict__["_arguments"], self.__dict__["_conversions"]
        own = {k: v for k, v in made.__dict__.items() if k not in ("training", "_hooks")}
        self.__dict__.update(own)
        self.__class__ = self._real  # type: ignore[assignment]

    def _remember(self, convert: Callable[[Tensor], Tensor]) -> bool:
        """Keeps a conversion for the parameters that there will be."""
        self.__dict__["_conversions"].append(convert)
        return True

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Becomes the layer that was saved."""
        args, kwargs = self.__dict__["_arguments"]
        given = inspect.signature(self._real).bind(1, *args, **kwargs).arguments
        for name in ("weight", "running_mean"):
            if prefix + name in state_dict:
                shape = tuple(state_dict[prefix + name].shape)
                self._become(type(self)._size_of(shape, given.get("groups", 1)), None)
                break
        else:
            if not any(key.startswith(prefix) for key in state_dict):
                return
            raise RuntimeError(
                f"{type(self).__name__}: the state dict has no {prefix}weight that tells its size; call the "
                "model once with an input of the right shape first"
            )
        self._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        """Returns the arguments."""
        args, kwargs = self.__dict__["_arguments"]
        return ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in kwargs.items())])


def _of_columns(shape: tuple[int, ...], groups: int) -> int:
    """The size from the shape of a weight `(out, in / groups, ..)`."""
    return shape[1] * groups


def _of_rows(shape: tuple[int, ...], groups: int) -> int:
    """The size from the shape of a weight that begins with it."""
    return shape[0]


# Channels stand in front of the spatial axes; those of batch norm behind the batch.
class LazyLinear(_Lazy, of=Linear, size_of=_of_columns):
    """`Linear` that takes the number of input features from its first input; `out_features` and `bias` as
    there.

    Example:
        >>> wg.nn.LazyLinear(4)(wg.ones(2, 3)).shape
        (2, 4)
    """


class LazyConv1d(_Lazy, of=Conv1d, axis=-2, size_of=_of_columns):
    """`Conv1d` that takes the number of input channels from its first input.

    The other arguments are those of `Conv1d`: `out_channels`, `kernel_size`, `stride`, `padding`, `dilation`,
    `groups`, `bias` and `padding_mode`.

    Example:
        >>> wg.nn.LazyConv1d(8, 3)(wg.randn(4, 3, 10)).shape
        (4, 8, 8)
    """


class LazyConv2d(_Lazy, of=Conv2d, axis=-3, size_of=_of_columns):
    """`Conv2d` that takes the number of input channels from its first input.

    The other arguments are those of `Conv2d`: `out_channels`, `kernel_size`, `stride`, `padding`, `dilation`,
    `groups`, `bias` and `padding_mode`.

    Example:
        >>> wg.nn.LazyConv2d(8, 3)(wg.randn(4, 3, 9, 9)).shape
        (4, 8, 7, 7)
    """


class LazyConv3d(_Lazy, of=Conv3d, axis=-4, size_of=_of_columns):
    """`Conv3d` that takes the number of input channels from its first input.

    The other arguments are those of `Conv3d`: `out_channels`, `kernel_size`, `stride`, `padding`, `dilation`,
    `groups`, `bias` and `padding_mode`.

    Example:
        >>> wg.nn.LazyConv3d(8, 3)(wg.randn(1, 3, 5, 9, 9)).shape
        (1, 8, 3, 7, 7)
    """


class LazyConvTranspose1d(_Lazy, of=ConvTranspose1d, axis=-2, size_of=_of_rows):
    """`ConvTranspose1d` that takes the number of input channels from its first input.

    The other arguments are those of `ConvTranspose1d`: `out_channels`, `kernel_size`, `stride`, `padding`,
    `output_padding`, `groups`, `bias`, `dilation` and `padding_mode`.

    Example:
        >>> wg.nn.LazyConvTranspose1d(3, 2, stride=2)(wg.randn(4, 8, 5)).shape
        (4, 3, 10)
    """


class LazyConvTranspose2d(_Lazy, of=ConvTranspose2d, axis=-3, size_of=_of_rows):
    """`ConvTranspose2d` that takes the number of input channels from its first input.

    The other arguments are those of `ConvTranspose2d`: `out_channels`, `kernel_size`, `stride`, `padding`,
    `output_padding`, `groups`, `bias`, `dilation` and `padding_mode`.

    Example:
        >>> wg.nn.LazyConvTranspose2d(3, 2, stride=2)(wg.randn(4, 8, 5, 5)).shape
        (4, 3, 10, 10)
    """


class LazyConvTranspose3d(_Lazy, of=ConvTranspose3d, axis=-4, size_of=_of_rows):
    """`ConvTranspose3d` that takes the number of input channels from its first input.

    The other arguments are those of `ConvTranspose3d`: `out_channels`, `kernel_size`, `stride`, `padding`,
    `output_padding`, `groups`, `bias`, `dilation` and `padding_mode`.

    Example:
        >>> wg.nn.LazyConvTranspose3d(3, 2, stride=2)(wg.randn(1, 8, 2, 5, 5)).shape
        (1, 3, 4, 10, 10)
    """


class LazyInstanceNorm1d(_Lazy, of=InstanceNorm1d, axis=-2, size_of=_of_rows):
    """`InstanceNorm1d` that takes the number of channels from its first input.

    The other arguments are those of `InstanceNorm1d`: `eps`, `momentum`, `affine`, `track_running_stats` and
    `bias`.

    Example:
        >>> wg.nn.LazyInstanceNorm1d()(wg.randn(2, 3, 5)).shape
        (2, 3, 5)
    """


class LazyInstanceNorm2d(_Lazy, of=InstanceNorm2d, axis=-3, size_of=_of_rows):
    """`InstanceNorm2d` that takes the number of channels from its first input.

    The other arguments are those of `InstanceNorm1d`: `eps`, `momentum`, `affine`, `track_running_stats` and
    `bias`.

    Example:
        >>> wg.nn.LazyInstanceNorm2d()(wg.randn(2, 3, 5, 5)).shape
        (2, 3, 5, 5)
    """


class LazyInstanceNorm3d(_Lazy, of=InstanceNorm3d, axis=-4, size_of=_of_rows):
    """`InstanceNorm3d` that takes the number of channels from its first input.

    The other arguments are those of `InstanceNorm1d`: `eps`, `momentum`, `affine`, `track_running_stats` and
    `bias`.

    Example:
        >>> wg.nn.LazyInstanceNorm3d()(wg.randn(2, 3, 2, 5, 5)).shape
        (2, 3, 2, 5, 5)
    """


class LazyBatchNorm1d(_Lazy, of=BatchNorm1d, axis=1, size_of=_of_rows):
    """`BatchNorm1d` that takes the number of channels from its first input.

    The other arguments are those of `BatchNorm1d`: `eps`, `momentum`, `affine`, `track_running_stats` and
    `bias`.

    Example:
        >>> wg.nn.LazyBatchNorm1d()(wg.randn(4, 3)).shape
        (4, 3)
    """


class LazyBatchNorm2d(_Lazy, of=BatchNorm2d, axis=1, size_of=_of_rows):
    """`BatchNorm2d` that takes the number of channels from its first input.

    The other arguments are those of `BatchNorm1d`: `eps`, `momentum`, `affine`, `track_running_stats` and
    `bias`.

    Example:
        >>> wg.nn.LazyBatchNorm2d()(wg.randn(4, 3, 5, 5)).shape
        (4, 3, 5, 5)
    """


class LazyBatchNorm3d(_Lazy, of=BatchNorm3d, axis=1, size_of=_of_rows):
    """`BatchNorm3d` that takes the number of channels from its first input.

    The other arguments are those of `BatchNorm1d`: `eps`, `momentum`, `affine`, `track_running_stats` and
    `bias`.

    Example:
        >>> wg.nn.LazyBatchNorm3d()(wg.randn(4, 3, 2, 5, 5)).shape
        (4, 3, 2, 5, 5)
    """
