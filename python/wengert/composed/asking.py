"""Questions about tensors and their elements, and where elements are."""

import builtins
from typing import Any

from wengert import _core
from wengert._arguments import compared, operand
from wengert._core import Tensor
from wengert._types import Sizes, TensorLike

from ._method import method

__all__ = [
    "argwhere",
    "can_cast",
    "get_device",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_tensor",
    "isin",
    "isreal",
    "promote_types",
    "unravel_index",
]


@method
def argwhere(input: Tensor) -> Tensor:
    """Returns the indices of the elements that are not zero, as rows.

    Example:
        >>> wg.argwhere(wg.tensor([[0.0, 5.0], [7.0, 0.0]]))
        tensor([[0, 1],
                [1, 0]])
    """
    return input.nonzero()


@method
def is_nonzero(input: Tensor) -> builtins.bool:
    """Tells whether the only element is not zero.

    Raises:
        ValueError: there is not exactly one element.

    Example:
        >>> wg.is_nonzero(wg.tensor([3.0]))
        True
    """
    if input.numel() != 1:
        raise ValueError(
            f"is_nonzero: one element expected, got shape {tuple(input.shape)}; any() and all() reduce several"
        )
    return builtins.bool(input.item())


@method
def is_signed(input: Tensor) -> builtins.bool:
    """Tells whether the dtype has negative numbers.

    Example:
        >>> wg.is_signed(wg.tensor([1, 2]))
        True
    """
    return input.dtype not in (_core.bool, _core.uint8, _core.uint16, _core.uint32, _core.uint64)


@method
def get_device(input: Tensor) -> int:
    """Returns the number of the GPU that holds the elements; -1 on the CPU."""
    return (input.device.index or 0) if input.is_gpu else -1


def is_tensor(obj: Any) -> builtins.bool:
    """Tells whether an object is a tensor.

    Example:
        >>> wg.is_tensor(wg.ones(2)), wg.is_tensor([1.0, 1.0])
        (True, False)
    """
    return isinstance(obj, Tensor)


@method
def is_same_size(input: Tensor, other: TensorLike) -> builtins.bool:
    """Tells whether both have one shape.

    Example:
        >>> wg.is_same_size(wg.zeros(2, 3), wg.zeros(3, 2))
        False
    """
    return tuple(input.shape) == tuple(operand("is_same_size", other).shape)


@method
def isreal(input: Tensor) -> Tensor:
    """Tells where the imaginary part is zero; everywhere in real tensors.

    Example:
        >>> wg.isreal(wg.tensor([1 + 0j, 1j]))
        tensor([ True, False])
    """
    if input.is_complex():
        return input.imag == 0
    return _core.ones_like(input, dtype=_core.bool)


def isin(
    elements: TensorLike, test_elements: TensorLike, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Tells where `elements` are equal to any of `test_elements`. NaN is equal to nothing.

    Args:
        assume_unique: accepted; the result does not depend on it.
        invert: where they are equal to none instead.

    Example:
        >>> wg.isin(wg.tensor([1, 2, 3]), wg.tensor([2, 9]))
        tensor([False,  True, False])
    """
    x, tests = compared("isin", elements, test_elements)
    x, tests = x.detach(), tests.detach().reshape(-1)
    if x.dtype == _core.bool:
        x, tests = x.to(_core.int32), tests.to(_core.int32)
    count = tests.shape[0]
    if count == 0:
        found = _core.zeros_like(x, dtype=_core.bool)
    elif x.is_complex():
        found = (x.unsqueeze(-1) == tests).any(-1)
    else:
        ascending = tests.sort(0).values
        place = ascending._search_sorted(x, False)
        found = ascending.take(place.clamp(max=count - 1), 0) == x
    return found.logical_not() if invert else found


def unravel_index(indices: TensorLike, shape: Sizes) -> tuple[Tensor, ...]:
    """Returns the coordinates of elements that are numbered in row-major order, one tensor for each axis of `shape`.

    Raises:
        IndexError: a number is outside of the shape.

    Example:
        >>> wg.unravel_index(wg.tensor([5]), (2, 3))
        (tensor([1]), tensor([2]))
    """
    left = operand("unravel_index", indices)
    if left.is_floating_point() or left.is_complex() or left.dtype == _core.bool:
        raise TypeError(f"unravel_index: integers expected, got {left.dtype}; convert with .long() first")
    lengths = [shape] if isinstance(shape, int) else list(shape)
    count = 1
    for n in lengths:
        count *= n
    if left.numel() and (left.min().item() < 0 or left.max().item() >= count):
        raise IndexError(
            f"unravel_index: indices from {left.min().item()} to {left.max().item()} for {count} elements of shape "
            f"{tuple(lengths)}"
        )
    coordinates = []
    for n in reversed(lengths):
        coordinates.append(left % n if n else left)
        left = left // n if n else left
    return tuple(reversed(coordinates))


def promote_types(type1: Any, type2: Any) -> Any:
    """Returns the dtype of results of tensors of these dtypes.

    Example:
        >>> wg.promote_types(wg.int64, wg.float32)
        wengert.float32
    """
    return _core.result_type(*(_core.empty((1,), dtype=kind) for kind in (type1, type2)))


def can_cast(from_: Any, to: Any) -> builtins.bool:
    """Tells whether PyTorch converts a dtype in operations: never from a kind of numbers to a narrower one.

    The kinds are bool, integers, floating point and complex numbers.

    Example:
        >>> wg.can_cast(wg.float32, wg.int64)
        False
    """
    return _kind(from_) <= _kind(to)


def _kind(dtype: Any) -> int:
    dtype = _core.empty((), dtype=dtype).dtype
    if dtype == _core.bool:
        return 0
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 1
