"""What operations return: named pairs, the number of elements, results that depend on something in name
only."""

from typing import NamedTuple, Self, overload

from wengert._core import Tensor


class Along(NamedTuple):
    """Extrema along an axis and where they are."""

    values: Tensor
    indices: Tensor


class MinMax(NamedTuple):
    """The smallest and the largest element."""

    min: Tensor
    max: Tensor


class Size(int):
    """The number of elements of a tensor; called, its shape, or the length of one axis.

    Example:
        >>> x = wg.zeros(2, 3)
        >>> x.size, x.size(), x.size(-1)
        (6, (2, 3), 3)
    """

    _shape: tuple[int, ...]

    def __new__(cls, count: int, shape: tuple[int, ...]) -> Self:
        """A tensor of this shape has `count` elements."""
        size = super().__new__(cls, count)
        size._shape = shape
        return size

    def __reduce__(self) -> tuple[type["Size"], tuple[int, tuple[int, ...]]]:
        """What a copy is made of."""
        return Size, (int(self), self._shape)

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


def beside(out: Tensor, *sources: Tensor) -> Tensor:
    """A result as a function of `sources` too, on which it depends with a derivative of zero.

    What is added is the sum of none of their elements, so that NaN does not get into the result.
    """
    for x in sources:
        if x.requires_grad and out.dtype.is_differentiable:
            out = out + x.reshape(-1).narrow(0, 0, 0).sum().to(out.dtype)
    return out
