"""Named axes: what a member of an axis does together with all others.

An axis with a name is a batch, under `vmap(..., axis_name=)`, or a group of processes, under
`wengert.distributed.axis` and `mesh`. What the functions here compute, and its derivatives, is the same under
either: they are operations of the core, with rules for both. The derivative is that of the whole map, over
all members at once.
"""

import contextlib
import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, SupportsIndex

from wengert import _core
from wengert._axis_names import AXES, use_axes
from wengert._core import Tensor
from wengert.tree import tree_map

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "name_axes",
    "pbroadcast",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "psum",
    "psum_scatter",
]

Names = str | tuple[str, ...]


class Axis(NamedTuple):
    """An axis: the number of members, and who they are."""

    size: int
    # The position of the example at hand, or the rank of this process.
    index: Any
    # The ranks, if the members are processes.
    ranks: Any = None
    # Of the group of processes; no other group has it, or had it.
    number: int = 0

    def collective(self, x: Any, kind: str, at: Any = None) -> Tensor:
        """What the members do with a tensor."""
        members = self.ranks or (self.index, self.size)
        return _core._collective(_core.as_tensor(x), kind, at, members)


@contextlib.contextmanager
def name_axes(axes: dict[str, Axis], *, hiding: bool = False) -> Iterator[None]:
    """While it lasts, these names are these axes; `hiding` other axes of processes."""
    before = {name: axis for name, axis in AXES.get().items() if not (hiding and axis.ranks)}
    with use_axes({**before, **axes}):
        yield


def has_ranks() -> bool:
    """Whether an axis of processes has a name here."""
    return any(axis.ranks is not None for axis in AXES.get().values())


def describe_axes() -> str:
    """The axes that have names, as a text that is the same for the same groups of processes."""
    return "; ".join(f"{name} {axis.size} {axis.number}" for name, axis in AXES.get().items())


def _find_axis(function: str, name: str) -> Axis:
    axes = AXES.get()
    if not isinstance(name, str):
        raise TypeError(f"{function}: axis_name must be a string, got {type(name).__name__}")
    if name not in axes:
        found = ", ".join(repr(n) for n in axes) or "none"
        raise ValueError(
            f"{function}: there is no axis {name!r} here; vmap(..., axis_name={name!r}) gives an axis of a batch "
            f"its name, and wg.distributed.axis({name!r}) one of processes, in the thread that enters it. Known here: "
            f"{found}"
        )
    return axes[name]


def _find_axes(function: str, names: Names) -> list[Axis]:
    """The axes of these names, innermost first."""
    many = names if isinstance(names, tuple | list) else (names,)
    found = [_find_axis(function, name) for name in reversed(many)]
    if not many or len(set(many)) < len(many):
        raise ValueError(f"{function}: axis_name is one name or several different ones, got {names!r}")
    return found


def _normalize_axis(function: str, axis: int, rank: int) -> int:
    """An axis of a tensor with so many, counted from the front."""
    axis = _as_integer(function, "an axis of a tensor", axis)
    if not -rank <= axis < rank:
        raise IndexError(f"{function}: axis {axis} is out of range for {rank} axes")
    return axis % rank


def _as_integer(function: str, what: str, value: Any) -> int:
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        return operator.index(value)
    raise TypeError(f"{function}: {what} is an integer, got {value!r}")


def _map_tensors(function: Callable[[Tensor], Tensor], x: Any) -> Any:
    return tree_map(lambda leaf: function(_core.as_tensor(leaf)), x)


