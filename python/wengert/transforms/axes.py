"""Named axes of batches: what an example inside `vmap(..., axis_name=)` does together with all others.

Two operations are enough. `psum` adds up over the axis, and is its own transpose; `all_gather` shows every
example all values, and its transpose hands each example the sum of what the others say about its own. Both
are custom functions whose batching rule is the operation; an index along the axis, an operand that only this
batch has, tells them at which of several nested batches to act.
"""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

from wengert import _core
from wengert._core import Tensor
from wengert.autograd.function import Function, VmapInfo
from wengert.tree import tree_map

__all__ = ["all_gather", "axis_index", "axis_size", "named", "pmax", "pmean", "pmin", "psum"]

# Per name, innermost last: the position along the axis and the size of the batch.
Axes = dict[str, tuple[Tensor, int]]
_AXES: contextvars.ContextVar[Axes] = contextvars.ContextVar("wengert_axes", default={})  # noqa: B039


@contextlib.contextmanager
def named(name: str, index: Tensor, size: int) -> Iterator[None]:
    """While it lasts, `name` is the axis of which `index` is the position of the example at hand."""
    token = _AXES.set({**_AXES.get(), name: (index, size)})
    try:
        yield
    finally:
        _AXES.reset(token)


def _axis(function: str, name: str) -> tuple[Tensor, int]:
    axes = _AXES.get()
    if not isinstance(name, str):
        raise TypeError(f"{function}: axis_name must be a string, got {type(name).__name__}")
    if name not in axes:
        known = ", ".join(repr(n) for n in axes) or "none"
        raise ValueError(
            f"{function}: there is no axis {name!r} here; vmap(..., axis_name={name!r}) gives an axis its "
            f"name. Known here: {known}"
        )
    return axes[name]


def axis_index(axis_name: str) -> Tensor:
    """Returns the position of the example at hand along the axis, an integer tensor of shape ().

    Args:
        axis_name: the name that `vmap` was given.

    Raises:
        ValueError: where no batch has an axis of this name.

    Example:
        >>> wg.vmap(lambda x: x * wg.axis_index("i"), axis_name="i")(wg.ones(3))
        tensor([0., 1., 2.])
    """
    return _axis("axis_index", axis_name)[0]


def axis_size(axis_name: str) -> int:
    """Returns the number of examples along the axis.

    Args:
        axis_name: the name that `vmap` was given.

    Raises:
        ValueError: where no batch has an axis of this name.

    Example:
        >>> wg.vmap(lambda x: x * wg.axis_size("rows"), axis_name="rows")(wg.tensor([1.0, 2.0]))
        tensor([2., 4.])
    """
    return _axis("axis_size", axis_name)[1]


def _passed(cls: Any, x: Tensor, axis: int | None, index: Tensor, size: int) -> tuple[Tensor, int | None]:
    """The same operation for a batch that is not the named one: its axis in front of all others."""
    if axis is None:
        return cls.apply(x, index, size), None
    found = cls.apply(x if axis == 0 else x.movedim(axis, 0), index, size)
    return found, 0


class _Sum(Function):
    """The sum over the axis, the same for all examples. Outside of the batch it is the value itself."""

    @staticmethod
    def forward(x: Tensor, index: Tensor, size: int) -> Tensor:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(inputs[1])
        ctx.save_for_forward(inputs[1])
        ctx.size = inputs[2]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _Sum.apply(g, ctx.saved_tensors[0], ctx.size), None, None

    @staticmethod
    def jvp(ctx: Any, t: Tensor, *_: Any) -> Tensor:
        return _Sum.apply(t, ctx.saved_tensors[0], ctx.size)

    @staticmethod
    def vmap(info: VmapInfo, in_dims: Any, x: Tensor, index: Tensor, size: int) -> Any:
        if in_dims[1] is None:
            return _passed(_Sum, x, in_dims[0], index, size)
        return (x * size if in_dims[0] is None else x.sum(in_dims[0])), None


