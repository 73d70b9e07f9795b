"""Constructors of PyTorch's classes of tensors, one for each dtype, and its class of shapes."""

from typing import Any

from wengert import _core
from wengert._core import Tensor

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "Size",
    "layout",
    "strided",
]


class layout:
    """How the elements of a tensor are stored. There is one way, `wengert.strided`.

    Example:
        >>> wg.ones(2).layout is wg.strided
        True
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Its name."""
        return "wengert.strided"

    def __reduce__(self) -> str:
        """A copy is the same object."""
        return "strided"


strided = layout()


class Size(tuple[int, ...]):
    """A shape that knows its number of elements. Shapes of tensors are plain tuples, which it equals.

    Example:
        >>> wg.Size([2, 3]).numel()
        6
    """

    __slots__ = ()

    def numel(self) -> int:
        """Returns the product of the lengths."""
        count = 1
        for n in self:
            count *= n
        return count

    def __repr__(self) -> str:
        """As PyTorch shows it."""
        return f"Size({list(self)})"

    def __add__(self, other: Any) -> "Size":
        """The lengths of both."""
        return Size(tuple.__add__(self, tuple(other)))

    def __getitem__(self, key: Any) -> Any:
        """One length, or the `Size` of several."""
        found = tuple.__getitem__(self, key)
        return Size(found) if isinstance(key, slice) else found


class _Kind(type):
    """Classes of tensors of one dtype on the CPU, or on a GPU. They have no instances of their own:
    calling one makes a `Tensor`.
    """

    dtype: Any
    device: str | None

    def __call__(cls, *data: Any, device: Any = None) -> Tensor:
        """A tensor of this dtype: `kind(2, 3)` of this shape, to be filled;
        `kind(data)` of lists or an array.
        """
        return _core._of_kind(cls.__name__, cls.dtype, data, cls.device if device is None else device)

    def __instancecheck__(cls, x: Any) -> bool:
        """Whether an object is a tensor of this dtype there."""
        return isinstance(x, Tensor) and x.dtype == cls.dtype and x.is_gpu == (cls.device is not None)


def kind(name: str, dtype: Any, device: str | None = None) -> Any:
    """The class `name` of tensors of a dtype, on the CPU or on a device of another name."""
    home = "wengert" if device is None else f"wengert.{device}"
    place = "the CPU" if device is None else "a GPU"
    doc = (
        f"Makes {dtype.name} tensors: `{name}(2, 3)` of this shape, to be filled, `{name}(data)` of lists or "
        "an array.\n\nA tensor that is given must have the dtype; its memory is shared. `isinstance` tells "
        f"tensors of this dtype on {place}, and `x.type({name})` converts.\n"
    )
    return _Kind(name, (), {"__doc__": doc, "__module__": home, "dtype": dtype, "device": device})


BFloat16Tensor = kind("BFloat16Tensor", _core.bfloat16)
BoolTensor = kind("BoolTensor", _core.bool)
ByteTensor = kind("ByteTensor", _core.uint8)
CharTensor = kind("CharTensor", _core.int8)
DoubleTensor = kind("DoubleTensor", _core.float64)
FloatTensor = kind("FloatTensor", _core.float32)
HalfTensor = kind("HalfTensor", _core.float16)
IntTensor = kind("IntTensor", _core.int32)
LongTensor = kind("LongTensor", _core.int64)
ShortTensor = kind("ShortTensor", _core.int16)
