"""Several tensors brought to one shape, or joined."""

import builtins
from collections.abc import Sequence
from typing import Any

from wengert import _core
from wengert._arguments import operands
from wengert._caller import called
from wengert._core import Tensor
from wengert._types import TensorLike

__all__ = [
    "broadcast_shapes",
    "broadcast_tensors",
    "concat",
    "concatenate",
    "hstack",
    "meshgrid",
    "row_stack",
    "vstack",
]


def meshgrid(*tensors: TensorLike, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Returns the coordinates of a grid: tensor `i` holds the `i`-th coordinate of every point.

    Args:
        tensors: the coordinates along each axis, vectors or numbers; or one list of them.
        indexing: `"ij"` puts the first along the first axis, `"xy"` exchanges the first two axes.

    Example:
        >>> wg.meshgrid(wg.tensor([1, 2]), wg.tensor([3, 4]), indexing="ij")[0]
        tensor([[1, 1],
                [2, 2]])
    """
    if indexing not in ("ij", "xy"):
        raise ValueError(f"meshgrid: indexing must be 'ij' or 'xy', got {indexing!r}")
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    given = operands("meshgrid", tensors)
    if wrong := [tuple(t.shape) for t in given if t.ndim > 1]:
        raise _core.ShapeError(f"meshgrid: vectors or numbers expected, got shape {wrong[0]}")
    vectors = [t.reshape(-1) for t in given]
    shape = [t.numel() for t in vectors]
    grid = [
        t.reshape([-1 if k == i else 1 for k in range(len(vectors))]).expand(shape)
        for i, t in enumerate(vectors)
    ]
    return tuple(t.transpose(0, 1) for t in grid) if indexing == "xy" and len(grid) > 1 else tuple(grid)


def broadcast_tensors(*tensors: TensorLike) -> tuple[Tensor, ...]:
    """Expands all tensors to their common shape.

    Example:
        >>> [x.shape for x in wg.broadcast_tensors(wg.ones(3, 1), wg.ones(2))]
        [(3, 2), (3, 2)]
    """
    parts = operands("broadcast_tensors", tensors)
    shape = broadcast_shapes(*[tuple(t.shape) for t in parts])
    return tuple(t.expand(shape) for t in parts)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Returns the common shape of operands of these shapes, each a sequence of lengths or the length of a vector.

    Example:
        >>> wg.broadcast_shapes((3, 1), (2,))
        (3, 2)
    """
    shapes = tuple((s,) if isinstance(s, builtins.int) else tuple(s) for s in shapes)
    rank = builtins.max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for s in shapes:
        for i, d in enumerate(s, rank - len(s)):
            if out[i] == 1:
                out[i] = d
            elif d not in (1, out[i]):
                raise _core.ShapeError(f"{called()}: shapes {', '.join(map(str, shapes))} do not broadcast")
    return tuple(out)


def vstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Joins tensors along the first axis; vectors become rows.

    Example:
        >>> wg.vstack((wg.tensor([1.0, 2.0]), wg.tensor([3.0, 4.0])))
        tensor([[1., 2.],
                [3., 4.]])
    """
    return _core.cat([t if t.ndim > 1 else t.reshape(1, -1) for t in operands("vstack", tensors)], 0)


def hstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Joins tensors along the second axis, vectors along their only one.

    Example:
        >>> wg.hstack((wg.tensor([1.0]), wg.tensor([2.0])))
        tensor([1., 2.])
    """
    parts = [t if t.ndim > 0 else t.reshape(1) for t in operands("hstack", tensors)]
    return _core.cat(parts, 0 if not parts or parts[0].ndim == 1 else 1)


row_stack = vstack
concat = concatenate = _core.cat