class _Gather(Function):
    """The values of all examples, stacked along a new first axis, the same for all examples."""

    @staticmethod
    def forward(x: Tensor, index: Tensor, size: int) -> Tensor:
        return x.unsqueeze(0).expand(size, *x.shape).clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(inputs[1])
        ctx.save_for_forward(inputs[1])
        ctx.size = inputs[2]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (index,) = ctx.saved_tensors
        total = _Sum.apply(g, index, ctx.size)
        return total.take(index.reshape(1), 0).squeeze(0), None, None

    @staticmethod
    def jvp(ctx: Any, t: Tensor, *_: Any) -> Tensor:
        return _Gather.apply(t, ctx.saved_tensors[0], ctx.size)

    @staticmethod
    def vmap(info: VmapInfo, in_dims: Any, x: Tensor, index: Tensor, size: int) -> Any:
        if in_dims[1] is None:
            found, axis = _passed(_Gather, x, in_dims[0], index, size)
            return found, None if axis is None else 1
        if in_dims[0] is None:
            return x.unsqueeze(0).expand(size, *x.shape), None
        return (x if in_dims[0] == 0 else x.movedim(in_dims[0], 0)), None


def psum(x: Any, axis_name: str) -> Any:
    """Returns the sum of `x` over all examples of the batch whose axis has this name; every example gets it.

    Args:
        x: a tensor, or a tree of them; a number counts once for each example.
        axis_name: the name that `vmap` was given.

    The gradient of one example's result is that of all examples' results together, as in JAX: the transpose
    of a sum over the axis is a sum over the axis.

    Raises:
        ValueError: where no batch has an axis of this name.

    Example:
        >>> wg.vmap(lambda x: x / wg.psum(x, "i"), axis_name="i")(wg.tensor([1.0, 3.0]))
        tensor([0.25, 0.75])
    """
    index, size = _axis("psum", axis_name)
    return tree_map(lambda x: _Sum.apply(_core.as_tensor(x), index, size), x)


def pmean(x: Any, axis_name: str) -> Any:
    """Returns the mean of `x` over all examples of the batch whose axis has this name; see `psum`.

    Example:
        >>> wg.vmap(lambda x: x - wg.pmean(x, "i"), axis_name="i")(wg.tensor([1.0, 3.0]))
        tensor([-1.,  1.])
    """
    size = _axis("pmean", axis_name)[1]
    return tree_map(lambda x: x / size, psum(x, axis_name))


def all_gather(x: Any, axis_name: str) -> Any:
    """Returns the values of all examples of the batch whose axis has this name, stacked along a new first
    axis.

    Example:
        >>> wg.vmap(lambda x: wg.all_gather(x, "i").flip(0), axis_name="i", out_axes=None)(wg.tensor([1.0, 2.0]))
        tensor([2., 1.])
    """
    index, size = _axis("all_gather", axis_name)
    return tree_map(lambda x: _Gather.apply(_core.as_tensor(x), index, size), x)


def pmax(x: Any, axis_name: str) -> Any:
    """Returns the largest of `x`, element by element, over the batch whose axis has this name; ties share the
    gradient.

    Example:
        >>> wg.vmap(lambda x: x / wg.pmax(x, "rows"), axis_name="rows")(wg.tensor([1.0, 4.0]))
        tensor([0.25, 1.00])
    """
    return tree_map(lambda x: x.amax(0), all_gather(x, axis_name))


def pmin(x: Any, axis_name: str) -> Any:
    """Returns the smallest of `x`, element by element, over the batch whose axis has this name; ties share
    the gradient.

    Example:
        >>> wg.vmap(lambda x: x - wg.pmin(x, "rows"), axis_name="rows")(wg.tensor([1.0, 4.0]))
        tensor([0., 3.])
    """
    return tree_map(lambda x: x.amin(0), all_gather(x, axis_name))
