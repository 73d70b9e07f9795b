"""What the array API standard wants of an array object beyond PyTorch's methods.

`Tensor.__array_namespace__` leads to `wengert.numpy`, which has the functions. `x.size` is a number in the standard and
a method in PyTorch: here it is both.
"""

import importlib
from typing import Any, overload

from wengert._core import Tensor

__all__ = ["Size"]

# The versions of the standard whose functions are all in `wengert.numpy`.
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


class Size(int):
    """The number of elements of a tensor; called, its shape, or the length of one axis.

    Example:
        >>> x = wg.zeros(2, 3)
        >>> x.size, x.size(), x.size(-1)
        (6, (2, 3), 3)
    """

    _shape: tuple[int, ...]

    @overload
    def __call__(self) -> tuple[int, ...]: ...
    @overload
    def __call__(self, dim: int) -> int: ...
    @overload
    def __call__(self, *, axis: int) -> int: ...
    def __call__(self, dim: int | None = None, *, axis: int | None = None) -> int | tuple[int, ...]:
        """The shape, or the length of axis `dim`."""
        shape, dim = self._shape, axis if dim is None else dim
        if dim is None:
            return shape
        rank = len(shape)
        if -rank <= dim < rank:
            return shape[dim]
        raise IndexError(f"size: axis {dim} is out of range for a tensor with {rank} axes")


def _size(self: Tensor) -> Size:
    """The number of elements, a number; called (`x.size()`, `x.size(0)`), the shape or the length of one axis."""
    size = Size(self.numel())
    size._shape = self.shape
    return size


def _array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """The functions of the array API standard: `wengert.numpy`.

    Raises:
        ValueError: a version of the standard that it does not follow.
    """
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"__array_namespace__: version {api_version!r} of the array API standard is not one of "
            f"{', '.join(VERSIONS)}"
        )
    return importlib.import_module("wengert.numpy")


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """This tensor on another device, itself if it is there; the standard's name of `to(device)`.

    Raises:
        ValueError: a stream, which no device of this library has.
    """
    if stream is not None:
        raise ValueError(f"to_device: devices have no streams to choose from, got stream={stream!r}")
    return self.to(device)


def _imatmul(self: Tensor, other: Any, /) -> Tensor:
    """`self @ other`, in place; its shape must be that of `self`."""
    return self._in_place("matmul", other)


def _complex(self: Tensor, /) -> complex:
    """The one element as a complex number."""
    return complex(self.item())


_METHODS = {
    "__array_namespace__": _array_namespace,
    "__complex__": _complex,
    "__imatmul__": _imatmul,
    "to_device": _to_device,
}
for _name, _method in _METHODS.items():
    _method.__name__ = _method.__qualname__ = _name
    setattr(Tensor, _name, _method)
setattr(Tensor, "size", property(_size))  # noqa: B010 - the stub has the property already
