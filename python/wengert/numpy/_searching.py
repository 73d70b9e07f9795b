"""Sorting, searching, picking and sets, with the standard's parameters."""

from typing import Any, NamedTuple

from wengert import _core
from wengert._arguments import axis_of, operand
from wengert._core import Tensor
from wengert.composed.buckets import isin as _isin, searchsorted as _searchsorted

from ._elementwise import alike

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "isin",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]


def argmax(x: Tensor, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Returns the place of the first maximum along an axis, or in the flattened tensor."""
    return _place(operand("argmax", x), Tensor.argmax, axis, keepdims)


def argmin(x: Tensor, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Returns the place of the first minimum along an axis, or in the flattened tensor."""
    return _place(operand("argmin", x), Tensor.argmin, axis, keepdims)


def _place(x: Tensor, method: Any, axis: int | None, keepdims: bool) -> Tensor:
    if axis is None:
        place: Tensor = method(x)
        return place.reshape([1] * x.ndim) if keepdims else place
    return method(x, axis, keepdims)


def sort(x: Tensor, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Returns the elements in sorted order along an axis. Equal ones always keep their order; NaN counts as
    the largest.
    """
    return operand("sort", x).sort(axis, descending).values


def argsort(x: Tensor, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Returns the positions that sort an axis. Equal elements always keep their order; NaN counts as the
    largest.
    """
    return operand("argsort", x).argsort(axis, descending)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Returns the positions of the elements that are not zero, one tensor for each axis.

    Raises:
        ValueError: a tensor without axes.
    """
    x = operand("nonzero", x)
    if x.ndim == 0:
        raise _core.ShapeError("nonzero: a tensor with axes expected, got a number in a tensor of shape ()")
    return (x != 0 if x.is_complex() else x).nonzero(as_tuple=True)


def searchsorted(x1: Tensor, x2: Any, /, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Returns where each element of `x2` belongs in the ascending vector `x1`: before equal elements, or
    (`"right"`) behind.

    Args:
        sorter: the order that sorts `x1`, from `argsort`.
    """
    x1, x2 = alike("searchsorted", x1, operand("searchsorted", x2))
    return _searchsorted(x1, x2, side=side, sorter=sorter)


def where(condition: Tensor, x: Any = None, y: Any = None, /) -> Any:
    """Returns `x` where the condition holds, `y` elsewhere; all broadcast. No gradient flows through what is
    not picked. The condition alone gives the places where it holds, as `nonzero` does.
    """
    if x is None and y is None:
        return nonzero(condition)
    numbers = isinstance(x, (int, float, complex)) and isinstance(y, (int, float, complex))
    return _core.where(operand("where", condition), *((x, y) if numbers else alike("where", x, y)))


def take(x: Tensor, /, indices: Any, axis: int | None = None) -> Tensor:
    """Returns the slices along an axis (elements of the flattened tensor by default) at places; the axes of
    `indices` stand where that axis was.
    """
    x, places = operand("take", x), operand("take", indices)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis_of("take", axis, x.ndim)
    taken = x.index_select(axis, places.reshape(-1))
    return taken.reshape((*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]))


def take_along_axis(x: Tensor, /, indices: Any, axis: int = -1) -> Tensor:
    """Takes, for each line along an axis, the elements at its own places; the other axes broadcast."""
    return operand("take_along_axis", x).take_along_dim(operand("take_along_axis", indices), axis)


class UniqueAll(NamedTuple):
    """Distinct elements, where each occurs first, which each element is, and how often each occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct elements, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct elements, and which of them each element is."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """Returns the distinct elements, ascending, where each occurs first, which each element is, and how often
    each occurs.

    Each NaN is distinct.
    """
    x = operand("unique_all", x)
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    # Sorting keeps the order of equal elements, so the first of each run is where the element occurs first.
    order = inverse.reshape(-1).argsort(0)
    return UniqueAll(
        values, order.index_select(0, counts.cumsum(0).to(order.dtype) - counts), inverse, counts
    )


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Returns the distinct elements, ascending, and how often each occurs. Each NaN is distinct."""
    return UniqueCounts(*operand("unique_counts", x).unique(return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Returns the distinct elements, ascending, and which of them each element is. Each NaN is distinct."""
    return UniqueInverse(*operand("unique_inverse", x).unique(return_inverse=True))


def unique_values(x: Tensor, /) -> Tensor:
    """Returns the distinct elements, ascending. Each NaN is distinct."""
    return operand("unique_values", x).unique()


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Tells whether each element of `x1` is among those of `x2`, or (`invert`) is not."""
    return _isin(*alike("isin", x1, x2), invert=invert)
