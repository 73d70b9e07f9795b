"""Layers that learn one size from their first input: `LazyLinear(10)` is `Linear(n, 10)` after a call with n features.

Until then a layer has no parameters, and whatever asks for them is told so: an optimiser made too early would leave
the layer untrained. The first call happens outside of transforms, before `to`, `state_dict` and optimisers.
"""

import inspect
from typing import Any, NoReturn

import wengert as wg
from wengert._core import Tensor

from ..module import Module
from .affine import Linear
from .batch import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d


class _Unknown(dict[str, None]):
    """The names of parameters that are not known yet: nobody can walk over them."""

    def __init__(self, layer: str) -> None:
        """The class of the layer, for the message."""
        self.layer = layer

    def _raise(self, *_: Any) -> NoReturn:
        raise RuntimeError(
            f"{self.layer}: its parameters are not known before the first call; call the model once with an input of "
            "the right shape first"
        )

    __iter__ = __len__ = keys = items = values = _raise

    def __bool__(self) -> bool:
        """Raises."""
        self._raise()

    def __deepcopy__(self, memo: Any) -> "_Unknown":
        """Another one."""
        return _Unknown(self.layer)

    def __reduce__(self) -> Any:
        """Another one."""
        return _Unknown, (self.layer,)


class _Lazy(Module):
    """A layer without its first size. A subclass names the layer and the axis of the input that has the size."""

    _real: type[Module]
    _axis = -1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Takes the arguments of the layer without the first."""
        super().__init__()
        # Wrong arguments are told here, and not at the first call.
        inspect.signature(self._real).bind(1, *args, **kwargs)
        self.__dict__["_arguments"] = (args, kwargs)
        self.__dict__["_parameter_names"] = _Unknown(type(self).__name__)

    def forward(self, input: Tensor) -> Any:
        """Becomes the layer for inputs like this one, where the input lies, and calls it."""
        least = -self._axis if self._axis < 0 else self._axis + 1
        if input.ndim < least:
            raise wg.ShapeError(
                f"{type(self).__name__}: an input with {least} axes or more expected, got shape {tuple(input.shape)}"
            )
        args, kwargs = self.__dict__["_arguments"]
        given = inspect.signature(self._real).bind(input.shape[self._axis], *args, **kwargs).arguments
        made = self._real(**{"device": input.device, **given})
        del self.__dict__["_arguments"]
        own = {k: v for k, v in made.__dict__.items() if k not in ("training", "_hooks")}
        self.__dict__.update(own)
        self.__class__ = self._real  # type: ignore[assignment]
        return self.forward(input)

    def extra_repr(self) -> str:
        """The arguments."""
        args, kwargs = self.__dict__["_arguments"]
        return ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in kwargs.items())])


def _lazy(real: type[Module], axis: int, what: str) -> Any:
    members = {
        "__doc__": f"`{real.__name__}` that takes the number of {what} from its first input.",
        "__module__": __name__,
        "_real": real,
        "_axis": axis,
    }
    return type(f"Lazy{real.__name__}", (_Lazy,), members)


# Channels stand in front of the spatial axes; those of batch norm behind the batch.
LazyLinear = _lazy(Linear, -1, "input features")
LazyConv1d, LazyConv2d, LazyConv3d = (
    _lazy(real, axis, "input channels") for real, axis in ((Conv1d, -2), (Conv2d, -3), (Conv3d, -4))
)
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(real, axis, "input channels")
    for real, axis in ((ConvTranspose1d, -2), (ConvTranspose2d, -3), (ConvTranspose3d, -4))
)
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _lazy(real, axis, "channels")
    for real, axis in ((InstanceNorm1d, -2), (InstanceNorm2d, -3), (InstanceNorm3d, -4))
)
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (
    _lazy(real, 1, "channels") for real in (BatchNorm1d, BatchNorm2d, BatchNorm3d)
)
