"""Changes of shape and order, and joining, with the standard's parameters."""

from collections.abc import Sequence
from typing import Any

from wengert import _core
from wengert._arguments import operand, operands
from wengert._core import Tensor
from wengert._functions import broadcast_shapes, broadcast_tensors
from wengert.composed._method import on_axis

from ._dtypes import result_type

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]


def broadcast_arrays(*arrays: Any) -> list[Tensor]:
    """Returns all tensors, expanded to their common shape."""
    return list(broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """Returns a tensor broadcast to a shape, without a copy."""
    return operand("broadcast_to", x).broadcast_to(shape)


def _promoted(name: str, arrays: Any) -> Sequence[Tensor]:
    """The members of a sequence, in their common dtype."""
    plain = isinstance(arrays, (list, tuple)) and all(isinstance(x, Tensor) for x in arrays)
    parts = arrays if plain else operands(name, arrays)
    if not parts or all(x.dtype is parts[0].dtype for x in parts):
        return parts
    dtype = result_type(*parts)
    return [x.to(dtype) for x in parts]


def concat(arrays: Any, /, axis: int | None = 0) -> Tensor:
    """Joins tensors along an existing axis, flattened before where `axis` is None."""
    parts = _promoted("concat", arrays)
    if axis is None:
        return _core.cat([x.reshape(-1) for x in parts], 0)
    return _core.cat(parts, axis)


def stack(arrays: Any, /, axis: int = 0) -> Tensor:
    """Joins tensors of one shape along a new axis."""
    return _core.stack(_promoted("stack", arrays), axis)


def unstack(x: Tensor, /, axis: int = 0) -> tuple[Tensor, ...]:
    """Returns the slices along an axis, as views without it."""
    return operand("unstack", x).unbind(axis)


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """Returns the tensor with a new axis of length 1 at `axis`, or at each of several, counted in the
    result."""
    x = operand("expand_dims", x)
    if isinstance(axis, int):
        return x.unsqueeze(axis)
    rank = x.ndim + len(axis)
    for i in sorted(i % rank if -rank <= i < rank else i for i in axis):
        x = x.unsqueeze(i)
    return x


def squeeze(x: Tensor, /, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Returns the tensor without the given axes, without all of length 1 by default.

    Raises:
        ValueError: one of them has another length than 1.
    """
    x = operand("squeeze", x)
    if axis is None:
        return x.squeeze()
    for i in (axis,) if isinstance(axis, int) else axis:
        if -x.ndim <= i < x.ndim and x.shape[i] != 1:
            raise _core.ShapeError(
                f"squeeze: axis {i} of shape {x.shape} has length {x.shape[i]}; only axes of length 1 can go"
            )
    return x.squeeze(axis) if axis != () else x


def flip(x: Tensor, /, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Reverses the tensor along some axes, all by default."""
    x = operand("flip", x)
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    reversed_axes = {on_axis("flip", x, k)[1] for k in axes}
    return (
        x[tuple(slice(None, None, -1 if k in reversed_axes else None) for k in range(x.ndim))]
        if reversed_axes
        else x.clone()
    )


def moveaxis(x: Tensor, /, source: Any, destination: Any) -> Tensor:
    """Moves axes to new positions; the others keep their order."""
    return operand("moveaxis", x).moveaxis(source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Returns the view with its axes in the order given."""
    return operand("permute_dims", x).permute(axes)


def repeat(x: Tensor, /, repeats: Any, axis: int | None = None) -> Tensor:
    """Repeats each element (along `axis`, each slice) `repeats` times in a row, of the flattened tensor by
    default.
    """
    x = operand("repeat", x)
    if isinstance(repeats, (list, tuple)):
        repeats = _core.tensor(repeats)
    if isinstance(repeats, Tensor) and repeats.shape == (1,):
        repeats = repeats.expand(x.numel() if axis is None else x.shape[axis])
    return x.repeat_interleave(repeats, axis)


def reshape(
    x: Tensor,
    /,
    shape: int | tuple[int, ...] | None = None,
    order: str = "C",
    *,
    newshape: Any = None,
    copy: bool | None = None,
) -> Tensor:
    """Returns the same elements in row-major order with another shape; one length may be -1.

    Args:
        order: `"F"` reads and writes the elements with the first axis changing fastest.
        newshape: NumPy's older name of `shape`.
        copy: `True` always copies, `False` never does, `None` only where it must.

    Raises:
        ValueError: `copy=False`, and the layout needs a copy.
    """
    x, shape = operand("reshape", x), newshape if shape is None else shape
    if shape is None or order not in ("C", "F", "A"):
        raise TypeError(f"reshape: a shape and the order 'C' or 'F' expected, got {shape} and {order!r}")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if order == "F":
        return _reversed(_reversed(x).reshape(shape[::-1]))
    if copy is False:
        return x.view(shape)
    return x.clone().reshape(shape) if copy else x.reshape(shape)


def _reversed(x: Tensor) -> Tensor:
    """The view with its axes in the opposite order."""
    return x.permute(tuple(range(x.ndim))[::-1])


def roll(x: Tensor, /, shift: Any, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Shifts the elements along axes, or in the flattened tensor; those pushed out come back in at the other
    end."""
    x = operand("roll", x)
    if axis is None:
        return x.roll(shift)
    if isinstance(shift, int) and not isinstance(axis, int):
        shift = [shift] * len(axis)
    return x.roll(shift, axis)


def tile(x: Tensor, /, reps: int | tuple[int, ...]) -> Tensor:
    """Returns the tensor laid side by side, `reps` times along each axis; missing leading counts are 1."""
    return operand("tile", x).tile((reps,) if isinstance(reps, int) else tuple(reps))
