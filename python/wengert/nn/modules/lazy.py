"""Layers that learn one size from their first input: `LazyLinear(10)` is `Linear(n, 10)` after a call with n features.

Until then a layer has no parameters, and whatever asks for them is told so: an optimiser made too early would leave
the layer untrained. The first call happens outside of transforms, before `state_dict` and optimisers. `to`
and its kin are done to the parameters as soon as there are any,
and `load_state_dict` takes the size from what is loaded.
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

    def __copy__(self) -> "_Unknown":
        """Another one."""
        return _Unknown(self.layer)

    def __reduce__(self) -> Any:
        """Another one."""
        return _Unknown, (self.layer,)


class _Lazy(Module):
    """A layer without its first size. A subclass names the layer and the axis of the input that has the size."""

    _real: type[Module]
    _axis = -1
    _size_of: Any

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
                f"{type(self).__name__}: an input with {least} axes or more expected, got shape {tuple(input.shape)}"
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
        """The arguments."""
        args, kwargs = self.__dict__["_arguments"]
        return ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in kwargs.items())])


def _lazy(real: type[Module], axis: int, what: str, size_of: Any) -> Any:
    members = {
        "_size_of": staticmethod(size_of),
        "__doc__": f"`{real.__name__}` that takes the number of {what} from its first input.",
        "__module__": __name__,
        "_real": real,
        "_axis": axis,
    }
    return type(f"Lazy{real.__name__}", (_Lazy,), members)


def _of_columns(shape: tuple[int, ...], groups: int) -> int:
    """The size from the shape of a weight `(out, in / groups, ..)`."""
    return shape[1] * groups


def _of_rows(shape: tuple[int, ...], groups: int) -> int:
    """The size from the shape of a weight that begins with it."""
    return shape[0]


# Channels stand in front of the spatial axes; those of batch norm behind the batch.
LazyLinear = _lazy(Linear, -1, "input features", _of_columns)
LazyConv1d, LazyConv2d, LazyConv3d = (
    _lazy(real, axis, "input channels", _of_columns)
    for real, axis in ((Conv1d, -2), (Conv2d, -3), (Conv3d, -4))
)
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(real, axis, "input channels", _of_rows)
    for real, axis in ((ConvTranspose1d, -2), (ConvTranspose2d, -3), (ConvTranspose3d, -4))
)
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _lazy(real, axis, "channels", _of_rows)
    for real, axis in ((InstanceNorm1d, -2), (InstanceNorm2d, -3), (InstanceNorm3d, -4))
)
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (
    _lazy(real, 1, "channels", _of_rows) for real in (BatchNorm1d, BatchNorm2d, BatchNorm3d)
)
