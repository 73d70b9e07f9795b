"""Combining elements with those at the places of an index, in place: at the cost of what is combined.

What is there is read, combined among itself and written back: each place stands for itself once, where the sorted
index names it first.
"""

from wengert import _core
from wengert._core import Tensor
from wengert._types import TensorLike

from ._method import method, positions_like
from .placing import reduced_slices
from .scattering import REDUCTIONS, scatter_operands

__all__: list[str] = []


def _is_part(input: Tensor, count: int) -> bool:
    """Whether so many elements are combined where they stand rather than in a pass over all of `input`."""
    return not input.is_gpu and 0 < 4 * count <= input.numel()


def _groups(place: Tensor, axis: int) -> tuple[Tensor, Tensor, Tensor]:
    """The order that sorts places along an axis, the sorted places, and where each of them stands first there."""
    order = place.argsort(axis)
    place = place.gather(axis, order)
    length = place.shape[axis]
    begins = place.narrow(axis, 1, length - 1) != place.narrow(axis, 0, length - 1)
    begins = _core.cat([_core.ones_like(place.narrow(axis, 0, 1), dtype=_core.bool), begins], axis)
    at = positions_like(place, length).reshape([-1 if k == axis else 1 for k in range(place.ndim)])
    return order, place, _core.where(begins, at, 0).cummax(axis).values


@method
def scatter_reduce_(
    input: Tensor,
    dim: int,
    index: TensorLike,
    src: Tensor | complex,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Computes `scatter_reduce` in place."""
    if reduce in REDUCTIONS and input.ndim > 0:
        axis, named, source = scatter_operands("scatter_reduce", input, dim, index, src)
        if _is_part(input, named.numel()):
            here = input.gather(axis, named)
            order, place, first = _groups(named % input.shape[axis], axis)
            here, source = here.gather(axis, order), source.gather(axis, order)
            out = here.scatter_reduce(axis, first, source, reduce, include_self=include_self)
            return input._scatter_("scatter_reduce", axis, place, out.gather(axis, first))
    return input._in_place("scatter_reduce", dim, index, src, reduce, include_self=include_self)


@method
def index_reduce_(
    input: Tensor,
    dim: int,
    index: TensorLike,
    source: Tensor | complex,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Computes `index_reduce` in place."""
    if reduce in REDUCTIONS and input.ndim > 0:
        axis, vector, slices = reduced_slices(input, dim, index, source)
        if _is_part(input, slices.numel()):
            here = input.index_select(axis, vector)
            order, place, first = _groups(vector % input.shape[axis], 0)
            here, slices = here.index_select(axis, order), slices.index_select(axis, order)
            out = here.index_reduce(axis, first, slices, reduce, include_self=include_self)
            return input._put_slices_("index_reduce", axis, place, out.index_select(axis, first))
    return input._in_place("index_reduce", dim, index, source, reduce, include_self=include_self)