def _split_axis(function: str, x: Tensor, at: int, parts: int, tiled: bool) -> Tensor:
    """The tensor with an axis of so many parts at `at`; if `tiled`, of parts that stay an axis behind it."""
    length = x.shape[at]
    if (length % parts if tiled else length != parts) or not parts:
        wanted = f"a multiple of {parts}" if tiled else f"{parts}"
        raise ValueError(
            f"{function}: axis {at} of shape {tuple(x.shape)} has length {length}; for {parts} members it must "
            f"be {wanted}"
        )
    return x.unflatten(at, (parts, length // parts)) if tiled else x


def axis_index(axis_name: Names) -> Tensor:
    """Returns the position along the axis of the example, or the process, at hand: an integer of shape ().

    Args:
        axis_name: the name that `vmap`, `distributed.axis` or `distributed.mesh` was given; of several, the
            last one counts fastest.

    Raises:
        ValueError: where no axis has this name.

    Example:
        >>> wg.vmap(lambda x: x * wg.axis_index("i"), axis_name="i")(wg.ones(3))
        tensor([0., 1., 2.])
    """
    total, step = None, 1
    for axis in _find_axes("axis_index", axis_name):
        index = _core.tensor(axis.index, dtype=_core.int64) if axis.ranks else axis.index
        total = index * step if total is None else total + index * step
        step *= axis.size
    assert total is not None
    return total


def axis_size(axis_name: Names) -> int:
    """Returns the number of examples, or of processes, along the axis.

    Args:
        axis_name: the name that `vmap`, `distributed.axis` or `distributed.mesh` was given; of several, the
            product of their sizes.

    Raises:
        ValueError: where no axis has this name.

    Example:
        >>> wg.vmap(lambda x: x * wg.axis_size("rows"), axis_name="rows")(wg.tensor([1.0, 2.0]))
        tensor([2., 4.])
    """
    return math.prod(axis.size for axis in _find_axes("axis_size", axis_name))


def psum(x: Any, axis_name: Names) -> Any:
    """Returns the sum of `x` over all members of the axis of this name; every member gets it.

    Args:
        x: a tensor, or a tree of them, of any dtype, which the sum keeps; bool counts as int64. A number
            counts once for each member.
        axis_name: the name that `vmap`, `distributed.axis` or `distributed.mesh` was given, or several.

    The gradient of one member's result is that of all members' results together, as in JAX: the transpose
    of a sum over the axis is a sum over the axis. So a loss that every member computes counts once for each
    of them; use `pmean` for one that counts once.

    Raises:
        ValueError: where no axis has this name.

    Example:
        >>> wg.vmap(lambda x: x / wg.psum(x, "i"), axis_name="i")(wg.tensor([1.0, 3.0]))
        tensor([0.25, 0.75])
    """
    axes = _find_axes("psum", axis_name)

    def total(x: Tensor) -> Tensor:
        x = x.to(_core.int64) if x.dtype == _core.bool else x
        for axis in axes:
            x = axis.collective(x, "sum")
        return x

    return _map_tensors(total, x)


def pmean(x: Any, axis_name: Names) -> Any:
    """Returns the mean of `x` over all members of the axis of this name; see `psum`. Integers and truth values
    become numbers of the default dtype.

    Example:
        >>> wg.vmap(lambda x: x - wg.pmean(x, "i"), axis_name="i")(wg.tensor([1.0, 3.0]))
        tensor([-1.,  1.])
    """
    size = math.prod(axis.size for axis in _find_axes("pmean", axis_name))

    def mean(x: Tensor) -> Tensor:
        if x.dtype in (_core.float16, _core.bfloat16):
            # The sum of large halves is infinite.
            return psum(x / size, axis_name)
        is_counted = not (x.is_floating_point() or x.is_complex())
        return psum(x.to(_core.get_default_dtype()) if is_counted else x, axis_name) / size

    return _map_tensors(mean, x)


def all_gather(x: Any, axis_name: Names, *, axis: int = 0, tiled: bool = False) -> Any:
    """Returns the values of all members of the axis of this name, side by side; every member gets them.

    Args:
        x: a tensor, or a tree of them.
        axis_name: the name that `vmap`, `distributed.axis` or `distributed.mesh` was given, or several, of
            which the last one counts fastest.
        axis: where the new axis goes in the result.
        tiled: whether the values are joined along an axis that they have, instead of a new one.

    Returns:
        A tensor with the length of the axis at `axis`; if `tiled`, that many times as long there.

    Raises:
        ValueError: where no axis has this name.

    Example:
        >>> wg.vmap(lambda x: wg.all_gather(x, "i").flip(0), axis_name="i", out_axes=None)(wg.tensor([1.0, 2.0]))
        tensor([2., 1.])
    """
    axes = _find_axes("all_gather", axis_name)

    def gathered(x: Tensor) -> Tensor:
        at = _normalize_axis("all_gather", axis, x.ndim + (not tiled))
        for member in axes:
            x = member.collective(x, "gather", at)
        joined = len(axes) - (not tiled)
        return x.flatten(at, at + joined) if joined else x

    return _map_tensors(gathered, x)


def psum_scatter(x: Any, axis_name: Names, *, scatter_dimension: int = 0, tiled: bool = False) -> Any:
    """Returns this member's part of the sum of `x` over the axis of this name: the transpose of `all_gather`.

    Args:
        x: a tensor, or a tree of them.
        axis_name: the name that `vmap`, `distributed.axis` or `distributed.mesh` was given, or several.
        scatter_dimension: the axis that is cut into parts; without `tiled` it has one entry for each member,
            and goes.
        tiled: whether parts keep the axis, with their share of its length.

    Raises:
        ValueError: where no axis has this name; a length that does not fit the number of members.

    Example:
        >>> x = wg.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> wg.vmap(lambda x: wg.psum_scatter(x, "i"), axis_name="i")(x)
        tensor([4., 6.])
    """
    axes = _find_axes("psum_scatter", axis_name)

    def scattered(x: Tensor) -> Tensor:
        at = _normalize_axis("psum_scatter", scatter_dimension, x.ndim)
        x = x.to(_core.int64) if x.dtype == _core.bool else x
        x = _split_axis("psum_scatter", x, at, math.prod(axis.size for axis in axes), tiled)
        if len(axes) > 1:
            x = x.unflatten(at, tuple(axis.size for axis in reversed(axes)))
        for axis in reversed(axes):
            x = axis.collective(x, "sum_scatter", at)
        return x

    return _map_tensors(scattered, x)


def all_to_all(x: Any, axis_name: str, split_axis: int, concat_axis: int, *, tiled: bool = False) -> Any:
    """Returns what all members have for this one: part `i` along `split_axis` goes to member `i`.

    Args:
        x: a tensor, or a tree of them.
        axis_name: the name that `vmap`, `distributed.axis` or `distributed.mesh` was given.
        split_axis: the axis that is cut into parts; without `tiled` it has one entry for each member, and
            goes.
        concat_axis: where the axis of what comes from all members is in the result.
        tiled: whether parts keep the axis `split_axis`, and are joined along `concat_axis`.

    Raises:
        ValueError: where no axis has this name; a length that does not fit the number of members.

    Example:
        >>> x = wg.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> wg.vmap(lambda x: wg.all_to_all(x, "i", 0, 0), axis_name="i")(x)
        tensor([[1., 3.],
                [2., 4.]])
    """
    axis = _find_axis("all_to_all", axis_name)

    def exchanged(x: Tensor) -> Tensor:
        split, concat = (_normalize_axis("all_to_all", at, x.ndim) for at in (split_axis, concat_axis))
        x = _split_axis("all_to_all", x, split, axis.size, tiled)
        x = axis.collective(x, "all_to_all", (split, concat))
        return x.flatten(concat, concat + 1) if tiled else x

    return _map_tensors(exchanged, x)


def ppermute(x: Any, axis_name: str, perm: Sequence[tuple[int, int]]) -> Any:
    """Returns the value of another member: that of the first of each pair goes to the second.

    Args:
        x: a tensor, or a tree of them.
        axis_name: the name that `vmap`, `distributed.axis` or `distributed.mesh` was given.
        perm: pairs of positions along the axis; none is twice the first, or twice the second. Who gets
            nothing has zeros.

    Raises:
        ValueError: where no axis has this name; pairs that send to one member twice, or beyond the axis.

    Example:
        >>> shift = [(0, 1), (1, 2)]
        >>> wg.vmap(lambda x: wg.ppermute(x, "i", shift), axis_name="i")(wg.tensor([1.0, 2.0, 3.0]))
        tensor([0., 1., 2.])
    """
    axis = _find_axis("ppermute", axis_name)
    pairs = []
    for pair in perm:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"ppermute: perm is pairs of positions, (from, to), got {pair!r} in it")
        pairs.append(tuple(_as_integer("ppermute", "a position", member) for member in pair))
    for side in zip(*pairs):
        if len(set(side)) < len(side) or not all(0 <= member < axis.size for member in side):
            raise ValueError(
                f"ppermute: {pairs} is no permutation of {axis.size} members; each sends at most once and "
                "receives at most once"
            )
    return _map_tensors(lambda x: axis.collective(x, "permute", pairs), x)


def pbroadcast(x: Any, axis_name: str, source: int) -> Any:
    """Returns the value that one member of the axis of this name has; every member gets it.

    Args:
        x: a tensor, or a tree of them.
        axis_name: the name that `vmap`, `distributed.axis` or `distributed.mesh` was given.
        source: the position of that member along the axis.

    Raises:
        ValueError: where no axis has this name.
        IndexError: a position beyond the axis.

    Example:
        >>> wg.vmap(lambda x: x - wg.pbroadcast(x, "i", 1), axis_name="i")(wg.tensor([1.0, 3.0]))
        tensor([-2.,  0.])
    """
    axis = _find_axis("pbroadcast", axis_name)
    source = _as_integer("pbroadcast", "source", source)
    if not 0 <= source < axis.size:
        raise IndexError(f"pbroadcast: member {source} is out of range for {axis.size} members")
    return _map_tensors(lambda x: axis.collective(x, "broadcast", source), x)


def pmax(x: Any, axis_name: Names) -> Any:
    """Returns the largest of `x`, element by element, over the axis of this name; ties share the gradient.

    Example:
        >>> wg.vmap(lambda x: x / wg.pmax(x, "rows"), axis_name="rows")(wg.tensor([1.0, 4.0]))
        tensor([0.25, 1.00])
    """
    return _extremum("pmax", "max", x, axis_name)


def pmin(x: Any, axis_name: Names) -> Any:
    """Returns the smallest of `x`, element by element, over the axis of this name; ties share the gradient.

    Example:
        >>> wg.vmap(lambda x: x - wg.pmin(x, "rows"), axis_name="rows")(wg.tensor([1.0, 4.0]))
        tensor([0., 3.])
    """
    return _extremum("pmin", "min", x, axis_name)


def _extremum(function: str, kind: str, x: Any, names: Names) -> Any:
    axes = _find_axes(function, names)
    return _map_tensors(lambda x: functools.reduce(lambda x, axis: axis.collective(x, kind), axes, x), x)
