"""Parts of tensors along an axis, at given places or of given lengths; and turning them over."""

from collections.abc import Sequence

from wengert import _core
from wengert._core import Tensor
from wengert._types import Sizes

from ._method import method, on_axis

__all__ = [
    "adjoint",
    "dsplit",
    "fliplr",
    "flipud",
    "hsplit",
    "msort",
    "split_with_sizes",
    "tensor_split",
    "vsplit",
]


#: The most parts that make a tuple.
MOST_PARTS = 1 << 24


@method
def tensor_split(input: Tensor, indices_or_sections: Sizes | Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Splits along `dim` into views.

    Args:
        indices_or_sections: how many parts, the first of which are one longer where the length does not divide; or
            the places where parts begin, a sequence or a vector of integers, as in slices.

    Example:
        >>> [x.tolist() for x in wg.tensor_split(wg.arange(5), 2)]
        [[0, 1, 2], [3, 4]]
    """
    if input.ndim == 0:
        raise _core.ShapeError("tensor_split: at least one axis expected, got a number")
    x, axis = on_axis("tensor_split", input, dim)
    length = x.shape[axis]
    places = indices_or_sections
    if isinstance(places, Tensor):
        places = places.tolist()
    if isinstance(places, int):
        if places < 1:
            raise ValueError(f"tensor_split: at least one part expected, got {places}")
        if places > MOST_PARTS:
            raise ValueError(f"tensor_split: at most {MOST_PARTS} parts expected, got {places}")
        least, longer = divmod(length, places)
        places = [i * least + min(i, longer) for i in range(1, places)]
    if not isinstance(places, (list, tuple)) or not all(isinstance(i, int) for i in places):
        raise TypeError(
            f"tensor_split: a number of parts or a sequence of integers expected, got {indices_or_sections!r}"
        )
    parts = []
    for begin, end in zip([0, *places], [*places, length], strict=True):
        first, last, _ = slice(begin, end).indices(length)
        parts.append(x.narrow(axis, first, max(last - first, 0)))
    return tuple(parts)


def _even(
    name: str, input: Tensor, indices_or_sections: Sizes | Tensor, dim: int, least: int
) -> tuple[Tensor, ...]:
    """Returns the parts along an axis that the tensor must have, of one length where their number is given."""
    if input.ndim < least:
        raise _core.ShapeError(f"{name}: at least {least} axes expected, got shape {tuple(input.shape)}")
    if isinstance(indices_or_sections, int) and (
        indices_or_sections < 1 or input.shape[dim] % indices_or_sections
    ):
        raise ValueError(
            f"{name}: axis {dim} of length {input.shape[dim]} does not divide into {indices_or_sections} equal parts; "
            "tensor_split makes unequal ones"
        )
    return tensor_split(input, indices_or_sections, dim)


@method
def hsplit(input: Tensor, indices_or_sections: Sizes | Tensor) -> tuple[Tensor, ...]:
    """Splits along the second axis, vectors along their only one; see `tensor_split`.

    Example:
        >>> [x.tolist() for x in wg.hsplit(wg.arange(4), 2)]
        [[0, 1], [2, 3]]
    """
    return _even("hsplit", input, indices_or_sections, 0 if input.ndim == 1 else 1, 1)


@method
def vsplit(input: Tensor, indices_or_sections: Sizes | Tensor) -> tuple[Tensor, ...]:
    """Splits along the first axis of a tensor with at least two; see `tensor_split`.

    Example:
        >>> wg.vsplit(wg.tensor([[1, 2], [3, 4]]), 2)
        (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return _even("vsplit", input, indices_or_sections, 0, 2)


@method
def dsplit(input: Tensor, indices_or_sections: Sizes | Tensor) -> tuple[Tensor, ...]:
    """Splits along the third axis; see `tensor_split`.

    Example:
        >>> [part.shape for part in wg.dsplit(wg.zeros(2, 2, 4), 2)]
        [(2, 2, 2), (2, 2, 2)]
    """
    return _even("dsplit", input, indices_or_sections, 2, 3)


@method
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Splits into parts of these lengths along `dim`, which are views.

    Example:
        >>> [x.tolist() for x in wg.split_with_sizes(wg.arange(3), [1, 2])]
        [[0], [1, 2]]
    """
    return tuple(input.split(list(split_sizes), dim))


@method
def fliplr(input: Tensor) -> Tensor:
    """Reverses the second axis.

    Example:
        >>> wg.fliplr(wg.tensor([[1, 2], [3, 4]]))
        tensor([[2, 1],
                [4, 3]])
    """
    if input.ndim < 2:
        raise _core.ShapeError(f"fliplr: at least two axes expected, got shape {tuple(input.shape)}")
    return input.flip(1)


@method
def flipud(input: Tensor) -> Tensor:
    """Reverses the first axis.

    Example:
        >>> wg.flipud(wg.tensor([[1, 2], [3, 4]]))
        tensor([[3, 4],
                [1, 2]])
    """
    if input.ndim < 1:
        raise _core.ShapeError("flipud: at least one axis expected, got a number")
    return input.flip(0)


@method
def adjoint(input: Tensor) -> Tensor:
    """Returns the conjugate transposes of the matrices in the last two axes.

    Example:
        >>> wg.adjoint(wg.tensor([[1.0, 2j], [0.0, 1.0]]))
        tensor([[1.-0.j, 0.-0.j],
                [0.-2.j, 1.-0.j]])
    """
    return input.mH


@method
def msort(input: Tensor) -> Tensor:
    """Sorts the elements along the first axis.

    Example:
        >>> wg.msort(wg.tensor([3.0, 1.0, 2.0]))
        tensor([1., 2., 3.])
    """
    return input.sort(0).values
